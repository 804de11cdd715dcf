"""Hostile views: a process starts with them, and serves everything else."""

from pathlib import Path

import pytest

from tests.hostile import serving
from tests.hostile.statements import LARGE

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

_VIEWS = {
    "many_or": LARGE["OR"],
    "deep": LARGE["parentheses"],
    "casts": f"SELECT {'CAST(' * 48}id{' AS INT)' * 48} AS x FROM t",
    "chain": f"SELECT {' + '.join(['id'] * 90)} AS x FROM t",
    "grows": "SELECT length(repeat(name, 100000000)) AS n FROM t",
    "products": "SELECT count(*) AS n FROM t a, t b, t c, t d",
    **{
        f"v{i}": f"SELECT a.id FROM v{i - 1} a JOIN v{i - 1} b ON a.id = b.id" for i in range(1, 26)
    },
    "v0": "SELECT id FROM t",
    "good": "SELECT max(id) AS most FROM t",
}


def test_a_process_starts_with_hostile_views_and_serves_the_rest(tmp_path: Path) -> None:
    listed = "\n".join(f"  - {{name: {name}, sql: {sql!r}}}" for name, sql in _VIEWS.items())
    with serving.standalone(tmp_path, listed) as served:
        running = served.up()
        assert running.sql("SELECT most FROM good").json() == [{"most": serving.ROWS - 1}]
        assert running.sql("SELECT max(x) AS x FROM chain").json() == [{"x": 90 * 999}]
        for name in ("many_or", "deep", "casts", "v25"):
            refused = running.sql(f"SELECT * FROM {name}")
            assert 400 <= refused.status_code < 600
            assert not serving.Answer(refused.status_code, refused.text).problems(), name
        for name in ("grows", "products", "v6", "v7"):
            got = running.sql(f"SELECT count(*) FROM {name}")
            assert not serving.Answer(got.status_code, got.text).problems(), name
        assert running.sql("SELECT most FROM good").json() == [{"most": serving.ROWS - 1}]
        assert running.process.poll() is None
