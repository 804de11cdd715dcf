from dataclasses import replace
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.pieces import FileRange
from caraway_core.protocols.fleet import Share
from caraway_core.tables import FileScan, FilesTable
from caraway_engine.sessions.sessions import Session
from caraway_engine.sharing import shares
from tests.kit.engine import session
from tests.kit.fragments import task

ROWS = pa.table({"k": pa.array(range(90), pa.int64()), "f": [float(n % 7) for n in range(90)]})


def table(folder: Path) -> FilesTable:
    for number in range(3):
        pq.write_table(ROWS.slice(number * 30, 30), folder / f"{number}.parquet")
    paths = tuple(sorted(map(str, folder.glob("*.parquet"))))
    return FilesTable(ROWS.schema, (FileScan("parquet", paths, ROWS.schema, ".parquet"),))


def shares_of_t(made: Session, count: int) -> list[Share]:
    files = made.pieces(TableName("t"))
    assert files is not None
    return [Share(TableName("t"), pieces) for pieces in shares.divide_files(files, count)]


async def values(made: Session, sql: str, share: Share) -> list[int]:
    ran = made.run_task(task(sql, {"t": ROWS.schema}, shares=[share]), ())
    batches = [batch async for batch in ran]
    return [value for batch in batches for value in batch.column(0).to_pylist()]


async def test_shares_of_whole_files_are_the_table(tmp_path: Path) -> None:
    made = session({"t": table(tmp_path)})

    found = [await values(made, "SELECT k FROM t", share) for share in shares_of_t(made, 3)]

    assert sorted(map(len, found)) == [30, 30, 30]
    assert sorted(chain.from_iterable(found)) == list(range(90))


async def test_counts_and_extremes_are_of_the_share(tmp_path: Path) -> None:
    made = session({"t": table(tmp_path)})

    for share in shares_of_t(made, 3):
        number = int(Path(share.pieces[0].name).stem)
        assert await values(made, "SELECT count(*) FROM t", share) == [30]
        assert await values(made, "SELECT max(k) FROM t", share) == [30 * number + 29]


async def test_a_share_without_files_is_empty(tmp_path: Path) -> None:
    made = session({"t": table(tmp_path)})

    assert await values(made, "SELECT count(*) FROM t", Share(TableName("t"), ())) == [0]
    assert await values(made, "SELECT k FROM t", Share(TableName("t"), ())) == []


async def test_a_filter_that_nothing_passes_is_not_a_missing_file(tmp_path: Path) -> None:
    made = session({"t": table(tmp_path)})

    assert await values(made, "SELECT k FROM t WHERE k > 1000", shares_of_t(made, 3)[0]) == []


@pytest.mark.parametrize("change", ["gone", "other"])
async def test_a_file_that_changed_is_never_read_as_empty(tmp_path: Path, change: str) -> None:
    made = session({"t": table(tmp_path)})
    first = shares_of_t(made, 3)[0]
    path = Path(first.pieces[0].name.removeprefix("file://"))
    path.unlink() if change == "gone" else pq.write_table(ROWS, path)

    with pytest.raises(ExecutionError, match=r"is missing;|when the query was planned"):
        await values(made, "SELECT k FROM t", first)


async def test_a_piece_of_a_file_is_read_as_a_piece(tmp_path: Path) -> None:
    made = session({"t": table(tmp_path)})
    first = shares_of_t(made, 3)[0]
    (piece,) = first.pieces
    assert isinstance(piece, FileRange)
    first_row = 30 * int(Path(piece.path).stem)
    halves = [
        replace(piece, end=piece.size_bytes // 2),
        replace(piece, start=piece.size_bytes // 2),
    ]

    found = [await values(made, "SELECT k FROM t", replace(first, pieces=(h,))) for h in halves]

    assert sorted(chain.from_iterable(found)) == list(range(first_row, first_row + 30))
