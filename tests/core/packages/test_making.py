"""Packages are made two at once, within a time limit, and a crowd is sent away."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from caraway_core.errors import DeadlineError, InvalidRequestError, UnavailableError
from caraway_core.packages import archives, making, repositories
from caraway_core.packages.making import PackageMaker
from caraway_core.packages.sources import PackageSource

SOURCE = PackageSource("acme", "shop", "0" * 40, "caraway.yaml")


class Host:
    """A host of one repository, which answers when it is allowed to."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.under_way = 0
        self.most = 0
        self.is_missing = False
        self.entered = asyncio.Condition()

    @contextlib.asynccontextmanager
    async def opened(self, git_url: str, token: str | None) -> AsyncIterator["Host"]:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        async with self.entered:
            self.entered.notify_all()
        try:
            yield self
        finally:
            self.under_way -= 1

    async def files(self, source: PackageSource) -> "Host":
        await self.may_answer.wait()
        return self

    async def read(self, path: str, most_bytes: int) -> bytes | None:
        return None if self.is_missing else b"kind: Spicepod\nname: app\n"


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host()
    monkeypatch.setattr(repositories, "opened", host.opened)
    return host


async def test_a_package_is_made(host: Host) -> None:
    host.may_answer.set()
    content = await PackageMaker().zipped(SOURCE, "https://git.test", None)
    assert archives.unzipped(content).manifest == "caraway.yaml"


async def test_two_are_made_at_once_and_a_crowd_is_sent_away(host: Host) -> None:
    maker = PackageMaker()
    waiting = [
        asyncio.ensure_future(maker.zipped(SOURCE, "https://git.test", None))
        for _ in range(making._MOST_WAITING)
    ]
    async with host.entered:
        await host.entered.wait_for(lambda: host.under_way == making._AT_ONCE)
    with pytest.raises(UnavailableError, match="too many packages are being made"):
        await maker.zipped(SOURCE, "https://git.test", None)
    host.may_answer.set()
    await asyncio.gather(*waiting)
    assert host.most == making._AT_ONCE
    assert await maker.zipped(SOURCE, "https://git.test", None)


async def test_a_failure_gives_its_place_to_another(host: Host) -> None:
    host.may_answer.set()
    maker = PackageMaker()
    host.is_missing = True
    for _ in range(making._MOST_WAITING + 1):
        with pytest.raises(InvalidRequestError, match="there is no manifest"):
            await maker.zipped(SOURCE, "https://git.test", None)
    host.is_missing = False
    assert await maker.zipped(SOURCE, "https://git.test", None)


async def test_a_host_that_does_not_answer_is_named(host: Host) -> None:
    message = r"the repository 'acme/shop' could not be read within 0.01 s"
    with pytest.raises(DeadlineError, match=message):
        await PackageMaker(0.01).zipped(SOURCE, "https://git.test", None)
    with pytest.raises(DeadlineError, match=message):
        await making.fetch(SOURCE, "https://git.test", None, 0.01)
    assert host.under_way == 0
