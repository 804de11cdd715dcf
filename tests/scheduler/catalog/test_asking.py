"""Sources may block or fail in any way: callers see an error of the dataset, and no more."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from caraway_core.errors import CarawayError, DatasetError
from caraway_core.loading import registry
from caraway_core.manifest import Dataset
from caraway_core.protocols.sources import SourceRequest
from caraway_scheduler.catalog.asking import SourceCalls, UnexpectedError


class Source:
    """A source that a test controls."""

    def __init__(self) -> None:
        self.raised: BaseException | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.threads: list[str] = []

    def fingerprint(self, request: SourceRequest) -> str:
        self.threads.append(threading.current_thread().name)
        self.gate.wait(20)
        if self.raised is not None:
            raise self.raised
        return f"{request.name}@1"

    def resolve(self, request: SourceRequest) -> str:
        return self.fingerprint(request)


class Secrets:
    """Fills nothing in; `missing` is raised in its place."""

    missing: CarawayError | None = None

    def expand(self, text: str) -> str:
        if self.missing is not None:
            raise self.missing
        return text

    def expand_all(self, texts: Any) -> Any:
        return texts


@asynccontextmanager
async def calls(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[SourceCalls, Source, Dataset]]:
    source = Source()
    monkeypatch.setattr(registry.Plugins, "load", lambda *_: lambda: source)
    made = SourceCalls(folder / "cache", 2)
    secrets: Any = Secrets()
    made.secrets = secrets
    try:
        yield made, source, Dataset("t", "file:t.csv", "file", "t.csv", folder)
    finally:
        source.gate.set()
        made.close()


async def test_answers_come_from_threads_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with calls(tmp_path, monkeypatch) as (asked, source, dataset):
        assert await asked.fingerprint(dataset) == "t@1"
        assert await asked.fingerprint(dataset, polling=True) == "t@1"
        assert [name.partition("_")[0] for name in source.threads] == ["loading", "polling"]


async def test_source_that_blocks_keeps_no_other_from_being_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with calls(tmp_path, monkeypatch) as (asked, source, dataset):
        source.gate.clear()
        loading = [asyncio.ensure_future(asked.resolve(dataset)) for _ in range(5)]
        while len(source.threads) < 2:
            await asyncio.sleep(0)
        source.gate = threading.Event()
        source.gate.set()
        assert await asked.fingerprint(dataset, polling=True) == "t@1"
        for each in loading:
            each.cancel()
        await asyncio.wait(loading)


@pytest.mark.parametrize(
    "raised",
    [StopIteration(), asyncio.CancelledError(), SystemExit(1), KeyboardInterrupt(),
     GeneratorExit(), OSError("sesame"), CarawayError("sesame"), BaseException("sesame")],
    ids=lambda each: type(each).__name__,
)  # fmt: skip
async def test_whatever_a_source_raises_is_an_error_of_its_dataset(
    raised: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with calls(tmp_path, monkeypatch) as (asked, source, dataset):
        source.raised = raised
        with pytest.raises(UnexpectedError) as caught:
            await asked.resolve(dataset)
        assert caught.value.__cause__ is raised
        assert "'t'" in caught.value.message and "sesame" not in caught.value.message


async def test_errors_name_files_as_the_manifest_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with calls(tmp_path, monkeypatch) as (asked, source, dataset):
        text = f"no file {tmp_path}/t.csv, nor {tmp_path}/cache/t.csv"
        source.raised = DatasetError("unavailable", text)
        with pytest.raises(DatasetError) as caught:
            await asked.fingerprint(dataset)
        assert caught.value.type == "unavailable"
        assert str(tmp_path) not in caught.value.message + str(caught.value)
        assert "t.csv" in caught.value.message


async def test_missing_secret_is_an_error_of_the_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with calls(tmp_path, monkeypatch) as (asked, source, dataset):
        monkeypatch.setattr(Secrets, "missing", CarawayError("no secret 'env:KEY'"))
        with pytest.raises(DatasetError, match=r"'t'.*env:KEY"):
            await asked.resolve(dataset)
        assert source.threads == []
