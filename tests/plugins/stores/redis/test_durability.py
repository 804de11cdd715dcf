"""Settings of servers that lose writes which were acknowledged."""

from typing import Any

import pytest
from redis.exceptions import NoPermissionError, ResponseError

from caraway_core.errors import CarawayError
from caraway_plugins.stores.redis import address, durability

SAFE = {"appendonly": "yes", "appendfsync": "always", "maxmemory": "0"}


class Server:
    """Answers to CONFIG GET as redis-py does; an error is raised instead."""

    def __init__(self, settings: dict[str, Any] | Exception) -> None:
        self._settings = settings

    async def config_get(self, name: str) -> dict[Any, Any]:
        if isinstance(self._settings, Exception):
            raise self._settings
        value = self._settings.get(name)
        return {} if value is None else {name.encode(): value}


@pytest.mark.parametrize(
    ("changed", "faults"),
    [
        ({}, []),
        ({"appendonly": "no"}, ["no append-only file"]),
        ({"appendonly": ""}, ["no append-only file"]),
        ({"appendfsync": "everysec"}, ["appendfsync everysec"]),
        ({"maxmemory": "9", "maxmemory-policy": "allkeys-lru"}, ["maxmemory-policy allkeys-lru"]),
        ({"maxmemory": "9", "maxmemory-policy": "noeviction"}, []),
        ({"maxmemory": "9"}, []),
        ({"maxmemory-policy": "allkeys-lru"}, []),
        ({"appendonly": "no", "maxmemory": "9", "maxmemory-policy": "allkeys-random"},
         ["no append-only file", "allkeys-random"]),
    ],
)  # fmt: skip
def test_settings(changed: dict[str, str], faults: list[str]) -> None:
    found = durability.judge(SAFE | changed)
    assert len(found) == len(faults)
    assert all(each in said for each, said in zip(faults, found, strict=True))


async def warned(settings: dict[str, Any] | Exception, url: str) -> list[str]:
    client: Any = Server(settings)
    return list(await durability.warnings(client, address.parse(url)))


async def test_safe_servers_have_no_warning() -> None:
    assert await warned(SAFE, "redis://h:6379") == []
    assert await warned({name: text.encode() for name, text in SAFE.items()}, "redis://h") == []


async def test_loss_is_an_error_unless_it_is_accepted() -> None:
    lossy = SAFE | {"appendfsync": "no"}
    with pytest.raises(CarawayError, match=r"can lose .*\?durability=any"):
        await warned(lossy, "redis://h:6379")
    (text,) = await warned(lossy, "redis://h:6379?durability=any")
    assert "appendfsync no" in text


@pytest.mark.parametrize("error", [ResponseError("unknown command"), NoPermissionError("no")])
async def test_servers_that_do_not_say_it(error: Exception) -> None:
    (text,) = await warned(error, "redis://h:6379")
    assert "does not disclose its settings" in text
