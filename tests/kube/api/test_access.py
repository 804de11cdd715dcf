import base64
from pathlib import Path

import pytest
import yaml

from caraway_kube.api import access
from caraway_kube.api.access import ApiAccessError


def kubeconfig(folder: Path, user: dict[str, object], cluster: dict[str, object]) -> Path:
    file = folder / "config"
    file.write_text(
        yaml.safe_dump(
            {
                "current-context": "here",
                "contexts": [
                    {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "web"}}
                ],
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": user}],
            }
        )
    )
    return file


def test_the_kubeconfig_of_the_variable_is_used(tmp_path: Path) -> None:
    ca = base64.b64encode(b"-----CA-----").decode()
    cluster: dict[str, object] = {"server": "https://api:6443/", "certificate-authority-data": ca}
    file = kubeconfig(tmp_path, {"token": "t"}, cluster)

    found = access.find_access({"KUBECONFIG": str(file)})

    assert (found.server, found.namespace, found.ca_text) == (
        "https://api:6443", "web", "-----CA-----",
    )  # fmt: skip
    assert found.read_token() == "t"


def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    for name, text in (("token", "old"), ("namespace", "web\n"), ("ca.crt", "")):
        (tmp_path / name).write_text(text)
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}

    found = access.find_access(environ, tmp_path)
    (tmp_path / "token").write_text("new\n")

    assert (found.server, found.namespace) == ("https://[fd00::1]:443", "web")
    assert found.read_token() == "new"


def test_without_any_configuration_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ApiAccessError, match="set KUBECONFIG"):
        access.find_access({"HOME": str(tmp_path)})


def test_the_error_names_a_malformed_file_without_its_content(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("users: [{token: hunter2}]")

    with pytest.raises(ApiAccessError, match="cannot use the kubeconfig") as caught:
        access.from_file(file)
    assert "hunter2" not in str(caught.value)


def test_credential_plugins_are_not_run(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, {"exec": {"command": "x"}}, {"server": "https://api"})

    with pytest.raises(ApiAccessError, match="not supported"):
        access.from_file(file)
