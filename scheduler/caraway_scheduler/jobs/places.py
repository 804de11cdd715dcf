"""Resolves where job results are stored, from the settings of the manifest."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from caraway_core.errors import CarawayError
from caraway_core.loading import registry
from caraway_core.manifest import RuntimeSettings, SecretResolver
from caraway_core.manifest.texts.locations import STORE, split
from caraway_core.tables import ResultPlace


class _Finder(Protocol):
    """A function of the registry that resolves a location to a result place."""

    def __call__(self, scheme: str, path: str, params: Mapping[str, str]) -> ResultPlace: ...


def place(
    settings: RuntimeSettings, secrets: SecretResolver, default: Path, token: str = ""
) -> ResultPlace:
    """Return the place that `runtime.scheduler` names, or the folder `default`.

    Nothing is contacted or created here; the first use shows whether the place works. `token` is
    the cluster's token, which its own chunk store requires.

    Raises:
        CarawayError: the location or its params are invalid, or a secret is missing.
    """
    text = settings.scheduler.state_location
    if text is None:
        return ResultPlace("file", str(default.absolute()))
    key, params = "runtime.scheduler.state_location", settings.scheduler.params
    return named(key, text, params, secrets, token)


def named(
    key: str, text: str, params: Mapping[str, str], secrets: SecretResolver, token: str = ""
) -> ResultPlace:
    """Return the place that a key of the manifest names.

    Raises:
        CarawayError: the location or its params are invalid, or a secret is missing.
    """
    try:
        location = split(text)
        filled = dict(secrets.expand_all(params))
        if location.scheme == STORE and token:
            filled.setdefault("token", token)
        find: _Finder = registry.RESULT_PLACES.load(location.scheme)
        return find(location.scheme, location.path, filled)
    except ValueError as exc:
        raise CarawayError(f"{key}: {exc}") from exc
    except CarawayError as exc:
        raise CarawayError(f"{key} '{text}': {exc.message}") from exc
