"""Resolves the paths in a manifest to files."""

import os
from pathlib import Path

MANIFEST_FILES = ("caraway.yaml", "caraway.yml", "spicepod.yaml", "spicepod.yml")
INSTALLED = "spicepods"
"""The folder in which the emulated runtime installs dependencies."""
GIT_PREFIXES = ("git:", "github:")
"""The first characters of a dependency in a git repository."""
SINGULAR = {
    "catalogs": "catalog",
    "datasets": "dataset",
    "views": "view",
    "models": "model",
    "embeddings": "embedding",
    "rerankers": "reranker",
    "search_engines": "search_engine",
    "tools": "tool",
    "workers": "worker",
    "functions": "function",
    "evals": "eval",
}


def manifest_file(path: Path) -> Path:
    """Return the manifest that a path means: the file itself, or the one in the folder.

    Raises:
        ValueError: there is none; the message says what to do.
    """
    return _file(path, MANIFEST_FILES, "give the path of a manifest file or of its folder")


def dependency_file(text: str, base_dir: Path, top_dir: Path) -> Path:
    """Return the manifest of a dependency that a file in the first folder names.

    Installed dependencies are in `spicepods` of that folder, or of one above it up to `top_dir`.
    Those of git repositories, `git:{org}/{repo}/{sha}/{path}`, are only there.

    Raises:
        ValueError: there is none; the message says what to do.
    """
    prefix = next((each for each in GIT_PREFIXES if text.startswith(each)), "")
    name = text.removeprefix(prefix)
    places = [] if prefix else [sibling(base_dir, text)]
    places += [sibling(each / INSTALLED, name) for each in _between(base_dir, top_dir)]
    path = next((each for each in places if os.path.exists(each)), None)
    if path is None and prefix:
        raise ValueError(
            f"'{text}' is not installed; `caraway add {text}` installs it, and `caraway package` "
            "makes a package that holds it"
        )
    return manifest_file(path or places[0])


def _between(base_dir: Path, top_dir: Path) -> list[Path]:
    above = [each for each in base_dir.parents if each.is_relative_to(top_dir)]
    return list(dict.fromkeys((base_dir, *above, top_dir)))


def component_file(path: Path, section: str) -> Path:
    """Return the file that a `ref` in the section means.

    Raises:
        ValueError: there is none; the message says what to do.
    """
    singular = SINGULAR[section]
    remedy = f"a 'ref' is a YAML file, or a folder that holds {singular}.yaml"
    return _file(path, (f"{singular}.yaml", f"{singular}.yml"), remedy)


def sibling(base_dir: Path, text: str) -> Path:
    """Return a path that a file in the folder names, without `..` where that is possible."""
    return Path(os.path.normpath(base_dir / text))


def _file(path: Path, candidates: tuple[str, ...], remedy: str) -> Path:
    try:
        if not path.is_dir():
            if not path.exists():
                raise ValueError(f"there is no '{path}'; {remedy}")
            return path
        paths = [path / name for name in candidates if (path / name).is_file()]
    except OSError as exc:
        raise ValueError(f"'{path}' cannot be read: {exc.strerror}; {remedy}") from exc
    if not paths:
        raise ValueError(f"the folder '{path}' holds none of {', '.join(candidates)}; {remedy}")
    return paths[0]
