"""The process of a local model: it starts, says why it cannot, and leaves nothing behind."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from caraway_ai.local import process
from caraway_ai.local.process import LocalOptions, LocalProcess
from caraway_core.errors import ModelError
from tests.kit.deadlines import eventually, until


@pytest.fixture(autouse=True)
def kit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_SERVING", "tests.kit.local_serving")
    monkeypatch.setattr(process, "_STOP_S", 0.5)


@pytest.fixture
def nothing_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Check that neither folders nor descriptors stay."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = len(os.listdir("/proc/self/fd"))
    yield
    assert list(tmp_path.iterdir()) == []
    # Other threads of this process open a file for a moment, too.
    until(lambda: len(os.listdir("/proc/self/fd")) <= before, "as few descriptors as before")


def made(name: str) -> LocalProcess:
    return LocalProcess("m", LocalOptions(f"/models/{name}", 512, 1, 1, 0))


async def test_a_model_that_loads_runs_until_it_is_closed(nothing_left: None) -> None:
    subject = made("loads")
    assert not subject.is_running
    assert await subject.ends(0)
    await subject.start()
    assert subject.is_running
    assert not await subject.ends(0.01)
    assert Path(subject.socket).parent.stat().st_mode & 0o077 == 0, "only this user may enter"
    await subject.aclose()
    assert not subject.is_running
    assert await subject.ends(0)
    await subject.aclose()


async def test_a_process_that_does_not_end_is_killed(nothing_left: None) -> None:
    subject = made("stubborn")
    await subject.start()
    await subject.aclose()
    assert not subject.is_running


async def test_a_process_that_ends_is_seen(nothing_left: None) -> None:
    subject = made("ends")
    await subject.start()
    assert await subject.ends(60)
    assert not subject.is_running
    await subject.aclose()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fails", "error: no tensor é"),
        ("floods", "error: the last word"),
        ("nothing", "its process ended with the code 5"),
        ("lacks", "No module named 'xllamacpp_that_is_not_installed'"),
    ],
)
async def test_a_model_that_does_not_load_says_why(
    nothing_left: None, name: str, words: str
) -> None:
    subject = made(name)
    with pytest.raises(ModelError) as caught:
        await subject.start()
    told = caught.value.message
    assert told.startswith(f"model 'm': the file '/models/{name}' cannot be loaded: ")
    assert words in told
    assert len(told) < 500
    assert not subject.is_running


async def test_a_model_that_never_loads_is_given_up(
    nothing_left: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_LOAD_S", 0.2)
    subject = made("silent")
    with pytest.raises(ModelError, match=r"model 'm': it was not loaded within 0\.2 s"):
        await subject.start()
    assert not subject.is_running


async def test_a_start_that_is_left_ends_the_process(nothing_left: None) -> None:
    subject = made("silent")
    starting = asyncio.ensure_future(subject.start())

    async def runs() -> bool:
        return subject.is_running

    await eventually(runs, "the process runs")
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not subject.is_running


async def test_a_process_that_cannot_be_started_leaves_nothing(
    nothing_left: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/nothing/of/this/name")
    with pytest.raises((OSError, ModelError)):
        await made("loads").start()
