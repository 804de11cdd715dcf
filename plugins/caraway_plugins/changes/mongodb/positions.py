"""Positions in the change stream of a collection: a resume token, as text."""

import json
from dataclasses import dataclass

from caraway_core.protocols.change_sources import PositionLostError


@dataclass(frozen=True, slots=True)
class MongoPosition:
    """The token of the last change; `is_loading` means that rows are not complete."""

    collection: str
    token: str
    is_loading: bool = False

    def text(self) -> str:
        """Encode the position as text."""
        return json.dumps([self.collection, self.token, self.is_loading], separators=(",", ":"))


def read(text: str, collection: str) -> MongoPosition:
    """Parse the result of `MongoPosition.text`.

    Raises:
        PositionLostError: it is of another collection or another kind of source.
    """
    try:
        of, token, is_loading = json.loads(text)
    except (ValueError, TypeError) as exc:
        raise PositionLostError(
            "the stored position of the dataset is not one of MongoDB; reloading"
        ) from exc
    if of != collection or not isinstance(token, str):
        raise PositionLostError("the dataset reads another collection than before; reloading")
    return MongoPosition(of, token, bool(is_loading))
