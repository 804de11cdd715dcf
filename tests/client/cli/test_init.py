import csv
from pathlib import Path

import pytest
import yaml

from tests.client.cli.conftest import Command


def test_the_starter_manifest_refers_to_existing_data(caraway: Command, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "project"

    shown = caraway("init", str(folder))

    assert shown.exit_code == 0
    assert f"Start it with: caraway run {folder}" in shown.stdout
    manifest = yaml.safe_load((folder / "caraway.yaml").read_text())
    assert manifest["version"] == "v1"
    assert manifest["kind"] == "Caraway"
    assert [view["name"] for view in manifest["views"]] == ["revenue_by_region"]
    (dataset,) = manifest["datasets"]
    data = folder / dataset["from"].removeprefix("file:")
    rows = list(csv.DictReader(data.read_text().splitlines()))
    assert rows[0].keys() == {"id", "customer", "region", "amount", "ordered_on"}


def test_the_commented_example_is_valid_yaml(caraway: Command, tmp_path: Path) -> None:
    caraway("init", str(tmp_path))
    text = (tmp_path / "caraway.yaml").read_text()
    start = text.index("  # - from: s3:")
    example = text[start : text.index("\n\n", start)].replace("  # ", "  ")

    (dataset,) = yaml.safe_load(example)

    assert dataset["params"]["s3_secret"] == "${secrets:S3_SECRET}"


def test_nothing_is_overwritten_without_force(caraway: Command, tmp_path: Path) -> None:
    mine = tmp_path / "caraway.yaml"
    mine.write_text("mine")

    refused = caraway("init", str(tmp_path))

    assert refused.exit_code == 1
    assert "pass --force to overwrite" in refused.stderr
    assert mine.read_text() == "mine"
    assert not (tmp_path / "data").exists()
    assert caraway("init", str(tmp_path), "--force").exit_code == 0
    assert "kind: Caraway" in mine.read_text()


def test_the_default_is_the_current_folder(
    caraway: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert caraway("init").exit_code == 0
    assert (tmp_path / "data" / "orders.csv").is_file()
