"""Computes when a dataset is refreshed; the time and a random number are arguments."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from cronsim import CronSim, CronSimError

OnStartup = Literal["auto", "always"]

_FIELDS = "minute hour day-of-month month day-of-week"
_LONGEST_EXPRESSION = 200
# Any fixed day works. With today, an expression would be valid on some days only.
_TRIED_FROM = datetime(2000, 1, 1, tzinfo=UTC)
_DEFAULT_JITTER = 0.1


@dataclass(frozen=True, slots=True)
class Interval:
    """A fixed pause after the end of the previous refresh, so that slow ones never overlap."""

    period_s: float

    def __post_init__(self) -> None:
        if not self.period_s > 0:
            raise ValueError(f"an interval of {self.period_s} s is not above zero")

    def next_after(self, moment: datetime) -> datetime:
        """Return the end of the pause that starts at this moment."""
        return moment + timedelta(seconds=self.period_s)


@dataclass(frozen=True, slots=True)
class Cron:
    """The times of a cron expression with five fields, in UTC.

    Raises:
        ValueError: a field is invalid; the message names it.
    """

    expression: str

    def __post_init__(self) -> None:
        fields = self.expression.split()
        if len(fields) != 5 or len(self.expression) > _LONGEST_EXPRESSION:
            raise ValueError(
                f"'{self.expression[:_LONGEST_EXPRESSION]}' is not a cron expression: it has "
                f"{len(fields)} fields, it needs five ({_FIELDS}), for example '0 3 * * MON-FRI'"
            )
        try:
            next(CronSim(self.expression, _TRIED_FROM))
        except CronSimError as exc:
            field = str(exc).removeprefix("Bad ")
            raise ValueError(
                f"'{self.expression}' is not a cron expression: its {field} is invalid; the fields "
                f"are {_FIELDS}, for example '0 3 * * MON-FRI'"
            ) from exc
        except StopIteration:
            raise ValueError(
                f"'{self.expression}' never occurs: no such day in fifty years"
            ) from None

    def next_after(self, moment: datetime) -> datetime:
        """Return the first of its times strictly after the moment."""
        return next(CronSim(self.expression, moment.astimezone(UTC)))


Schedule = Interval | Cron


@dataclass(frozen=True, slots=True)
class Timetable:
    """The refresh times of one dataset; without a schedule, only the start and requests.

    If `jitter_max_s` is None, the jitter is a tenth of the interval; 0 disables it. A chance in [0,
    1) selects its part of the jitter, which only ever delays a refresh.
    """

    schedule: Schedule | None = None
    on_startup: OnStartup = "auto"
    jitter_max_s: float | None = 0

    def first(self, now: datetime, refreshed_at: datetime | None, chance: float) -> datetime | None:
        """Return when to refresh after a start; `refreshed_at` is the time of existing rows.

        An interval that has passed in the meantime is due at once. A cron time that has passed is
        skipped, because such a time is chosen deliberately.
        """
        if refreshed_at is None or self.on_startup == "always":
            return now
        if isinstance(self.schedule, Interval):
            return max(now, self.after(min(refreshed_at, now), chance) or now)
        return self.after(now, chance)

    def after(self, ended_at: datetime, chance: float) -> datetime | None:
        """Return when to refresh after a refresh that succeeded or failed."""
        if self.schedule is None:
            return None
        due = self.schedule.next_after(ended_at)
        return due + chance * self._jitter_max(self.schedule, due)

    def _jitter_max(self, schedule: Schedule, due: datetime) -> timedelta:
        if self.jitter_max_s is None:
            return _DEFAULT_JITTER * (schedule.next_after(due) - due)
        return timedelta(seconds=self.jitter_max_s)
