"""Keeps two local deployers from running the projects of one database.

A lease in the database names the folder of the one that runs them. A service that was killed has
its own lease at its next start; that of another folder ends by itself.
"""

import asyncio
import logging
import signal

from caraway_core.errors import CarawayError
from caraway_management.deployers.local.deployer import LocalDeployer
from caraway_management.monitoring import leases
from caraway_management.services import Services

logger = logging.getLogger(__name__)
LASTS_S = 90.0
EVERY_S = 15.0
_NAME = "run projects locally"


async def take(services: Services, deployer: LocalDeployer) -> None:
    """Take the lease for a local deployer.

    Raises:
        CarawayError: another one has it.
    """
    if not await _renew(services, deployer):
        raise CarawayError(
            "another service runs the projects of this database on its machine; start this one "
            f"with --deployer none, or stop the other one and try again after {LASTS_S:g} s"
        )


async def hold(services: Services, deployer: LocalDeployer, every_s: float = EVERY_S) -> None:
    """Renew the lease until cancelled. The service ends if another one has it."""
    while True:
        await asyncio.sleep(every_s)
        if not await _renew(services, deployer):
            logger.critical(
                "another service runs the projects of this database; this one stops, and its "
                "runtimes go on until they are ended by hand"
            )
            signal.raise_signal(signal.SIGTERM)
            return


async def _renew(services: Services, deployer: LocalDeployer) -> bool:
    return await leases.take(services.database, services.now(), _NAME, deployer.id, LASTS_S)
