"""Scans of files in serialized plans, read from the engine and from bytes made here."""

import csv
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import ExecutionPlan, SessionConfig, SessionContext
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.pieces import FileRange
from caraway_engine.sharing import file_leaves
from caraway_engine.sharing.file_leaves import Leaf, ReadFile
from caraway_engine.statements import wire

STORE = "file:///"
COUNT = 5_000
ODD = "50%25=ü nï'.parquet"


def file(path: str, size: int, range_: tuple[int, int] | None = None, rest: bytes = b"") -> bytes:
    content = wire.message(1, path.encode()) + wire.number(2, size) + wire.message(6, b"stats")
    if range_ is not None:
        content += wire.message(5, wire.number(1, range_[0]) + wire.number(2, range_[1]))
    return wire.message(1, content + rest)


def scan(*groups: bytes, tag: int = 1, more: bytes = b"", store: str = STORE) -> bytes:
    conf = b"".join(wire.message(1, group) for group in groups)
    conf += wire.message(8, store.encode()) + more
    return wire.message(tag, wire.message(1, conf) + wire.message(2, b"options"))


def ranges(leaf: Leaf) -> list[list[tuple[str, int, int]]]:
    return [[(each.path, each.start, each.end) for each in group] for group in leaf.groups]


def piece(path: str, start: int, end: int, size: int) -> FileRange:
    return FileRange(STORE + path, start, end, size)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("leaves")
    for number, name in enumerate(("one.parquet", "two.parquet", ODD)):
        rows = pa.table({"a": range(number * COUNT, number * COUNT + COUNT)})
        pq.write_table(rows, made / name, row_group_size=500)
    return made


def context(partitions: int = 2) -> SessionContext:
    return SessionContext(SessionConfig().with_target_partitions(partitions))


def planned(made: SessionContext, folder: Path, sql: str = "SELECT a FROM t") -> ExecutionPlan:
    made.register_parquet("t", f"{folder}/")
    plan = made.sql(sql).execution_plan()
    while plan.children():
        (plan,) = plan.children()
    return plan


def rows(made: SessionContext, message: bytes) -> list[int]:
    plan = ExecutionPlan.from_bytes(made, message)
    found: list[int] = []
    for partition in range(plan.partition_count):
        for batch in made.execute(plan, partition):
            found += batch.to_pyarrow()["a"].to_pylist()
    return sorted(found)


def test_a_scan_of_the_engine_says_what_it_reads(folder: Path) -> None:
    leaf = file_leaves.read(planned(context(), folder).to_bytes())
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    assert leaf.format == "parquet" and leaf.is_splittable
    assert not leaf.has_limit and not leaf.is_bound
    held: dict[str, int] = {}
    for group in leaf.groups:
        for each in group:
            held[each.path] = held.get(each.path, 0) + each.end - each.start
    assert sorted(held.values()) == sorted(sizes.values())
    assert len(leaf.paths) == 3 and all(path.startswith("file:///") for path in leaf.paths)


