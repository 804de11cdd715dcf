"""Every wait between tries uses `concurrency.backoff` of core; the other waits are named polls."""

import ast
from collections.abc import Iterator, Mapping

import pytest

from tests.kit import sources

SLEEPS = frozenset({"sleep", "_sleep"})
GROWING = frozenset(
    {"delay_s", "pause_s", "wait_s", "_pause_s", "_delay_s", "failures", "attempts", "attempt",
     "tries"}
)  # fmt: skip
BACKOFF = frozenset({"failed", "delay_s"})
_SCHEDULER = "scheduler/caraway_scheduler"
_GATEWAY = "gateway/caraway_gateway"
_ASSIST = "assist/caraway_assist"
_EXECUTOR = "executor/caraway_executor"
_MANAGEMENT = "management/caraway_management"
_ACCELERATION = "acceleration/caraway_acceleration"
POLLS: Mapping[str, str] = {
    "client/caraway/cli/managing/signing_in.py:_approved": "a user who signs in elsewhere",
    "client/caraway/statements/queries.py:QueryHandle._poll": "a query that runs",
    "cluster/caraway_cluster/command.py:_wait": "a process that ends",
    "cluster/caraway_cluster/head.py:keep_alive": "nothing: a file is touched",
    "cluster/caraway_cluster/head.py:until_stuck": "the watch of the state server",
    "core/caraway_core/process/folder_size.py:FolderSize.run": "a period",
    "core/caraway_core/process/exiting.py:_wait": "the head, while the process ends",
    "core/caraway_core/ray_nodes/node.py:RayNode._group_end": "processes that end",
    "core/caraway_core/ray_nodes/node.py:_until_head_listens": "a head that starts",
    f"{_EXECUTOR}/engines/watching.py:Watch._run": "engine processes",
    f"{_EXECUTOR}/endpoints/probes.py:_Handler._wait_until_ready": "a start that goes on",
    f"{_EXECUTOR}/statements/products.py:Products._leave_late": "work that ends",
    f"{_EXECUTOR}/resources/starving.py:OwnThreads._watch": "the threads of the engine",
    f"{_EXECUTOR}/supervisor.py:Supervisor._drain": "tasks that run",
    f"{_MANAGEMENT}/api/deployments.py:get_deployment": "a deployment that goes on",
    f"{_MANAGEMENT}/deployers/local/deployer.py:LocalDeployer.run": "processes of projects",
    f"{_MANAGEMENT}/monitoring/judging.py:Judge.run": "a period",
    f"{_MANAGEMENT}/monitoring/looking.py:Looker.run": "a period",
    f"{_MANAGEMENT}/outbox.py:Worker.run": "entries of other instances",
    f"{_MANAGEMENT}/passthrough/sampling.py:Sampler.run": "a period",
    f"{_MANAGEMENT}/store/later.py:LaterWrites._write_group": "a database that is away",
    f"{_MANAGEMENT}/tenancy.py:hold": "renewal before it expires",
    "operator/caraway_operator/kube/lease.py:LeaderElection._acquire": "the Lease of another one",
    "operator/caraway_operator/kube/lease.py:LeaderElection._renew": "renewal before it expires",
    "operator/caraway_operator/operating.py:Operator._discover": "what watches do not show",
    "plugins/caraway_plugins/changes/dynamodb/source.py:DynamodbChanges.batches": "a stream",
    "plugins/caraway_plugins/changes/postgres/slots.py:_free": "a slot that is let go of",
    "plugins/caraway_plugins/changes/postgres/streaming.py:Stream._keep_alive": "a heartbeat",
    f"{_ACCELERATION}/asking.py:RefreshRequests._renew_settings": "renewal before they expire",
    f"{_SCHEDULER}/coordination/claims.py:Claim.wait": "the claim of another scheduler",
    f"{_SCHEDULER}/coordination/claims.py:Claim.keep": "renewal before it expires",
    f"{_SCHEDULER}/coordination/claims.py:Claim._renewed": "renewal before it expires",
    f"{_ACCELERATION}/changes/following.py:Following._attempt": "the claim of another scheduler",
    f"{_ACCELERATION}/changes/following.py:Following._hold": "renewal before it expires",
    f"{_ACCELERATION}/refresh/refresher.py:Refresher._refresh": "jitter before a refresh",
    f"{_ACCELERATION}/versions/reads.py:Reads.run": "statements under way",
    f"{_ACCELERATION}/upkeep/orphans.py:OrphanCollector.run": "files that nobody needs",
    f"{_GATEWAY}/api/sql/stages.py:_events": "the stages of a statement",
    f"{_GATEWAY}/api/probes.py:ready": "a start that goes on",
    f"{_SCHEDULER}/dispatch/loading/warming.py:Warmer.run": "catalogs that follow each other",
    f"{_GATEWAY}/iceberg/service.py:IcebergTables._sweep_forever": "files that nobody needs",
    f"{_SCHEDULER}/jobs/scheduling.py:JobScheduler._watching": "renewal before owners expire",
    f"{_GATEWAY}/iceberg/scan_plans.py:ScanPlans._page": "a page of another scheduler",
    f"{_SCHEDULER}/jobs/sweeping.py:Sweeper.sweep_jobs": "jobs that expire",
    f"{_ASSIST}/workers/times.py:WallClock.until": "a time of a cron",
    f"{_GATEWAY}/composition/key_reloading.py:KeyReloader.run": "files of keys",
    f"{_GATEWAY}/composition/limits_file.py:LimitsFile.run": "a file",
    f"{_SCHEDULER}/membership/membership.py:Membership._keep_registered": "renewal",
    f"{_SCHEDULER}/membership/membership.py:Membership._keep_following": "wishes of others",
    f"{_SCHEDULER}/membership/roll_call.py:RollCall.run": "executors",
    f"{_GATEWAY}/composition/runtime.py:_every": "a period",
}
"""Each wait that follows no failure, and the object that it polls."""


