"""Runtimes of which one source is away while they start."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from caraway_core.protocols.sources import SourceRequest
from caraway_gateway.services import Services
from caraway_plugins.sources.files import LocalFiles
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running

WAIT_S = 60.0
MANIFEST = """
datasets:
  - {from: "file:slow.csv", name: slow}
  - {from: "file:gone.csv", name: gone}
views:
  - {name: slower, sql: SELECT a FROM slow}
"""
KEPT = """
datasets:
  - from: file:slow.csv
    name: slow
    acceleration: {enabled: true, engine: file}
"""


@contextmanager
def held(monkeypatch: pytest.MonkeyPatch, name: str = "slow") -> Iterator[threading.Event]:
    """Block a source until the event is set."""
    resolve, may_go = LocalFiles.resolve, threading.Event()

    def waits(self: LocalFiles, request: SourceRequest) -> Any:
        if request.name == name:
            may_go.wait(WAIT_S)
        return resolve(self, request)

    monkeypatch.setattr(LocalFiles, "resolve", waits)
    try:
        yield may_go
    finally:
        may_go.set()


def not_waiting(services: Services) -> None:
    async def at_once() -> None:
        return

    services.catalog.wait_settled = at_once  # type: ignore[method-assign]


async def loaded(runtime: Running, sql: str) -> None:
    async def look() -> bool:
        return bool((await runtime.sql(sql)).status_code == 200)

    await eventually(look, "it is loaded")
