"""Renders the chart for a matrix of values, and validates it with the schemas of Kubernetes."""

import json
from typing import Any

import jsonschema
import pytest
import yaml

from caraway_kube import naming
from charts import generate
from tests.kit import helm, kube_schemas

KUBERNETES = ("1.31", "1.32", "1.33", "1.34", "1.35", "1.36", "1.37")
CRDS = {
    found["spec"]["names"]["kind"]: found
    for found in (
        yaml.load(path.read_text(), yaml.CSafeLoader)
        for path in sorted((helm.CHART / "crds").glob("*.yaml"))
    )
}
VALUES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "no operator": {"operator": {"enabled": False}},
    "no cluster": {"cluster": {"enabled": False}},
    "air-gapped": {
        "global": {"imageRegistry": "registry.example/mirror", "imagePullSecrets": ["login"]},
        "operator": {"image": {"repository": "caraway-operator"}},
        "cluster": {"spec": {"executor": {"image": {"repository": "caraway-executor"}}}},
    },
    "some namespaces": {"operator": {"watchNamespaces": ["one", "two"], "replicas": 2}},
    "operator's pods": {
        "operator": {
            "podLabels": {"a": "b"}, "podAnnotations": {"c": "d"},
            "nodeSelector": {"disk": "ssd"}, "affinity": {"nodeAffinity": {}},
            "tolerations": [{"key": "spot", "operator": "Exists"}], "priorityClassName": "high",
            "env": [{"name": "A", "value": "b"}],
            "serviceAccount": {"name": "mine", "annotations": {"e": "f"}},
        },
    },
    "reached from outside": {
        "ingress": {
            "enabled": True, "className": "nginx", "annotations": {"a": "b"}, "labels": {"c": "d"},
            "hosts": [{"host": "sql.example", "paths": [{"path": "/"}]}],
            "tls": [{"secretName": "certificate", "hosts": ["sql.example"]}],
        },
    },
    "served with TLS": {
        "cluster": {"spec": {"tls": {"enabled": True}}},
        "tests": {"apiKey": {"name": "keys", "key": "reader"}},
    },
    "management": {
        "management": {
            "enabled": True, "replicas": 3, "publicUrl": "https://caraway.example",
            "database": {"secretName": "database"}, "keys": {"secretName": "keys"},
            "ingress": {"enabled": True, "tls": [{"secretName": "certificate"}]},
            "network": {"clients": [{"podSelector": {}}], "egress": []},
            "podLabels": {"a": "b"}, "podAnnotations": {"c": "d"}, "env": [{"name": "A"}],
            "nodeSelector": {"disk": "ssd"}, "affinity": {"nodeAffinity": {}},
            "tolerations": [{"key": "spot", "operator": "Exists"}], "priorityClassName": "high",
            "serviceAccount": {"annotations": {"e": "f"}}, "service": {"annotations": {"g": "h"}},
        },
    },
    "further objects": {
        "extraObjects": [
            {"apiVersion": "v1", "kind": "ConfigMap",
             "metadata": {"name": "{{ .Release.Name }}-a"}},
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-b\n",
        ]
    },
}  # fmt: skip


def refused(text: str, version: str) -> list[str]:
    """Return the errors of the objects by the schemas of a Kubernetes version."""
    found = []
    for each in helm.objects(text):
        if each["kind"] not in CRDS:
            try:
                kube_schemas.validate(each, version)
            except kube_schemas.ValidationError as error:
                found.append(f"{each['kind']} {each['metadata']['name']}: {error.message}")
    return found


# `make test` compares what the two versions of helm render.
@pytest.mark.parametrize("version", [pytest.param("3", marks=pytest.mark.full), "4"])
@pytest.mark.parametrize("case", VALUES)
def test_it_renders_valid_objects(case: str, version: str) -> None:
    text = helm.template(VALUES[case], helm=version)
    assert refused(text, "1.36") == []
    for resource in helm.of_kind(helm.objects(text), "CarawayCluster"):
        schema = CRDS["CarawayCluster"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        jsonschema.validate(resource, schema)


@pytest.mark.parametrize(
    "kubernetes",
    [
        pytest.param(
            each, marks=() if each in (KUBERNETES[0], KUBERNETES[-1]) else pytest.mark.full
        )
        for each in KUBERNETES
    ],
)
@pytest.mark.parametrize("case", ["defaults", "no operator", "management"])
def test_every_kubernetes_version_takes_them(case: str, kubernetes: str) -> None:
    text = helm.template(VALUES[case], "--kube-version", f"{kubernetes}.0")
    assert refused(text, kubernetes) == []


@pytest.mark.parametrize("version", helm.HELMS)
def test_lint_finds_nothing(version: str) -> None:
    assert "0 chart(s) failed" in helm.run("lint", "--strict", str(helm.CHART), helm=version)


def test_both_helms_render_the_same() -> None:
    for values in VALUES.values():
        found = [helm.render(values, helm=version) for version in helm.HELMS]
        for made in found:
            for secret in helm.of_kind(made, "Secret"):
                secret["data"] = sorted(secret["data"])
        assert found[0] == found[1]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"replicas": 3}, "replicas"),
        ({"operator": {"replica": 3}}, "replica"),
        ({"operator": {"replicas": -1}}, "replicas"),
        ({"image": {"pullPolicy": "Sometimes"}}, "pullPolicy"),
        ({"global": {"imagePullSecrets": [{"name": "login"}]}}, "imagePullSecrets"),
        ({"cluster": {"spec": {"executor": {"replicaz": 3}}}}, "replicaz"),
        ({"cluster": {"spec": {"executor": {"replicas": 1001}}}}, "replicas"),
        ({"cluster": {"spec": {"executor": {"resources": {"limits": {"memory": "2 GB"}}}}}}, "mem"),
        ({"cluster": {"spec": {"tls": {"enabled": "yes"}}}}, "enabled"),
        ({"cluster": {"spec": {"auth": {"apiKeys": [{"name": "a"}]}}}}, "key"),
        ({"ingress": {"hosts": [{"host": "a", "paths": [{"pathType": "Prefix"}]}]}}, "path"),
    ],
)
@pytest.mark.parametrize("version", [pytest.param("3", marks=pytest.mark.full), "4"])
def test_values_that_make_no_sense_are_refused(
    values: dict[str, Any], told: str, version: str
) -> None:
    with pytest.raises(helm.RefusedError, match=f"(?s)values don't meet.*{told}"):
        helm.template(values, helm=version)


