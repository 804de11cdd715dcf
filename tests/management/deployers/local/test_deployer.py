import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import CarawayError, UnavailableError
from caraway_management.deployers.local import process, runtime
from caraway_management.deployers.local.deployer import LocalDeployer
from caraway_management.deployers.local.folder import Plan, ProjectFolder
from caraway_management.deployers.protocol import RejectedError, RuntimeKey, Wanted
from caraway_management.domain.deployments import Code, Observed, Phase
from tests.kit import deadlines, stub_runtime

WANTED = Wanted(
    7, 1, "acme", "shop", 3, "name: shop\n", api_keys=(RuntimeKey(1, "one"), RuntimeKey(2, "two")),
    secrets={"PASSWORD": "hunter2000"}, limits={"api_rps": 5},
)  # fmt: skip


def _command(folder: ProjectFolder, plan: Plan) -> list[str]:
    return [sys.executable, "-S", stub_runtime.__file__, str(folder.path), str(plan.ports[2])]


@asynccontextmanager
async def _service(folder: Path) -> AsyncIterator[LocalDeployer]:
    """Another start of the service, over the same folder."""
    deployer = LocalDeployer(folder, command=_command)
    async with deployer.opened():
        yield deployer


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "projects"
    yield folder
    # The service leaves them running on purpose.
    for starts in folder.glob("*/starts"):
        for pid in map(int, starts.read_text().split()):
            with suppress(ProcessLookupError, ChildProcessError):
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


_Test = Callable[[LocalDeployer, Path], Awaitable[None]]


def served(test: _Test) -> Callable[[Path], Awaitable[None]]:
    """Run a test with a service over its folder."""

    async def run(folder: Path) -> None:
        async with _service(folder) as deployer:
            await test(deployer, folder)

    run.__name__ = test.__name__
    return run


async def _until(deployer: LocalDeployer, condition: Callable[[], bool]) -> None:
    """Step until the condition holds."""

    async def look() -> bool:
        await deployer.step()
        return condition()

    await deadlines.eventually(look, "the condition")


async def _seen(deployer: LocalDeployer, phase: Phase) -> Observed:
    """Step until the phase is seen."""

    async def look() -> Observed | None:
        await deployer.step()
        seen = await deployer.observe(7)
        return seen if seen.phase is phase else None

    seen = await deadlines.eventually(look, phase)
    assert seen is not None
    return seen


def _starts(folder: Path) -> list[int]:
    return [int(line) for line in (folder / "7" / "starts").read_text().split()]


def _exists(pid: int) -> bool:
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    return process.exists(pid)


@served
async def test_a_project_is_started_paused_resumed_and_removed(
    deployer: LocalDeployer, folder: Path
) -> None:
    # Times of files may be a tick of the clock early.
    before = datetime.now(UTC) - timedelta(seconds=1)
    assert (await deployer.observe(7)).phase is Phase.ABSENT
    await deployer.apply(WANTED)
    seen = await deployer.observe(7)
    assert (seen.phase, seen.deployment_id) == (Phase.STARTING, 3)
    seen = await _seen(deployer, Phase.READY)
    assert seen.deployment_id == 3
    assert seen.endpoint is not None and seen.endpoint.startswith("http://127.0.0.1:")
    (pid,) = _starts(folder)
    (instance,) = await deployer.instances(7)
    assert instance.status == "ready"
    assert instance.started_at is not None
    assert before <= instance.started_at <= datetime.now(UTC)
    # More than any page of a file system, and as many lines as the largest plan shows.
    with (folder / "7" / "runtime.log").open("a") as log:
        log.writelines(f"line {number} {'x' * 60}\n" for number in range(10_000))
    assert len(await deployer.logs(7, "runtime-0", 10_000) or ()) == 10_000
    await deployer.apply(replace(WANTED, is_paused=True))
    await _seen(deployer, Phase.ABSENT)
    await _until(deployer, lambda: not _exists(pid))
    await deployer.apply(replace(WANTED, deployment_id=4))
    resumed = await _seen(deployer, Phase.READY)
    assert resumed.endpoint == seen.endpoint
    await deployer.remove(7)
    with pytest.raises(UnavailableError):
        await deployer.apply(WANTED)
    await _until(deployer, lambda: not (folder / "7").exists())
    assert len(_starts_of_all(folder)) == 0
    await deployer.remove(7)


