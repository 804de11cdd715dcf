"""Unknown params are found before startup; a running scheduler tolerates them."""

from pathlib import Path

import pytest

from caraway_core import manifest
from caraway_core.errors import ManifestError
from caraway_core.loading import registry


def write(folder: Path, text: str) -> Path:
    file = folder / "caraway.yaml"
    file.write_text(f"version: v1\nkind: Caraway\nname: a\n{text}")
    return file


def problems(file: Path) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        manifest.load(file, checks_params=True)
    return [f"{each.line}: {each.path}: {each.message}" for each in caught.value.problems]


def test_an_unknown_param_is_named_with_its_line_and_the_nearest_known_one(tmp_path: Path) -> None:
    file = write(
        tmp_path, "datasets:\n- from: file:a.csv\n  name: a\n  params: {csv_delimitr: x}\n"
    )

    [found] = problems(file)

    assert found.startswith(
        "7: datasets[0].params.csv_delimitr: no file param 'csv_delimitr'; "
        "did you mean 'csv_delimiter'?"
    )
    assert manifest.load(file).datasets, "a scheduler serves the other datasets"


def test_places_that_cannot_be_used_are_problems(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        "runtime: {scheduler: {state_location: s3://b, params: {regoin: x}}}\n"
        "snapshots: {location: gs://b, params: {s3_key: x}}\n",
    )

    found = problems(file)

    assert [each.split(": ")[1] for each in found] == [
        "runtime.scheduler.state_location",
        "snapshots.location",
    ]
    manifest.load(file)


@pytest.mark.parametrize("connector", sorted(registry.SOURCES))
def test_each_connector_has_its_params(connector: str) -> None:
    declared = registry.connector(connector)
    assert declared.params or connector == "localpod"
    assert registry.SOURCES.declared(connector) is declared


@pytest.mark.parametrize("connector", sorted(registry.SOURCES))
def test_each_param_is_taken(connector: str, tmp_path: Path) -> None:
    params = "\n".join(
        f"    {name}: x" for name in sorted(registry.connector(connector).params or ())
    )
    text = f"datasets:\n- from: {connector}:a\n  name: a\n  params:\n{params}\n"
    if connector == "cdc":
        text += "  columns: [{name: a, type: int}]\n  acceleration: {primary_key: a}\n"

    try:
        manifest.load(write(tmp_path, text), checks_params=True)
    except ManifestError as exc:
        assert not [each for each in exc.problems if "params" in each.path]


@pytest.mark.parametrize(
    ("section", "local", "remote"),
    [("models", "file:a.gguf", "openai:x"), ("embeddings", "builtin:minilm", "openai:x")],
)
def test_only_models_of_the_runtime_have_resources(
    tmp_path: Path, section: str, local: str, remote: str
) -> None:
    item = "{name: m, from: '%s', resources: {cpu: 2, copies: 2}}"
    [found] = problems(write(tmp_path, f"{section}: [{item % remote}]\n"))
    assert found.startswith(f"4: {section}[0].resources: a model of 'openai' runs at its provider")
    kept = manifest.load(write(tmp_path, f"{section}: [{item % local}]\n"), checks_params=True)
    models = {each.name: each.resources for each in kept.models}
    embedders = {each.name: each.resources for each in kept.embedders}
    resources = {**embedders, **models}["m"]
    assert resources is not None and (resources.cpu, resources.copies) == (2, 2)
