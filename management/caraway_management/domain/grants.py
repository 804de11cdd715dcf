"""Rules for what credentials give: scopes, expiry, and where OAuth clients send users back to."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from urllib.parse import SplitResult, urlsplit

from caraway_management.domain import refusals, scopes
from caraway_management.domain.scopes import EVERYTHING, SCOPES

LONGEST_LIFE = timedelta(days=3_650)
_MOST_REDIRECTS = 10
_REDIRECT_LENGTH = 2_000
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_VISIBLE = re.compile(r"[\x21-\x7e]+")
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")


def check_scopes(asked: Sequence[str], held: frozenset[str]) -> list[str]:
    """Return the scopes of a new credential, sorted; `held` are those of the one that makes it.

    Raises:
        RefusedError: there are none, or unknown ones, or ones that the maker lacks.
    """
    if not asked:
        raise refusals.invalid_field("scopes", "name at least one scope")
    unknown = scopes.unknown(asked)
    if unknown:
        known = ", ".join(["*", *sorted(SCOPES)])
        raise refusals.invalid_field("scopes", f"unknown: {_shown(unknown)}; known: {known}")
    beyond = sorted(scopes.expand(asked) - held)
    if beyond:
        raise refusals.forbidden(
            f"a credential gives no scope that it lacks: {_shown(beyond)}", "insufficient_scope"
        )
    return [EVERYTHING] if EVERYTHING in asked else sorted(set(asked))


def check_expiry(
    asked: datetime | None, now: datetime, latest: datetime | None = None
) -> datetime | None:
    """Return when a new credential expires; `latest` is when the one that makes it does.

    Raises:
        RefusedError: it is in the past, too far away, or after the expiry of the maker.
    """
    if asked is None:
        return latest
    if not now < asked <= now + LONGEST_LIFE:
        raise refusals.invalid_field("expires_at", "must be in the future, within ten years")
    if latest is not None and asked > latest:
        raise refusals.invalid_field(
            "expires_at", f"must not be after that of the credential itself, {latest.isoformat()}"
        )
    return asked


def check_redirects(uris: Sequence[str]) -> list[str]:
    """Return the redirect URIs of a client: https, or http on the loopback interface.

    Raises:
        RefusedError: there are none or too many, or one is something else.
    """
    if not 1 <= len(uris) <= _MOST_REDIRECTS:
        raise refusals.invalid_field("redirect_uris", f"name 1 to {_MOST_REDIRECTS}")
    for uri in uris:
        parts = _split(uri)
        if parts is None or not _is_safe(parts):
            raise refusals.invalid_field(
                "redirect_uris",
                "use https, or http on 127.0.0.1, [::1] or localhost, without a fragment or user",
            )
    return list(uris)


def is_registered(uri: str, registered: Iterable[str]) -> bool:
    """Return whether a redirect URI is one of a client's.

    They are compared as texts. Only the port of a loopback address may differ, because programs
    that listen for the answer choose a free one (RFC 8252).
    """
    parts = _split(uri)
    if parts is None:
        return False
    loopback = _without_port(parts)
    return any(
        uri == known or (loopback is not None and loopback == _without_port(urlsplit(known)))
        for known in registered
    )


def is_challenge(text: str) -> bool:
    """Return whether the text can be a PKCE challenge of the method S256."""
    return _CHALLENGE.fullmatch(text) is not None


def is_verifier(text: str) -> bool:
    """Return whether the text can be a PKCE verifier."""
    return _VERIFIER.fullmatch(text) is not None


def check_return(path: str) -> str:
    """Return the path to go back to after a sign-in: one of this service, never another host.

    Raises:
        RefusedError: it is something else.
    """
    if re.fullmatch(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]{0,4000}", path):
        return path
    raise refusals.invalid_field("return_to", "must be a path of this service, such as /")


def _split(uri: str) -> SplitResult | None:
    if len(uri) > _REDIRECT_LENGTH or not _VISIBLE.fullmatch(uri):
        return None
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _is_safe(parts: SplitResult) -> bool:
    if parts.fragment or "#" in parts.geturl() or "@" in parts.netloc or not parts.hostname:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)


def _without_port(parts: SplitResult) -> tuple[str, ...] | None:
    """Return what must be equal of two loopback URIs, or None for other URIs."""
    if parts.scheme != "http" or parts.hostname not in _LOOPBACK or "@" in parts.netloc:
        return None
    return parts.hostname, parts.path, parts.query, parts.fragment


def _shown(names: Sequence[str]) -> str:
    return ", ".join(name[:100] for name in names[:5])
