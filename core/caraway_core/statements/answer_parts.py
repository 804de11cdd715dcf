"""Parts of answers that clients read on their own, in any order and at the same time."""

from dataclasses import dataclass

from caraway_core.ids import JobId


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """A part of the answer of an asynchronous query: what to fetch, how much it is, and where.

    `locations` are the addresses that have it; empty: whoever was asked for the parts.
    """

    job_id: JobId
    index: int
    row_count: int
    size_bytes: int
    locations: tuple[str, ...] = ()
