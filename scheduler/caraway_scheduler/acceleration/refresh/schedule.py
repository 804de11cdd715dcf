"""When a dataset is refreshed; time and chance are arguments."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from cronsim import CronSim, CronSimError

OnStartup = Literal["auto", "always"]

_FIELDS = "minute hour day-of-month month day-of-week"
_LONGEST_EXPRESSION = 200
# Any day does; it must not be today, or an expression would be good on some days only.
_TRIED_FROM = datetime(2000, 1, 1, tzinfo=UTC)
_DEFAULT_JITTER = 0.1


@dataclass(frozen=True, slots=True)
class Interval:
    """So long after the end of the refresh before: one that is slow never runs back to back."""

    period_s: float

    def __post_init__(self) -> None:
        if not self.period_s > 0:
            raise ValueError(f"an interval of {self.period_s} s is not above zero")

    def next_after(self, moment: datetime) -> datetime:
        return moment + timedelta(seconds=self.period_s)


@dataclass(frozen=True, slots=True)
class Cron:
    """At the times of five fields, in UTC.

    Raises:
        ValueError: it says which field is wrong.
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
                f"'{self.expression}' is not a cron expression: its {field} is wrong; the fields "
                f"are {_FIELDS}, for example '0 3 * * MON-FRI'"
            ) from exc
        except StopIteration:
            raise ValueError(
                f"'{self.expression}' never comes: no such day in fifty years"
            ) from None

    def next_after(self, moment: datetime) -> datetime:
        """Return the first of its times after the moment, never the moment itself."""
        return next(CronSim(self.expression, moment.astimezone(UTC)))


Schedule = Interval | Cron


@dataclass(frozen=True, slots=True)
class Timetable:
    """When one dataset is refreshed. Without a schedule: at the start, and when it is asked for.

    `jitter_max_s` None means a tenth of the time between two refreshes, and 0 no jitter. A chance
    in [0, 1) says how much of it is taken; a refresh comes later by it, never sooner.
    """

    schedule: Schedule | None = None
    on_startup: OnStartup = "auto"
    jitter_max_s: float | None = 0

    def first(self, now: datetime, refreshed_at: datetime | None, chance: float) -> datetime | None:
        """Return when to refresh after a start with the data of `refreshed_at`, if there are any.

        An interval that passed meanwhile is due at once. A time of a cron expression that passed
        is left out, because such a time is chosen for its hour.
        """
        if refreshed_at is None or self.on_startup == "always":
            return now
        if isinstance(self.schedule, Interval):
            return max(now, self.after(min(refreshed_at, now), chance) or now)
        return self.after(now, chance)

    def after(self, ended_at: datetime, chance: float) -> datetime | None:
        """Return when to refresh after a refresh that has ended, well or badly."""
        if self.schedule is None:
            return None
        due = self.schedule.next_after(ended_at)
        return due + chance * self._jitter_max(self.schedule, due)

    def _jitter_max(self, schedule: Schedule, due: datetime) -> timedelta:
        if self.jitter_max_s is None:
            return _DEFAULT_JITTER * (schedule.next_after(due) - due)
        return timedelta(seconds=self.jitter_max_s)
