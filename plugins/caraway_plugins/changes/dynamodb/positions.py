"""Positions in the stream of a table: a place in each of its shards, as text."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from caraway_core.protocols.change_sources import PositionLostError

Place = tuple[str, bool]
"""A number of a record, and whether that record was read."""


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """The places in the shards that are read; `is_loading` means that rows are not complete."""

    stream: str
    shards: Mapping[str, Place]
    is_loading: bool = False

    def text(self) -> str:
        """Encode the position as text."""
        shards = {shard: list(self.shards[shard]) for shard in sorted(self.shards)}
        return json.dumps([self.stream, shards, self.is_loading], separators=(",", ":"))


def read(text: str, stream: str) -> StreamPosition:
    """Parse the result of `StreamPosition.text`.

    Raises:
        PositionLostError: it is of another stream or another kind of source.
    """
    try:
        of, shards, is_loading = json.loads(text)
        places = {str(shard): (str(at), bool(is_read)) for shard, (at, is_read) in shards.items()}
    except (ValueError, TypeError, AttributeError) as exc:
        raise PositionLostError(
            "the stored position of the dataset is not one of DynamoDB; reloading"
        ) from exc
    if of != stream:
        raise PositionLostError("the table has another stream than before; reloading")
    return StreamPosition(of, places, bool(is_loading))