def test_a_restricted_scan_reads_each_row_of_its_pieces_once(folder: Path) -> None:
    made = context()
    leaf = file_leaves.read(planned(made, folder).to_bytes())
    whole = {each.path: each.size_bytes for group in leaf.groups for each in group}
    one, two = (
        {
            path: [FileRange(path, start, end, size)]
            for path, size in whole.items()
            for start, end in [bounds(size)]
        }
        for bounds in (lambda size: (0, size // 2), lambda size: (size // 2, size))
    )
    found = [rows(made, file_leaves.restricted(leaf, pieces)) for pieces in (one, two)]
    assert sorted(found[0] + found[1]) == list(range(3 * COUNT))
    assert found[0] and found[1]
    assert rows(made, file_leaves.restricted(leaf, {})) == []
    last = {path: [FileRange(path, 0, size, size)] for path, size in whole.items() if "50%" in path}
    assert rows(made, file_leaves.restricted(leaf, last)) == list(range(2 * COUNT, 3 * COUNT))


def test_a_limit_of_the_engine_is_seen(folder: Path) -> None:
    plan = planned(context(1), folder, "SELECT a FROM t LIMIT 3")
    assert file_leaves.read(plan.to_bytes()).has_limit


def test_an_order_of_the_engine_binds_files(tmp_path: Path) -> None:
    with (tmp_path / "a.csv").open("w", newline="") as out:
        csv.writer(out).writerows([["a"], [1], [2]])
    made = context(1)
    made.sql(
        f"CREATE EXTERNAL TABLE t (a BIGINT) STORED AS CSV WITH ORDER (a) "
        f"LOCATION '{tmp_path}/a.csv' OPTIONS ('format.has_header' 'true')"
    ).collect()
    plan = made.sql("SELECT a FROM t").execution_plan()
    leaf = file_leaves.read(plan.to_bytes())
    assert (leaf.format, leaf.is_bound) == ("csv", True)


@pytest.mark.parametrize(
    ("tag", "format_", "is_splittable"),
    [(1, "parquet", True), (2, "csv", False), (20, "avro", False), (31, "json", False),
     (38, "arrow", False)],
)  # fmt: skip
def test_the_format_is_told_by_the_node(tag: int, format_: str, is_splittable: bool) -> None:
    leaf = file_leaves.read(scan(file("a", 10), tag=tag))
    assert (leaf.format, leaf.is_splittable) == (format_, is_splittable)
    # A file that the engine has split may be split again.
    assert file_leaves.read(scan(file("a", 10, (0, 5)), tag=tag)).is_splittable


@pytest.mark.parametrize("tag", [3, 13, 32, 200])
def test_another_node_is_refused(tag: int) -> None:
    with pytest.raises(ValueError, match=f"node {tag} of the plan"):
        file_leaves.read(scan(file("a", 10), tag=tag))


@pytest.mark.parametrize("message", [b"", b"\xff", scan() + scan(), scan(file("a", 1))[:-2]])
def test_what_is_no_scan_is_an_error(message: bytes) -> None:
    with pytest.raises(ValueError, match=r"values to unpack|has no end|longer than its message"):
        file_leaves.read(message)


def test_files_are_read_with_their_ranges_and_store() -> None:
    message = scan(
        file("a", 100) + file(ODD, 50, (10, 20), wire.number(3, 7)), file("c", 0), b"",
        store="s3://bucket/",
    )  # fmt: skip
    leaf = file_leaves.read(message)
    assert [
        [(f.path, f.size_bytes, f.start, f.end, f.is_whole) for f in g] for g in leaf.groups
    ] == [
        [("s3://bucket/a", 100, 0, 100, True), (f"s3://bucket/{ODD}", 50, 10, 20, False)],
        [("s3://bucket/c", 0, 0, 0, True)],
        [],
    ]
    assert leaf.paths == {"s3://bucket/a", f"s3://bucket/{ODD}", "s3://bucket/c"}
    assert wire.number(3, 7) in leaf.groups[0][1].rest
    assert b"stats" not in leaf.groups[0][1].rest


@pytest.mark.parametrize(
    ("more", "has_limit", "is_bound"),
    [
        (b"", False, False),
        (wire.message(5, wire.number(1, 3)), True, False),
        (wire.message(9, b""), False, True),
        (wire.message(12, b"x"), False, False),
        # A field that a later version may add: it may say that files are bound.
        (wire.message(14, b""), False, True),
        (wire.number(99, 1), False, True),
    ],
)
def test_what_binds_files_is_seen_and_kept(more: bytes, has_limit: bool, is_bound: bool) -> None:
    leaf = file_leaves.read(scan(file("a", 10), more=more))
    assert (leaf.has_limit, leaf.is_bound) == (has_limit, is_bound)
    again = file_leaves.restricted(leaf, {STORE + "a": [piece("a", 0, 10, 10)]})
    assert more in again and wire.message(2, b"options") in again


def test_bound_files_stay_in_their_partition_and_order() -> None:
    more = wire.message(9, b"")
    leaf = file_leaves.read(scan(file("b", 10) + file("a", 10), file("c", 10), more=more))
    pieces = {STORE + name: [piece(name, 2, 8, 10)] for name in "abc"}
    again = file_leaves.read(file_leaves.restricted(leaf, pieces))
    assert ranges(again) == [
        [(STORE + "b", 2, 8), (STORE + "a", 2, 8)],
        [(STORE + "c", 2, 8)],
    ]
    del pieces[STORE + "c"]
    assert ranges(file_leaves.read(file_leaves.restricted(leaf, pieces)))[1] == []


def test_files_that_are_free_fill_every_partition() -> None:
    size = 8 * 2**20
    leaf = file_leaves.read(scan(file("a", size), b"", b"", b""))
    again = file_leaves.read(
        file_leaves.restricted(leaf, {STORE + "a": [piece("a", 0, size, size)]})
    )
    assert len(again.groups) == 4 and all(again.groups)
    small = file_leaves.read(scan(file("a", 1000), b""))
    kept = file_leaves.restricted(small, {STORE + "a": [piece("a", 0, 1000, 1000)]})
    assert sum(map(len, file_leaves.read(kept).groups)) == 1, "so little is not split"


def test_a_file_of_another_size_is_refused() -> None:
    leaf = file_leaves.read(scan(file("a", 11)))
    with pytest.raises(ValueError, match=r"'file:///a' has 11 bytes, and had 10 when"):
        file_leaves.restricted(leaf, {STORE + "a": [piece("a", 0, 10, 10)]})


def test_a_whole_file_is_written_without_a_range() -> None:
    leaf = file_leaves.read(scan(file("a", 10, (0, 4)) + file("a", 10, (4, 10))))
    again = file_leaves.read(file_leaves.restricted(leaf, {STORE + "a": [piece("a", 0, 4, 10)]}))
    assert ranges(again) == [[(STORE + "a", 0, 4)]]
    assert not again.groups[0][0].is_whole
    whole = file_leaves.read(scan(file("a", 10)))
    again = file_leaves.read(file_leaves.restricted(whole, {STORE + "a": [piece("a", 0, 10, 10)]}))
    assert again.groups[0][0].is_whole


SIZE = 3 * 2**20
CUTS = st.lists(st.integers(0, SIZE), min_size=0, max_size=4)


def spans(cuts: list[int]) -> list[tuple[int, int]]:
    bounds = [0, *sorted(set(cuts) - {0, SIZE}), SIZE]
    return list(pairwise(bounds))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(CUTS, st.lists(CUTS, min_size=1, max_size=3), st.booleans(), st.integers(1, 3))
def test_shares_of_a_scan_are_the_scan(
    engine_cuts: list[int], per_file: list[list[int]], is_bound: bool, partitions: int
) -> None:
    """Exactly one task reads each byte, whichever ranges the engine made."""
    names = [f"f{number}" for number in range(len(per_file))]
    files = [file(name, SIZE, span) for name in names for span in spans(engine_cuts)]
    groups = [b"".join(files[number::partitions]) for number in range(partitions)]
    leaf = file_leaves.read(scan(*groups, more=wire.message(9, b"") if is_bound else b""))
    read: list[ReadFile] = []
    for task in range(5):
        pieces = {
            STORE + name: [piece(name, *span, SIZE) for span in spans(cuts)[task::5]]
            for name, cuts in zip(names, per_file, strict=True)
        }
        again = file_leaves.read(file_leaves.restricted(leaf, pieces))
        assert len(again.groups) == partitions
        read += [each for group in again.groups for each in group]
    for name in names:
        found = sorted((each.start, each.end) for each in read if each.path == STORE + name)
        assert found[0][0] == 0 and found[-1][1] == SIZE
        assert all(one[1] == two[0] for one, two in pairwise(found))
