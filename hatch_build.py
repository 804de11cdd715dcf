"""Refuses to build a wheel without the console."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PAGE = Path("serving/caraway_serving/console/files/index.html")


class ConsoleBuildHook(BuildHookInterface[Any]):
    """Checks that the files of the console were built; an editable install needs none."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable" and not (Path(self.root) / _PAGE).exists():
            raise RuntimeError(
                "the console is not built; run `python console/build.py` before the wheel is built"
            )
