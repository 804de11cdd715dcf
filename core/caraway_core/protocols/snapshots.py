"""The keys that mark snapshots as complete, and the one that a user chose as the current one.

A mark is a key without rows. The last snapshot is the current one, unless an older one was chosen
after it was made. Releases that know no choice use the last one.
"""

import hashlib
import re
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace

from caraway_core import ids
from caraway_core.ids import TableName
from caraway_core.protocols.results import ChunkInfo

_MARK = re.compile(r"(?P<at>[0-9a-f]+)-(?P<sha>[0-9a-f]{64})-(?P<size>[0-9]+)-(?P<id>[0-9a-f]{32})")
_CHOICE = re.compile(r"c(?P<at>[0-9a-f]+)-(?P<id>[0-9a-f]{32})-(?P<state>[0-9a-f]{32})")


@dataclass(frozen=True, slots=True)
class FoundSnapshot:
    """A snapshot, with the key that marks it as complete."""

    mark: str
    made: int
    identity: str
    description: str
    chunk: ChunkInfo
    restored: str = ""
    """A short hash of the version that was made from it after a user chose it."""

    @property
    def number(self) -> int:
        """The number that clients know it by: microseconds, which JavaScript holds exactly."""
        return self.made // 1000

    def was_restored_as(self, state: str) -> bool:
        """Return whether a version in this state was made from this snapshot."""
        return self.restored == _short(state)


@dataclass(frozen=True, slots=True)
class SnapshotChoice:
    """The choice of a snapshot, and the state of the version that was made from it."""

    key: str
    at: int
    identity: str
    state: str


@dataclass(frozen=True, slots=True)
class SnapshotListing:
    """The snapshots and the choices of one dataset, in the order in which they were made."""

    found: tuple[FoundSnapshot, ...]
    choices: tuple[SnapshotChoice, ...]

    @property
    def current(self) -> FoundSnapshot | None:
        """The snapshot that a dataset starts from."""
        choice = self.choices[-1] if self.choices else None
        if self.found and choice is not None and choice.at > self.found[-1].made:
            for each in self.found:
                if each.identity == choice.identity:
                    return replace(each, restored=choice.state)
        return self.found[-1] if self.found else None

    def kept(self, count: int) -> tuple[FoundSnapshot, ...]:
        """Return the last snapshots, and the current one."""
        last, current = self.found[-count:], self.current
        is_older = current is not None and current.mark not in {each.mark for each in last}
        return (current, *last) if is_older and current is not None else last


def prefix_of(name: TableName) -> str:
    """Return the prefix of the marks of a dataset."""
    return f"m{ids.key_prefix(name)}"


def listing(prefix: str, keys: Iterable[str]) -> SnapshotListing:
    """Return what the keys of a store say of the snapshots of one dataset."""
    found, choices = [], []
    for key in keys:
        if not key.startswith(prefix):
            continue
        rest = key.removeprefix(prefix)
        if match := _MARK.fullmatch(rest):
            chunk = ChunkInfo(0, 1, int(match["size"]), match["sha"])
            described = f"d{prefix}{match['id']}"
            found.append(FoundSnapshot(key, int(match["at"], 16), match["id"], described, chunk))
        elif match := _CHOICE.fullmatch(rest):
            choices.append(SnapshotChoice(key, int(match["at"], 16), match["id"], match["state"]))
    return SnapshotListing(
        tuple(sorted(found, key=lambda each: each.made)),
        tuple(sorted(choices, key=lambda each: each.at)),
    )


def new_description(prefix: str) -> tuple[str, str]:
    """Return the identity of a new snapshot, and the key of its description."""
    identity = uuid.uuid4().hex
    return identity, f"d{prefix}{identity}"


def mark_of(prefix: str, identity: str, chunk: ChunkInfo) -> str:
    """Return the key that marks a snapshot as complete now."""
    return f"{prefix}{time.time_ns():x}-{chunk.checksum}-{chunk.size_bytes}-{identity}"


def choice_of(prefix: str, found: FoundSnapshot, state: str) -> str:
    """Return the key of the choice of a snapshot now, of which a version in a state was made."""
    return f"{prefix}c{time.time_ns():x}-{found.identity}-{_short(state)}"


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
