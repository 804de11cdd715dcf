"""The params of embedding models and rerankers, checked."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from caraway_core.errors import ModelError
from caraway_core.loading import registry
from caraway_core.loading.declarations import Declaration
from caraway_core.manifest.texts import units
from caraway_core.protocols.embedding import EmbedderSpec


class ParamReader:
    """Reads the params of one model; every problem is an error that begins with `title`."""

    def __init__(
        self, title: str, provider: str, params: Mapping[str, str], declared: Declaration
    ) -> None:
        """Take the params.

        Raises:
            ModelError: the provider does not take one of them.
        """
        self.title = title
        self._params = {key: value for key, value in params.items() if value.strip()}
        for param in params:
            if fault := registry.param_fault(provider, param, declared):
                raise self._wrong(fault)

    def text(self, name: str, default: str = "") -> str:
        return self._params.get(name, default).strip()

    def needed(self, name: str) -> str:
        """Return a param that must be there.

        Raises:
            ModelError: it is missing or empty.
        """
        if not (value := self.text(name)):
            raise self._wrong(f"the param '{name}' is missing; add it to 'params'")
        return value

    def count(self, name: str, default: int, most: int) -> int:
        """Return a whole number from 1 to `most`.

        Raises:
            ModelError: it is none.
        """
        text = self.text(name)
        if not text:
            return default
        if not (text.isascii() and text.isdecimal() and 0 < int(text[:9]) <= most):
            raise self._wrong(f"the param '{name}' must be a whole number from 1 to {most}")
        return int(text)

    def seconds(self, name: str, default: float) -> float:
        """Return a duration of more than 0.

        Raises:
            ModelError: it is none.
        """
        text = self.text(name)
        try:
            value = units.seconds(text) if text else default
        except ValueError as exc:
            raise self._wrong(f"the param '{name}': {exc}") from exc
        if value <= 0:
            raise self._wrong(f"the param '{name}' must be more than 0")
        return value

    def url(self, name: str, default: str = "") -> str:
        """Return an http or https URL without credentials, and without a slash at its end.

        Raises:
            ModelError: it is none, or it is missing and there is no default.
        """
        url = self.text(name, default) or self.needed(name)
        try:
            parts = urlsplit(url)
            is_fine = parts.scheme in ("http", "https") and bool(parts.hostname)
        except ValueError:
            is_fine = False
        if not is_fine:
            raise self._wrong(f"the param '{name}' must be http://HOST or https://HOST")
        if parts.username or parts.password:
            raise self._wrong(f"the param '{name}' must not contain credentials")
        return url.rstrip("/")

    def one_of(self, name: str, known: tuple[str, ...]) -> str:
        """Return one of some words, the first by default.

        Raises:
            ModelError: it is another one.
        """
        value = self.text(name, known[0])
        if value not in known:
            raise self._wrong(f"the param '{name}' must be one of: {', '.join(known)}")
        return value

    def _wrong(self, message: str) -> ModelError:
        return ModelError(f"{self.title}: {message}", "invalid")


class EmbedderParams(ParamReader):
    """The params of an embedding model."""

    def __init__(self, spec: EmbedderSpec) -> None:
        """Take the params.

        Raises:
            ModelError: the provider does not take one of them.
        """
        declared = registry.EMBEDDERS.declared(spec.provider)
        super().__init__(f"embedding model '{spec.name}'", spec.provider, spec.params, declared)
