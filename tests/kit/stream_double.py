"""The base of streams of rows that tests write themselves."""

from functools import cached_property

from caraway_core.protocols.dispatch import StreamTraits


class StreamDouble:
    """A stream whose end only reading shows, with traits of its own."""

    is_at_end = False

    @cached_property
    def traits(self) -> StreamTraits:
        """The traits of this stream."""
        return StreamTraits()
