import asyncio
from pathlib import Path

import pytest

from caraway_core.errors import ResultStoreError
from caraway_core.tables import ResultPlace
from caraway_executor.storage.stores import Stores


async def test_store_is_opened_once(tmp_path: Path) -> None:
    stores = Stores()
    place = ResultPlace("file", str(tmp_path / "a"))
    opened = await asyncio.gather(*(stores.at(place) for _ in range(8)))
    other = await stores.at(ResultPlace("file", str(tmp_path / "b")))
    assert len({id(store) for store in opened}) == 1
    assert other is not opened[0]
    assert await stores.at(ResultPlace("file", str(tmp_path / "a"))) is opened[0]


async def test_only_the_last_few_are_kept(tmp_path: Path) -> None:
    stores = Stores()
    first = await stores.at(ResultPlace("file", str(tmp_path / "0")))
    for number in range(1, 6):
        await stores.at(ResultPlace("file", str(tmp_path / str(number))))
    assert await stores.at(ResultPlace("file", str(tmp_path / "0"))) is not first


async def test_unknown_kind_is_a_failure_of_the_store_that_names_the_known() -> None:
    with pytest.raises(ResultStoreError, match=r"result store /r: no result store 'tape'.*file"):
        await Stores().at(ResultPlace("tape", "/r"))


async def test_place_that_cannot_be_written_to_is_a_failure_of_the_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultStoreError, match="file"):
        await Stores().at(ResultPlace("file", str(tmp_path / "file")))
