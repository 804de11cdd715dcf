import pytest
from substrait.algebra_pb2 import Rel

from caraway_engine.stages import reads
from caraway_engine.stages.relations import kind, walk
from tests.engine.stages.planning import context, substrait


def root(sql: str) -> Rel:
    plan, _ = substrait(context()[0], sql)
    rel: Rel = plan.relations[0].root.input
    return rel


def test_each_read_has_its_table_and_columns() -> None:
    rel = root("SELECT a.id, d.label FROM facts a JOIN dims d ON a.dim = d.dim JOIN facts b "
               "ON b.other = a.id")  # fmt: skip

    assert sorted(reads.tables(rel)) == ["dims", "facts", "facts"]
    columns = {table: set(each) for table, each in reads.table_reads(rel).items()}
    assert columns == {
        "dims": {frozenset({"dim", "label"})},
        "facts": {frozenset({"id", "dim"}), frozenset({"other"})},
    }


@pytest.mark.parametrize(
    ("sql", "is_whole", "is_row_by_row"),
    [
        ("SELECT id, dim + 1 FROM facts", True, True),
        ("SELECT id FROM facts WHERE other > 3", False, True),
        ("SELECT id, rank() OVER (ORDER BY dim) FROM facts", False, False),
        ("SELECT DISTINCT dim FROM facts", False, False),
        ("SELECT id FROM facts LIMIT 3", False, False),
        ("SELECT f.id FROM facts f JOIN dims d ON f.dim = d.dim", False, False),
        ("SELECT id FROM facts UNION ALL SELECT id FROM more", False, False),
    ],
)
def test_rows_are_those_of_a_table_or_made_from_several(
    sql: str, is_whole: bool, is_row_by_row: bool
) -> None:
    rel = root(sql)

    assert reads.is_row_by_row(rel) == is_row_by_row
    assert reads.is_whole_table(rel) == is_whole


def test_a_filter_inside_of_a_read_leaves_out_rows() -> None:
    (read,) = (each for each in walk(root("SELECT id FROM facts")) if kind(each) == "read")
    assert reads.is_whole_table(read)

    read.read.filter.literal.boolean = True
    assert not reads.is_whole_table(read)
