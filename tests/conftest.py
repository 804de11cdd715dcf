"""Coroutine tests run on a loop of their own, or of their module; no plug-in is needed."""

import asyncio
import inspect
import signal
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest

from tests.kit.ray_cluster import RayCluster, ray_cluster

pytest_plugins = ("tests.kit.suite_times", "tests.kit.longest_first", "tests.kit.collecting")

# A slow machine is not a fault of the code: the limit of all tests ends a test that is too slow.
hypothesis.settings.register_profile(
    "caraway", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("caraway")
_ENDING_S = 10


def pytest_configure() -> None:
    """Have ctrl-C reach processes that tests start, also where a script runs them with `&`."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run `async def` tests; each ends by itself a little before its time limit."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments: dict[str, Any] = {name: pyfuncitem.funcargs[name] for name in names}

    async def bounded() -> None:
        async with asyncio.timeout(_limit_s(pyfuncitem) - _ENDING_S):
            await pyfuncitem.obj(**arguments)

    shared = pyfuncitem.funcargs.get("loop_of_module")
    if isinstance(shared, asyncio.Runner):
        shared.run(bounded())
    else:
        asyncio.run(bounded())
    return True


def _limit_s(item: pytest.Function) -> float:
    """Return the time limit of a test: its own mark, or that of the run."""
    mark = item.get_closest_marker("timeout")
    return float(mark.args[0] if mark and mark.args else item.config.getini("timeout"))


@pytest.fixture(scope="module")
def loop_of_module() -> Iterator[asyncio.Runner]:
    """The loop of all tests of the module that use it, or objects that were made on it."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    """A real cluster of two executors, which this process has joined, too."""
    with ray_cluster(tmp_path_factory.mktemp("ray")) as running, running.joined():
        yield running
