"""The monitors that new projects have. All but the first are ours."""

from dataclasses import dataclass

from caraway_management.domain import plans
from caraway_management.domain.monitors import Spec


@dataclass(frozen=True, slots=True)
class Alert:
    """A monitor before it is on a project."""

    name: str
    template: str
    spec: Spec


STORAGE = Alert(
    f"Storage at {plans.STORAGE_ALERT_PERCENT} %",
    "storage",
    Spec("GEQ", plans.STORAGE_ALERT_PERCENT, sustain_s=0),
)
_OTHERS = (
    Alert("Instances away", "instance_health", Spec("LT", 100, severity="critical")),
    Alert("Memory at 90 %", "memory_working_set", Spec("GEQ", 90)),
    Alert("Failed refreshes", "dataset_refresh_errors", Spec("GT", 0, "15m", sustain_s=0)),
)


def chosen(default_alerts: bool | None) -> tuple[Alert, ...]:
    """Return the alerts of a new project: all, none, or if nothing is said that on storage."""
    if default_alerts is None:
        return (STORAGE,)
    return (STORAGE, *_OTHERS) if default_alerts else ()
