"""A source of another package: its entry point alone makes it a connector like those of Caraway."""

import os
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.kit.deadlines import until
from tests.kit.processes import CARAWAY, child

PACKAGE = '''
"""Counts fruits: `from: fruit:FILE` names a file with their number."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from caraway_core.tables import scanners
from caraway_core.loading.declarations import Connector
from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceCapabilities
from caraway_core.tables import TableSpec


@dataclass(frozen=True, slots=True)
class Basket(TableSpec):
    fruits: int
    schema: pa.Schema

    @property
    def row_count(self):
        return self.fruits


class FruitSource:
    declaration = Connector(
        params=frozenset({"fruit_key", "fruit_colour"}), modes=("full", "disabled"), poll_s=0.2
    )
    capabilities = SourceCapabilities(projection=True)

    def resolve(self, request):
        if request.params.get("fruit_key") != "ripe":
            raise DatasetError("auth", f"dataset '{request.name}': fruit_key does not open it")
        colour = request.params.get("fruit_colour", "red")
        schema = pa.schema({"number": pa.int64(), colour: pa.string()})
        return Basket(int(self.fingerprint(request)), schema)

    def fingerprint(self, request):
        return (request.base_dir / request.path).read_text()


class Rows(list):
    def close(self):
        pass


class Scanner:
    def scan(self, table, request):
        number = list(range(table.fruits))
        values = [number, [f"fruit {each}" for each in number]]
        both = dict(zip(table.schema.names, values))
        rows = pa.table({name: both[name] for name in request.columns})
        return Rows(rows.to_batches())


scanners.register(Basket, Scanner())
'''
MANIFEST = """\
version: v1
kind: Caraway
name: market
secrets: [{from: env, name: env}]
datasets:
  - from: fruit:count.txt
    name: apples
    params: {fruit_key: "${env:FRUIT_KEY}", fruit_colour: green}
  - from: fruit:count.txt
    name: loaded
    params: {fruit_key: "${env:FRUIT_KEY}"}
    acceleration: {enabled: true}
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment with the package installed, and a file with the number of fruits."""
    site = tmp_path / "site"
    metadata = site / "fruits-1.0.dist-info"
    metadata.mkdir(parents=True)
    (site / "fruits.py").write_text(PACKAGE)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: fruits\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[caraway.sources]\nfruit = fruits:FruitSource\nrotten = rotten:Source\n"
    )
    (site / "rotten.py").write_text("import a_package_that_nobody_has\n")
    (tmp_path / "count.txt").write_text("3")
    others = os.environ.get("PYTHONPATH", "")
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(site), others)))}


def manifest(folder: Path, text: str = MANIFEST) -> Path:
    file = folder / "caraway.yaml"
    file.write_text(text)
    return file


def validated(file: Path, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(CARAWAY), "validate", str(file)], capture_output=True, text=True, timeout=60,
        env={**os.environ, **environ},
    )  # fmt: skip


def test_its_datasets_are_checked_loaded_queried_and_polled(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    file = manifest(tmp_path)
    environ = {**environ, "FRUIT_KEY": "ripe"}
    checked = validated(file, environ)
    assert checked.returncode == 0, checked.stderr

    with child(tmp_path, file, environ=environ) as runtime:
        sql = "SELECT max(number) AS most, max(green) AS one FROM apples"
        assert runtime.sql(sql).json() == [{"most": 2, "one": "fruit 2"}]
        sql = "SELECT red FROM loaded WHERE number = 1"
        until(lambda: runtime.sql(sql).status_code == 200, "the rows are loaded", 60)
        assert runtime.sql(sql).json() == [{"red": "fruit 1"}]

        (tmp_path / "count.txt").write_text("7")
        counted = "SELECT count(*) AS n FROM apples"
        until(lambda: runtime.sql(counted).json() == [{"n": 7}], "the new number is read")


def test_its_mistakes_are_found_at_once_with_line_and_nearest_name(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    text = textwrap.dedent("""\
        version: v1
        kind: Caraway
        name: market
        datasets:
          - from: fruit:count.txt
            name: apples
            params:
              fruit_kee: x
          - from: friut:count.txt
            name: pears
          - from: fruit:count.txt
            name: plums
            acceleration: {refresh_mode: append}
            time_column: at
          - from: fruit:count.txt
            name: figs
            acceleration: {refresh_mode: changes}
    """)

    checked = validated(manifest(tmp_path, text), environ)

    assert checked.returncode != 0
    said = checked.stderr + checked.stdout
    for message in (
        "caraway.yaml:8: datasets[0].params.fruit_kee: no fruit param 'fruit_kee'; "
        "did you mean 'fruit_key'? Known: fruit_colour, fruit_key",
        "caraway.yaml:9: datasets[1].from: no connector 'friut'; did you mean 'fruit'?",
        "caraway.yaml:13: datasets[2].acceleration.refresh_mode: the connector 'fruit' has no "
        "'append'; it has: full, disabled",
        "caraway.yaml:17: datasets[3].acceleration.refresh_mode: the connector 'fruit' has no "
        "changes; these have: cdc, debezium, dynamodb, kafka, mongodb, mysql, postgres",
    ):
        assert message in said


def test_a_source_that_cannot_be_imported_fails_alone(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    text = MANIFEST + "  - {from: 'rotten:x', name: rotten, params: {any: x}}\n"

    with child(
        tmp_path, manifest(tmp_path, text), environ={**environ, "FRUIT_KEY": "r"}
    ) as runtime:
        listed = runtime.api.get("/v1/datasets?status=true").json()

    errors = {each["name"]: each["error_message"] for each in listed}
    assert "rotten" in errors["rotten"] and "a_package_that_nobody_has" in errors["rotten"]
    assert "fruit_key does not open it" in errors["apples"]
