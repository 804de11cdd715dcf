"""The state machine of the cluster's executors: events in, actions out, no I/O.

registered   its heartbeat is live
ready        it also holds the catalog and has answered a probe
draining     it accepts no new work: it is leaving, or an operator drains it
lost         no answer for LOST_AFTER_S, or a call failed; an answer brings it back
refused      it uses another version of the protocol
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from caraway_core.concurrency.backoff import Delays
from caraway_core.ids import CatalogVersion, ExecutorId, TableName
from caraway_core.protocols.dispatch import ExecutorState, ExecutorStatus
from caraway_core.protocols.fleet import Description
from caraway_core.releases.protocol_versions import SPOKEN, mismatch
from caraway_scheduler.membership import events
from caraway_scheduler.membership.events import Action, Event
from caraway_scheduler.membership.members import Record

LOST_AFTER_S = 5.0
LISTED_FOR_S = 600.0
_DELAYS = Delays(1.0, 30.0)

Outcome = tuple["Roll", tuple[Action, ...]]


@dataclass(frozen=True, slots=True)
class Roll:
    """All known executors, and the catalog that they must hold.

    `wanted` is the newest catalog and `served` the one that new statements use. They differ while a
    new catalog is being installed. Tables in `known_failures` failed in `served` and are in the
    error state, so executors need not have them. A failure on a single executor delays that
    executor, unless no other can work.
    """

    build: str
    origin: str = ""
    records: Mapping[ExecutorId, Record] = field(default_factory=dict)
    wanted: CatalogVersion | None = None
    served: CatalogVersion | None = None
    known_failures: frozenset[TableName] = frozenset()
    wishes: Mapping[ExecutorId, str] = field(default_factory=dict)
    """The incarnations that should drain, by executor."""


def apply(roll: Roll, event: Event) -> Outcome:
    """Return the roll after the event, and the actions to perform."""
    match event:
        case events.HeartbeatAnswered():
            return _heard(roll, event)
        case events.TimePassed(now):
            return _passed(roll, now)
        case events.CatalogWanted(origin, version, now):
            # Failures of older catalogs say nothing about the new one, so every executor tries at
            # once.
            records = {key: _retrying(record) for key, record in roll.records.items()}
            roll = replace(roll, origin=origin, wanted=version, records=records)
            return _settled(roll, now)
        case events.CatalogServed(version, failures, now):
            records = {
                key: replace(record, has_served=record.held == version)
                for key, record in roll.records.items()
            }
            served = replace(roll, served=version, known_failures=failures, records=records)
            return _settled(served, now)
        case events.StepEnded():
            return _step_ended(roll, event)
        case events.ExecutorLost(executor_id, cause, now):
            record = roll.records.get(executor_id)
            if record is None or record.state == "lost":
                return roll, ()
            return _put(roll, _lost(record, cause, now)), (events.Abandon(executor_id, cause),)
        case events.Draining(executor_id, now):
            record = roll.records.get(executor_id)
            return (roll, ()) if record is None else _settle(roll, _leaving(record), now)
        case events.DrainsWanted(wishes, now):
            return _settled(replace(roll, wishes=wishes), now)


def may_work(roll: Roll, record: Record) -> bool:
    """Return whether new statements can run there: it is ready, and holds their catalog."""
    if record.state != "ready" or record.held is None:
        return False
    if roll.served is None or record.held == roll.served:
        return True
    return record.held > roll.served and record.has_served


def is_wished_away(roll: Roll, record: Record) -> bool:
    """Return whether an operator asked it to drain."""
    return roll.wishes.get(record.executor_id) == record.description.incarnation


def is_pending(roll: Roll, record: Record) -> bool:
    """Return whether the outcome of the wanted catalog is still open there."""
    return (
        record.state in ("registered", "ready")
        and record.held != roll.wanted
        and not (record.error_of == "install" and record.step is None)
    )


def status(roll: Roll, record: Record, now: float) -> ExecutorStatus:
    """Return the status of an executor for listings."""
    return record.status(now, _reason(roll, record))


def refusal(description: Description, build: str) -> str:
    """Return the message that names both versions, for the scheduler's and the executor's log."""
    executor = f"executor '{description.executor_id}' (build {description.build or 'unknown'})"
    return mismatch(executor, description.spoken, f"the scheduler (build {build})")


def _heard(roll: Roll, event: events.HeartbeatAnswered) -> Outcome:
    description = event.description
    known = roll.records.get(description.executor_id)
    if known is None or known.description.incarnation != description.incarnation:
        return _settle(roll, _first_heard(roll, event), event.now)
    if known.lost_at is not None:
        if event.asked_at < known.lost_at:
            return roll, ()  # The answer may predate the loss.
        returned = _first_heard(roll, event)
        returned = replace(returned, failures=known.failures, is_leaving=known.is_leaving)
        return _settle(roll, returned, event.now)
    record = replace(known, description=description, heard_at=event.now)
    if event.asked_at >= known.held_at and known.step != "install":
        record = replace(record, held=description.catalogs.get(roll.origin))
    return _settle(roll, record, event.now)


def _first_heard(roll: Roll, event: events.HeartbeatAnswered) -> Record:
    version = event.description.catalogs.get(roll.origin)
    return Record(event.description, heard_at=event.now, held=version)


def _passed(roll: Roll, now: float) -> Outcome:
    actions: list[Action] = []
    for executor_id, record in roll.records.items():
        if record.lost_at is not None:
            if now - record.lost_at >= LISTED_FOR_S:
                records = {k: v for k, v in roll.records.items() if k != executor_id}
                roll = replace(roll, records=records)
                actions.append(events.Forget(executor_id))
        elif now - record.heard_at >= LOST_AFTER_S:
            cause = f"it did not respond for {LOST_AFTER_S:g} s"
            roll = _put(roll, _lost(record, cause, now))
            actions.append(events.Abandon(executor_id, cause))
    return roll, tuple(actions)


def _step_ended(roll: Roll, event: events.StepEnded) -> Outcome:
    record = roll.records.get(event.executor_id)
    if record is None or record.description.incarnation != event.incarnation:
        return roll, ()
    if record.step != event.step:
        return roll, ()  # It was lost and registered again in the meantime.
    record = replace(record, step=None, error=event.error, error_of=event.step)
    if not event.error:
        record = _done(replace(record, error_of=""), event)
    roll, reports = _adopted(roll, record)
    if event.error or _unknown_failures(roll, record):
        attempts = record.attempts + 1
        next_step_at = event.now + _DELAYS.delay_s(attempts)
        record = replace(record, attempts=attempts, next_step_at=next_step_at)
    else:
        record = replace(record, attempts=0)
    roll, actions = _settle(roll, record, event.now)
    if not reports:
        return roll, actions
    roll, others = _settled(roll, event.now)
    return roll, (*reports, *actions, *others)


def _adopted(roll: Roll, record: Record) -> Outcome:
    """Accept tables that failed on an executor if no other can work, to serve the rest."""
    unknown = _unknown_failures(roll, record)
    if not unknown or record.held is None:
        return roll, ()
    if any(may_work(roll, other) for other in roll.records.values()):
        return roll, ()
    roll = replace(roll, known_failures=roll.known_failures | unknown)
    failures = {table: record.failures[table] for table in sorted(unknown)}
    return roll, (events.ReportFailedTables(record.held, failures),)


def _done(record: Record, event: events.StepEnded) -> Record:
    match event.step:
        case "install":
            return replace(
                record, held=event.version, held_at=event.now, failures=dict(event.failures)
            )
        case "probe":
            return replace(record, is_proven=True)
        case "refuse":
            return replace(record, is_notified=True)


def _retrying(record: Record) -> Record:
    return replace(record, error="", error_of="", attempts=0, next_step_at=0.0)


def _leaving(record: Record) -> Record:
    return replace(record, is_leaving=True)


def _lost(record: Record, cause: str, now: float) -> Record:
    return replace(
        record, state="lost", lost_at=now, cause=cause, is_proven=False, step=None, held=None,
        has_served=False,
    )  # fmt: skip


def _settled(roll: Roll, now: float) -> Outcome:
    """Update the state of every executor, and start the steps that follow."""
    actions: tuple[Action, ...] = ()
    for record in roll.records.values():
        roll, more = _settle(roll, record, now)
        actions += more
    return roll, actions


def _settle(roll: Roll, record: Record, now: float) -> Outcome:
    """Update the state of one executor, and start the step that it needs next."""
    has_served = record.has_served or (record.held is not None and record.held == roll.served)
    record = replace(record, state=_state(roll, record), has_served=has_served)
    step = _next_step(roll, record)
    if step is None or record.step is not None or now < record.next_step_at:
        return _put(roll, record), ()
    description = record.description
    reason = refusal(description, roll.build) if step == "refuse" else ""
    version = roll.wanted if step == "install" else None
    take = events.Take(step, description.executor_id, description.incarnation, version, reason)
    return _put(roll, replace(record, step=step)), (take,)


def _next_step(roll: Roll, record: Record) -> events.Step | None:
    if record.state == "refused":
        return None if record.is_notified else "refuse"
    if record.state not in ("registered", "ready") or roll.wanted is None:
        return None
    if record.held != roll.wanted or _unknown_failures(roll, record):
        return "install"
    return None if record.is_proven else "probe"


def _state(roll: Roll, record: Record) -> ExecutorState:
    description = record.description
    if record.lost_at is not None:
        return "lost"
    if SPOKEN.common(description.spoken) is None:
        return "refused"
    if description.is_draining or record.is_leaving or is_wished_away(roll, record):
        return "draining"
    if not record.is_proven or not _has_catalog(roll, record):
        return "registered"
    return "ready"


def _has_catalog(roll: Roll, record: Record) -> bool:
    """Return whether it holds the wanted catalog, or the previous one during an installation."""
    if record.held is None or roll.wanted is None:
        return False
    if record.held == roll.wanted:
        return not _unknown_failures(roll, record)
    return record.error_of != "install"


def _unknown_failures(roll: Roll, record: Record) -> frozenset[TableName]:
    """Return the tables that failed only on this executor.

    While a catalog is not served yet, failures are collected and do not count.
    """
    if record.held != roll.served:
        return frozenset()
    return frozenset(record.failures) - roll.known_failures


def _reason(roll: Roll, record: Record) -> str:
    match record.state:
        case "lost":
            return record.cause
        case "refused":
            return refusal(record.description, roll.build)
        case "draining" if is_wished_away(roll, record):
            return "it was asked to drain and takes no new work"
        case "draining":
            return "it is about to leave and takes no new work"
        case "ready":
            return ""
    if record.error:
        return f"{record.error_of}: {record.error}"
    if unknown := sorted(_unknown_failures(roll, record)):
        return f"table '{unknown[0]}' cannot be read there: {record.failures[unknown[0]]}"
    if roll.wanted is None:
        return "the catalog is not loaded yet"
    if record.held != roll.wanted:
        return "the catalog is being installed"
    return "it has not answered a probe yet"


def _put(roll: Roll, record: Record) -> Roll:
    return replace(roll, records={**roll.records, record.executor_id: record})
