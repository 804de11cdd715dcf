"""A database with 10,000 tables is listed in seconds, in little memory."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
import yaml

from caraway_core.manifest import load
from caraway_core.manifest.texts.memory import resident_bytes
from tests.kit import mariadb, postgres
from tests.kit.runtime import running

Filled = Callable[[], AbstractContextManager[tuple[dict[str, str], str]]]
COUNT, AT_ONCE = 10_000, 500
COLUMNS = "id bigint, a int, b text, c numeric(10, 2), d timestamp NULL, e text, f int, g date"
SLOWEST_S, MOST_BYTES = 5.0, 100 * 1024 * 1024


@contextmanager
def in_postgres() -> Iterator[tuple[dict[str, str], str]]:
    with postgres.serving(max_locks_per_transaction="2000") as server:
        for first in range(0, COUNT, AT_ONCE):
            numbers = range(first, first + AT_ONCE)
            server.execute(";".join(f"CREATE TABLE t{each} ({COLUMNS})" for each in numbers))
        yield server.params, "public"


@contextmanager
def in_mysql() -> Iterator[tuple[dict[str, str], str]]:
    with mariadb.serving(in_memory=True) as server:
        made = (f"CREATE TABLE t{each} ({COLUMNS}) ENGINE=Aria" for each in range(COUNT))
        server.execute(*made)
        yield {**server.params, "mysql_db": ""}, mariadb.DATABASE


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kind", "filled"), [("postgres", in_postgres), ("mysql", in_mysql)])
async def test_ten_thousand_tables(tmp_path: Path, kind: str, filled: Filled) -> None:
    with filled() as (params, schema):
        catalog = {"from": kind, "name": "big", "params": params}
        async with running(tmp_path, "runtime: {}") as runtime:
            assert (await runtime.sql("SELECT 1")).status_code == 200
            written = tmp_path / "caraway.yaml"
            with_catalog = {**yaml.safe_load(written.read_text()), "catalogs": [catalog]}
            written.write_text(yaml.safe_dump(with_catalog))
            known = runtime.services.catalog
            before, began_s = resident_bytes(), time.perf_counter()
            await known.apply(load(tmp_path), known._asking.resolver)
            await known.wait_settled()
            took_s, grown = time.perf_counter() - began_s, resident_bytes() - before
            assert len(known.source_catalogs.states["big"].listed) == COUNT
            assert took_s < SLOWEST_S and grown < MOST_BYTES, f"{took_s:.1f} s, {grown:,} bytes"
            answer = await runtime.sql(f"SELECT count(*) AS n FROM big.{schema}.t9999")
            assert answer.json() == [{"n": 0}]
            answer = await runtime.sql(f"SELECT count(*) AS n FROM big.{schema}.t10000")
            assert "did you mean" in answer.text
            print(f"{kind}: {took_s:.2f} s, {grown:,} bytes")
