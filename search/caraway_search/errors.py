"""The error classes of indexes and searches."""

from caraway_core.errors import CarawayError, InvalidRequestError


class DamagedIndexError(CarawayError):
    """The bytes of a segment are cut, changed or of another format; the segment is built again."""


class InvalidSearchError(InvalidRequestError):
    """A search cannot be answered as it was asked, for instance with a vector of zeros."""
