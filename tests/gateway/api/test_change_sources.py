"""PostgreSQL and Kafka from their rows to query results, in one runtime with real stores."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit import dynamodb_server, mariadb
from tests.kit.deadlines import eventually
from tests.kit.kafka import brokers
from tests.kit.postgres import Server, serving
from tests.kit.runtime import Running, running
from tests.kit.schema_registry import avro, registry

KAFKA = """
    datasets:
      - from: debezium:orders
        name: orders
        columns: [{name: id, type: bigint}, {name: note, type: text}]
        params: {kafka_bootstrap_servers: "${secrets:SERVERS}"}
        acceleration: {primary_key: id}
"""

ROWS = """
    datasets:
      - from: kafka:orders
        name: orders
        columns: [{name: id, type: bigint}, {name: note, type: text}]
        params:
          kafka_bootstrap_servers: "${secrets:SERVERS}"
          kafka_message_format: avro
          schema_registry_url: "${secrets:REGISTRY}"
        acceleration: {primary_key: id}
"""
_ID = {"name": "id", "type": "long"}
KEY = {"type": "record", "name": "Key", "fields": [_ID]}
ROW = {"type": "record", "name": "Row", "fields": [_ID, {"name": "note", "type": "string"}]}


def postgres(server: Server, more: str = "refresh_mode: changes, primary_key: id") -> str:
    params = ", ".join(f'{key}: "{value}"' for key, value in server.params.items())
    return f"""
    datasets:
      - from: postgres:public.orders
        name: orders
        params: {{{params}}}
        acceleration: {{{more}}}
    """


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running_:
        running_.execute(
            "CREATE TABLE orders (id bigint PRIMARY KEY, note text)",
            "INSERT INTO orders VALUES (1, 'one'), (2, 'two')",
        )
        yield running_


async def holds(runtime: Running, *expected: tuple[Any, ...]) -> None:
    """Wait until statements read these rows."""
    seen: Any = None

    async def look() -> bool:
        nonlocal seen
        answer = await runtime.sql("SELECT * FROM orders ORDER BY id")
        seen = answer.json() if answer.status_code == 200 else answer.text
        return bool(seen == [{"id": id_, "note": note} for id_, note in expected])

    try:
        await eventually(look, "statements read the rows")
    except AssertionError as exc:
        stands = (await runtime.api.get("/v1/datasets/orders/acceleration")).text
        raise AssertionError(f"{seen}; {stands}") from exc


async def says(runtime: Running, words: str) -> None:
    """Wait until the dataset reports why changes cannot be read."""

    async def look() -> bool:
        return words in (await runtime.api.get("/v1/datasets/orders/acceleration")).text

    await eventually(look, f"the dataset says: {words}")


async def test_a_table_is_followed_over_restarts_of_both(server: Server, tmp_path: Path) -> None:
    async with running(tmp_path, postgres(server)) as runtime:
        await holds(runtime, (1, "one"), (2, "two"))
        server.transact(
            "UPDATE orders SET note = 'uno' WHERE id = 1",
            "DELETE FROM orders WHERE id = 2",
            "INSERT INTO orders VALUES (3, 'three')",
        )
        await holds(runtime, (1, "uno"), (3, "three"))
    server.execute("INSERT INTO orders VALUES (4, 'four')")
    async with running(tmp_path, postgres(server)) as runtime:
        await holds(runtime, (1, "uno"), (3, "three"), (4, "four"))
        await asyncio.to_thread(server.kill)
        await says(runtime, "table 'public.orders'")
        await holds(runtime, (1, "uno"), (3, "three"), (4, "four"))
        await asyncio.to_thread(server.start)
        server.execute("TRUNCATE orders", "INSERT INTO orders VALUES (5, 'five')")
        await holds(runtime, (5, "five"))


async def test_the_key_of_the_table_is_that_of_the_dataset(server: Server, tmp_path: Path) -> None:
    async with running(tmp_path, postgres(server, "refresh_mode: changes")) as runtime:
        await holds(runtime, (1, "one"), (2, "two"))
        server.execute("UPDATE orders SET note = 'uno' WHERE id = 1")
        await holds(runtime, (1, "uno"), (2, "two"))
    server.execute("DELETE FROM orders WHERE id = 2")
    server.stop()
    async with running(tmp_path, postgres(server, "refresh_mode: changes")) as runtime:
        # The rows are told apart although the table cannot be asked for its key.
        await holds(runtime, (1, "uno"), (2, "two"))
        server.start()
        await holds(runtime, (1, "uno"))


async def test_rows_are_loaded_again_when_they_are_kept_in_another_way(
    server: Server, tmp_path: Path
) -> None:
    async with running(tmp_path, postgres(server)) as runtime:
        await holds(runtime, (1, "one"), (2, "two"))
    more = "refresh_mode: changes, primary_key: id, partition_by: ['bucket(4, id)']"
    async with running(tmp_path, postgres(server, more)) as runtime:
        await holds(runtime, (1, "one"), (2, "two"))


async def test_columns_may_change_until_the_first_load(server: Server, tmp_path: Path) -> None:
    server.execute("ALTER TABLE orders REPLICA IDENTITY NOTHING")
    async with running(tmp_path, postgres(server)) as runtime:
        await says(runtime, "no replica identity")
    server.execute(
        "ALTER TABLE orders ADD n int NOT NULL DEFAULT 7, ALTER note TYPE varchar",
        "ALTER TABLE orders REPLICA IDENTITY DEFAULT",
    )
    async with running(tmp_path, postgres(server)) as runtime:

        async def look() -> bool:
            answer = await runtime.sql("SELECT id, n FROM orders ORDER BY id")
            return answer.status_code == 200 and len(answer.json()) == 2

        await eventually(look, "the rows are read with their new column")


async def test_a_topic_without_rows_is_ready(tmp_path: Path) -> None:
    with brokers() as cluster:
        cluster.send("orders", None)
        async with running(tmp_path, KAFKA, {"SERVERS": cluster.servers}) as runtime:
            await holds(runtime)
            assert (await runtime.api.get("/v1/ready")).status_code == 200


async def test_a_new_column_is_reported_and_rows_stay(server: Server, tmp_path: Path) -> None:
    async with running(tmp_path, postgres(server)) as runtime:
        await holds(runtime, (1, "one"), (2, "two"))
        server.execute("ALTER TABLE orders ADD n int", "INSERT INTO orders VALUES (3, 'x', 1)")
        await says(runtime, "new column 'n'")
        await holds(runtime, (1, "one"), (2, "two"))


async def test_a_topic_is_followed_over_a_restart(tmp_path: Path) -> None:
    def event(op: str, id_: int, note: str | None = None) -> dict[str, Any]:
        image = {"id": id_, "note": note}
        return {"op": op, "before": image if op == "d" else None, "after": image}

    with brokers() as cluster:
        environ = {"SERVERS": cluster.servers}
        cluster.send("orders", event("c", 1, "one"), event("c", 2, "two"))
        async with running(tmp_path, KAFKA, environ) as runtime:
            await holds(runtime, (1, "one"), (2, "two"))
            cluster.send("orders", event("d", 1), None, event("u", 2, "dos"))
            await holds(runtime, (2, "dos"))
        cluster.send("orders", event("c", 3, "three"))
        async with running(tmp_path, KAFKA, environ) as runtime:
            await holds(runtime, (2, "dos"), (3, "three"))
            cluster.send("orders", b'{"op": "c", "after": {"id": "x"}}')
            await says(runtime, "partition 0, offset 6")
            await holds(runtime, (2, "dos"), (3, "three"))


async def test_rows_in_avro_are_followed_once_the_registry_answers(tmp_path: Path) -> None:
    def row(id_: int, note: str) -> tuple[bytes, bytes]:
        return avro(2, KEY, {"id": id_}), avro(1, ROW, {"id": id_, "note": note})

    with brokers() as cluster, registry() as schemas:
        schemas.is_away(1)
        schemas.avro(2, KEY)
        cluster.send_keyed("orders", row(1, "one"), row(2, "two"))
        environ = {"SERVERS": cluster.servers, "REGISTRY": schemas.url}
        async with running(tmp_path, ROWS, environ) as runtime:
            await says(runtime, "the schema registry returned 503")
            schemas.avro(1, ROW)
            await holds(runtime, (1, "one"), (2, "two"))
            cluster.send_keyed("orders", (row(2, "")[0], None), row(3, "three"))
            await holds(runtime, (1, "one"), (3, "three"))
        cluster.send_keyed("orders", (row(1, "")[0], None))
        async with running(tmp_path, ROWS, environ) as runtime:
            await holds(runtime, (3, "three"))


async def test_a_table_of_dynamodb_is_followed_over_restarts(tmp_path: Path) -> None:
    view = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    with dynamodb_server.serving() as server:
        server.create("orders", {"id": "N"}, StreamSpecification=view)
        server.put("orders", [{"id": 1, "note": "one"}, {"id": 2, "note": "two"}])
        params = ", ".join(f'{key}: "{value}"' for key, value in server.params().items())
        manifest = f"""
            datasets:
              - from: dynamodb:orders
                name: orders
                params: {{{params}, scan_interval: 50ms}}
                acceleration: {{refresh_mode: changes}}
        """
        async with running(tmp_path, manifest) as runtime:
            await holds(runtime, (1, "one"), (2, "two"))
            server.put("orders", [{"id": 1, "note": "uno"}, {"id": 3, "note": "three"}])
            server.client.delete_item(TableName="orders", Key={"id": {"N": "2"}})
            await holds(runtime, (1, "uno"), (3, "three"))
        server.client.delete_item(TableName="orders", Key={"id": {"N": "1"}})
        server.put("orders", [{"id": 4, "note": "four"}])
        async with running(tmp_path, manifest) as runtime:
            await holds(runtime, (3, "three"), (4, "four"))


async def test_a_table_of_mariadb_is_followed_over_restarts_of_both(tmp_path: Path) -> None:
    with mariadb.serving(in_memory=True, flags=mariadb.LOGGED) as server:
        server.execute(
            "CREATE TABLE orders (id BIGINT PRIMARY KEY, note TEXT) CHARSET=utf8mb4",
            "INSERT INTO orders VALUES (1, 'one'), (2, 'two')",
        )
        params = ", ".join(f'{key}: "{value}"' for key, value in server.params.items())
        manifest = f"""
            datasets:
              - from: mysql:orders
                name: orders
                params: {{{params}}}
                acceleration: {{refresh_mode: changes}}
        """
        async with running(tmp_path, manifest) as runtime:
            await holds(runtime, (1, "one"), (2, "two"))
            server.execute(
                "BEGIN", "UPDATE orders SET note = 'uno' WHERE id = 1",
                "DELETE FROM orders WHERE id = 2", "INSERT INTO orders VALUES (3, 'three')",
                "COMMIT",
            )  # fmt: skip
            await holds(runtime, (1, "uno"), (3, "three"))
            await asyncio.to_thread(server.kill)
            await says(runtime, "cannot be reached")
            await asyncio.to_thread(server.start)
            server.execute("INSERT INTO orders VALUES (4, 'four')")
            await holds(runtime, (1, "uno"), (3, "three"), (4, "four"))
        server.execute("DELETE FROM orders WHERE id = 1", "INSERT INTO orders VALUES (5, 'five')")
        async with running(tmp_path, manifest) as runtime:
            await holds(runtime, (3, "three"), (4, "four"), (5, "five"))
            server.execute("RENAME TABLE orders TO old",
                           "CREATE TABLE orders (id BIGINT PRIMARY KEY, note TEXT) CHARSET=utf8mb4",
                           "INSERT INTO orders VALUES (7, 'new')")  # fmt: skip
            await holds(runtime, (7, "new"))
