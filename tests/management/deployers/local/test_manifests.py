from pathlib import Path

import pytest
import yaml

from caraway_management.deployers.local import manifests
from caraway_management.deployers.protocol import RejectedError, RuntimeKey, Wanted

_FOLDER = Path("/srv/projects/7")


def _effective(manifest: str, *, allows_files: bool = False, has_keys: bool = True) -> dict:  # type: ignore[type-arg]
    keys = (RuntimeKey(1, "one"), RuntimeKey(2, "two")) if has_keys else ()
    wanted = Wanted(7, 1, "acme", "shop", 3, manifest, api_keys=keys)
    text = manifests.effective(wanted, _FOLDER, allows_files=allows_files)
    assert "one" not in text and "two" not in text
    found: dict = yaml.safe_load(text)  # type: ignore[type-arg]
    return found


def test_keys_and_secrets_are_added() -> None:
    made = _effective("version: v1\nkind: Caraway\nname: shop\n")
    assert made["secrets"] == [
        {"from": "env", "name": "env"},
        {"from": f"file:{_FOLDER}/secrets", "name": "project"},
        {"from": f"file:{_FOLDER}/keys", "name": "caraway_api_keys"},
    ]
    assert made["runtime"]["auth"]["api-key"] == {
        "enabled": True,
        "keys": ["${caraway_api_keys:1}:rw", "${caraway_api_keys:2}:rw"],
    }


def test_what_the_manifest_has_stays() -> None:
    made = _effective(
        "secrets: [{from: env, name: mine}]\n"
        "runtime: {auth: {api_key: {keys: ['${mine:A}']}}, task_history: {enabled: false}}\n"
    )
    assert made["secrets"][0] == {"from": "env", "name": "mine"}
    assert made["runtime"]["auth"]["api_key"]["keys"][0] == "${mine:A}"
    assert len(made["runtime"]["auth"]["api_key"]["keys"]) == 3
    assert made["runtime"]["task_history"] == {"enabled": False}


def test_without_keys_the_section_stays_as_it_is() -> None:
    assert "runtime" not in _effective("name: shop", has_keys=False)


@pytest.mark.parametrize(
    "manifest",
    [
        "datasets: [{from: 'file:/etc/passwd', name: a}]",
        "datasets: [{from: 'file:///etc/passwd', name: a}]",
        "datasets: [{from: 'FILE:../other/secrets', name: a}]",
        "datasets: [{from: 'file:a/../../b', name: a}]",
        "datasets: [{from: 'file:~/x', name: a}]",
        "datasets: [{from: 'file:${env:HOME}/x', name: a}]",
        "secrets: [{from: 'file:/run/secrets', name: a}]",
        "datasets: [{from: 'duckdb:t', name: a, params: {duckdb_open: /srv/x.db}}]",
        "datasets: [{from: 'sqlite:t', name: a, params: {sqlite_file: ../x.db}}]",
        "runtime: {tls: {certificate_file: /etc/ssl/x.pem}}",
    ],
)
def test_files_of_the_machine_are_refused_unless_allowed(manifest: str) -> None:
    with pytest.raises(RejectedError, match="--allow-local-files"):
        _effective(manifest)
    _effective(manifest, allows_files=True)


@pytest.mark.parametrize(
    "manifest",
    [
        "datasets: [{from: 'file:data/a.parquet', name: a}]",
        "datasets: [{from: 's3://bucket/a/', name: a}]",
        "datasets: [{from: 'https://x.example/a.csv', name: a, params: {file_format: csv}}]",
    ],
)
def test_other_sources_are_taken(manifest: str) -> None:
    _effective(manifest)


@pytest.mark.parametrize("manifest", ["[1]", "a: [", "&a [*a]", "!!python/object:os.system {}"])
def test_what_is_no_manifest_is_rejected(manifest: str) -> None:
    with pytest.raises(RejectedError):
        _effective(manifest)
