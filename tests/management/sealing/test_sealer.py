from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_core.errors import CarawayError
from caraway_management.sealing import keys
from caraway_management.sealing.keys import KeyFile
from caraway_management.sealing.sealer import SealedError, Sealer
from caraway_management.store import migrations
from caraway_management.store.database import Database
from caraway_management.store.tables import DataKey
from tests.kit.management import Clock

PLACE = "secret/1/2/TOKEN"


@asynccontextmanager
async def opened(url: URL) -> AsyncIterator[Database]:
    database = Database(url)
    try:
        await migrations.upgrade(database)
        yield database
    finally:
        await database.close()


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    file = tmp_path / "keys"
    file.write_text(f"{keys.new_line()}\n")
    return file


def instance(file: Path) -> Sealer:
    return Sealer(KeyFile(file), Clock())


async def seal(database: Database, sealer: Sealer, text: str, place: str = PLACE) -> str:
    async with database.change() as session:
        return await sealer.seal(session, text, place)


async def open_(database: Database, sealer: Sealer, sealed: str, place: str = PLACE) -> str:
    async with database.read() as session:
        return await sealer.open(session, sealed, place)


async def wrapped(database: Database) -> list[DataKey]:
    async with database.read() as session:
        return list(await session.scalars(select(DataKey).order_by(DataKey.id)))


async def test_what_is_sealed_opens_in_every_instance(database_url: URL, key_file: Path) -> None:
    async with opened(database_url) as database:
        sealer, other = instance(key_file), instance(key_file)
        for text in ("", "secret", "ä€😀\x00\n", "\ud800", "x" * 100_000):
            sealed = await seal(database, sealer, text)
            assert await open_(database, other, sealed) == text
            assert text == "" or text not in sealed
        assert await seal(database, sealer, "same") != await seal(database, sealer, "same")
        assert len(await wrapped(database)) == 1


async def test_a_value_opens_only_in_its_place(database_url: URL, key_file: Path) -> None:
    async with opened(database_url) as database:
        sealer = instance(key_file)
        sealed = await seal(database, sealer, "secret")
        for place in ("", "secret/1/2/OTHER", "secret/1/3/TOKEN", "secret/2/2/TOKEN"):
            with pytest.raises(SealedError, match="another place"):
                await open_(database, sealer, sealed, place)


def _of_key(number: int) -> Callable[[str], str]:
    return lambda sealed: f"s1.{number}.{sealed.split('.')[2]}"


async def test_damaged_values_are_refused(database_url: URL, key_file: Path) -> None:
    async with opened(database_url) as database:
        sealer = instance(key_file)
        sealed = await seal(database, sealer, "secret")
        for damaged in (
            sealed[:-8] + "AAAAAAA=",
            sealed[:20],
            "",
            f"s2{sealed[2:]}",
            "s1.1.!!!!",
            f"s1.{'9' * 40}.AAAA",
            "s1.-1.AAAA",
        ):
            with pytest.raises(SealedError, match="damaged"):
                await open_(database, sealer, damaged)
        with pytest.raises(SealedError, match="data key 77 of a sealed value is missing"):
            await open_(database, sealer, _of_key(77)(sealed))


async def test_a_value_is_bound_to_its_data_key(database_url: URL, key_file: Path) -> None:
    async with opened(database_url) as database:
        sealer = instance(key_file)
        sealed = await seal(database, sealer, "secret")
        first = (await wrapped(database))[0]
        async with database.change() as session:
            copy = DataKey(
                key_encryption_key_id=first.key_encryption_key_id, wrapped=first.wrapped,
                created_at=first.created_at,
            )  # fmt: skip
            session.add(copy)
        with pytest.raises(SealedError, match="damaged"):
            await open_(database, sealer, _of_key(copy.id)(sealed))


async def test_keys_rotate_while_another_instance_runs(database_url: URL, key_file: Path) -> None:
    async with opened(database_url) as database:
        running = instance(key_file)
        sealed = await seal(database, running, "secret")
        old_id = KeyFile(key_file).load().current_id
        new_id = KeyFile(key_file).add()
        async with database.change() as session:
            # It is not committed yet: others still open with the old key.
            assert await instance(key_file).rotate(session) == new_id
            if not database.is_embedded:
                assert await open_(database, running, sealed) == "secret"
        assert await open_(database, running, sealed) == "secret"
        first, second = await wrapped(database)
        assert first.key_encryption_key_id == second.key_encryption_key_id == new_id
        assert (first.retired_at is None, second.retired_at is None) == (False, True)
        assert (await seal(database, running, "x")).startswith(f"s1.{second.id}.")
        # The old key is needed no more.
        lines = key_file.read_text().splitlines()
        key_file.write_text("\n".join(line for line in lines if not line.startswith(old_id)))
        assert await open_(database, instance(key_file), sealed) == "secret"
        async with database.read() as session:
            await instance(key_file).check(session)


async def test_a_missing_or_wrong_key_is_named(database_url: URL, key_file: Path) -> None:
    async with opened(database_url) as database:
        sealed = await seal(database, instance(key_file), "secret")
        id_ = KeyFile(key_file).load().current_id
        for line, problem in (
            (keys.new_line(), f"the key-encryption key '{id_}' is missing"),
            (
                f"{id_}:{keys.new_line().split(':')[1]}",
                f"the key-encryption key '{id_}' is not the",
            ),
        ):
            key_file.write_text(line)
            wrong = instance(key_file)
            with pytest.raises(SealedError, match=problem):
                await open_(database, wrong, sealed)
            async with database.change() as session:
                with pytest.raises(SealedError, match=problem):
                    await wrong.check(session)
                with pytest.raises(SealedError, match=problem):
                    await wrong.rotate(session)


async def test_a_data_key_that_was_rolled_back_seals_nothing(
    database_url: URL, key_file: Path
) -> None:
    async with opened(database_url) as database:
        sealer = instance(key_file)

        async def fail(session: AsyncSession) -> None:
            await sealer.seal(session, "lost", PLACE)
            raise CarawayError("rolled back")

        with pytest.raises(CarawayError, match="rolled back"):
            async with database.change() as session:
                await fail(session)
        assert await wrapped(database) == []
        assert await open_(database, sealer, await seal(database, sealer, "kept")) == "kept"
