"""Takes over changed API keys while everything runs."""

import asyncio
import logging

from caraway_core.errors import CarawayError
from caraway_core.manifest import Manifest, SecretResolver
from caraway_gateway.composition import security
from caraway_serving.access import Keyring

logger = logging.getLogger(__name__)
LOOK_EVERY_S = 2.0


class KeyReloader:
    """Takes over API keys whose secrets change, such as files of a store `file:`.

    While keys cannot be read, or all are empty, the last ones stay in force.
    """

    def __init__(self, manifest: Manifest, secrets: SecretResolver, ring: Keyring) -> None:
        self._manifest = manifest
        self._secrets = secrets
        self._ring = ring
        self._seen: list[tuple[str, str]] | None = None
        self._trouble = ""

    async def run(self) -> None:
        """Look again and again until cancelled: files of secrets are swapped beneath a link."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            await self.look()

    async def look(self) -> None:
        """Read the keys, and take them over if they changed."""
        try:
            keys = await asyncio.to_thread(security.keys, self._manifest, self._secrets)
        except CarawayError as exc:
            if exc.message != self._trouble:
                self._trouble = exc.message
                logger.error(
                    "API keys not reloaded; the present ones stay in force",
                    extra={"reason": exc.message},
                )
            return
        self._trouble = ""
        if keys != self._seen:
            if self._seen is not None:
                logger.info("API keys reloaded", extra={"keys": len(keys)})
            self._seen = keys
            self._ring.replace(keys)