@pytest.mark.parametrize(
    ("values", "release", "told"),
    [
        ({}, "r" * 41, "at most 40"),
        ({"cluster": {"name": "9lives"}}, "caraway", "cannot be the name of a Service"),
        *(({}, f"demo-{part}", f"does not end in '-{part}'") for part in sorted(naming.PARTS)),
        ({"gateway": {"enabled": True}}, "caraway", "gateway.parentRefs must name a Gateway"),
        ({"operator": {"serviceAccount": {"create": False}}}, "caraway", "serviceAccount.name"),
        (
            {"cluster": {"spec": {"manifest": {"name": "a"},
                                  "manifestFrom": {"configMap": {"name": "b"}}}}},
            "caraway",
            "exclude each other",
        ),
        ({"cluster": {"manifestFile": "a: [b"}}, "caraway", "manifestFile is not YAML"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_with_a_reason(
    values: dict[str, Any], release: str, told: str
) -> None:
    with pytest.raises(helm.RefusedError, match=told):
        helm.template(values, release=release)


def test_without_a_manifest_the_example_is_served() -> None:
    spec = helm.the(helm.render(), "CarawayCluster")["spec"]
    assert spec["manifest"]["name"] == "example"
    own = {"name": "mine", "datasets": []}
    spec = helm.the(helm.render({"cluster": {"spec": {"manifest": own}}}), "CarawayCluster")["spec"]
    assert spec["manifest"] == own
    text = {"cluster": {"manifestFile": "name: mine\nruntime: {jobs: {max_queued: 1000000}}\n"}}
    spec = helm.the(helm.render(text), "CarawayCluster")["spec"]
    assert spec["manifest"] == {"name": "mine", "runtime": {"jobs": {"max_queued": 1_000_000}}}
    given = {"cluster": {"spec": {"manifestFrom": {"configMap": {"name": "mine"}}}}}
    spec = helm.the(helm.render(given), "CarawayCluster")["spec"]
    assert "manifest" not in spec


def test_the_number_of_executors_is_left_to_kubectl_scale() -> None:
    # Helm 4 owns the fields that it writes: with the number, `helm upgrade` would fail after a
    # scale.
    for version in helm.HELMS:
        spec = helm.the(helm.render(helm=version), "CarawayCluster")["spec"]
        assert "replicas" not in spec["executor"]


def test_the_number_of_operators_is_left_to_kubectl_scale() -> None:
    """Helm 4 uses server-side apply: a number that both write conflicts at the next upgrade."""

    def written(values: dict[str, Any]) -> Any:
        [found] = helm.of_kind(helm.render(values), "Deployment")
        return found["spec"].get("replicas")

    assert written({}) is None
    assert written({"operator": {"replicas": 2}}) == 2


def test_all_images_come_from_the_registry_that_is_given() -> None:
    for values in (VALUES["air-gapped"], {**VALUES["air-gapped"], "operator": {"enabled": False}}):
        found = helm.render(values)
        for pod in _pods(found):
            assert pod["imagePullSecrets"] == [{"name": "login"}]
            for container in pod["containers"]:
                assert container["image"].startswith("registry.example/mirror/caraway")
    spec = helm.the(helm.render(VALUES["air-gapped"]), "CarawayCluster")["spec"]
    assert spec["image"]["repository"] == "registry.example/mirror/caraway"
    assert spec["executor"]["image"]["repository"] == "registry.example/mirror/caraway-executor"
    assert spec["image"]["pullSecrets"] == ["login"]


def _pods(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    templates = [each["spec"]["template"]["spec"] for each in found
                 if each["kind"] in ("Deployment", "StatefulSet")]  # fmt: skip
    return [*templates, *(each["spec"] for each in helm.of_kind(found, "Pod"))]


def test_a_digest_is_taken_instead_of_a_tag() -> None:
    digest = f"sha256:{'a' * 64}"
    found = helm.render({"image": {"digest": digest}})
    (container,) = helm.the(found, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"caraway@{digest}"
    assert helm.the(found, "CarawayCluster")["spec"]["image"]["digest"] == digest
    own = helm.render({"image": {"digest": digest}, "operator": {"image": {"tag": "next"}}})
    (container,) = helm.the(own, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "caraway:next"


def test_a_cluster_can_be_left_to_the_operator_of_another_release() -> None:
    found = helm.render({"operator": {"external": True}})
    assert {each["kind"] for each in found} == {"CarawayCluster", "Pod"}
    without = helm.render({"operator": {"external": True, "enabled": False}})
    assert without == found


def test_the_test_asks_with_a_key_of_the_cluster() -> None:
    keys = [{"name": "keys", "key": "reader"}, {"name": "keys", "key": "writer", "access": "rw"}]
    values = {"cluster": {"spec": {"auth": {"apiKeys": keys}}}}
    [container] = helm.the(helm.render(values), "Pod")["spec"]["containers"]
    given = {each["name"]: each.get("valueFrom") for each in container["env"]}
    assert given["CARAWAY_API_KEY"] == {"secretKeyRef": {"name": "keys", "key": "reader"}}
    [container] = helm.the(helm.render(), "Pod")["spec"]["containers"]
    assert "CARAWAY_API_KEY" not in {each["name"] for each in container["env"]}


def test_the_pod_of_the_test_goes_when_it_ends_and_its_log_is_shown() -> None:
    annotations = helm.the(helm.render(), "Pod", "caraway-test")["metadata"]["annotations"]

    # Helm removes no hook with its release.
    policies = set(annotations["helm.sh/hook-delete-policy"].split(","))
    assert policies == {"before-hook-creation", "hook-succeeded", "hook-failed"}
    shown = set(annotations["helm.sh/hook-output-log-policy"].split(","))
    assert shown == {"hook-succeeded", "hook-failed"}


def test_routes_of_a_gateway() -> None:
    gateway = {
        "enabled": True, "flight": True, "parentRefs": [{"name": "public"}],
        "hostnames": ["sql.example"],
    }  # fmt: skip
    found = helm.render({"gateway": gateway})
    (route,) = helm.of_kind(found, "HTTPRoute")
    assert route["spec"] == {
        "parentRefs": [{"name": "public"}],
        "hostnames": ["sql.example"],
        "rules": [{"backendRefs": [{"name": "caraway", "port": 8090}]}],
    }
    (flight,) = helm.of_kind(found, "GRPCRoute")
    assert flight["spec"]["rules"] == [{"backendRefs": [{"name": "caraway", "port": 50051}]}]


def test_further_objects_may_use_templates() -> None:
    names = {each["metadata"]["name"] for each in helm.render(VALUES["further objects"])}
    assert {"caraway-a", "caraway-b"} <= names


@pytest.mark.parametrize("case", ["defaults", "no operator", "served with TLS"])
def test_notes_tell_the_first_query(case: str) -> None:
    notes = helm.run(
        "install", "caraway", str(helm.CHART), "--dry-run=client", "--namespace", "data",
        *_sets(VALUES[case]),
    ).split("NOTES:")[1]  # fmt: skip
    assert "kubectl --namespace data port-forward service/caraway 8090 &" in notes
    scheme = "--insecure https" if case == "served with TLS" else "http"
    assert f"curl {scheme}://127.0.0.1:8090/v1/sql" in notes
    assert "helm test caraway --namespace data" in notes


def _sets(values: dict[str, Any], path: str = "") -> list[str]:
    words: list[str] = []
    for key, value in values.items():
        if isinstance(value, dict):
            words += _sets(value, f"{path}{key}.")
        else:
            words += ["--set-json", f"{path}{key}={json.dumps(value)}"]
    return words


def test_generated_files_are_up_to_date() -> None:
    for path, text in generate.files().items():
        assert path.read_text() == text, f"run python charts/generate.py: {path} is old"


def test_every_value_is_documented_where_it_stands() -> None:
    text = (helm.CHART / "values.yaml").read_text()
    found = {value.path for value in generate.documented(text)}

    def undocumented(values: Any, path: str) -> list[str]:
        if path in found and path != "image":
            return []
        if not isinstance(values, dict):
            return [path]
        return [
            each
            for key, value in values.items()
            for each in undocumented(value, f"{path}.{key}".strip("."))
        ]

    assert undocumented(yaml.safe_load(text), "") == []


def test_the_schema_knows_every_field_of_the_resource() -> None:
    schema = generate.files()[helm.CHART / "values.schema.json"]
    spec = yaml.safe_load(schema)["properties"]["cluster"]["properties"]["spec"]
    crd = CRDS["CarawayCluster"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert set(spec["properties"]) == set(crd["properties"]["spec"]["properties"])
    assert spec["additionalProperties"] is False
