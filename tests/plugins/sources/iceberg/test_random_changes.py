"""Random changes of a table, against a model that is a list of rows."""

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.kit import iceberg_tables as tables
from tests.kit.engine import rows, session

_COLUMNS = pa.schema([("k", pa.int32()), ("s", pa.string()), ("d", pa.date32())])
_IDS = {"k": 1, "s": 2, "d": 3}


@dataclass
class _Model:
    """The rows that a table should have, each with its file and its position there."""

    folder: Path
    drawn: random.Random
    kept: list[tuple[str, int, dict[str, Any]]] = field(default_factory=list)

    @property
    def table(self) -> Path:
        return self.folder / "t"

    def _row(self) -> dict[str, Any]:
        number = self.drawn.choice([None, *range(6)])
        return {"k": number, "s": self.drawn.choice([None, "", "a", "b"]), "d": None}

    def append(self) -> None:
        added = [self._row() for _ in range(self.drawn.randint(1, 30))]
        data = pa.Table.from_pylist(added, _COLUMNS)
        before: set[str] = set()
        if self.table.exists():
            before = self._files()
            tables.adopted(self.folder).append(data)
        else:
            tables.create(self.folder, data)
        (file,) = self._files() - before
        self.kept += [(file, position, row) for position, row in enumerate(added)]

    def delete_positions(self) -> None:
        chosen = self.drawn.sample(self.kept, min(len(self.kept), 5))
        found: dict[str, list[int]] = {}
        for file, position, _ in chosen:
            found.setdefault(file, []).append(position)
        if found:
            tables.delete_positions(self.table, found)
        self.kept = [each for each in self.kept if each not in chosen]

    def delete_values(self) -> None:
        names = self.drawn.sample(["k", "s", "d"], self.drawn.randint(1, 3))
        if names == ["d"]:
            names = ["s", "d"]
        given = [{name: self._row()[name] for name in names} for _ in range(2)]
        columns = pa.schema([_COLUMNS.field(name) for name in names])
        tables.delete_values(
            self.table, pa.Table.from_pylist(given, columns), {name: _IDS[name] for name in names}
        )
        self.kept = [
            each for each in self.kept if {name: each[2][name] for name in names} not in given
        ]

    def _files(self) -> set[str]:
        return {each["data_file"]["file_path"] for each in tables.data_files(self.table)}


@pytest.mark.parametrize("seed", range(4))
async def test_rows_are_those_of_the_model(tmp_path: Path, seed: int) -> None:
    model = _Model(tmp_path, random.Random(seed))
    model.append()
    changes = (model.append, model.delete_positions, model.delete_values)
    for _ in range(6):
        model.drawn.choice(changes)()
        over = session({"t": tables.resolved(tmp_path)})
        expected = sorted(repr(row) for _, _, row in model.kept)
        assert sorted(map(repr, await rows(over, "SELECT * FROM t"))) == expected
