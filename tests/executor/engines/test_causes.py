"""The causes of ended engine processes, as reported to the callers of their statements."""

import os
import pickle
import signal
import subprocess
import sys

import pytest

from caraway_core.errors import (
    CarawayError,
    ExecutionError,
    OutOfMemoryQueryError,
    ShuttingDownError,
    outcomes,
)
from caraway_executor.engines.causes import (
    Cause,
    EngineLostError,
    NotBegunError,
    SilentError,
)
from caraway_executor.statements.elsewhere import RunsApartError, RunsInMainError


def status_of(code: str) -> int:
    """The wait status of a process that runs this code."""
    pid = os.posix_spawn(sys.executable, [sys.executable, "-c", code], os.environ)
    return os.waitpid(pid, 0)[1]


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("", Cause.CRASH),
        ("raise SystemExit(3)", Cause.CRASH),
        ("import os; os.abort()", Cause.CRASH),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", Cause.KILLED),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", Cause.CRASH),
        # The exit code of shells for a killed child is not a signal.
        (f"raise SystemExit({128 + signal.SIGKILL})", Cause.CRASH),
    ],
)
def test_the_cause_is_that_of_the_wait_status(code: str, cause: Cause) -> None:
    assert Cause.from_status(status_of(code)) is cause


@pytest.mark.parametrize(
    ("cause", "blamed"),
    [
        (Cause.MEMORY, "memory"),
        (Cause.HUNG, "hung"),
        (Cause.CRASH, "crash"),
        (Cause.KILLED, "memory"),
        (Cause.CLOSED, None),
    ],
)
def test_statements_are_blamed_except_for_a_shutdown(cause: Cause, blamed: str | None) -> None:
    assert cause.blamed == blamed


@pytest.mark.parametrize("wrote", [False, True])
@pytest.mark.parametrize(
    ("cause", "kind", "said"),
    [
        (Cause.CLOSED, ShuttingDownError, "was ended"),
        (Cause.MEMORY, OutOfMemoryQueryError, "it used 3 GiB.*raise runtime.query.memory_limit"),
        (Cause.HUNG, ExecutionError, "did not stop cancelled work; "),
        (Cause.CRASH, ExecutionError, "it crashed; "),
        (Cause.KILLED, ExecutionError, "it was killed; "),
    ],
)
def test_a_client_is_told_the_cause_and_what_to_do(
    cause: Cause, kind: type[CarawayError], said: str, wrote: bool
) -> None:
    told = EngineLostError(cause, "it used 3 GiB").told(wrote=wrote)
    assert type(told) is kind
    with pytest.raises(kind, match=said):
        raise told
    assert ("may be written or not, look before you run it again" in told.message) is wrote
    assert not wrote or "; run the statement again" not in told.message
    assert "3 GiB" not in told.message or cause is Cause.MEMORY


@pytest.mark.parametrize("cause", list(Cause))
def test_every_cause_is_told(cause: Cause) -> None:
    assert EngineLostError(cause).told(wrote=True).message


@pytest.mark.parametrize(
    "error", [RunsApartError(), RunsInMainError(), SilentError(), NotBegunError()]
)
def test_errors_between_processes_survive_the_way(error: CarawayError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and again.message == error.message
    assert outcomes.of(error)


def test_messages_do_not_load_the_engine() -> None:
    """The process that serves the API imports them, and must not load DataFusion."""
    code = (
        "import sys, caraway_executor.engines.messages, caraway_executor.engines.causes; "
        "print([each for each in ('datafusion', 'caraway_engine') if each in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
