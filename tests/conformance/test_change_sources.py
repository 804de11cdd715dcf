"""Errors of datasets whose changes cannot be followed: the same cases for every change source."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.kit import dynamodb_server, mariadb, mongo_streams
from tests.kit.deadlines import eventually
from tests.kit.kafka import brokers
from tests.kit.mariadb import Mariadb
from tests.kit.postgres import Server, serving
from tests.kit.runtime import Running, running

_TABLE = (
    "CREATE TABLE orders (id bigint PRIMARY KEY, note text)",
    "INSERT INTO orders VALUES (1, 'one')",
)
_EVENT = {"op": "c", "before": None, "after": {"id": 1, "note": "one"}}
_ERROR = 3


@dataclass(slots=True)
class Broken:
    """A dataset that cannot be followed: its manifest, its complaint, and what repairs it."""

    manifest: str
    says: str
    repair: Callable[[], None]
    environ: dict[str, str] = field(default_factory=dict)


def _postgres(server: Server, says: str, repair: Callable[[], None], **params: str) -> Broken:
    written = ", ".join(f'{key}: "{value}"' for key, value in (server.params | params).items())
    return Broken(
        f"""
        datasets:
          - from: postgres:public.orders
            name: orders
            params: {{{written}}}
            acceleration: {{refresh_mode: changes, primary_key: id}}
        """,
        says,
        repair,
    )


@asynccontextmanager
async def without_a_logical_log() -> AsyncIterator[Broken]:
    with serving(wal_level="replica") as server:
        server.execute(*_TABLE)

        def repair() -> None:
            server.stop()
            server.settings["wal_level"] = "logical"
            server.start()

        yield _postgres(server, "set it to logical and restart PostgreSQL", repair)


@asynccontextmanager
async def without_a_replica_identity() -> AsyncIterator[Broken]:
    with serving() as server:
        server.execute(*_TABLE, "ALTER TABLE orders REPLICA IDENTITY NOTHING")

        def repair() -> None:
            server.execute("ALTER TABLE orders REPLICA IDENTITY DEFAULT")

        yield _postgres(server, "run: ALTER TABLE", repair)


@asynccontextmanager
async def without_the_right_to_make_a_slot() -> AsyncIterator[Broken]:
    with serving() as server:
        server.execute(
            *_TABLE,
            "CREATE PUBLICATION caraway_orders FOR TABLE orders",
            "CREATE ROLE reader LOGIN",
            "GRANT SELECT ON orders TO reader",
        )

        def repair() -> None:
            server.execute("ALTER ROLE reader REPLICATION")

        yield _postgres(server, "grant the user REPLICATION", repair, pg_user="reader")


@asynccontextmanager
async def without_a_server() -> AsyncIterator[Broken]:
    with serving() as server:
        server.execute(*_TABLE)
        server.stop()
        yield _postgres(server, "table 'public.orders'", server.start)


def _mysql(server: Mariadb, says: str, repair: Callable[[], None]) -> Broken:
    written = ", ".join(f'{key}: "{value}"' for key, value in server.params.items())
    return Broken(
        f"""
        datasets:
          - from: mysql:orders
            name: orders
            params: {{{written}}}
            acceleration: {{refresh_mode: changes}}
        """,
        says,
        repair,
    )


_MYSQL_TABLE = ("CREATE TABLE orders (id BIGINT PRIMARY KEY, note TEXT) CHARSET=utf8mb4", _TABLE[1])


@asynccontextmanager
async def without_a_binary_log() -> AsyncIterator[Broken]:
    with mariadb.serving(in_memory=True) as server:
        server.execute(*_MYSQL_TABLE)

        def repair() -> None:
            server.kill()
            server.flags = [*mariadb.LOGGED]
            server.start()
            server.execute(
                "INSERT INTO orders VALUES (2, 'two')", "DELETE FROM orders WHERE id = 2"
            )

        yield _mysql(server, "start the server with --log-bin", repair)


@asynccontextmanager
async def without_rows_in_the_binary_log() -> AsyncIterator[Broken]:
    with mariadb.serving(in_memory=True, flags=mariadb.LOGGED) as server:
        server.execute(*_MYSQL_TABLE, "SET GLOBAL binlog_format = 'MIXED'")

        def repair() -> None:
            server.execute("SET GLOBAL binlog_format = 'ROW'")

        yield _mysql(server, "SET GLOBAL binlog_format = 'ROW'", repair)


@asynccontextmanager
async def without_a_server_of_mysql() -> AsyncIterator[Broken]:
    with mariadb.serving(in_memory=True, flags=mariadb.LOGGED) as server:
        server.execute(*_MYSQL_TABLE)
        server.kill()
        yield _mysql(server, "MySQL cannot be reached", server.start)


@asynccontextmanager
async def without_a_stream() -> AsyncIterator[Broken]:
    view = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    with dynamodb_server.serving() as server:
        server.create("orders", {"id": "N"})
        server.put("orders", [{"id": 1, "note": "one"}])
        written = ", ".join(f'{key}: "{value}"' for key, value in server.params().items())
        manifest = f"""
        datasets:
          - from: dynamodb:orders
            name: orders
            params: {{{written}}}
            acceleration: {{refresh_mode: changes}}
        """

        def repair() -> None:
            server.client.update_table(TableName="orders", StreamSpecification=view)

        yield Broken(manifest, "enable one with the view type NEW_IMAGE", repair)


@asynccontextmanager
async def without_a_collection() -> AsyncIterator[Broken]:
    with mongo_streams.serving() as server:
        written = ", ".join(f'{key}: "{value}"' for key, value in server.params().items())
        manifest = f"""
        datasets:
          - from: mongodb:orders
            name: orders
            columns: [{{name: _id, type: bigint}}, {{name: note, type: text}}]
            params: {{{written}}}
            acceleration: {{refresh_mode: changes}}
        """

        def repair() -> None:
            server.client.test.orders.insert_one({"_id": 1, "note": "one"})

        yield Broken(manifest, "does not exist in database", repair)


@asynccontextmanager
async def without_a_topic() -> AsyncIterator[Broken]:
    manifest = """
        datasets:
          - from: debezium:orders
            name: orders
            columns: [{name: id, type: bigint}, {name: note, type: text}]
            params: {kafka_bootstrap_servers: "${secrets:SERVERS}"}
            acceleration: {primary_key: id}
    """
    with brokers() as cluster:
        yield Broken(
            manifest,
            "the topic does not exist",
            lambda: cluster.send("orders", _EVENT),
            {"SERVERS": cluster.servers},
        )


@asynccontextmanager
async def without_a_topic_of_rows() -> AsyncIterator[Broken]:
    manifest = """
        datasets:
          - from: kafka:orders
            name: orders
            columns: [{name: id, type: bigint}, {name: note, type: text}]
            params: {kafka_bootstrap_servers: "${secrets:SERVERS}"}
            acceleration: {enabled: true}
    """
    with brokers() as cluster:
        yield Broken(
            manifest,
            "the topic does not exist",
            lambda: cluster.send("orders", {"id": 1, "note": "one"}),
            {"SERVERS": cluster.servers},
        )


CASES = [
    without_a_logical_log,
    without_a_replica_identity,
    without_the_right_to_make_a_slot,
    without_a_server,
    without_a_binary_log,
    without_rows_in_the_binary_log,
    without_a_server_of_mysql,
    without_a_stream,
    without_a_collection,
    without_a_topic,
    without_a_topic_of_rows,
]


async def listed(runtime: Running) -> dict[str, Any]:
    (entry,) = (await runtime.api.get("/v1/datasets?status=true")).json()
    return dict(entry)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
async def test_a_dataset_that_cannot_be_followed_says_so_everywhere(
    case: Callable[[], AbstractAsyncContextManager[Broken]], tmp_path: Path
) -> None:
    async with case() as broken, running(tmp_path, broken.manifest, broken.environ) as runtime:

        async def is_broken() -> bool:
            entry = await listed(runtime)
            return entry["status"] == "error" and broken.says in entry["error_message"]

        await eventually(is_broken, f"the listing says: {broken.says}")
        entry = await listed(runtime)
        assert entry["error"]["code"]

        found = (await runtime.api.get("/v1/datasets/orders/acceleration")).json()
        assert (found["status"], "version" in found) == ("error", False), found
        assert broken.says in found["error"]

        answer = await runtime.api.get("/v1/ready?verbose=true")
        assert (answer.status_code, "dataset orders (error)" in answer.text) == (503, True)

        answer = await runtime.sql("SELECT * FROM orders")
        assert answer.status_code == 503 and broken.says in answer.text, answer.text
        assert int(answer.headers["retry-after"]) > 0

        page = (await runtime.metrics.get("/metrics")).text
        assert f'dataset_load_state{{dataset="orders"}} {_ERROR}.0' in page

        answer = await runtime.api.post("/v1/datasets/orders/cdc", json=_EVENT)
        assert answer.status_code == 503, answer.text
        assert int(answer.headers["retry-after"]) > 0

        await asyncio.to_thread(broken.repair)

        async def is_loaded() -> bool:
            answer = await runtime.sql("SELECT * FROM orders")
            if answer.status_code != 200:
                return False
            return [[*each.values()] for each in answer.json()] == [[1, "one"]]

        await eventually(is_loaded, "the rows are read once it is repaired")
        assert (await listed(runtime))["status"] == "ready"
        assert (await runtime.api.get("/v1/ready")).status_code == 200
