"""Runs the code of the guide to other libraries, over the manifest that it shows."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.kit.processes import child

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "sql-clients.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE.read_text(), flags=re.M | re.S)


def test_the_code_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (manifest,) = blocks("yaml")
    (tmp_path / "caraway.yaml").write_text(manifest)
    orders = {"order_id": range(1000), "year": [2023 + number % 2 for number in range(1000)]}
    pq.write_table(pa.table(orders), tmp_path / "orders.parquet")
    code = blocks("python")
    assert len(code) > 8
    with child(tmp_path, tmp_path) as runtime:
        monkeypatch.setenv("CARAWAY_HTTP_URL", f"http://{runtime.addresses['http']}")
        monkeypatch.setenv("CARAWAY_FLIGHT_URL", f"grpc://{runtime.addresses['flight']}")
        exec(compile("\n".join(code), str(GUIDE), "exec"), {"__name__": "guide"})
