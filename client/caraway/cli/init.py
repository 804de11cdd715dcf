"""`caraway init`: write a starter manifest with sample data."""

from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from caraway_core.errors import CarawayError

FILES = ("caraway.yaml", "data/orders.csv")


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Target directory; created if it does not exist.")
    ] = Path("."),
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
) -> None:
    """Write a starter caraway.yaml and sample data to DIR."""
    targets = [folder / name for name in FILES]
    present = [str(target) for target in targets if target.exists()]
    if present and not force:
        raise CarawayError(f"file exists: {', '.join(present)}; pass --force to overwrite")
    for name, target in zip(FILES, targets, strict=True):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(_content(name))
        print(f"wrote {target}")
    print(f"Start it with: caraway run {folder}")


def _content(name: str) -> bytes:
    return resources.files("caraway").joinpath("starter", *name.split("/")).read_bytes()
