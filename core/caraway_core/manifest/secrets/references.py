"""References to secrets in the texts of a manifest, and the stores that hold the secrets.

`${store:NAME}` asks one store; `${secrets:NAME}` asks all of them, the last declared one first.
Blanks inside the braces do not count. What a secret holds is never searched for references again.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from caraway_core.errors import CarawayError, Problem
from caraway_core.loading import registry
from caraway_core.manifest.values.values import ALL_STORES, VIEW, Manifest

_REFERENCE = re.compile(r"\$\{\s*([A-Za-z_][\w-]*)\s*:([^{}]*)\}")


class SecretStore(Protocol):
    """A place that secrets are in."""

    def get(self, name: str) -> str | None:
        """Return the secret, or None when the store does not hold it.

        Raises:
            CarawayError: the store cannot be read; the message holds no secret.
        """
        ...


class SecretStoreFactory(Protocol):
    """The constructor of a class of the registry's secret stores."""

    def __call__(
        self, params: Mapping[str, str], base_dir: Path, environ: Mapping[str, str]
    ) -> SecretStore: ...


class SecretResolver:
    """Fills secrets into texts; `stores` are in the order in which they were declared."""

    def __init__(self, stores: Mapping[str, SecretStore]) -> None:
        self._stores = dict(stores)

    def expand(self, text: str) -> str:
        """Return the text with every reference replaced by its secret.

        Raises:
            CarawayError: a secret or its store does not exist. The message has names only.
        """
        return _REFERENCE.sub(lambda match: self._look_up(match[1], match[2].strip()), text)

    def expand_all(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Return the mapping with every value expanded, without those whose secrets are empty.

        Raises:
            CarawayError: a secret or its store does not exist; the message names the key.
        """
        expanded = {}
        for key, text in texts.items():
            try:
                filled = self.expand(text)
            except CarawayError as exc:
                raise CarawayError(f"'{key}': {exc.message}") from exc
            if filled or not text:
                expanded[key] = filled
        return expanded

    def _look_up(self, store: str, name: str) -> str:
        if not name:
            raise CarawayError(f"the secret reference '${{{store}:}}' names no secret")
        asked = self._asked(store)
        for store_name in asked:
            if (secret := self._stores[store_name].get(name)) is not None:
                return secret
        places = (
            ", ".join(f"'{store_name}'" for store_name in asked) or "any store: none is declared"
        )
        raise CarawayError(
            f"secret '{name}' was not found in {places}; add it there, or correct the reference"
        )

    def _asked(self, store: str) -> list[str]:
        if store == ALL_STORES:
            return list(reversed(self._stores))
        if store in self._stores:
            return [store]
        known = ", ".join([*self._stores, ALL_STORES])
        raise CarawayError(f"no secret store '{store}'; known: {known}")


def has_references(text: str) -> bool:
    """Return whether a text holds a reference to a secret."""
    return _REFERENCE.search(text) is not None


def build_resolver(manifest: Manifest, environ: Mapping[str, str]) -> SecretResolver:
    """Open the secret stores that a manifest declares.

    Raises:
        CarawayError: a store cannot be opened.
    """
    stores = {}
    for declared in manifest.secrets:
        factory: SecretStoreFactory = registry.SECRET_STORES.load(declared.kind)
        stores[declared.name] = factory(declared.params, manifest.base_dir, environ)
    return SecretResolver(stores)


def problems(manifest: Manifest, environ: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a problem for each text whose secrets cannot be filled in here."""
    try:
        resolver = build_resolver(manifest, environ)
    except CarawayError as exc:
        yield Problem(str(manifest.path), 0, "secrets", exc.message)
        return
    for where, text in _texts(manifest):
        try:
            resolver.expand(text)
        except CarawayError as exc:
            yield Problem(str(manifest.path), 0, where, exc.message)


def _texts(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yield the texts in which references are replaced, and their places."""
    for dataset in manifest.datasets:
        if dataset.connector != VIEW:
            yield f"dataset '{dataset.name}': from", dataset.path
        yield from _params(f"dataset '{dataset.name}'", dataset.params)
    for catalog in manifest.catalogs:
        yield f"catalog '{catalog.name}': from", catalog.path
        yield from _params(f"catalog '{catalog.name}'", catalog.params)
    for model in manifest.models:
        yield f"model '{model.name}': from", model.path
        yield from _params(f"model '{model.name}'", model.params)
    for embedder in manifest.embedders:
        yield from _params(f"embedding model '{embedder.name}'", embedder.params)
    for reranker in manifest.rerankers:
        yield from _params(f"reranker '{reranker.name}'", reranker.params)
    for tool in manifest.tools:
        yield from _params(f"tool '{tool.name}'", tool.params)
        yield from _params(f"tool '{tool.name}'", tool.env, "env")
    for number, key in enumerate(manifest.runtime.auth.keys):
        yield f"runtime.auth.api-key.keys[{number}]", key
    yield from _params("runtime.scheduler", manifest.runtime.scheduler.params)
    if manifest.snapshots is not None:
        yield from _params("snapshots", manifest.snapshots.params)


def _params(
    title: str, params: Mapping[str, str], section: str = "params"
) -> Iterator[tuple[str, str]]:
    for name, text in params.items():
        yield f"{title}: {section}.{name}", text
