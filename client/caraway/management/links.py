"""Linked directories: `.caraway/project.json` names the project that a directory is deployed to."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from caraway.management import saved
from caraway_core.errors import CarawayError

FILE = Path(".caraway") / "project.json"


@dataclass(frozen=True, slots=True)
class Link:
    """The project of a directory. It has no secrets, and never decides where a token is sent."""

    management: str
    org: str
    project_id: int
    project: str

    def is_of(self, url: str) -> bool:
        """Return whether the project is one of a service."""
        return saved.normal(self.management) == saved.normal(url)


def load(folder: Path) -> Link | None:
    """Return the link of a directory.

    Raises:
        CarawayError: the file is not valid.
    """
    file = folder / FILE
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        return Link(
            str(document["management"]),
            str(document["org"]),
            int(document["project_id"]),
            str(document["project"]),
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, KeyError) as exc:
        raise CarawayError(
            f"cannot read {file}: {type(exc).__name__}; delete it and run `caraway projects link`"
        ) from exc


def save(folder: Path, link: Link) -> None:
    """Link a directory to a project."""
    file = folder / FILE
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(asdict(link), indent=2) + "\n", encoding="utf-8")
    except OSError as exc:
        raise CarawayError(f"cannot write {file}: {exc.strerror}") from exc
