from pathlib import Path

import pytest

from caraway_core.errors import CarawayError
from caraway_plugins.secrets.keyrings import KeyringSecrets
from tests.kit.memory_keyrings import MemoryKeyring

MEMORY = {"PYTHON_KEYRING_BACKEND": "tests.kit.memory_keyrings.MemoryKeyring"}


def test_passwords_are_those_of_the_service() -> None:
    MemoryKeyring.passwords["caraway", "DB_PASS"] = "a"
    MemoryKeyring.passwords["shop", "DB_PASS"] = "b"
    assert KeyringSecrets({}, Path("/"), MEMORY).get("DB_PASS") == "a"
    store = KeyringSecrets({"path": "shop"}, Path("/"), MEMORY)
    assert (store.get("DB_PASS"), store.get("db_pass"), store.get("")) == ("b", None, None)


@pytest.mark.parametrize(
    ("service", "backend", "said"),
    [
        ("locked", MEMORY["PYTHON_KEYRING_BACKEND"], "it is locked"),
        ("none", MEMORY["PYTHON_KEYRING_BACKEND"], "this machine has none"),
        ("x", "tests.kit.memory_keyrings.None", "which is no keyring here"),
        ("x", "none.Keyring", "which is no keyring here"),
        ("x", "none", "which is no keyring here"),
        ("x", "keyring.backends.fail.Keyring", "this machine has none"),
    ],
)
def test_a_keyring_that_cannot_be_read_is_reported(service: str, backend: str, said: str) -> None:
    store = KeyringSecrets({"path": service}, Path("/"), {"PYTHON_KEYRING_BACKEND": backend})
    with pytest.raises(CarawayError, match=said) as caught:
        store.get("DB_PASS")
    assert f"the keyring of '{service}'" in caught.value.message
    assert "hunter2" not in caught.value.message and caught.value.__cause__ is None
