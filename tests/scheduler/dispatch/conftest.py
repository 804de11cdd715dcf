from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.tables import TableSpec
from tests.kit.engine import memory
from tests.kit.tables import parquet
from tests.scheduler.dispatch.clustered import ROWS


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, TableSpec]:
    numbers = range(ROWS)
    facts = pa.table({"k": [n % 700 for n in numbers], "v": list(numbers)})
    more = pa.table({"k": list(range(900)), "g": [n % 11 for n in range(900)]})
    return {
        "facts": parquet(tmp_path / "facts", facts, 4),
        "more": parquet(tmp_path / "more", more, 3),
        "kept": memory(a=[1, 2]),
    }
