"""Names the relations that the engine reads wrongly."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DoubtedRelations:
    """The names of tables and views that need remedies of their own.

    The statistics of `unmeasured` ones may be wrong. Fields of NULL structs of `unmasked` ones may
    hold values.
    """

    unmeasured: frozenset[str] = frozenset()
    unmasked: frozenset[str] = frozenset()


NONE_DOUBTED = DoubtedRelations()
