"""Sample records of the state store, as the checkout on PYTHONPATH writes them.

`python -m tests.kit.stored_records` prints them, to pin those of a release.
"""

import asyncio
import json
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

import pyarrow as pa

from caraway_acceleration.versions import version_codec
from caraway_acceleration.versions.reads import Reads
from caraway_acceleration.versions.usage_marks import UsageMarks
from caraway_acceleration.versions.version import DatasetVersion, Superseded, VersionPart
from caraway_acceleration.versions.wishes import ManifestNames, Wishes
from caraway_assist.models.conversations import Conversations, KeptResponse
from caraway_assist.workers.times import WorkerTurns
from caraway_core.changes import LogEntry
from caraway_core.ids import PUBLIC, ExecutorId, JobId, PrincipalId, TableName
from caraway_core.partitions.keys import PartitionBy, parse
from caraway_core.protocols.results import ChunkInfo
from caraway_core.protocols.state import StateEntry, StateStore
from caraway_scheduler.coordination.claims import Claim
from caraway_scheduler.jobs import codec
from caraway_scheduler.jobs.model import Job, JobError, JobProgress, JobRequest, Totals
from caraway_scheduler.membership.drains import Drains
from caraway_scheduler.queries.storing import StoredAnswer

AT = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)
NAME = TableName("orders")
RESPONSE = "resp_" + "a" * 48
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("at", pa.timestamp("us", "UTC"))])
REQUEST = JobRequest("SELECT * FROM orders WHERE id = $1", {"1": 5}, 30.0, 1_000_000)
MANIFEST = ManifestNames("later", "manifest")
JOB = Job(
    JobId("01J-A"), PrincipalId("key:one"), False, REQUEST, "FAILED", "s-1/one", 3, AT, AT, AT, AT,
    2, True, JobError("INTERNAL", "no reason"), Totals(10, 200, 1),
)  # fmt: skip
ANSWER = StoredAnswer(SCHEMA, (ChunkInfo(0, 10, 200, "ab"), ChunkInfo(1, 5, 90, "cd")))
PROGRESS = JobProgress(1, 2, 3, 4, 5, 6, "memory")
PARTS = {
    "v1": VersionPart("v1", SCHEMA, (ChunkInfo(0, 5, 90, "ab"),)),
    "v2": VersionPart("v2", SCHEMA, (ChunkInfo(0, 5, 90, "cd", "region=eu", "k", "e-0"),)),
}
VERSION = DatasetVersion(
    7, tuple(PARTS.values()), "s3://bucket/rows", AT, "SELECT * FROM orders", "v2-0011223344556677",
    (Superseded("v0", AT),), PartitionBy((parse("bucket(4, id)"), parse("region"))),
    (LogEntry(ChunkInfo(0, 1, 20, "ef", key="log-1"), 1_767_270_600_000, ("r1", "r2")),),
    "0/16B3748", 11, ("r0", "r1"), 2, 1, "v2-8899aabbccddeeff",
)  # fmt: skip


class _Store:
    """Keeps the written entries."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}

    async def get(self, key: str) -> StateEntry | None:
        return StateEntry(key, self.held[key], 1) if key in self.held else None

    async def scan(self, prefix: str) -> Sequence[StateEntry]:
        return [StateEntry(key, self.held[key], 1) for key in self.held if key.startswith(prefix)]

    async def compare_and_set(self, key: str, value: bytes | None, **_condition: Any) -> int:
        self.held.pop(key, None)
        if value is not None:
            self.held[key] = value
        return 1


async def records() -> dict[str, str]:
    """Return each record by its name, or by its key where the key is a part of it."""
    store = _Store()
    state = cast(StateStore, store)
    await Wishes(state, NAME).ask({"refresh_sql": "SELECT 1", "refresh_mode": "full"})
    await Wishes(state, NAME).set_sql("SELECT 2", MANIFEST)
    await Drains(state, lambda: 0.0).ask(ExecutorId("e-0"), "first")
    await UsageMarks(state, lambda: AT).renew(NAME)
    await Reads(state, "s-1/one").write(["v1", "log-1"])
    await Claim(state, "accelerating/orders", "s-1/one").acquire()
    async with WorkerTurns(state, "s-1/one").taken("nightly", AT):
        pass
    await Conversations(state).keep(
        PUBLIC, KeptResponse({"id": RESPONSE, "output": []}, [{"role": "user", "content": "hi"}])
    )
    found = {
        "job": codec.encode_job(JOB),
        "manifest": codec.encode_manifest(ANSWER),
        "progress": codec.encode_progress(3, PROGRESS),
        "promise": codec.encode_promise(JOB.job_id, REQUEST),
        "version": version_codec.encode(VERSION),
        "part": version_codec.encode_part(PARTS["v2"]),
        **store.held,
    }
    return {key: _steady(value.decode()) for key, value in sorted(found.items())}


def _steady(text: str) -> str:
    """Return a record without what differs each time: ids, and numbers of claims and clocks."""
    text = re.sub(r"\b[0-9a-f]{32}\b", "0" * 32, text)
    return re.sub(r"(?<=,)\d{10}(\.\d+)?(?=\])", "0", re.sub(r"#\d+", "", text))


if __name__ == "__main__":
    json.dump(asyncio.run(records()), sys.stdout, indent=1)
    print()
