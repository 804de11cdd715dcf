"""A database with 10,000 tables is listed in seconds, in little memory."""

import time
from pathlib import Path

import pytest
import yaml

from caraway_core.manifest import load
from caraway_core.manifest.texts.memory import resident_bytes
from tests.kit.postgres import serving
from tests.kit.runtime import running

COUNT, AT_ONCE = 10_000, 500
COLUMNS = "id bigint, a int, b text, c numeric(10, 2), d timestamptz, e text, f int, g date"
SLOWEST_S, MOST_BYTES = 5.0, 100 * 1024 * 1024


@pytest.mark.full
async def test_ten_thousand_tables(tmp_path: Path) -> None:
    with serving(max_locks_per_transaction="2000") as server:
        for first in range(0, COUNT, AT_ONCE):
            numbers = range(first, first + AT_ONCE)
            server.execute(";".join(f"CREATE TABLE t{each} ({COLUMNS})" for each in numbers))
        (catalog,) = yaml.safe_load(f"[{{from: postgres, name: pg, params: {server.params}}}]")
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
            assert len(known.source_catalogs.states["pg"].listed) == COUNT
            assert took_s < SLOWEST_S and grown < MOST_BYTES, f"{took_s:.1f} s, {grown:,} bytes"
            answer = await runtime.sql("SELECT count(*) AS n FROM pg.public.t9999")
            assert answer.json() == [{"n": 0}]
            answer = await runtime.sql("SELECT count(*) AS n FROM pg.public.t10000")
            assert "did you mean" in answer.text
