"""Records of the state store are read by the release before and the release after.

`records/N.json` has sample records as the release with the protocol version N writes them.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from caraway_acceleration.versions import version_codec, wishes
from caraway_acceleration.versions.usage_marks import UsageMarks
from caraway_acceleration.versions.version import DatasetVersion
from caraway_assist.models.conversations import Conversations
from caraway_core.ids import PUBLIC, ExecutorId, TableName
from caraway_core.protocols.state import StateEntry, StateStore
from caraway_core.releases.protocol_versions import PROTOCOL_VERSION
from caraway_scheduler.jobs import codec
from caraway_scheduler.membership.drains import Drains
from tests.kit import stored_records as sample

RECORDS = Path(__file__).with_name("records")
BEFORE, NOW = str(PROTOCOL_VERSION - 1), str(PROTOCOL_VERSION)
# Any: records as JSON, here and below.


def pinned(version: str) -> Mapping[str, str]:
    found: Mapping[str, str] = json.loads((RECORDS / f"{version}.json").read_text())
    return found


def extended(value: Any) -> Any:
    """Add to a record what a later release might: a field, and an item of each inner list."""
    if isinstance(value, dict):
        kept = {"parameters", "body"}  # What users sent, not fields of a record.
        return {
            **{key: each if key in kept else extended(each) for key, each in value.items()},
            "later": 1,
        }
    if isinstance(value, list):
        return [[*map(extended, each), "later"] if _is_row(each) else each for each in value]
    return value


def _is_row(value: Any) -> bool:
    # Chunks, entries of logs, and superseded keys; terms of partitions and requests are not rows.
    return isinstance(value, list) and value[0] not in ("bucket", "column", "expression")


def later(text: str) -> str:
    return json.dumps(extended(json.loads(text))) if text.startswith("{") else text


async def read(records: Mapping[str, str]) -> Mapping[str, Any]:
    """Decode the records as the runtime does."""
    held = {key: value.encode() for key, value in records.items()}
    store = cast(StateStore, _Store(held))
    drains = Drains(store, lambda: 0.0)
    await drains.ask(ExecutorId("e-1"), "second")
    kept = await Conversations(store).find(PUBLIC, sample.RESPONSE)
    asked = wishes.ask_of(StateEntry("", held["accelerated-asked/orders"], 1))
    settings = StateEntry("", held["accelerated-settings/orders"], 1)
    return {
        "job": codec.decode_job(held["job"]),
        "manifest": codec.decode_manifest(held["manifest"]),
        "progress": codec.decode_progress(held["progress"]),
        "promise": codec.decode_promise(held["promise"]),
        "version": version_codec.decode(held["version"], sample.PARTS),
        "part keys": version_codec.part_keys(held["version"]),
        "part": version_codec.decode_part("v2", held["part"]),
        "mark": (await UsageMarks(store, lambda: sample.AT).read(sample.NAME)),
        "asked": asked.body,
        "sql": wishes.sql_of(settings, sample.MANIFEST),
        "drain": drains.wishes[ExecutorId("e-0")],
        "response": kept and (kept.response["id"], kept.items),
    }


def check(found: Mapping[str, Any], version: DatasetVersion = sample.VERSION) -> None:
    assert found["job"] == sample.JOB
    assert found["manifest"] == sample.ANSWER
    assert found["progress"] == (3, sample.PROGRESS)
    assert found["promise"] == (sample.JOB.job_id, codec.digest(sample.REQUEST))
    assert found["version"] == version
    assert found["part keys"] == ("v1", "v2")
    assert found["part"] == sample.PARTS["v2"]
    assert found["mark"].at == sample.AT
    assert found["asked"] == {"refresh_sql": "SELECT 1", "refresh_mode": "full"}
    assert (found["sql"], found["drain"]) == ("SELECT 2", "first")
    assert found["response"] == (sample.RESPONSE, [{"role": "user", "content": "hi"}])


class _Store:
    def __init__(self, held: Mapping[str, bytes]) -> None:
        self.held = dict(held)

    async def get(self, key: str) -> StateEntry | None:
        return StateEntry(key, self.held[key], 1) if key in self.held else None

    async def scan(self, prefix: str) -> list[StateEntry]:
        return [StateEntry(key, self.held[key], 1) for key in self.held if key.startswith(prefix)]

    async def compare_and_set(self, key: str, value: bytes, **_condition: Any) -> int:
        self.held[key] = value
        return 1


async def test_records_of_the_release_before_are_read() -> None:
    check(await read(pinned(BEFORE)), replace(sample.VERSION, definition=""))


async def test_records_of_this_release_are_pinned() -> None:
    assert await sample.records() == pinned(NOW), (
        "records of the state store changed. If the version of versions.py is in a release, "
        "increment it and say there what changed. Then pin the records: "
        f"python -m tests.kit.stored_records > {RECORDS}/VERSION.json"
    )


async def test_records_with_more_fields_are_read() -> None:
    """As they are after a downgrade."""
    check(await read({key: later(text) for key, text in pinned(NOW).items()}))


@pytest.mark.parametrize("key", sorted(pinned(BEFORE)))
def test_records_keep_what_the_release_before_reads(key: str) -> None:
    before, now = pinned(BEFORE)[key], pinned(NOW)[key]
    if not before.startswith("{"):
        # Readers do not expect more than the one value.
        assert type(before) is type(now) and before.count(",") == now.count(",")
        return
    _check_kept(json.loads(before), json.loads(now), key)


def _check_kept(before: Any, now: Any, where: str) -> None:
    if where.endswith(".format"):
        assert now <= before, f"{where}: the release before refuses a newer format"
    elif isinstance(before, dict):
        assert not before.keys() - now.keys(), f"{where}: fields are missing"
        for key, value in before.items():
            _check_kept(value, now[key], f"{where}.{key}")
    else:
        assert type(before) is type(now), where


def test_names_of_datasets_are_part_of_keys() -> None:
    assert wishes.name_in(StateEntry("accelerated-asked/a%2Fb", b"", 1)) == TableName("a/b")