def _starts_of_all(folder: Path) -> list[Path]:
    return list(folder.glob("*/starts"))


@served
async def test_applying_again_changes_nothing(deployer: LocalDeployer, folder: Path) -> None:
    for _ in range(2):
        await deployer.apply(WANTED)
        await _seen(deployer, Phase.READY)
    assert len(_starts(folder)) == 1


@served
async def test_another_deployment_replaces_the_process(
    deployer: LocalDeployer, folder: Path
) -> None:
    await deployer.apply(WANTED)
    first = await _seen(deployer, Phase.READY)
    await deployer.apply(replace(WANTED, deployment_id=4))
    seen = await deployer.observe(7)
    assert (seen.phase, seen.deployment_id) == (Phase.STARTING, 4)
    second = await _seen(deployer, Phase.READY)
    assert (second.deployment_id, second.endpoint) == (4, first.endpoint)
    old, new = _starts(folder)
    assert not _exists(old) and _exists(new)


@served
async def test_files_are_private_and_keys_change_without_a_restart(
    deployer: LocalDeployer, folder: Path
) -> None:
    await deployer.apply(WANTED)
    await _seen(deployer, Phase.READY)
    home = folder / "7"
    texts = {"keys/1": "one", "keys/2": "two", "secrets/PASSWORD": "hunter2000"}
    for name, text in texts.items():
        assert (home / name).read_text() == text
        assert (home / name).stat().st_mode & 0o077 == 0
    assert home.stat().st_mode & 0o077 == 0
    await deployer.apply(
        replace(
            WANTED, api_keys=(RuntimeKey(1, "new"), RuntimeKey(2, "two")), limits={"api_rps": 9}
        )
    )
    await _seen(deployer, Phase.READY)
    assert (home / "keys/1").read_text() == "new"
    assert (home / "limits.json").read_text() == '{"api_rps": 9}'
    assert not (home / "reloads").exists()
    # Sources are opened with changed secrets when the manifest is read again.
    await deployer.apply(replace(WANTED, secrets={"OTHER": "x"}))
    await _until(deployer, (home / "reloads").exists)
    assert [file.name for file in (home / "secrets").iterdir()] == ["OTHER"]
    assert len(_starts(folder)) == 1


@served
async def test_a_process_that_dies_is_started_again(deployer: LocalDeployer, folder: Path) -> None:
    await deployer.apply(WANTED)
    first = await _seen(deployer, Phase.READY)
    os.kill(_starts(folder)[0], signal.SIGKILL)
    await _seen(deployer, Phase.STARTING)
    again = await _seen(deployer, Phase.READY)
    assert again.endpoint == first.endpoint
    assert len(_starts(folder)) == 2


@served
async def test_a_start_that_fails_says_why_without_paths_and_secrets(
    deployer: LocalDeployer, folder: Path
) -> None:
    (folder / "7").mkdir()
    (folder / "7" / "broken").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtime, "_DELAYS", Delays(60.0, 60.0))
        await deployer.apply(WANTED)
        seen = await _seen(deployer, Phase.FAILED)
    assert seen.problem is not None
    assert seen.problem.code is Code.UNABLE_TO_START
    assert seen.problem.message == (
        "error: caraway.yaml: line 3: no such source\nthe password is <secret PASSWORD>"
    )
    for _ in range(3):
        await deployer.step()
    assert len(_starts(folder)) == 1
    # The next deployment begins from the start.
    (folder / "7" / "broken").unlink()
    await deployer.apply(replace(WANTED, deployment_id=4))
    await _seen(deployer, Phase.READY)


