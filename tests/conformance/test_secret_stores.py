"""Requirements for every secret store. One joins with a class, see `STORES`."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import pytest

from caraway_core.errors import CarawayError
from caraway_core.loading import registry
from caraway_core.manifest.secrets.references import SecretResolver, SecretStore
from tests.kit import azure_vault, secret_servers
from tests.kit.memory_keyrings import MemoryKeyring
from tests.kit.s3 import KEY, REGION, SECRET, S3Server, s3_server
from tests.kit.secret_servers import TOKEN, SecretServer

__all__ = ["s3_server"]
VALUE = 'p"ä$ss${env:X}\\'


class Place(Protocol):
    """A place that holds a secret `NAME`."""

    def write(self, name: str, value: str) -> None: ...

    def params(self) -> dict[str, str]: ...

    def environ(self) -> dict[str, str]:
        """Return the variables with which the store is opened, which hold its login."""
        ...


class EnvPlace:
    def __init__(self, _folder: Path, _server: SecretServer, _aws: S3Server) -> None:
        self._variables: dict[str, str] = {}

    def write(self, name: str, value: str) -> None:
        self._variables[name] = value

    def params(self) -> dict[str, str]:
        return {}

    def environ(self) -> dict[str, str]:
        return self._variables


class FilePlace:
    def __init__(self, folder: Path, _server: SecretServer, _aws: S3Server) -> None:
        self._folder = folder

    def write(self, name: str, value: str) -> None:
        (self._folder / name).write_text(value)

    def params(self) -> dict[str, str]:
        return {"path": str(self._folder)}

    def environ(self) -> dict[str, str]:
        return {}


class DotEnvPlace(FilePlace):
    def write(self, name: str, value: str) -> None:
        (self._folder / "s.env").write_text(f"{name}='{value}'\n")

    def params(self) -> dict[str, str]:
        return {"path": str(self._folder / "s.env")}


class VaultPlace:
    def __init__(self, _folder: Path, server: SecretServer, _aws: S3Server) -> None:
        self._server = server

    def write(self, name: str, value: str) -> None:
        self._server.secrets["app/db"] = {name: value}

    def params(self) -> dict[str, str]:
        return {"path": "app/db", "vault_addr": self._server.url}

    def environ(self) -> dict[str, str]:
        return {"VAULT_TOKEN": TOKEN}


class KubernetesPlace:
    def __init__(self, folder: Path, server: SecretServer, _aws: S3Server) -> None:
        self._folder, self._server = folder, server
        (folder / "token").write_text(TOKEN)
        (folder / "namespace").write_text("shop")

    def write(self, name: str, value: str) -> None:
        self._server.secrets["shop/db"] = {name: value}

    def params(self) -> dict[str, str]:
        account = str(self._folder)
        return {"path": "db", "kubernetes_api": self._server.url, "kubernetes_account": account}

    def environ(self) -> dict[str, str]:
        return {}


class AwsPlace:
    def __init__(self, _folder: Path, _server: SecretServer, aws: S3Server) -> None:
        self._aws = aws

    def write(self, name: str, value: str) -> None:
        import boto3

        client = boto3.client(
            "secretsmanager", endpoint_url=self._aws.endpoint, region_name=REGION,
            aws_access_key_id=KEY, aws_secret_access_key=SECRET,
        )  # fmt: skip
        text = json.dumps({name: value})
        try:
            client.create_secret(Name="app/db", SecretString=text)
        except client.exceptions.ResourceExistsException:
            client.put_secret_value(SecretId="app/db", SecretString=text)
        client.close()

    def params(self) -> dict[str, str]:
        return {"path": "app/db", "aws_region": REGION, "aws_endpoint": self._aws.endpoint}

    def environ(self) -> dict[str, str]:
        return {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}


class AzurePlace:
    def __init__(self, _folder: Path, server: SecretServer, _aws: S3Server) -> None:
        self._server = server

    def write(self, name: str, value: str) -> None:
        self._server.secrets["azure"] = {name: value}

    def params(self) -> dict[str, str]:
        url = self._server.url
        return {"path": "my-vault", "azure_vault_url": url, "azure_authority_host": url,
                "azure_tenant_id": "tenant"}  # fmt: skip

    def environ(self) -> dict[str, str]:
        secret = azure_vault.CLIENT["client_secret"]
        return {"AZURE_CLIENT_ID": "app", "AZURE_CLIENT_SECRET": secret}


class KeyringPlace:
    def __init__(self, _folder: Path, _server: SecretServer, _aws: S3Server) -> None:
        MemoryKeyring.passwords.clear()

    def write(self, name: str, value: str) -> None:
        MemoryKeyring.passwords["caraway", name] = value

    def params(self) -> dict[str, str]:
        return {}

    def environ(self) -> dict[str, str]:
        return {"PYTHON_KEYRING_BACKEND": "tests.kit.memory_keyrings.MemoryKeyring"}


STORES: Mapping[str, Any] = {
    "aws_secrets_manager": AwsPlace,
    "azure_keyvault": AzurePlace,
    "dotenv": DotEnvPlace,
    "env": EnvPlace,
    "file": FilePlace,
    "keyring": KeyringPlace,
    "kubernetes": KubernetesPlace,
    "vault": VaultPlace,
}


@pytest.fixture
def server() -> Iterator[SecretServer]:
    with secret_servers.serving() as made:
        yield made


@pytest.fixture(params=sorted(STORES))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def place(kind: str, tmp_path: Path, server: SecretServer, s3_server: S3Server) -> Place:
    made: Place = STORES[kind](tmp_path, server, s3_server)
    made.write("NAME", VALUE)
    return made


def opened(kind: str, place: Place, folder: Path) -> SecretStore:
    made: SecretStore = registry.SECRET_STORES.load(kind)(place.params(), folder, place.environ())
    return made


def test_every_store_has_a_class_here() -> None:
    assert set(STORES) == set(registry.SECRET_STORES)


def test_a_secret_is_returned_as_it_is(kind: str, place: Place, tmp_path: Path) -> None:
    store = opened(kind, place, tmp_path)
    assert store.get("NAME") == VALUE
    assert SecretResolver({"s": store}).expand("<${s:NAME}>") == f"<{VALUE}>"


def test_a_secret_that_is_not_there_is_none(kind: str, place: Place, tmp_path: Path) -> None:
    store = opened(kind, place, tmp_path)
    assert store.get("OTHER") is None
    with pytest.raises(CarawayError, match="secret 'OTHER' was not found in 's'") as caught:
        SecretResolver({"s": store}).expand("${s:OTHER}")
    assert VALUE not in caught.value.message


def test_it_shows_no_secret(kind: str, place: Place, tmp_path: Path) -> None:
    store = opened(kind, place, tmp_path)
    assert store.get("NAME") == VALUE
    shown = f"{store!r} {vars(store)!r}"
    assert VALUE not in shown or kind in ("env", "dotenv")
    assert TOKEN not in shown


def test_a_new_store_sees_a_changed_secret(kind: str, place: Place, tmp_path: Path) -> None:
    assert opened(kind, place, tmp_path).get("NAME") == VALUE
    place.write("NAME", "other")
    assert opened(kind, place, tmp_path).get("NAME") == "other"
