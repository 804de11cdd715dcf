"""Positions in the log of MariaDB: kept as text, and moved on by domain."""

import pytest

from caraway_core.protocols.change_sources import PositionLostError
from caraway_plugins.changes.mysql import positions
from caraway_plugins.changes.mysql.positions import MysqlPosition


@pytest.mark.parametrize(
    "position",
    [
        MysqlPosition("d.t", "0-1-5"),
        MysqlPosition("d.t", "", 3, is_loading=True),
        MysqlPosition('d."t', "0-1-5,1-2-9", 2**40),
    ],
)
def test_text_is_read_as_the_same_position(position: MysqlPosition) -> None:
    assert positions.read(position.text(), position.table) == position


@pytest.mark.parametrize(
    ("before", "gtid", "after"),
    [
        ("", "0-1-1", "0-1-1"),
        ("0-1-1", "0-1-2", "0-1-2"),
        ("0-1-1", "0-9-2", "0-9-2"),
        ("0-1-1,1-1-7", "0-1-2", "1-1-7,0-1-2"),
        ("0-1-1", "10-1-2", "0-1-1,10-1-2"),
        ("1-1-1,10-1-1", "1-1-2", "10-1-1,1-1-2"),
    ],
)
def test_transaction_moves_its_own_domain_on(before: str, gtid: str, after: str) -> None:
    moved = MysqlPosition("d.t", before, taken=4, is_loading=True).after(gtid)
    assert moved == MysqlPosition("d.t", after, 0, is_loading=True)


@pytest.mark.parametrize(
    "text", ["", "0/16B3748", "{}", "5", "null", "[]", '["d.t"]', '["d.t", "g", 0, false, 1]', "["]
)
def test_position_of_another_source_is_lost(text: str) -> None:
    with pytest.raises(PositionLostError, match="reloading"):
        positions.read(text, "d.t")


@pytest.mark.parametrize("text", ['["d.u", "0-1-5", 0, false]', '"ab"', '["D.T", "g"]'])
def test_position_of_another_table_is_lost(text: str) -> None:
    with pytest.raises(PositionLostError, match="the stored rows come from table"):
        positions.read(text, "d.t")
