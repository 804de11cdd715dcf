"""Random versions of datasets, with chunks, partitions and terms."""

from datetime import UTC

import pyarrow as pa
from hypothesis import strategies as st

from caraway_acceleration.versions.version import DatasetVersion, Superseded, VersionPart
from caraway_core.changes import LogEntry
from caraway_core.partitions.keys import BucketKey, ByColumn, ByExpression, PartitionBy, Term
from caraway_core.protocols.results import ChunkInfo

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False, metadata={"k": "v"}),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("kind", pa.dictionary(pa.int8(), pa.string())),
    ],
    metadata={"a": "b"},
)
COUNTS = st.integers(0, 2**53)
TEXTS = st.text(max_size=12)
NAMES = st.none() | TEXTS
CHUNKS = st.lists(
    st.builds(ChunkInfo, COUNTS, COUNTS, COUNTS, TEXTS, TEXTS, TEXTS, TEXTS), max_size=4
).map(tuple)
TERMS: st.SearchStrategy[Term] = (
    st.builds(BucketKey, st.integers(1, 10**6), TEXTS, NAMES)
    | st.builds(ByColumn, TEXTS, NAMES)
    | st.builds(ByExpression, TEXTS, NAMES)
)
TIMES = st.datetimes(timezones=st.just(UTC))
PARTS = st.lists(
    st.builds(VersionPart, TEXTS, st.just(SCHEMA), CHUNKS),
    min_size=1, max_size=3, unique_by=lambda part: part.key,
).map(tuple)  # fmt: skip
ENTRIES = st.builds(
    LogEntry,
    st.builds(ChunkInfo, COUNTS, COUNTS, COUNTS, TEXTS, key=TEXTS),
    COUNTS,
    st.lists(TEXTS, max_size=2).map(tuple),
)
VERSIONS = st.builds(
    DatasetVersion,
    COUNTS, PARTS, TEXTS, TIMES, TEXTS, TEXTS,
    st.lists(st.builds(Superseded, TEXTS, TIMES), max_size=2).map(tuple),
    st.lists(TERMS, max_size=3).map(lambda terms: PartitionBy(tuple(terms))),
    st.lists(ENTRIES, max_size=3).map(tuple),
    TEXTS,
    st.none() | COUNTS,
    st.lists(TEXTS, max_size=3).map(tuple),
    COUNTS,
    COUNTS,
)  # fmt: skip
