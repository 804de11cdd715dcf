"""Checks that the plug-ins exist which the `from` of components name."""

from collections.abc import Collection

from caraway_core.loading import registry
from caraway_core.manifest.texts import names


def check_connector(text: str) -> str:
    """Return the `from` of a dataset; ValueError: there is no such connector."""
    return check("connector", names.split_origin(text).connector, registry.SOURCES, text)


def check_catalog_connector(text: str) -> str:
    """Return the `from` of a catalog; ValueError: there is no such connector of catalogs."""
    name = names.split_origin(text).connector
    return check("connector of catalogs", name, registry.CATALOG_SOURCES, text)


def check_provider(text: str) -> str:
    """Return the `from` of a model; ValueError: there is no such provider of models."""
    plugins = registry.MODEL_PROVIDERS
    return check("model provider", names.split_provider(text).connector, plugins, text)


def check(kind: str, name: str, known: Collection[str], text: str) -> str:
    """Return a text that names a plug-in.

    Raises:
        ValueError: the plug-in is unknown.
    """
    if name not in known:
        raise ValueError(registry.unknown(kind, name, known))
    return text
