"""Conditions of a status, as JSON. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

_LONGEST = 4000


# Any: a status as JSON, here and below.
def listed(type_: str, against: Sequence[str], good: str, bad: str) -> dict[str, Any]:
    """Return a condition that holds unless something speaks against it."""
    return condition(type_, not against, bad if against else good, "; ".join(against))


def condition(type_: str, holds: bool | None, reason: str, message: str) -> dict[str, Any]:
    """Return a condition; None is the status `Unknown`."""
    return {
        "type": type_,
        "status": "Unknown" if holds is None else str(holds),
        "reason": reason,
        "message": cut(message),
    }


def kept(type_: str, previous: Mapping[str, object], is_stopped: bool) -> dict[str, Any]:
    """Return the condition of the previous status, because no scheduler has answered since."""
    if is_stopped:
        return condition(type_, None, "Stopped", "no scheduler is running")
    last = _find(previous, type_)
    found = {key: last[key] for key in ("type", "status", "reason", "message") if key in last}
    return found or condition(type_, None, "NotAsked", "no scheduler has answered yet")


def dated(
    made: dict[str, Any], previous: Mapping[str, object], generation: int, now: str
) -> dict[str, object]:
    """Return the condition with its generation, and with the time when its status last changed."""
    before = _find(previous, made["type"])
    same = before.get("status") == made["status"]
    since = before.get("lastTransitionTime", now) if same else now
    return {**made, "observedGeneration": generation, "lastTransitionTime": since}


def _find(status: Mapping[str, Any], type_: str) -> Mapping[str, object]:
    """Return a condition of a status, empty if it has none."""
    found = (each for each in status.get("conditions") or () if each.get("type") == type_)
    return next(found, {})


def cut(text: str) -> str:
    """Return the text, shortened to what a message may have."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
