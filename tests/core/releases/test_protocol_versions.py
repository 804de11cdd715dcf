"""Releases next to each other understand each other.

`messages/N.json` has the messages of version N, and `messages/pickled-N.json` some of its bytes.
"""

import base64
import json
import pickle
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from caraway_core.protocols.fleet import Description, Task
from caraway_core.releases import protocol_versions as versions
from caraway_core.releases.protocol_versions import (
    PROTOCOL_VERSION,
    SPOKEN,
    ProtocolVersions,
    growing,
)
from caraway_core.statements import Statement
from tests.kit.message_shapes import shapes

MESSAGES = Path(__file__).parents[1] / "protocols/messages"


def pinned(name: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((MESSAGES / f"{name}.json").read_text())
    return found


@pytest.mark.parametrize(
    ("peer", "common"),
    [((17, 17), 17), ((16, 17), 17), ((16, 16), 16), ((17, 18), 17), ((15, 16), 16),
     ((15, 15), None), ((18, 19), None), ((0, 99), 17)],
)  # fmt: skip
def test_peers_speak_the_newest_version_that_both_know(
    peer: tuple[int, int], common: int | None
) -> None:
    own = ProtocolVersions(16, 17)
    assert own.common(ProtocolVersions(*peer)) == ProtocolVersions(*peer).common(own) == common


def test_a_release_speaks_its_version_and_the_one_before() -> None:
    assert (SPOKEN.oldest, SPOKEN.newest) == (PROTOCOL_VERSION - 1, PROTOCOL_VERSION)
    later = ProtocolVersions(PROTOCOL_VERSION, PROTOCOL_VERSION + 1)
    assert SPOKEN.common(later) == PROTOCOL_VERSION


@pytest.mark.parametrize("text", [None, "", "17", "a-b", "16-", "-3", "1" * 5000 + "-2", "٣-٤-"])
def test_a_peer_without_a_header_is_of_the_time_before_headers(text: str | None) -> None:
    assert ProtocolVersions.of_header(text) == ProtocolVersions(16, 16)


def test_a_header_is_read_as_it_was_written() -> None:
    assert ProtocolVersions.of_header(SPOKEN.header) == SPOKEN


def test_a_mismatch_names_both_and_the_way_out() -> None:
    assert versions.mismatch("executor 'e'", ProtocolVersions(15, 15), "the scheduler") == (
        f"executor 'e' speaks version 15 of the protocol, the scheduler {SPOKEN}; upgrade and "
        "downgrade in steps of one release"
    )


@growing
@dataclass(frozen=True, slots=True)
class Grown:
    first: int
    second: int = 2
    third: list[int] = field(default_factory=lambda: [3])


def test_fields_that_the_version_before_lacks_have_their_defaults() -> None:
    message = Grown.__new__(Grown)
    message.__setstate__([1])  # type: ignore[attr-defined]  # set by the decorator
    assert message == Grown(1)
    assert pickle.loads(pickle.dumps(Grown(7, 8, [9]))) == Grown(7, 8, [9])


def test_fields_of_a_later_version_are_dropped() -> None:
    message = Grown.__new__(Grown)
    message.__setstate__([1, 5, [6], "later"])  # type: ignore[attr-defined]
    assert message == Grown(1, 5, [6])


def test_messages_change_only_with_the_version() -> None:
    assert shapes() == pinned(str(PROTOCOL_VERSION)), (
        "messages changed. If the version of versions.py is in a release, increment it and say "
        "there what it adds. Then pin the messages: python -m tests.kit.message_shapes > "
        f"{MESSAGES}/VERSION.json"
    )


def test_messages_only_grow() -> None:
    now, before = shapes(), pinned(str(PROTOCOL_VERSION - 1))
    assert not before.keys() - now.keys(), "the version before sends these"
    for name, then in before.items():
        known, found = then.split(), now[name].split()
        assert found[: len(known)] == known, f"{name}: fields may only be added at the end"
        added = found[len(known) :]
        assert not [each for each in added if each.endswith("!")], f"{name}: needs defaults"
        assert not added or _is_growing(name), f"{name}: decorate it with @growing"


def _is_growing(name: str) -> bool:
    module, _, cls = name.partition(":")
    found = getattr(__import__(module, fromlist=[cls]), cls)
    return "growing" in found.__setstate__.__qualname__


def test_messages_of_the_version_before_are_read() -> None:
    sent = pinned(f"pickled-{PROTOCOL_VERSION - 1}")
    read = {name: pickle.loads(base64.b64decode(text)) for name, text in sent.items()}

    description, statement, task = read["description"], read["statement"], read["task"]
    assert isinstance(description, Description)
    assert description.spoken == ProtocolVersions(PROTOCOL_VERSION - 1, PROTOCOL_VERSION - 1)
    assert statement == Statement("SELECT a FROM t WHERE a = $1", {"1": 5})
    assert isinstance(task, Task)
    assert (task.trace_id, statement.trace_id, task.schema.names) == ("", "", ["a"])
