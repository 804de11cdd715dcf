import gzip
import hashlib
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pyarrow.dataset
import pyarrow.ipc
import pytest
import yaml

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_data", EXAMPLES / "make_data.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def data(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop") / "data"
    assert script.write(folder)
    return folder


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_every_run_writes_the_same(script: ModuleType, data: Path, tmp_path: Path) -> None:
    script.write(tmp_path)

    assert digests(tmp_path) == digests(data)


def test_existing_data_is_kept_unless_forced(script: ModuleType, data: Path) -> None:
    before = digests(data)

    assert not script.write(data)
    assert script.write(data, force=True)
    assert digests(data) == before


def test_orders_are_partitioned_by_year(data: Path) -> None:
    orders = pyarrow.dataset.dataset(data / "orders", partitioning="hive").to_table()

    assert orders.num_rows == 50_000
    assert set(orders["year"].to_pylist()) == {2022, 2023, 2024, 2025}
    assert len(set(orders["order_id"].to_pylist())) == 50_000
    years = zip(orders["ordered_at"].to_pylist(), orders["year"].to_pylist(), strict=True)
    assert all(at.year == year for at, year in years)


def test_the_other_files_have_the_expected_contents(data: Path) -> None:
    events = gzip.decompress((data / "events.ndjson.gz").read_bytes()).splitlines()
    products = json.loads((data / "products.json").read_text())
    with pyarrow.ipc.open_file(str(data / "regions.arrow")) as reader:
        regions = reader.read_all()

    assert json.loads(events[0]).keys() >= {"event_id", "at", "action"}
    assert [product["product_id"] for product in products] == list(range(1, 13))
    assert regions.column_names == ["region_id", "region"]
    assert (data / "customers.csv").read_text().startswith('"customer_id","name",')


def test_the_quickstart_reads_every_file(data: Path) -> None:
    manifest = yaml.safe_load((EXAMPLES / "quickstart" / "caraway.yaml").read_text())
    sources = {dataset["from"] for dataset in manifest["datasets"]}
    written = {path.name for path in data.iterdir() if not path.name.startswith(".")}

    assert {source.rstrip("/").removeprefix("file:../data/") for source in sources} == written