def waits(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """Yield each function that sleeps, and whether a back-off gives the time."""
    found = list(sources.functions(tree))
    for where, node in found:
        if isinstance(node, ast.Call) and _called(node) in SLEEPS and not _is_zero(node):
            yield where, _asks(node.args[0], [each for name, each in found if name == where])


def losers(tree: ast.Module) -> Iterator[int]:
    """Yield the lines that name asyncio's `wait_for`.

    On Python 3.11, it loses a cancellation that comes at the end of the awaited object.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "wait_for":
            if ast.unparse(node.value) == "asyncio":
                yield node.lineno
        if isinstance(node, ast.ImportFrom) and node.module == "asyncio":
            if any(each.name == "wait_for" for each in node.names):
                yield node.lineno


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _is_zero(node: ast.Call) -> bool:
    return isinstance(node.args[0], ast.Constant) and not node.args[0].value


def _asks(seconds: ast.expr, function: list[ast.AST]) -> bool:
    names = {each.id for each in ast.walk(seconds) if isinstance(each, ast.Name)}
    values = [seconds, *(value for each in function for value in _assigned(each, names))]
    calls = (each for value in values for each in ast.walk(value) if isinstance(each, ast.Call))
    return any(_called(each) in BACKOFF for each in calls)


def _assigned(node: ast.AST, names: set[str]) -> Iterator[ast.expr]:
    """Yield the values that are assigned to one of the names."""
    if isinstance(node, ast.Assign):
        targets = {each.id for one in node.targets for each in ast.walk(one)
                   if isinstance(each, ast.Name)}  # fmt: skip
        if targets & names:
            yield node.value


def growths(tree: ast.Module) -> Iterator[int]:
    """Yield the lines that make a wait longer by hand: `2 * pause_s`, `2.0 ** failures`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Pow):
            names = {ast.unparse(each).rpartition(".")[2] for each in (node.left, node.right)}
            if names & GROWING and any(isinstance(each, ast.Constant)
                                       for each in (node.left, node.right)):  # fmt: skip
                yield node.lineno


def _found() -> Mapping[str, bool]:
    return {
        f"{path}:{where}": is_backoff
        for path, tree in sources.modules().items()
        for where, is_backoff in waits(tree)
    }


def test_a_wait_is_a_back_off_or_a_poll_of_what_is_well() -> None:
    others = {where for where, is_backoff in _found().items() if not is_backoff}
    assert others - POLLS.keys() == set(), "ask concurrency.backoff, or say why it is a poll"
    assert POLLS.keys() - others == set(), "no such wait any more"


def test_no_wait_grows_by_hand() -> None:
    found = {f"{path}:{line}" for path, tree in sources.modules().items() for line in growths(tree)}
    assert found == set(), "ask caraway_core.concurrency.backoff"


def test_no_wait_loses_a_cancellation() -> None:
    found = {f"{path}:{line}" for path, tree in sources.modules().items() for line in losers(tree)}
    assert found == set(), "use asyncio.timeout"


@pytest.mark.parametrize(
    "text", ["await asyncio.wait_for(x, 1)", "from asyncio import timeout, wait_for"]
)
def test_a_wait_that_loses_a_cancellation_is_found(text: str) -> None:
    assert list(losers(ast.parse(text))) == [1]


@pytest.mark.parametrize("text", ["min(2 * pause_s, 5)", "2.0**record.attempts", "2**attempt"])
def test_a_wait_that_grows_by_hand_is_found(text: str) -> None:
    assert list(growths(ast.parse(text))) == [1]


@pytest.mark.parametrize("text", [
    "async def f():\n    pause_s = 1\n    await asyncio.sleep(pause_s)\n    pause_s = 2 * pause_s",
    "async def f():\n    await asyncio.sleep(_AGAIN_S)",
    "def f(self):\n    time.sleep(min(2 ** n, 60))",
    "async def f(self):\n    await self._sleep(1.0)",
])  # fmt: skip
def test_a_wait_written_by_hand_is_found(text: str) -> None:
    assert [is_backoff for _, is_backoff in waits(ast.parse(text))] == [False]


@pytest.mark.parametrize("text", [
    "async def f():\n    await asyncio.sleep(again.failed())",
    "async def f():\n    delay_s = again.failed()\n    await asyncio.sleep(delay_s)",
    "async def f():\n    a, delay_s = 1, again.failed()\n    await asyncio.sleep(delay_s)",
    "async def f():\n    await self._sleep(_DELAYS.delay_s(3) + asked_s)",
])  # fmt: skip
def test_a_back_off_is_known(text: str) -> None:
    assert [is_backoff for _, is_backoff in waits(ast.parse(text))] == [True]
