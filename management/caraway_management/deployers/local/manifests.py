"""The manifest that a runtime of this machine runs: the user's, with keys and secrets."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from caraway_management.deployers.protocol import RejectedError, Wanted

_FILE = re.compile(r"file:(?://)?(?P<path>.*)", re.IGNORECASE | re.DOTALL)
_PATH_PARAM = re.compile(r"(^|_)file$|_(path|open|dir)$")
_KEYS = "caraway_api_keys"
_SECRETS = "project"


def effective(wanted: Wanted, folder: Path, *, allows_files: bool) -> str:
    """Return the text of the manifest with the API keys and the secrets of the project.

    Raises:
        RejectedError: it is not a manifest, or refers to files of this machine that it may not
            read.
    """
    try:
        content = yaml.safe_load(wanted.manifest)
    except (yaml.YAMLError, RecursionError, ValueError):
        raise RejectedError("the manifest is not valid YAML") from None
    if not isinstance(content, dict):
        raise RejectedError("the manifest holds no object")
    if not allows_files:
        for place, path in _foreign_files(content):
            raise RejectedError(
                f"{place}: '{path}' is a file of the machine that serves; write a path within the "
                "project, or have the service started with --allow-local-files"
            )
    content = dict(content)
    declared = content.get("secrets")
    # A manifest without stores reads the environment. One with any store does not.
    stores = list(declared) if isinstance(declared, list) else [{"from": "env", "name": "env"}]
    stores.append({"from": f"file:{folder / 'secrets'}", "name": _SECRETS})
    if wanted.api_keys:
        stores.append({"from": f"file:{folder / 'keys'}", "name": _KEYS})
        content["runtime"] = _with_keys(content.get("runtime"), wanted)
    content["secrets"] = stores
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def _with_keys(runtime: object, wanted: Wanted) -> object:
    section = dict(runtime) if isinstance(runtime, dict) else {}
    auth = dict(section.get("auth") or {})
    name = "api_key" if "api_key" in auth else "api-key"
    keys = dict(auth.get(name) or {})
    ours = [f"${{{_KEYS}:{key.number}}}:{key.access}" for key in wanted.api_keys]
    keys["enabled"] = True
    keys["keys"] = [*(keys.get("keys") or []), *ours]
    return {**section, "auth": {**auth, name: keys}}


def _foreign_files(content: object) -> Iterator[tuple[str, str]]:
    """Yield the places of a manifest that refer to files outside of the project's folder."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), content)]
    seen: set[int] = set()
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, dict | list):
            # YAML may refer to one value from many places, and from within itself.
            if id(value) not in seen:
                seen.add(id(value))
                items = value.items() if isinstance(value, dict) else enumerate(value)
                waiting += [((*place, str(key)), each) for key, each in items]
        elif isinstance(value, str) and (path := _path(place, value.strip())) is not None:
            yield ".".join(place), path


def _path(place: tuple[str, ...], text: str) -> str | None:
    """Return the path outside of the folder that a text of the manifest names, if it does."""
    match = _FILE.fullmatch(text)
    if match is None and not (place and _PATH_PARAM.search(place[-1])):
        return None
    path = match["path"] if match else text
    leaves = path.startswith(("/", "~")) or ".." in Path(path).parts or "${" in path
    return path if leaves and (match or "://" not in path) else None
