"""Runtimes that keep snapshots of an accelerated dataset in a folder."""

from pathlib import Path

from tests.kit.deadlines import eventually

STORE = """
        snapshots:
          location: {location}
          params: {{{params}}}
          bootstrap_on_failure_behavior: {behavior}
"""


def place(location: str = "file:snapshots", params: str = "", behavior: str = "warn") -> str:
    return STORE.format(location=location, params=params, behavior=behavior)


def marks(folder: Path) -> list[str]:
    found = (folder / "snapshots").glob("md-*") if (folder / "snapshots").is_dir() else ()
    return sorted(path.name for path in found)


async def made(folder: Path, number: int) -> None:
    async def look() -> bool:
        return len(marks(folder)) >= number

    await eventually(look, f"{number} snapshots are made")
