"""The state machine of the cluster's executors: events in, actions out, no I/O.

registered   its heartbeat is live
ready        it also holds the catalog and has answered a probe
draining     it takes no new work: it is about to leave, or somebody wishes so
lost         no answer for LOST_AFTER_S, or a call found it gone; comes back by answering
refused      it speaks another version of the protocol
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from caraway_core.backoff import Delays
from caraway_core.ids import CatalogVersion, ExecutorId, TableName
from caraway_core.protocols.dispatch import ExecutorState, ExecutorStatus
from caraway_core.protocols.fleet import PROTOCOL_VERSION, Description
from caraway_scheduler.membership import events
from caraway_scheduler.membership.events import Action, Event
from caraway_scheduler.membership.members import Record

LOST_AFTER_S = 5.0
LISTED_FOR_S = 600.0
_DELAYS = Delays(1.0, 30.0)

Outcome = tuple["Roll", tuple[Action, ...]]


@dataclass(frozen=True, slots=True)
class Roll:
    """Every executor that is known, and the catalog that they shall hold.

    `wanted` is the newest catalog, `served` the one that new statements use: they differ while
    a new one is being installed. Tables in `known_failures` failed in `served` and are in the
    error state, so an executor need not have them. What fails only on an executor that comes later
    holds that one up, unless no other may work.
    """

    build: str
    origin: str = ""
    records: Mapping[ExecutorId, Record] = field(default_factory=dict)
    wanted: CatalogVersion | None = None
    served: CatalogVersion | None = None
    known_failures: frozenset[TableName] = frozenset()
    wishes: Mapping[ExecutorId, str] = field(default_factory=dict)
    """The incarnations of executors that shall drain."""


def apply(roll: Roll, event: Event) -> Outcome:
    """Return what is known after the event, and what to do."""
    match event:
        case events.Heard():
            return _heard(roll, event)
        case events.Passed(now):
            return _passed(roll, now)
        case events.CatalogWanted(origin, version, now):
            # Older failures say nothing about the new catalog: every executor tries at once.
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
        case events.Wished(wishes, now):
            return _settled(replace(roll, wishes=wishes), now)


def may_work(roll: Roll, record: Record) -> bool:
    """Whether new statements can run there: it is ready, and holds the catalog they use."""
    if record.state != "ready" or record.held is None:
        return False
    if roll.served is None or record.held == roll.served:
        return True
    return record.held > roll.served and record.has_served


def is_wished_away(roll: Roll, record: Record) -> bool:
    """Whether somebody asked that it takes no more work."""
    return roll.wishes.get(record.executor_id) == record.description.incarnation


def is_pending(roll: Roll, record: Record) -> bool:
    """Whether it is still to be seen what comes of the wanted catalog there."""
    return (
        record.state in ("registered", "ready")
        and record.held != roll.wanted
        and not (record.error_of == "install" and record.step is None)
    )


def status(roll: Roll, record: Record, now: float) -> ExecutorStatus:
    return record.status(now, _reason(roll, record))


def refusal(told: Description, build: str) -> str:
    """Say on both sides which versions do not fit."""
    return (
        f"executor '{told.executor_id}' (build {told.build or 'unknown'}) speaks protocol version "
        f"{told.protocol_version}, the scheduler (build {build}) speaks version "
        f"{PROTOCOL_VERSION}; run the same version of Caraway on both"
    )


def _heard(roll: Roll, event: events.Heard) -> Outcome:
    told = event.description
    known = roll.records.get(told.executor_id)
    if known is None or known.description.incarnation != told.incarnation:
        return _settle(roll, _first_heard(roll, event), event.now)
    if known.lost_at is not None:
        if event.asked_at < known.lost_at:
            return roll, ()  # The answer may be older than the loss.
        returned = _first_heard(roll, event)
        returned = replace(returned, failures=known.failures, is_leaving=known.is_leaving)
        return _settle(roll, returned, event.now)
    record = replace(known, description=told, heard_at=event.now)
    if event.asked_at >= known.held_at and known.step != "install":
        record = replace(record, held=told.catalogs.get(roll.origin))
    return _settle(roll, record, event.now)


def _first_heard(roll: Roll, event: events.Heard) -> Record:
    held = event.description.catalogs.get(roll.origin)
    return Record(event.description, heard_at=event.now, held=held)


def _passed(roll: Roll, now: float) -> Outcome:
    actions: list[Action] = []
    for executor_id, record in roll.records.items():
        if record.lost_at is not None:
            if now - record.lost_at >= LISTED_FOR_S:
                records = {k: v for k, v in roll.records.items() if k != executor_id}
                roll = replace(roll, records=records)
                actions.append(events.Forget(executor_id))
        elif now - record.heard_at >= LOST_AFTER_S:
            cause = f"it did not answer for {LOST_AFTER_S:g} s"
            roll = _put(roll, _lost(record, cause, now))
            actions.append(events.Abandon(executor_id, cause))
    return roll, tuple(actions)


def _step_ended(roll: Roll, event: events.StepEnded) -> Outcome:
    record = roll.records.get(event.executor_id)
    if record is None or record.description.incarnation != event.incarnation:
        return roll, ()
    if record.step != event.step:
        return roll, ()  # It was lost meanwhile, and is known anew.
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
    """Accept tables that failed on an executor when no other may work: all else can be read."""
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
            return replace(record, is_told=True)


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
    """Draw the conclusions for every executor."""
    actions: tuple[Action, ...] = ()
    for record in roll.records.values():
        roll, more = _settle(roll, record, now)
        actions += more
    return roll, actions


def _settle(roll: Roll, record: Record, now: float) -> Outcome:
    """Draw the conclusions for one executor: its state, and the step that it needs next."""
    has_served = record.has_served or (record.held is not None and record.held == roll.served)
    record = replace(record, state=_state(roll, record), has_served=has_served)
    step = _next_step(roll, record)
    if step is None or record.step is not None or now < record.next_step_at:
        return _put(roll, record), ()
    told = record.description
    reason = refusal(told, roll.build) if step == "refuse" else ""
    version = roll.wanted if step == "install" else None
    take = events.Take(step, told.executor_id, told.incarnation, version, reason)
    return _put(roll, replace(record, step=step)), (take,)


def _next_step(roll: Roll, record: Record) -> events.Step | None:
    if record.state == "refused":
        return None if record.is_told else "refuse"
    if record.state not in ("registered", "ready") or roll.wanted is None:
        return None
    if record.held != roll.wanted or _unknown_failures(roll, record):
        return "install"
    return None if record.is_proven else "probe"


def _state(roll: Roll, record: Record) -> ExecutorState:
    told = record.description
    if record.lost_at is not None:
        return "lost"
    if told.protocol_version != PROTOCOL_VERSION:
        return "refused"
    if told.is_draining or record.is_leaving or is_wished_away(roll, record):
        return "draining"
    if not record.is_proven or not _has_catalog(roll, record):
        return "registered"
    return "ready"


def _has_catalog(roll: Roll, record: Record) -> bool:
    """Whether it holds the wanted catalog, or the one before while that one is on its way."""
    if record.held is None or roll.wanted is None:
        return False
    if record.held == roll.wanted:
        return not _unknown_failures(roll, record)
    return record.error_of != "install"


def _unknown_failures(roll: Roll, record: Record) -> frozenset[TableName]:
    """Tables that failed only there: while a catalog is not yet served, failures are being
    collected, and count for nothing."""
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
