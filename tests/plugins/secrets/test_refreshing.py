import gc
import logging
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from caraway_core.errors import CarawayError
from caraway_plugins.secrets.aws import AwsSecretsManager
from caraway_plugins.secrets.kubernetes import KubernetesSecret
from caraway_plugins.secrets.refreshing import ReadSecrets, RefreshedSecrets
from caraway_plugins.secrets.vault import Vault
from tests.kit import secret_servers
from tests.kit.deadlines import until
from tests.kit.secret_servers import ROLE, TOKEN, SecretServer


@pytest.fixture
def server() -> Iterator[SecretServer]:
    with secret_servers.serving() as made:
        made.secrets = {"app/db": {"PASS": "hunter2", "PORT": 5}, "database/creds/app": {"u": "x"}}
        yield made


def vault(
    server: SecretServer, params: Mapping[str, str], environ: Mapping[str, str] | None = None
) -> Vault:
    given = {"path": "app/db", "vault_addr": server.url, **params}
    return Vault(given, Path("/"), {"VAULT_TOKEN": TOKEN} if environ is None else environ)


def test_logins_of_vault(server: SecretServer, tmp_path: Path) -> None:
    (tmp_path / "jwt").write_text("pod-jwt\n")
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    for params, environ in (
        ({}, {"VAULT_TOKEN": TOKEN}),
        ({"vault_token_file": str(tmp_path / "token")}, {}),
        ({"vault_role_id": ROLE["role_id"]}, {"VAULT_SECRET_ID": ROLE["secret_id"]}),
        ({"vault_kubernetes_role": "app", "vault_jwt_file": str(tmp_path / "jwt")}, {}),
    ):
        store = vault(server, params, environ)
        assert (store.get("PASS"), store.get("PORT")) == ("hunter2", "5")


def test_engines_of_vault(server: SecretServer) -> None:
    server.secrets["secret/app/db"] = {"PASS": "of version 1"}
    assert vault(server, {"vault_engine": "kv1"}).get("PASS") == "of version 1"
    dynamic = {"path": "database/creds/app", "vault_engine": "dynamic"}
    assert vault(server, dynamic).get("u") == "x"
    with pytest.raises(CarawayError, match="kv2, kv1 or dynamic"):
        vault(server, {"vault_engine": "kv3"}).get("PASS")


def test_secrets_are_read_again_before_they_expire(server: SecretServer) -> None:
    server.lease_s = 1
    store = vault(server, {"path": "database/creds/app", "vault_engine": "dynamic"})
    assert store.get("u") == "x"
    server.secrets["database/creds/app"] = {"u": "y"}
    until(lambda: store.get("u") == "y", "the secret is read again")


@pytest.mark.parametrize(
    ("params", "environ", "said"),
    [
        ({}, {}, "there is no login"),
        ({}, {"VAULT_TOKEN": "hunter3"}, "access is denied"),
        ({"path": "app/none"}, {"VAULT_TOKEN": TOKEN}, "does not exist"),
        ({"vault_role_id": "x"}, {"VAULT_SECRET_ID": "hunter3"}, "the server answered 400"),
        ({"vault_addr": "http://127.0.0.1:1"}, {"VAULT_TOKEN": TOKEN}, "cannot be reached"),
        ({"vault_token_file": "/none"}, {}, "the file '/none' cannot be read"),
    ],
)
def test_what_cannot_be_read_is_reported_without_secrets(
    server: SecretServer,
    params: dict[str, str],
    environ: dict[str, str],
    said: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = vault(server, params, environ)
    with pytest.raises(CarawayError, match=said) as caught:
        store.get("PASS")
    assert "hunter" not in caught.value.message + caplog.text
    assert caught.value.__cause__ is None


def test_secrets_stay_while_the_server_is_away(caplog: pytest.LogCaptureFixture) -> None:
    answers: list[ReadSecrets | CarawayError] = [
        ReadSecrets({"a": "1"}, 0.1), CarawayError("away"), ReadSecrets({"a": "2"}),
    ]  # fmt: skip
    failed = threading.Event()

    def read() -> ReadSecrets:
        answer = answers.pop(0)
        if isinstance(answer, CarawayError):
            failed.set()
            raise answer
        return answer

    with caplog.at_level(logging.WARNING):
        store = RefreshedSecrets("the place", read)
        assert store.get("a") == "1"
        assert failed.wait(10)
        assert store.get("a") in ("1", "2")
        until(lambda: store.get("a") == "2", "the place is back")
    assert "secrets cannot be read" in caplog.text


def test_the_thread_ends_with_the_store() -> None:
    before = set(threading.enumerate())
    store = RefreshedSecrets("the place", lambda: ReadSecrets({"a": "1"}))
    assert store.get("a") == "1"
    (thread,) = set(threading.enumerate()) - before
    del store
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()


def test_stores_that_cannot_be_opened_say_so() -> None:
    for make, params, said in (
        (Vault, {}, "needs a path"),
        (Vault, {"path": "a"}, "the address is missing"),
        (KubernetesSecret, {}, "needs a Secret"),
        (KubernetesSecret, {"path": "a"}, "works in a pod"),
        (AwsSecretsManager, {}, "needs a secret"),
    ):
        with pytest.raises(CarawayError, match=said):
            make(params, Path("/"), {})


def test_secret_of_kubernetes_that_is_not_text(server: SecretServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "namespace").write_text("shop")
    server.status = 500
    params = {"path": "db", "kubernetes_api": server.url, "kubernetes_account": str(tmp_path)}
    with pytest.raises(CarawayError, match="the server answered 500") as caught:
        KubernetesSecret(params, Path("/"), {}).get("x")
    assert "hunter2" not in caught.value.message


def test_an_answer_of_another_form_is_tried_again_and_not_quoted() -> None:
    answers: Iterator[Exception | ReadSecrets] = iter(
        [TypeError("hunter2"), ReadSecrets({"a": "b"})]
    )

    def read() -> ReadSecrets:
        found = next(answers)
        if isinstance(found, Exception):
            raise found
        return found

    store = RefreshedSecrets("the secret", read)
    with pytest.raises(CarawayError, match="has another form") as caught:
        store.get("a")
    assert "hunter2" not in str(caught.value)
    until(lambda: _value(store, "a") == "b", "the secret is read again")


def _value(store: RefreshedSecrets, name: str) -> str | None:
    try:
        return store.get(name)
    except CarawayError:
        return None


def test_a_life_of_another_form_does_not_end_the_thread() -> None:
    lives: Iterator[Any] = iter(["an hour", 60])
    store = RefreshedSecrets("the secret", lambda: ReadSecrets({"a": "b"}, next(lives)))
    with pytest.raises(CarawayError, match="has another form"):
        store.get("a")
    until(lambda: _value(store, "a") == "b", "the secret is read again")
