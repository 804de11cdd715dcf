"""Reads the params of a model; each error names the param and its values."""

import math
import re
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from caraway_ai.providers import declared
from caraway_ai.specs import ModelSpec
from caraway_core.errors import ModelError
from caraway_core.json_texts import strict_json
from caraway_core.loading import registry
from caraway_core.manifest.texts import units

Value = TypeVar("Value")
_SECRETS = ("key", "token", "secret", "password")
_SHORTEST_SECRET = 6
_SENT_SECRETS = ("_key", "_token")
_SENDABLE = re.compile(r"[\x20-\x7e]*")


class ModelParams:
    """The params of one model."""

    def __init__(self, spec: ModelSpec) -> None:
        """Check the names, and that keys can be sent as headers.

        Raises:
            ModelError: the provider does not take a param, or not with this value.
        """
        self._spec = spec
        declaration = registry.MODEL_PROVIDERS.declared(spec.provider)
        for name, value in spec.params.items():
            if fault := registry.param_fault(spec.provider, name, declaration):
                raise self.wrong(fault)
            if name.endswith(_SENT_SECRETS) and not _SENDABLE.fullmatch(value):
                raise self.wrong(
                    f"the param '{name}' may only have printable ASCII characters; look for a "
                    "line end, or a character that was changed when it was copied"
                )

    def wrong(self, message: str) -> ModelError:
        """Word a mistake in the params."""
        return ModelError(f"model '{self._spec.name}': {message}", "invalid")

    def text(self, *names: str) -> str | None:
        """Return the first of the params that is there and not empty."""
        return next((value for name in names if (value := self._spec.params.get(name))), None)

    def secret(self, *names: str) -> str:
        """Return the first of the params that is there.

        Raises:
            ModelError: none is, with the code `model.auth`.
        """
        if (text := self.text(*names)) is None:
            message = f"model '{self._spec.name}': it needs the param '{names[0]}'"
            raise ModelError(f"{message}, for example '${{secrets:{names[0].upper()}}}'", "auth")
        return text

    def model(self) -> str:
        """Return the model that `from` names.

        Raises:
            ModelError: it names none.
        """
        if not self._spec.model:
            provider = self._spec.provider
            raise self.wrong(f"'from: {provider}' names no model; write '{provider}:<model>'")
        return self._spec.model

    def address(self, address: str) -> str:
        """Return an address, if it is one.

        Raises:
            ModelError: it is not.
        """
        try:
            parts = urlsplit(address)
            is_address = (
                parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
            )
        except ValueError:  # Such as a port that is no number.
            is_address = False
        if not is_address:
            raise self.wrong(
                "the param 'endpoint' is no address; write for example 'http://localhost:8000/v1'"
            )
        return address

    def count(self, name: str, default: int, least: int = 0) -> int:
        return self._read(name, default, lambda text: _count(text, least))

    def duration_s(self, name: str, default: float) -> float:
        return self._read(name, default, units.seconds)

    def path(self, name: str) -> Path | None:
        """Return a path, relative to the folder of the manifest."""
        text = self.text(name)
        return None if text is None else self._spec.base_dir / text

    def tls_context(self) -> ssl.SSLContext | None:
        """Return what trusts the authorities of the manifest; None is the usual trust."""
        if (authority := self.path("tls_root_certificate")) is None:
            return None
        try:
            return ssl.create_default_context(cafile=str(authority))
        except OSError as exc:
            reason = exc.strerror or "it holds no certificate"
            raise self.wrong(f"the param 'tls_root_certificate' cannot be read: {reason}") from exc

    def defaults(self) -> dict[str, Any]:
        """Return the fields of requests that the manifest fills where a caller does not."""
        found: dict[str, Any] = {}
        for name in self._spec.params:
            if (field := declared.default_of(self._spec.provider, name)) is not None:
                read = _READERS[declared.DEFAULTS[field]]
                found[field] = self._read(name, None, read)
        return {field: value for field, value in found.items() if value is not None}

    def secrets(self) -> tuple[str, ...]:
        """Return the values that no message may hold."""
        return tuple(
            value
            for name, value in self._spec.params.items()
            if any(word in name for word in _SECRETS) and len(value) >= _SHORTEST_SECRET
        )

    def _read(self, name: str, default: Value, read: Callable[[str], Value]) -> Value:
        text = self.text(name)
        if text is None:
            return default
        try:
            return read(text)
        except ValueError as exc:
            raise self.wrong(f"the param '{name}' {exc}") from exc


def scrubbed(text: str, secrets: tuple[str, ...]) -> str:
    """Return a text of a provider without secrets and line ends, and not longer than a line."""
    # The longest first: one may begin another.
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return " ".join(text.split())[:500]


def _count(text: str, least: int) -> int:
    if not (text.isascii() and text.isdigit() and least <= int(text[:12]) <= 10**9):
        raise ValueError(f"must be a whole number of at least {least}")
    return int(text)


def _number(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise ValueError("must be a number")
    return found


def _integer(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text.strip()):
        raise ValueError("must be a whole number")
    return int(text)


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.lower() == "true"


def _json(text: str) -> object:
    try:
        return strict_json.parse(text)
    except ValueError as exc:
        raise ValueError(f"must be JSON: {exc}") from None


def _text_or_json(text: str) -> object:
    return _json(text) if text[:1] in ("[", "{") else text


_READERS: Mapping[str, Callable[[str], object]] = {
    "number": _number,
    "integer": _integer,
    "boolean": _boolean,
    "JSON": _json,
    "text": str,
    "text or JSON": _text_or_json,
}
