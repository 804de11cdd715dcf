"""Refreshes, appends, changes and compactions in any order: invariants of each version."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from caraway_acceleration.versions import version_codec
from caraway_acceleration.versions.current_version import CurrentVersion, Subject
from caraway_acceleration.versions.reads import KEPT
from caraway_acceleration.versions.version import DatasetVersion, VersionPart
from caraway_acceleration.versions.versions import HeldVersion, Successor
from caraway_core.changes import LogEntry
from caraway_core.ids import TableName
from caraway_core.partitions.keys import PartitionBy
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import ResultPlace

SCHEMA = pa.schema([("id", pa.int64())])


class _Maker:
    place = ResultPlace("file", "/data")


class Versions(RuleBasedStateMachine):
    """Tests the pure functions `CurrentVersion.next` and `anew`. Keys are numbered."""

    @initialize()
    def begin(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.keys = 0
        self.read: dict[str, datetime] = {}
        unused: Any = None
        subject = Subject(TableName("t"), "origin")
        self.current = CurrentVersion(subject, _Maker(), unused, unused, unused, lambda: self.now)  # type: ignore[arg-type]
        self._stand(self.current.anew(None, self._part(), "sql", PartitionBy()))

    def _key(self) -> str:
        self.keys += 1
        return f"k{self.keys}"

    def _part(self) -> VersionPart:
        key = self._key()
        return VersionPart(key, SCHEMA, (ChunkInfo(0, 10, 100, key),))

    @property
    def held(self) -> HeldVersion:
        assert self.current.held is not None
        return self.current.held

    @property
    def version(self) -> DatasetVersion:
        return self.held.version

    def _stand(self, successor: Successor) -> None:
        before, version = self.current.held, successor.version
        assert successor.before == before
        if before is not None:
            assert version.number == before.version.number + 1
            for key in before.version.keys:
                self.read[key] = self.now
        self.current.held = HeldVersion(version, version.number)

    @rule()
    def refresh(self) -> None:
        self._stand(self.current.anew(self.held, self._part(), "sql", PartitionBy()))
        assert self.version.log == () and len(self.version.parts) == 1

    @rule()
    def append(self) -> None:
        chunks = self.version.chunks
        parts = (*self.version.parts, self._part())
        self._stand(self.current.next(self.held, parts=parts))
        assert [each.checksum for each in self.version.chunks][: len(chunks)] == [
            each.checksum for each in chunks
        ]

    @rule(rows=st.integers(1, 9), is_whole=st.booleans())
    def change(self, rows: int, is_whole: bool) -> None:
        entry = LogEntry(ChunkInfo(0, rows, 10, f"log{self.keys}", "", self._key()))
        pending = 0 if is_whole else self.version.pending + 1
        read = self.version.read_log
        log = (*self.version.log, entry)
        self._stand(self.current.next(self.held, log=log, pending=pending))
        assert self.version.read_log[: len(read)] == read
        assert is_whole == (self.version.read_log == self.version.log)

    @rule()
    @precondition(lambda self: bool(self.version.read_log))
    def compact(self) -> None:
        later = self.version.log[len(self.version.read_log) :]
        self._stand(self.current.next(self.held, parts=(self._part(),), log=later))

    @rule(seconds=st.integers(1, 200))
    def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @invariant()
    def what_may_be_read_is_kept(self) -> None:
        """All keys of versions from the last two minutes are kept, and none is listed twice."""
        version = self.version
        past = [each.key for each in version.superseded]
        assert len(set(past)) == len(past) and not version.keys & set(past)
        wanted = version.keys | set(past)
        recent = {key for key, since in self.read.items() if self.now - since < KEPT}
        assert recent <= wanted

    @invariant()
    def what_is_written_is_read_back(self) -> None:
        version = self.version
        parts: Mapping[str, VersionPart] = {
            part.key: version_codec.decode_part(part.key, version_codec.encode_part(part))
            for part in version.parts
        }
        assert version_codec.decode(version_codec.encode(version), parts) == version

    @invariant()
    def each_state_has_a_name_of_its_own(self) -> None:
        table = self.version.table(_Maker.place)
        assert table.key == self.version.key
        assert {each.key or table.key for each in table.chunks} <= self.version.keys
        assert replace(table) == table


TestVersions = Versions.TestCase
TestVersions.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
