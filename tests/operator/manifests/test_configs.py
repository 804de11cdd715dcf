import json
from pathlib import Path
from typing import Any

from caraway_core.manifest import loading
from caraway_core.manifest.documents import document
from caraway_kube.resources.limits import CarawayLimitsSpec
from caraway_operator.manifests import configs
from caraway_operator.manifests.desired import DesiredCluster
from caraway_serving import limits as scheduler_limits
from tests.operator.manifests.clusters import EVERYTHING, desired, made, pod


def effective(cluster: DesiredCluster) -> Any:
    """Return the manifest as a scheduler reads it. It must be valid."""
    text = made(cluster, "ConfigMap", "demo-manifest")["data"]["caraway.yaml"]
    content = document.parse(text, Path("/etc/caraway/manifest/caraway.yaml"))
    loading.load_alone(content)
    return content.value


def test_answers_are_kept_by_the_store_of_the_cluster() -> None:
    assert effective(desired()) == {
        "version": "v2",
        "kind": "Caraway",
        "name": "app",
        "runtime": {"scheduler": {"state_location": "caraway://demo-state:8095"}},
    }


def test_a_place_that_the_manifest_names_stays() -> None:
    manifest = {"name": "app", "runtime": {"scheduler": {"state_location": "s3://bucket/a"}}}
    assert effective(desired(manifest=manifest)) == manifest


def test_the_cluster_adds_keys_certificate_secrets_and_the_place_of_answers() -> None:
    manifest = {
        "name": "app",
        "runtime": {"auth": {"api_key": {"keys": ["${env:MINE}"]}}, "jobs": {"max_queued": 5}},
    }
    assert effective(desired(EVERYTHING, manifest=manifest)) == {
        "name": "app",
        "runtime": {
            "auth": {
                "api_key": {
                    "keys": ["${env:MINE}", "${caraway_api_keys:0}:ro", "${caraway_api_keys:1}:rw"]
                }
            },
            "jobs": {"max_queued": 5},
            "tls": {
                "certificate_file": "/etc/caraway/tls/tls.crt",
                "key_file": "/etc/caraway/tls/tls.key",
            },
            "scheduler": {
                "state_location": "s3://bucket/answers",
                "params": {
                    "s3_region": "eu-central-1",
                    "s3_key": "${caraway_result_store:s3_key}",
                    "s3_secret": "${caraway_result_store:s3_secret}",
                },
            },
        },
        "secrets": [
            {"from": "env", "name": "env"},
            {"from": "file:/etc/caraway/secrets/vault", "name": "vault"},
            {"from": "file:/etc/caraway/api-keys", "name": "caraway_api_keys"},
            {"from": "file:/etc/caraway/result-store", "name": "caraway_result_store"},
        ],
    }


def test_stores_that_the_manifest_declares_stay_the_first() -> None:
    manifest = {"name": "app", "secrets": [{"from": "file:/mine", "name": "mine"}]}
    found = effective(desired({"secrets": [{"name": "v", "secretName": "s"}]}, manifest=manifest))
    assert [store["name"] for store in found["secrets"]] == ["mine", "v"]


def test_a_new_manifest_replaces_schedulers_and_no_executor() -> None:
    before, after = desired(), desired(manifest={"name": "other"})
    assert pod(before, "scheduler") != pod(after, "scheduler")
    for component in ("executor", "head", "state"):
        assert pod(before, component) == pod(after, component)


def test_limits_reach_schedulers_without_replacing_them() -> None:
    limits = CarawayLimitsSpec.model_validate(
        {"api_rps": 5, "request_timeout_secs": 60, "resources": {"max_cpu": 2}, "organization": "a"}
    )
    before, after = desired(), desired(limits=limits)
    assert pod(before, "scheduler") == pod(after, "scheduler")
    text = made(after, "ConfigMap", "demo-limits")["data"]["limits.json"]
    assert "organization" not in json.loads(text)
    parsed = scheduler_limits.parse(text)
    assert parsed.unknown == ()
    assert (parsed.limits.api_rps, parsed.limits.request_timeout_secs) == (5, 60)
    assert parsed.limits.sql_concurrent_queries is None
    assert (
        scheduler_limits.parse(configs.limits_text(before)).limits
        == scheduler_limits.RequestLimits()
    )
