import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from caraway_core.errors import CarawayError
from caraway_plugins.secrets.azure import AzureKeyVault
from tests.kit import azure_vault, secret_servers
from tests.kit.deadlines import until
from tests.kit.secret_servers import SecretServer

APPLICATION = {
    "AZURE_TENANT_ID": "tenant",
    "AZURE_CLIENT_ID": "app",
    "AZURE_CLIENT_SECRET": azure_vault.CLIENT["client_secret"],
}


@pytest.fixture
def server() -> Iterator[SecretServer]:
    with secret_servers.serving() as made:
        made.secrets = {"azure": {"DB-PASS": "hunter2", "port": "5"}}
        yield made


def vault(
    server: SecretServer, environ: Mapping[str, str] | None = None, **params: str
) -> AzureKeyVault:
    hosts = {
        "azure_vault_url": server.url,
        "azure_authority_host": server.url,
        "azure_pod_identity_authority_host": server.url,
    }
    given = {"path": "my-vault", **hosts, **params}
    return AzureKeyVault(given, Path("/"), APPLICATION if environ is None else environ)


def test_logins_of_azure(server: SecretServer, tmp_path: Path) -> None:
    (tmp_path / "jwt").write_text("pod-jwt\n")
    app = {"azure_tenant_id": "tenant", "azure_client_id": "app"}
    workload = {"AZURE_FEDERATED_TOKEN_FILE": str(tmp_path / "jwt")}
    of_app = {"IDENTITY_ENDPOINT": f"{server.url}/msi/token", "IDENTITY_HEADER": azure_vault.HEADER}
    for environ, params in (
        (APPLICATION, {}),
        (workload, app),
        (of_app, {}),
        ({}, {}),
        ({}, {"azure_client_id": "app"}),
    ):
        assert vault(server, environ, **params).get("DB-PASS") == "hunter2"


def test_names_have_hyphens_and_no_case(server: SecretServer) -> None:
    store = vault(server)
    assert (store.get("DB_PASS"), store.get("db_pass"), store.get("PORT")) == (
        "hunter2", "hunter2", "5",
    )  # fmt: skip
    for name in ("none", "a/b", "../keys/x", "x" * 128, "ä"):
        assert store.get(name) is None


def test_a_secret_is_read_again_before_it_expires_with_another_token(server: SecretServer) -> None:
    server.lease_s = 1
    server.secrets["azure"]["expires"] = int(time.time()) + 3
    store = vault(server)
    assert store.get("port") == "5"
    server.secrets["azure"]["port"] = "6"
    server.azure_token = "hunter3-token"
    until(lambda: store.get("port") == "6", "the secret is read again")


def test_a_token_that_was_withdrawn_is_replaced(server: SecretServer) -> None:
    store = vault(server)
    assert store.get("port") == "5"
    server.azure_token = "hunter3-token"
    assert store.get("DB_PASS") == "hunter2"


def test_one_secret_that_is_refused_leaves_the_others(server: SecretServer) -> None:
    store = vault(server)
    with pytest.raises(CarawayError, match="'forbidden' of the Azure key vault 'my-vault'") as told:
        store.get("forbidden")
    assert "access is denied (403)" in told.value.message
    assert store.get("port") == "5"


@pytest.mark.parametrize(
    ("environ", "params", "said"),
    [
        ({**APPLICATION, "AZURE_CLIENT_SECRET": "hunter3"}, {}, "access is denied"),
        ({"AZURE_CLIENT_SECRET": "hunter3"}, {}, "set AZURE_TENANT_ID and AZURE_CLIENT_ID"),
        ({**APPLICATION, "AZURE_TENANT_ID": "a/../tenant"}, {}, "the server answered 400"),
        ({"AZURE_FEDERATED_TOKEN_FILE": "/none", "AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c"},
         {}, "the file '/none' cannot be read"),
        ({"AZURE_CLIENT_ID": "other"}, {}, "outside of Azure set AZURE_TENANT_ID"),
        ({}, {"azure_pod_identity_authority_host": "http://127.0.0.1:1"}, "cannot be reached"),
        (APPLICATION, {"azure_vault_url": "http://127.0.0.1:1"}, "cannot be reached"),
    ],
)  # fmt: skip
def test_what_azure_refuses_is_reported_without_secrets(
    server: SecretServer,
    environ: dict[str, str],
    params: dict[str, str],
    said: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = vault(server, environ, **params)
    for name in ("port", "other"):
        with pytest.raises(CarawayError, match=said) as caught:
            store.get(name)
        assert "hunter" not in caught.value.message + caplog.text
        assert caught.value.__cause__ is None


@pytest.mark.parametrize("path", ["", "https://x.vault.azure.net", "a/b", "x" * 25])
def test_the_name_of_a_vault_is_checked(path: str) -> None:
    with pytest.raises(CarawayError, match="azure_keyvault:my-vault"):
        AzureKeyVault({"path": path}, Path("/"), {})


def test_secrets_that_were_read_stay_while_azure_is_away(server: SecretServer) -> None:
    store = vault(server)
    assert store.get("port") == "5"
    server.status = 500
    with pytest.raises(CarawayError, match="the server answered 500"):
        store.get("new")
    assert store.get("port") == "5"
    server.status = None
    until(lambda: _got(store, "new") is None, "the vault is back")


def _got(store: AzureKeyVault, name: str) -> str | None:
    try:
        return store.get(name)
    except CarawayError:
        return "it is away"
