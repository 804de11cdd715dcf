"""Manifests as users of the emulated runtime have them."""

from pathlib import Path

import pytest

from caraway_core.manifest import load
from tests.core.manifest.conftest import Loads, Refuses, Write

PEER = """\
version: v1
kind: Spicepod
name: shop
datasets:
  - from: memory:store
    name: notes
    mode: read_write
  - from: file:orders.csv
    name: orders
    params:
      file_format: csv
      csv_delimiter: ''
      csv_quote:
models:
  - from: openai:gpt-4o
    name: assistant
    params:
      openai_api_key: ${secrets:SPICE_OPENAI_API_KEY}
      endpoint: ''
      spice_tools: auto
"""


def test_a_manifest_of_a_peer_is_read(write: Write) -> None:
    manifest = load(write(PEER, "spicepod.yaml"), checks_params=True)
    assert [each.access for each in manifest.datasets] == ["read_write", "read"]
    assert manifest.datasets[1].params == {"file_format": "csv"}
    assert manifest.models[0].params == {
        "openai_api_key": "${secrets:SPICE_OPENAI_API_KEY}",
        "tools": "auto",
    }


def test_a_blank_secret_is_an_absent_param(write: Write) -> None:
    from caraway_core.manifest import build_resolver

    manifest = load(write(PEER, "spicepod.yaml"))
    resolver = build_resolver(manifest, {"SPICE_OPENAI_API_KEY": ""})
    assert resolver.expand_all(manifest.models[0].params) == {"tools": "auto"}


@pytest.mark.parametrize("key", ["mode: write", "mode: read, access: read"])
def test_problems_of_other_names_have_their_lines(refuses: Refuses, key: str) -> None:
    (problem,) = refuses(f"name: x\ndatasets:\n  - {{from: 'memory:a', name: a,\n    {key}}}\n")
    assert problem.startswith("caraway.yaml:4: datasets[0].")


def test_rules_know_the_other_names(loads: Loads, refuses: Refuses) -> None:
    text = "datasets: [{from: 'cdc:a', name: a, mode: read_write, columns: [{name: a, type: int}]}]"
    (problem,) = refuses(f"name: x\n{text}")
    assert "is only read by its changes" in problem
    (problem,) = refuses(
        "name: x\ndatasets: [{from: 'postgres:a', name: a, mode: read_write, "
        "acceleration: {refresh_mode: changes, primary_key: a}}]"
    )
    assert "datasets[0].access: the connector 'postgres' cannot be written to" in problem


def test_installed_dependencies_are_found(write: Write, loads: Loads, tmp_path: Path) -> None:
    dataset = "datasets: [{{from: 'memory:{0}', name: {0}}}]"
    write(f"name: a\n{dataset.format('a')}\ndependencies: [org/b]", "spicepods/org/a/spicepod.yaml")
    write(f"name: b\n{dataset.format('b')}", "spicepods/org/b/spicepod.yml")
    manifest = loads("dependencies: [org/a]")
    assert [each.name for each in manifest.datasets] == ["b", "a"]
    assert [each.base_dir.name for each in manifest.datasets] == ["b", "a"]
