"""The management service of the chart: its processes, rights, network and secrets."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from caraway_kube import rbac
from caraway_management.deployers.kubernetes import rules
from tests.kit import helm

GIVEN: dict[str, Any] = {
    "enabled": True,
    "database": {"secretName": "database"},
    "keys": {"secretName": "sealing"},
}
NAME = "caraway-management"


def render(**management: Any) -> list[Any]:
    return helm.render({"management": {**GIVEN, **management}})


def container(found: list[Any], kind: str) -> dict[str, Any]:
    name = NAME if kind == "Deployment" else f"{NAME}-migration"
    [made] = helm.the(found, kind, name)["spec"]["template"]["spec"]["containers"]
    return dict(made)


def matches(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return selector.items() <= labels.items()


def test_it_is_off_unless_it_is_wanted() -> None:
    assert [each for each in helm.render() if NAME in each["metadata"]["name"]] == []


def test_instances_get_database_and_keys_from_secrets() -> None:
    found = render()
    made = container(found, "Deployment")
    assert "--deployer=kubernetes" in made["args"]
    environment = {each["name"]: each for each in made["env"]}
    assert environment["CARAWAY_MANAGEMENT_DATABASE"]["valueFrom"] == {
        "secretKeyRef": {"name": "database", "key": "url"}
    }
    [mount] = [each for each in made["volumeMounts"] if each["name"] == "keys"]
    file = environment["CARAWAY_MANAGEMENT_KEY_FILE"]["value"]
    assert file == f"{mount['mountPath']}/keys"
    # A file below a subPath never changes, and keys are rotated without a restart.
    assert "subPath" not in mount
    pod = helm.the(found, "Deployment", NAME)["spec"]["template"]["spec"]
    [volume] = [each for each in pod["volumes"] if each["name"] == "keys"]
    assert volume["secret"]["secretName"] == "sealing"
    assert volume["secret"]["defaultMode"] == 0o440


def test_the_platform_is_a_file_of_a_config_map() -> None:
    assert not [each for each in container(render(), "Deployment")["args"] if "platform" in each]
    found = render(platform={"configMapName": "places", "key": "ours.yaml"})
    made = container(found, "Deployment")
    [file] = [each.partition("=")[2] for each in made["args"] if each.startswith("--platform=")]
    [mount] = [each for each in made["volumeMounts"] if each["name"] == "platform"]
    pod = helm.the(found, "Deployment", NAME)["spec"]["template"]["spec"]
    [volume] = [each for each in pod["volumes"] if each["name"] == "platform"]
    [item] = volume["configMap"]["items"]
    assert (volume["configMap"]["name"], item["key"]) == ("places", "ours.yaml")
    assert file == f"{mount['mountPath']}/{item['path']}"


def test_the_database_is_migrated_before_new_instances_start() -> None:
    found = render()
    job = helm.the(found, "Job")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    made = container(found, "Job")
    assert made["args"][:2] == ["management", "migrate"]
    assert made["image"] == container(found, "Deployment")["image"]
    assert "CARAWAY_MANAGEMENT_KEY_FILE" not in {each["name"] for each in made["env"]}
    assert helm.of_kind(render(migrate=False), "Job") == []


@pytest.mark.parametrize("kind", ["Deployment", "Job"])
def test_flags_are_those_of_the_command(kind: str) -> None:
    made = container(render(), kind)
    words = [word for word in made["args"] if not word.startswith("--")]
    shown = subprocess.run(
        [Path(sys.executable).parent / "caraway", *words, "--help"],
        capture_output=True, text=True, check=True, env={"COLUMNS": "200", "NO_COLOR": "1"},
    ).stdout  # fmt: skip
    flags = {word.partition("=")[0] for word in made["args"] if word.startswith("--")}
    assert flags
    assert {flag for flag in flags if not re.search(rf"{flag}\b", shown)} == set()


def test_requests_and_policies_find_its_pods() -> None:
    found = render(replicas=2)
    pod = helm.the(found, "Deployment", NAME)["spec"]["template"]["metadata"]["labels"]
    job = helm.the(found, "Job")["spec"]["template"]["metadata"]["labels"]
    service = helm.the(found, "Service", NAME)["spec"]
    assert (matches(service["selector"], pod), matches(service["selector"], job)) == (True, False)
    assert [each["port"] for each in service["ports"]] == [8070]
    policy = helm.the(found, "NetworkPolicy", NAME)["spec"]
    selector = policy["podSelector"]["matchLabels"]
    assert (matches(selector, pod), matches(selector, job)) == (True, True)
    budget = helm.the(found, "PodDisruptionBudget", NAME)["spec"]
    assert matches(budget["selector"]["matchLabels"], pod)
    assert helm.of_kind(render(), "PodDisruptionBudget") == []


def test_the_network_is_as_narrow_as_it_is_wanted() -> None:
    open_ = helm.the(render(), "NetworkPolicy", NAME)["spec"]
    assert open_["policyTypes"] == ["Ingress"]
    assert open_["ingress"] == [{"ports": [{"protocol": "TCP", "port": 8070}]}]
    closed = render(network={"clients": [], "egress": []})
    assert helm.the(closed, "NetworkPolicy", NAME)["spec"]["ingress"] == []
    clients = [{"podSelector": {"matchLabels": {"app": "web"}}}]
    egress = [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]
    narrow = helm.the(render(network={"clients": clients, "egress": egress}), "NetworkPolicy", NAME)
    assert narrow["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert [rule["from"] for rule in narrow["spec"]["ingress"]] == [clients]
    assert narrow["spec"]["egress"][1:] == egress
    assert helm.of_kind(render(network={"policies": False}), "NetworkPolicy") == []


def test_its_rights_are_those_of_its_requests() -> None:
    found = render(serviceAccount={"name": "mine"})
    role = helm.the(found, "ClusterRole", f"default-{NAME}")
    assert role["rules"] == rbac.rendered(rules.RULES)
    binding = helm.the(found, "ClusterRoleBinding", f"default-{NAME}")
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    account = {"kind": "ServiceAccount", "name": "mine", "namespace": "default"}
    assert binding["subjects"] == [account]
    assert helm.the(found, "ServiceAccount", "mine")
    pod = helm.the(found, "Deployment", NAME)["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "mine"
    left_out = helm.render({"management": {**GIVEN, "rbac": {"create": False}}})
    names = [each["metadata"]["name"] for each in helm.of_kind(left_out, "ClusterRole")]
    assert names == ["default-caraway-operator"]


def test_releases_do_not_share_namespaces_of_projects() -> None:
    def chosen(**where: str) -> str:
        found = helm.render({"management": GIVEN}, **where)
        [made] = helm.the(found, "Deployment", f"{where['release']}-management")["spec"][
            "template"]["spec"]["containers"]  # fmt: skip
        [flag] = [each for each in made["args"] if each.startswith("--installation=")]
        return str(flag)

    assert chosen(release="one", namespace="a") != chosen(release="one", namespace="b")
    assert chosen(release="one", namespace="a") != chosen(release="two", namespace="a")


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"management": {**GIVEN, "database": {}}}, "management.database.secretName"),
        ({"management": {**GIVEN, "keys": {}}}, "management.keys.secretName"),
        ({"management": GIVEN, "operator": {"enabled": False}}, "needs an operator"),
        ({"management": GIVEN, "operator": {"watchNamespaces": ["a"]}}, "watches all namespaces"),
        ({"management": {**GIVEN, "serviceAccount": {"create": False}}}, "serviceAccount.name"),
        ({"management": {**GIVEN, "replica": 2}}, "replica"),
        ({"management": {**GIVEN, "installation": "Mine"}}, "installation"),
    ],
)
def test_what_cannot_work_is_refused_with_a_reason(values: dict[str, Any], told: str) -> None:
    with pytest.raises(helm.RefusedError, match=told):
        helm.render(values)


def test_a_long_namespace_needs_a_name_for_the_installation() -> None:
    with pytest.raises(helm.RefusedError, match="at most 40 lower-case letters"):
        helm.render({"management": GIVEN}, namespace="n" * 40)


def test_notes_say_how_to_begin() -> None:
    notes = helm.run(
        "install", "caraway", str(helm.CHART), "--dry-run=client", "--namespace", "data",
        "--set-json", 'management={"enabled":true,"database":{"secretName":"a"},'
        '"keys":{"secretName":"b"}}',
    ).split("NOTES:")[1]  # fmt: skip
    assert f"exec deployment/{NAME} -- caraway management init --org NAME" in notes
