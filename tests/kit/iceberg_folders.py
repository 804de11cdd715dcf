"""A catalog that is a folder of tables."""

import shutil
from pathlib import Path

from tests.kit import iceberg_tables

Place = tuple[str, ...]


class FolderOfTables:
    """Has each table in a folder of its namespace, as a catalog of PyIceberg has its names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()

    def create_namespace_if_not_exists(self, name: str) -> None:
        (self._folder / name).mkdir(exist_ok=True)

    def drop_namespace(self, name: str) -> None:
        (self._folder / name).rmdir()

    def register_table(self, place: Place, location: str) -> None:
        shutil.copytree(iceberg_tables.local(location).parents[1], self._folder.joinpath(*place))

    def drop_table(self, place: Place) -> None:
        shutil.rmtree(self._folder.joinpath(*place))
