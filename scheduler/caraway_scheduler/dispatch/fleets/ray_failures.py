"""Maps failures of Ray calls to errors."""

from collections.abc import Mapping, Sequence

from ray import exceptions

from caraway_core.errors import (
    CarawayError,
    ExecutionError,
    ExecutorLostError,
    OutOfMemoryQueryError,
    PartLostError,
    QueryCancelledError,
)
from caraway_core.ids import ExecutorId
from caraway_core.protocols.fleet import Input
from caraway_scheduler.dispatch.fleets.parts import Held

Fate = str
FATES: Mapping[type[BaseException], Fate] = {
    exceptions.ActorDiedError: "lost",
    exceptions.ActorHandleNotFoundError: "lost",
    exceptions.ActorPlacementGroupRemoved: "lost",
    exceptions.ActorUnavailableError: "lost",
    exceptions.ActorUnschedulableError: "lost",
    exceptions.AsyncioActorExit: "lost",
    exceptions.GetTimeoutError: "lost",
    exceptions.LocalRayletDiedError: "lost",
    exceptions.NodeDiedError: "lost",
    exceptions.PendingCallsLimitExceeded: "lost",
    exceptions.RayActorError: "lost",
    exceptions.RpcError: "lost",
    exceptions.TaskPlacementGroupRemoved: "lost",
    exceptions.TaskUnschedulableError: "lost",
    exceptions.WorkerCrashedError: "lost",
    exceptions.ObjectFetchTimedOutError: "part",
    exceptions.ObjectFreedError: "part",
    exceptions.ObjectLostError: "part",
    exceptions.ObjectReconstructionFailedError: "part",
    exceptions.OwnerDiedError: "part",
    exceptions.PlasmaObjectNotAvailable: "part",
    exceptions.ReferenceCountingAssertionError: "part",
    exceptions.ObjectStoreFullError: "full",
    exceptions.OutOfDiskError: "full",
    exceptions.OutOfMemoryError: "full",
    exceptions.TaskCancelledError: "cancelled",
    exceptions.ActorAlreadyExistsError: "failed",
    exceptions.AuthenticationError: "failed",
    exceptions.CrossLanguageError: "failed",
    exceptions.ObjectRefStreamEndOfStreamError: "failed",
    exceptions.OufOfBandObjectRefSerializationException: "failed",
    exceptions.RayCgraphCapacityExceeded: "failed",
    exceptions.RayChannelError: "failed",
    exceptions.RayChannelTimeoutError: "failed",
    exceptions.RayDirectTransportError: "failed",
    exceptions.RayError: "failed",
    exceptions.RaySystemError: "failed",
    exceptions.RayTaskError: "failed",
    exceptions.RuntimeEnvSetupError: "failed",
    exceptions.StreamingGeneratorReplayInconsistentError: "failed",
    exceptions.UnserializableException: "failed",
    exceptions.UserCodeException: "failed",
}

_DEAD = (
    exceptions.ActorHandleNotFoundError,
    exceptions.ActorUnschedulableError,
    exceptions.NodeDiedError,
    exceptions.RayActorError,
)


def is_dead(exc: BaseException) -> bool:
    """Return whether an actor has to be looked up again by its name.

    One that is only unavailable restarts under the same handle.
    """
    return isinstance(exc, _DEAD) and not isinstance(exc, exceptions.ActorUnavailableError)


def translate(
    exc: BaseException, executor_id: ExecutorId, inputs: Sequence[Input] = ()
) -> CarawayError:
    """Return the error for a failed call; an error of the executor itself is Ray's cause.

    An object that the executor could not fetch is a lost part of an exchange. An object that the
    scheduler could not fetch means that its executor is lost.
    """
    is_remote = isinstance(exc, exceptions.RayTaskError)
    cause: BaseException = exc.cause if is_remote else exc  # type: ignore[attr-defined]
    if isinstance(cause, CarawayError):
        return cause
    fate = next((FATES[kind] for kind in type(cause).__mro__ if kind in FATES), "failed")
    text = str(cause).strip().split("\n")[0]
    match fate:
        case "lost":
            return ExecutorLostError(executor_id, text)
        case "part" if inputs:
            return PartLostError(
                f"an exchange of the query was lost: {text}", _maker(cause, inputs)
            )
        case "part":
            return ExecutorLostError(executor_id, f"its answer was lost: {text}")
        case "full":
            return OutOfMemoryQueryError(
                f"executor '{executor_id}' has no memory for the exchanges of the query: {text}; "
                "give executors more with --object-store-memory, or select fewer rows"
            )
        case "cancelled":
            return QueryCancelledError("the query was cancelled")
    return ExecutionError(f"executor '{executor_id}': {type(cause).__name__}: {text}")


def _maker(exc: BaseException, inputs: Sequence[Input]) -> ExecutorId | None:
    lost = getattr(exc, "object_ref_hex", None)
    parts = (part for each in inputs for part in each.parts if isinstance(part.handle, Held))
    return next((part.executor_id for part in parts if part.handle.hex() == lost), None)
