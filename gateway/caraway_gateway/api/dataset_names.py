"""Resolves the dataset name in a path in the same way for all routes."""

from collections.abc import Callable
from typing import TypeVar

from caraway_acceleration.missing import NoDatasetError
from caraway_core.errors import NotFoundError
from caraway_core.ids import TableName
from caraway_core.manifest.texts import names

T = TypeVar("T")


def find(name: str, look: Callable[[TableName], T]) -> tuple[TableName, T]:
    """Return the dataset and the result of `look`; the name may be qualified.

    Raises:
        NoDatasetError: no dataset has this name.
    """
    try:
        spellings = names.spellings(name)
    except ValueError as exc:
        raise NoDatasetError(str(exc)) from exc
    for spelling in map(TableName, spellings):
        try:
            return spelling, look(spelling)
        except NotFoundError:
            continue
    raise NoDatasetError(f"no dataset '{name}'; GET /v1/datasets lists them")
