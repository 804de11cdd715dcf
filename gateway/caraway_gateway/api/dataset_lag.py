"""The lag of a dataset behind its source, as the API shows it."""

from datetime import datetime
from typing import Self

from pydantic import BaseModel

from caraway_acceleration.standings.lag import Lag


class DatasetLag(BaseModel):
    """The age of the rows of an accelerated dataset, compared with its source.

    `behind_ms` is the age of the source's state that statements read. It is null if producers send
    the changes, or if another scheduler follows the source. `is_late`: two refreshes that were due
    since then are missing, or changes take more than a minute.
    """

    behind_ms: int | None
    last_change_at: datetime
    is_late: bool

    @classmethod
    def from_lag(cls, lag: Lag) -> Self:
        """Return it of a lag."""
        behind_ms = None if lag.behind_s is None else round(lag.behind_s * 1_000)
        return cls(behind_ms=behind_ms, last_change_at=lag.last_change_at, is_late=lag.is_late)
