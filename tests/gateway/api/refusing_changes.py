"""Change events that a runtime refuses, and a change that comes during a compaction."""

import json
from typing import Any

import pytest

from caraway_acceleration.versions.making import VersionMaker
from tests.gateway.api.sending_changes import manifest, send
from tests.kit.runtime import Running

UNIQUE = manifest("primary_key: id", "indexes: {v: unique}")


async def refused(runtime: Running, *events: Any, status: int = 400) -> str:
    got = await runtime.api.post(
        "/v1/datasets/orders/cdc",
        content=json.dumps(events),
        headers={"content-type": "application/json"},
    )
    assert got.status_code == status, got.text
    return str(got.json()["message"])


class Overtaken:
    """Lets changes arrive whenever a version is about to be written."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *changes: Any) -> None:
        self.runtime: Running | None = None
        self.times = 0
        make = VersionMaker.make

        async def overtaken(maker: VersionMaker, *args: Any, **options: Any) -> Any:
            if self.runtime is not None:
                self.times += 1
                await send(self.runtime, *changes)
            return await make(maker, *args, **options)

        monkeypatch.setattr(VersionMaker, "make", overtaken)
