"""The protocol of sources: from a dataset in the manifest to its table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.tables import TableSpec


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """One dataset as its source sees it: secrets are already filled in, so it is never printed.

    `connector` and `path` are the two halves of `from`; for `s3://bucket/key` they are `s3` and
    `bucket/key`. `declared` holds the columns that the manifest declares (empty: infer them).
    Relative local paths are relative to `base_dir`; `cache_dir` may be written to.
    """

    name: TableName
    connector: str
    path: str
    params: Mapping[str, str] = field(repr=False)
    declared: tuple[pa.Field, ...]
    access: Literal["read", "read_write"]
    base_dir: Path
    cache_dir: Path
    is_followed: bool = False
    """True if the rows come from a change stream, so only the columns are requested."""


@dataclass(frozen=True, slots=True)
class SourceCapabilities:
    """The abilities of the tables of a source; the engine does the rest."""

    scan: bool = True
    """Its rows can be read. Without it they come only from changes."""
    projection: bool = False
    """Columns that a statement does not need stay where they are."""
    filters: bool = False
    """Rows that a statement does not need stay where they are, as far as their format says."""
    limit: bool = False
    """Reading ends when there are enough rows."""
    splits: bool = False
    """Several executors can each read a part of a large table."""
    statements: bool = False
    """It groups, orders and cuts rows where they are."""
    changes: bool = False
    """Datasets can follow its changes."""
    writes: bool = False
    """Statements can change its rows."""


class Source(Protocol):
    """A kind of place that datasets come from. Its methods block and may do I/O."""

    @property
    def capabilities(self) -> SourceCapabilities:
        """The abilities of its tables, which are the same for all datasets of the source."""
        ...

    def resolve(self, request: SourceRequest) -> TableSpec:
        """Look at the data and say what table it is.

        Raises:
            DatasetError: the data is missing, unreadable, refused or of no usable shape.
        """
        ...

    def fingerprint(self, request: SourceRequest) -> str | None:
        """Return a text that changes when `resolve` would answer differently; None: it never does.

        Must be much cheaper than `resolve`.

        Raises:
            DatasetError: the data cannot be looked at now.
        """
        ...
