"""A Hive metastore over a database in memory, whose classes `make test-clients` fetches."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from pyiceberg.catalog import Catalog

from caraway_plugins.sources.iceberg.hive_wire import HiveConnection
from tests.kit.search_server import CLIENTS

PROGRAM = Path(__file__).parents[1] / "e2e" / "clients" / "hive" / "Metastore.java"
_STOP_S = 60
_CLEANER = "org.apache.hadoop.hive.metastore.events.EventCleanerTask"
_SETTINGS: Mapping[str, str] = {
    "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
    "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
    "datanucleus.schema.autoCreateAll": "true",
    "metastore.schema.verification": "false",
    "metastore.thrift.bind.host": "127.0.0.1",
    "metastore.task.threads.always": _CLEANER,
    "metastore.task.threads.remote": _CLEANER,
    "metastore.expression.proxy":
        "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
}  # fmt: skip
_INPUTS = "org.apache.hadoop.mapred.File{}putFormat"


@dataclass(slots=True)
class HiveTables:
    """The part of a catalog of PyIceberg that tests write by, which knows no Hive 4."""

    connection: HiveConnection
    folder: Path

    def create_namespace_if_not_exists(self, name: str) -> None:
        databases = self.connection.call("get_all_databases")[0]
        if name not in databases:
            self._done("create_database", {1: name, 3: (self.folder / name).as_uri()})

    def drop_namespace(self, name: str) -> None:
        self._done("drop_database", name, False, True)

    def register_table(self, place: tuple[str, str], location: str) -> None:
        self.put(place, {"table_type": "iceberg", "metadata_location": location})

    def put(self, place: tuple[str, str], parameters: Mapping[str, str]) -> None:
        """Create a table of any kind."""
        database, name = place
        stored = {
            1: [{1: "x", 2: "int"}],
            2: (self.folder / database / name).as_uri(),
            3: _INPUTS.format("In"),
            4: _INPUTS.format("Out"),
            7: {1: "s", 2: "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"},
        }
        table = {
            1: name, 2: database, 3: "me", 7: stored, 8: [],
            9: {"EXTERNAL": "TRUE", **parameters}, 12: "EXTERNAL_TABLE",
        }  # fmt: skip
        self._done("create_table", table)

    def drop_table(self, place: tuple[str, str]) -> None:
        self._done("drop_table", *place, False)

    def clear(self) -> None:
        """Remove all databases but the first one, which has no tables here."""
        for each in self.connection.call("get_all_databases")[0]:
            if each != "default":
                self.drop_namespace(each)

    def _done(self, method: str, *arguments: Any) -> None:
        failed = self.connection.call(method, *arguments)
        assert not failed, failed


@dataclass(slots=True)
class HiveServer:
    """A server: its tables, and the params of datasets."""

    port: int
    tables: HiveTables

    @property
    def catalog(self) -> Catalog:
        return cast("Catalog", self.tables)

    @property
    def params(self) -> Mapping[str, str]:
        return {"iceberg_hive_endpoint": f"thrift://127.0.0.1:{self.port}", "client_timeout": "20s"}


@contextmanager
def serving(version: str = "hive4") -> Iterator[HiveServer]:
    """Start a metastore; skip the test where it, or Java, is missing."""
    jars = CLIENTS / version
    if shutil.which("java") is None or not list(jars.glob("*.jar")):
        pytest.skip("NOT TESTED: no java, or no Hive metastore: make test-clients where mvn is")
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryFile() as log:
        folder = Path(name)
        settings = {**_SETTINGS, "metastore.warehouse.dir": (folder / "warehouse").as_uri()}
        properties = (
            f"<property><name>{key}</name><value>{value}</value></property>"
            for key, value in settings.items()
        )
        (folder / "metastore-site.xml").write_text(
            f"<configuration>{''.join(properties)}</configuration>"
        )
        process = subprocess.Popen(
            ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", f"-Dderby.stream.error.file={name}/log",
             "-cp", f"{folder}:{jars.resolve()}/*", PROGRAM],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder,
        )  # fmt: skip
        assert process.stdout is not None and process.stdin is not None
        try:
            port = next((line.strip() for line in process.stdout if line.strip().isdigit()), "")
            assert port, log.seek(0) or log.read()[-2_000:]
            connection = HiveConnection("127.0.0.1", int(port), _STOP_S)
            try:
                yield HiveServer(int(port), HiveTables(connection, folder))
            finally:
                connection.close()
        finally:
            process.stdin.close()
            process.stdout.close()
            process.kill()
            process.wait(_STOP_S)
