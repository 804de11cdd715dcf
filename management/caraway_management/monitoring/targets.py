"""Keeps the targets of notices: their tokens are sealed, and never shown again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.domain import monitors
from caraway_management.domain.monitors import Channels
from caraway_management.notices import signing
from caraway_management.sealing.sealer import Sealer

HTTP = "http"
GONE = "the receiver answered 410 Gone"
_SEALED = {"token": "sealed_token", "signing_secret": "sealed_signing_secret"}


@dataclass(frozen=True, slots=True)
class KeptTargets:
    """Targets as they are stored, and the signing secret if one was made."""

    stored: dict[str, Any]
    signing_secret: str | None = None


class TargetKeeper:
    """Seals and shows the targets of monitors and reactions."""

    def __init__(self, session: AsyncSession, sealer: Sealer, channels: Channels) -> None:
        self._session = session
        self._sealer = sealer
        self.channels = channels

    async def keep(
        self, owner: str, given: Mapping[str, Any], present: Mapping[str, Any] | None = None
    ) -> KeptTargets:
        """Return the stored form of the targets of a request; `owner` is the id of the monitor.

        A token that the request leaves out stays as long as the URL does: it is not sent to a
        URL that it was not given for.

        Raises:
            RefusedError: a target is wrong, or the installation cannot send by it.
        """
        targets = {name: dict(target) for name, target in given.items() if target is not None}
        monitors.check_targets(targets, self.channels)
        made: str | None = None
        if (http := targets.get(HTTP)) is not None:
            before = (present or {}).get(HTTP) or {}
            kept = before if before.get("url") == http["url"] else {}
            if http.get("signing_secret") is None and "sealed_signing_secret" not in kept:
                http["signing_secret"] = made = signing.new_secret()
            targets[HTTP] = await self._keep_http(owner, http, kept)
        return KeptTargets(targets, made)

    async def _keep_http(
        self, owner: str, http: Mapping[str, Any], kept: Mapping[str, Any]
    ) -> dict[str, object]:
        if (secret := http.get("signing_secret")) is not None:
            signing.check_secret(secret)
        stored = {"url": http["url"], "method": http.get("method", "POST")}
        for field, sealed in _SEALED.items():
            if http.get(field) is not None:
                stored[sealed] = await self._sealer.seal(
                    self._session, http[field], place(owner, field)
                )
            elif sealed in kept and not (field == "token" and field in http):
                stored[sealed] = kept[sealed]
        return stored


def place(owner: str, field: str) -> str:
    """Return what a token is bound to, so that it cannot be put into another row."""
    return f"target/{owner}/{field}"


def show(stored: Mapping[str, Any], signing_secret: str | None = None) -> dict[str, object]:
    """Return targets as replies show them; a new signing secret is shown this once."""
    shown = dict(stored)
    if (http := shown.get(HTTP)) is not None:
        shown[HTTP] = {
            "url": http["url"],
            "method": http["method"],
            "has_token": _SEALED["token"] in http,
            "disabled_reason": http.get("disabled_reason"),
        }
        if signing_secret is not None:
            shown[HTTP]["signing_secret"] = signing_secret
    return shown
