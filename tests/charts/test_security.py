"""Checks the rendered chart with security linters, and the permissions of the operator."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit import helm

ROOT = Path(__file__).parents[2]
TRIVY = Path(sys.executable).parent / "trivy"
RULES: dict[str, Any] = {
    **yaml.safe_load((helm.CHART / "files" / "operator-rules.yaml").read_text()),
    **yaml.safe_load((helm.CHART / "files" / "management-rules.yaml").read_text()),
}
MANAGEMENT = {
    "management": {
        "enabled": True, "replicas": 2, "database": {"secretName": "database"},
        "keys": {"secretName": "keys"},
    }
}  # fmt: skip


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--helm-set", "operator.enabled=false,cluster.spec.tls.enabled=true"],
        ["--helm-set", "operator.watchNamespaces={data},operator.replicas=2"],
        [
            "--helm-set",
            "management.enabled=true,management.database.secretName=a,management.keys.secretName=b",
        ],
    ],
    ids=["operator", "no operator", "one namespace", "management"],
)
def test_trivy_finds_nothing_grave(flags: list[str]) -> None:
    done = subprocess.run(
        [TRIVY, "config", "--skip-check-update", "--skip-version-check", "--quiet",
         "--severity", "HIGH,CRITICAL", "--exit-code", "1", "--helm-kube-version", "1.36.0",
         *flags, helm.CHART],
        cwd=ROOT, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_every_pod_meets_the_restricted_standard() -> None:
    found = helm.render(MANAGEMENT) + helm.render({"operator": {"enabled": False}})
    templates = [each["spec"]["template"]["spec"] for each in found
                 if each["kind"] in ("Deployment", "Job", "StatefulSet")]  # fmt: skip
    pods = [*templates, *(each["spec"] for each in helm.of_kind(found, "Pod"))]
    assert len(pods) == 9
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            security = container["securityContext"]
            assert security["allowPrivilegeEscalation"] is False
            assert security["readOnlyRootFilesystem"] is True
            assert security["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"]["memory"]


def test_only_operator_and_management_may_talk_to_the_api() -> None:
    found = helm.render(MANAGEMENT) + helm.render({"operator": {"enabled": False}})
    may = {
        pod["containers"][0]["name"]: pod["automountServiceAccountToken"]
        for each in found
        if each["kind"] in ("Deployment", "Job", "StatefulSet")
        for pod in [each["spec"]["template"]["spec"]]
    }
    assert {name for name, is_mounted in may.items() if is_mounted} == {"operator", "management"}
    assert "migration" in may


def granted(found: list[dict[str, Any]], kind: str, namespace: str | None) -> list[Any]:
    roles = helm.of_kind(found, kind)
    here = [each for each in roles if each["metadata"].get("namespace") == namespace]
    return [rule for each in here for rule in each["rules"]]


def test_rights_are_those_of_the_operator_where_it_needs_them() -> None:
    found = helm.render()
    assert granted(found, "ClusterRole", None) == RULES["namespaced"]
    assert granted(found, "Role", "default") == RULES["own"]
    watched = {"operator": {"watchNamespaces": ["one", "two"]}}
    some = helm.render({**watched, "cluster": {"enabled": False}})
    assert granted(some, "ClusterRole", None) == []
    for namespace in ("one", "two"):
        assert granted(some, "Role", namespace) == RULES["namespaced"]
    assert granted(some, "Role", "default") == RULES["own"]
    # The namespace of the release is always included.
    with_its_own = helm.render(watched)
    assert granted(with_its_own, "Role", "default") == RULES["own"] + RULES["namespaced"]
    [container] = helm.the(with_its_own, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert {"--namespace=one", "--namespace=two", "--namespace=default"} <= set(container["args"])


def test_roles_are_bound_to_the_operators_account() -> None:
    values = {"operator": {"watchNamespaces": ["one"], "serviceAccount": {"name": "mine"}}}
    found = helm.render(values, namespace="system")
    assert helm.the(found, "ServiceAccount")["metadata"]["name"] == "mine"
    roles = {(each["kind"], each["metadata"]["name"], each["metadata"].get("namespace"))
             for each in found if each["kind"].endswith("Role")}  # fmt: skip
    bindings = [each for each in found if each["kind"].endswith("RoleBinding")]
    bound = {
        (each["roleRef"]["kind"], each["roleRef"]["name"], each["metadata"].get("namespace"))
        for each in bindings
    }
    assert bound == roles
    account = {"kind": "ServiceAccount", "name": "mine", "namespace": "system"}
    assert all(each["subjects"] == [account] for each in bindings)


def test_no_rule_has_a_wildcard_and_no_secret_is_listed() -> None:
    for rule in [rule for part in RULES.values() for rule in part]:
        assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
        if "secrets" in rule["resources"]:
            assert {"list", "watch", "delete"} & set(rule["verbs"]) == set()
