from collections.abc import Callable
from pathlib import Path

import pytest

from caraway_core.errors import ManifestError
from caraway_core.manifest import Manifest, load

Write = Callable[..., Path]
Loads = Callable[[str], Manifest]
Refuses = Callable[[str], list[str]]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str, name: str = "caraway.yaml") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


@pytest.fixture
def loads(write: Write) -> Loads:
    """Load a text as a manifest, with a name added."""
    return lambda text: load(write("name: app\n" + text))


@pytest.fixture
def refuses(write: Write, tmp_path: Path) -> Refuses:
    """Load an invalid text; return its problems without the temporary folder."""

    def refuses(text: str) -> list[str]:
        path = write(text)
        with pytest.raises(ManifestError) as caught:
            load(path)
        return [str(problem).replace(f"{tmp_path}/", "") for problem in caught.value.problems]

    return refuses
