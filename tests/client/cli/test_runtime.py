import csv
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import pytest
import yaml

from caraway_core.errors import ManifestError, NotInstalledError, Problem
from caraway_core.settings import Address, RunOptions
from tests.client.cli.conftest import Command

T = TypeVar("T")


class Calls(Generic[T]):
    """A fake command of the runtime that records its argument."""

    def __init__(self, exit_code: int) -> None:
        self.seen: list[T] = []
        self.options: dict[str, object] = {}
        self._exit_code = exit_code

    def __call__(self, given: T, **options: object) -> int:
        self.seen.append(given)
        self.options = options
        return self._exit_code


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], None]:
    """Make the registry return this function instead of the runtime's own."""

    def load(function: object) -> None:
        monkeypatch.setattr("caraway_core.loading.registry.Plugins.load", lambda *_: function)

    return load


def test_run_has_defaults_for_everything(caraway: Command, loads: Callable[[object], None]) -> None:
    started: Calls[RunOptions] = Calls(exit_code=0)
    loads(started)

    assert caraway("run").exit_code == 0
    assert started.seen == [
        RunOptions(
            manifest=Path("."),
            http=Address("127.0.0.1", 8090),
            flight=Address("127.0.0.1", 50051),
            metrics=Address("127.0.0.1", 9090),
            data_dir=Path(".caraway"),
        )
    ]


def test_run_hands_its_flags_to_the_runtime_and_returns_its_exit_code(
    caraway: Command, loads: Callable[[object], None]
) -> None:
    started: Calls[RunOptions] = Calls(exit_code=3)
    loads(started)

    shown = caraway(
        *("run", "shop.yaml", "--http", "0.0.0.0:80", "--flight", ":0", "--metrics", "[::1]:9"),
        *("--data-dir", "/var/x", "--log-format", "json", "--watch", "--ready-fd", "5"),
    )

    assert shown.exit_code == 3
    assert started.seen == [
        RunOptions(
            manifest=Path("shop.yaml"),
            http=Address("0.0.0.0", 80),
            flight=Address("127.0.0.1", 0),
            metrics=Address("::1", 9),
            data_dir=Path("/var/x"),
            log_format="json",
            watch=True,
            ready_fd=5,
        )
    ]


def test_run_reads_the_environment(
    caraway: Command, loads: Callable[[object], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: Calls[RunOptions] = Calls(exit_code=0)
    loads(started)
    monkeypatch.setenv("CARAWAY_HTTP", "127.0.0.1:1")
    monkeypatch.setenv("CARAWAY_LOG_FORMAT", "json")
    monkeypatch.setenv("CARAWAY_WATCH", "true")

    assert caraway("run").exit_code == 0
    assert started.seen[0].http.port == 1
    assert started.seen[0].log_format == "json"
    assert started.seen[0].watch


@pytest.mark.parametrize("flag", ["--http", "--flight", "--metrics"])
def test_a_bad_address_is_a_usage_error(caraway: Command, flag: str) -> None:
    shown = caraway("run", flag, "nowhere")

    assert shown.exit_code == 2
    assert f"{flag}: 'nowhere' is not an address" in shown.stderr


def test_a_missing_extra_names_what_to_install(
    caraway: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object) -> None:
        raise NotInstalledError("install it with: pip install 'caraway[runtime]'")

    monkeypatch.setattr("caraway_core.loading.registry.Plugins.load", missing)

    shown = caraway("run")

    assert shown.exit_code == 1
    assert shown.stderr == "error: install it with: pip install 'caraway[runtime]'\n"


def test_validate_hands_over_the_path_and_returns_the_exit_code(
    caraway: Command, loads: Callable[[object], None]
) -> None:
    checked: Calls[Path] = Calls(exit_code=1)
    loads(checked)

    assert caraway("validate", "shop", "--no-secrets").exit_code == 1
    assert checked.options == {"with_secrets": False}
    assert caraway("validate").exit_code == 1
    assert checked.options == {"with_secrets": True}
    assert checked.seen == [Path("shop"), Path(".")]


def test_every_problem_of_a_manifest_is_shown(
    caraway: Command, loads: Callable[[object], None]
) -> None:
    def refuse(_: Path, **options: object) -> int:
        raise ManifestError([Problem("a.yaml", 3, "name", "is missing"), Problem("b", 0, "", "x")])

    loads(refuse)

    assert caraway("validate").stderr == "error: a.yaml:3: name: is missing\nb: x\n"


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
