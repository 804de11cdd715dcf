"""Calls of services that hold secrets, over HTTP. Errors hold no secret and no token."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

import httpx

from caraway_core.errors import CarawayError

_TIMEOUT_S = 10.0


class RefusedSecretError(CarawayError):
    """The service refuses the login, or it may not read the secret."""


class AbsentSecretError(CarawayError):
    """The service holds no such secret."""


def call(
    title: str,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: Mapping[str, str] | None = None,
    authorities: str | None = None,
    form: Mapping[str, str] | None = None,
) -> Mapping[str, Any]:
    """Return the JSON object of an answer. `authorities` is a file of certificates.

    A `body` is sent as JSON, a `form` as one of the web.

    Raises:
        RefusedSecretError: the login does not suffice.
        AbsentSecretError: there is nothing at this path.
        CarawayError: the service cannot be reached, or answers something else; or the file of
            certificates cannot be read.
    """
    verify = True if authorities is None else _trusting(title, authorities)
    try:
        with httpx.Client(timeout=_TIMEOUT_S, verify=verify) as client:
            answer = client.request(method, url, headers=dict(headers), json=body, data=form)
        document = answer.json() if answer.is_success else {}
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError):
        # Not chained: such errors quote addresses and answers.
        raise CarawayError(
            f"{title} cannot be read: the server cannot be reached; check its address"
        ) from None
    if answer.status_code in (401, 403):
        raise RefusedSecretError(
            f"{title} cannot be read: access is denied ({answer.status_code}); check the login "
            "and its rights"
        )
    if answer.status_code == 404:
        raise AbsentSecretError(f"{title} does not exist; check the path in `from`")
    if not answer.is_success or not isinstance(document, dict):
        raise CarawayError(f"{title} cannot be read: the server answered {answer.status_code}")
    return document


def _trusting(title: str, authorities: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=authorities)
    except (OSError, ValueError):
        raise CarawayError(
            f"{title} cannot be read: '{authorities}' is not a file with certificates"
        ) from None


def file_text(title: str, path: str) -> str:
    """Return a file with a token.

    Raises:
        CarawayError: it cannot be read.
    """
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read().strip()
    except (OSError, ValueError):
        raise CarawayError(f"{title} cannot be read: the file '{path}' cannot be read") from None