@served
async def test_the_runtime_of_an_earlier_project_of_the_same_id_is_left_alone(
    deployer: LocalDeployer, folder: Path
) -> None:
    await deployer.apply(replace(WANTED, created=5))
    await _seen(deployer, Phase.READY)
    with pytest.raises(RejectedError, match="management strays"):
        await deployer.apply(replace(WANTED, created=6, deployment_id=4))
    # The new project does not see it either, and its deletion leaves it.
    assert (await deployer.observe(7, 6)).phase is Phase.ABSENT
    assert list(await deployer.instances(7, 6)) == []
    assert await deployer.logs(7, "runtime-0", 10, 6) is None
    await deployer.remove(7, 6)
    await deployer.step()
    assert (await deployer.observe(7, 5)).phase is Phase.READY
    assert await deployer.logs(7, "runtime-0", 10, 5) is not None
    assert await deployer.project_ids() == {7}
    # As `caraway management strays --remove` does.
    await deployer.remove(7)
    await _until(deployer, lambda: not (folder / "7").exists())


def test_limits_reach_runtimes_and_clusters(tmp_path: Path) -> None:
    folder = ProjectFolder(tmp_path / "7")
    for executors in (0, 2):
        words = process.command(folder, Plan(7, 3, True, (1, 2, 3), executors))
        assert words[words.index("--limits-file") + 1] == str(folder.limits)


@served
async def test_a_folder_has_one_service(deployer: LocalDeployer, folder: Path) -> None:
    with pytest.raises(CarawayError, match="another service"):
        async with _service(folder):
            pass


async def test_a_process_outlives_its_service_and_is_never_doubled(folder: Path) -> None:
    async with _service(folder) as first:
        await first.apply(WANTED)
        before = await _seen(first, Phase.READY)
    (pid,) = _starts(folder)
    async with _service(folder) as second:
        assert (await second.observe(7)).phase is Phase.STARTING
        await second.apply(WANTED)
        after = await _seen(second, Phase.READY)
        assert after == before
        assert _starts(folder) == [pid]
    # It dies while no service is there: the next one replaces it.
    os.kill(pid, signal.SIGKILL)
    async with _service(folder) as third:
        await _until(third, lambda: len(_starts(folder)) == 2)
        await _seen(third, Phase.READY)
        # Its own deployment is recorded with the process, so another plan replaces it.
        await third.apply(replace(WANTED, deployment_id=4))
    async with _service(folder) as fourth:
        await _seen(fourth, Phase.READY)
        assert len(_starts(folder)) == 3
        assert [pid for pid in _starts(folder) if _exists(pid)] == _starts(folder)[2:]
        await fourth.remove(7)
        await _until(fourth, lambda: not (folder / "7").exists())


async def test_a_service_that_ends_right_after_a_start_leaves_one_process(folder: Path) -> None:
    async with _service(folder) as first:
        await first.apply(WANTED)
        await first.step()
    for _ in range(3):
        async with _service(folder) as other:
            await other.step()
    async with _service(folder) as last:
        await _seen(last, Phase.READY)
        assert len(_starts(folder)) == 1
        await last.remove(7)
        await _until(last, lambda: not (folder / "7").exists())


@served
async def test_other_ports_are_taken_if_somebody_has_them(
    deployer: LocalDeployer, folder: Path
) -> None:
    await deployer.apply(WANTED)
    plan = ProjectFolder(folder / "7").read_plan()
    assert plan is not None
    with socket.socket() as thief:
        thief.bind(("127.0.0.1", plan.ports[0]))
        thief.listen()
        seen = await _seen(deployer, Phase.READY)
    assert seen.endpoint != f"http://127.0.0.1:{plan.ports[0]}"


async def test_the_environment_of_the_service_is_not_passed_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of the service")
    async with _service(folder) as deployer:
        await deployer.apply(WANTED)
        await _seen(deployer, Phase.READY)
    environment = Path(f"/proc/{_starts(folder)[0]}/environ").read_bytes()
    assert b"of the service" not in environment
    assert f"HOME={folder / '7'}".encode() in environment


@served
async def test_a_manifest_with_files_of_the_machine_is_rejected(
    deployer: LocalDeployer, folder: Path
) -> None:
    with pytest.raises(RejectedError):
        await deployer.apply(replace(WANTED, manifest="datasets: [{from: 'file:/etc/passwd'}]"))
    assert (await deployer.observe(7)).phase is Phase.ABSENT
