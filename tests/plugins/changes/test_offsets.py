from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.changes import SOURCE_BYTES
from caraway_plugins.changes.offsets import Offsets
from caraway_plugins.changes.target import BadChangesError
from tests.plugins.changes.events import postgres

NUMBERS = st.integers(0, 2**63)


def of(source: Any) -> bytes:
    found = Offsets().offset_of(source)
    assert found is not None
    return found


def mysql(file: str, pos: int, row: int = 0, server: int = 1) -> dict[str, Any]:
    return {"connector": "mysql", "name": "shop", "db": "db", "table": "orders",
            "server_id": server, "file": file, "pos": pos, "row": row}  # fmt: skip


def sqlserver(commit: str, change: str | None, serial: int = 1) -> dict[str, Any]:
    return {"connector": "sqlserver", "name": "shop", "commit_lsn": commit, "change_lsn": change,
            "event_serial_no": serial}  # fmt: skip


@given(NUMBERS, NUMBERS)
def test_places_in_a_log_are_ordered_as_their_bytes(one: int, other: int) -> None:
    assert (of(postgres(one)) < of(postgres(other))) == (one < other)


@pytest.mark.parametrize(
    "places",
    [
        [mysql("bin.000009", 900), mysql("bin.000010", 4), mysql("bin.000010", 4, 1),
         mysql("bin.000010", 70), mysql("bin.999999", 1), mysql("bin.1000000", 1)],
        [sqlserver("00000027:00000758:0003", None), sqlserver("00000027:00000758:0003", "NULL", 2),
         sqlserver("00000027:00000758:0003", "00000027:00000758:0001"),
         sqlserver("00000027:00000758:0004", "00000027:00000757:0001"),
         sqlserver("00000027:00000758:0004", "00000027:00000757:0001", 2)],
        [{"connector": "oracle", "scn": scn} for scn in ("99", "100", 101)],
        [{"connector": "mongodb", "ts_ms": ts, "ord": n} for ts, n in ((1, 9), (2, 1), (2, 2))],
        [{"connector": "kafka", "topic": "t", "partition": 0, "offset": n} for n in (0, 255, 256)],
    ],
)  # fmt: skip
def test_places_come_in_order(places: list[dict[str, Any]]) -> None:
    found = list(map(of, places))

    assert found == sorted(set(found))
    assert len({each[:SOURCE_BYTES] for each in found}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (postgres(1), postgres(1, table="lines")),
        (postgres(1), postgres(1, name="other")),
        # After a fail-over, the new server numbers its logs from the start.
        (mysql("bin.000001", 1), mysql("bin.000001", 1, server=2)),
        (mysql("bin.000001", 1), mysql("log.000001", 1)),
        ({"connector": "kafka", "topic": "t", "partition": 0, "offset": 1},
         {"connector": "kafka", "topic": "t", "partition": 1, "offset": 1}),
    ],
)  # fmt: skip
def test_places_in_different_sources_are_not_compared(one: Any, other: Any) -> None:
    assert of(one)[:SOURCE_BYTES] != of(other)[:SOURCE_BYTES]


def test_source_has_one_name_in_every_process() -> None:
    assert of(postgres(1)).hex() == "f94a4597714eb1c70000000000000001"


@pytest.mark.parametrize(
    "source",
    [None, {}, "text", {"connector": "unheard-of", "lsn": 1}, {"connector": []}, postgres(None),
     {"connector": "mysql", "file": ""}, {"connector": "sqlserver", "commit_lsn": "NULL"},
     {"connector": "kafka"}],
)  # fmt: skip
def test_source_without_a_place_has_no_offset(source: Any) -> None:
    assert Offsets().offset_of(source) is None


@pytest.mark.parametrize(
    "source",
    [postgres(-1), {**postgres(1), "lsn": "1"}, {**postgres(1), "lsn": 2**70},
     {**postgres(1), "lsn": True}, {**postgres(1), "table": []}, mysql("nonsense", 1),
     {**mysql("bin.000001", 1), "pos": None}, sqlserver("27", None),
     {"connector": "oracle", "scn": "x"}],
)  # fmt: skip
def test_place_that_the_connector_does_not_write_is_refused(source: Any) -> None:
    with pytest.raises(BadChangesError, match="source"):
        Offsets().offset_of(source)
