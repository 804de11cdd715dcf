"""Only one local deployer runs the projects of a database."""

import signal
from pathlib import Path

import pytest
from sqlalchemy.engine import URL

from caraway_core.errors import CarawayError
from caraway_management import tenancy
from caraway_management.deployers.local.deployer import LocalDeployer
from caraway_management.services import Services
from caraway_management.store.database import Database
from tests.kit import management


async def test_a_second_local_deployer_is_refused_until_the_first_is_gone(
    prepared_url: URL, tmp_path: Path
) -> None:
    clock = management.Clock()
    database = Database(prepared_url)
    services = Services(database, management.new_sealer(clock), clock)
    one, other = LocalDeployer(tmp_path / "one"), LocalDeployer(tmp_path / "other")
    async with one.opened(), other.opened():
        await tenancy.take(services, one)
        with pytest.raises(CarawayError, match="--deployer none"):
            await tenancy.take(services, other)
        # A service that was killed has the same folder, and so the same name.
        again = LocalDeployer(tmp_path / "one")
        again.id = one.id
        await tenancy.take(services, again)
        clock.advance(seconds=tenancy.LASTS_S + 1)
        await tenancy.take(services, other)
        with pytest.raises(CarawayError, match="--deployer none"):
            await tenancy.take(services, one)
    await database.close()


async def test_a_folder_keeps_its_name(tmp_path: Path) -> None:
    names = []
    for _ in range(2):
        deployer = LocalDeployer(tmp_path)
        async with deployer.opened():
            names.append(deployer.id)
    assert names[0] == names[1] != ""


async def test_a_service_that_lost_its_projects_stops(
    prepared_url: URL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = management.Clock()
    database = Database(prepared_url)
    services = Services(database, management.new_sealer(clock), clock)
    sent: list[int] = []
    monkeypatch.setattr(signal, "raise_signal", sent.append)
    async with LocalDeployer(tmp_path / "one").opened() as one:
        other = LocalDeployer(tmp_path / "other")
        other.id = "other"
        await tenancy.take(services, other)
        await tenancy.hold(services, one, every_s=0)
    assert sent == [signal.SIGTERM]
    await database.close()
