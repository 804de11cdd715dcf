"""The resolution of result places from manifest settings."""

from pathlib import Path

import pytest

from caraway_core.errors import CarawayError
from caraway_core.manifest import RuntimeSettings, SecretResolver
from caraway_core.manifest.values.runtime import SchedulerSettings
from caraway_core.tables import ResultPlace
from caraway_gateway.composition import storage


class Vault:
    def get(self, name: str) -> str | None:
        return {"K": "hidden-key", "S": "hidden-secret"}.get(name)


SECRETS = SecretResolver({"vault": Vault()})


def place(location: str | None, **params: str) -> ResultPlace:
    settings = RuntimeSettings(scheduler=SchedulerSettings(location, params))
    return storage.find_place(settings, SECRETS, Path("default"))


def refusal(location: str, **params: str) -> str:
    with pytest.raises(CarawayError) as caught:
        place(location, **params)
    assert "hidden" not in caught.value.message
    return caught.value.message


def test_the_default_is_a_folder() -> None:
    assert place(None) == ResultPlace("file", str(Path("default").absolute()))


def test_folder_and_bucket() -> None:
    assert place("/var/results") == ResultPlace("file", "/var/results")
    found = place("s3://b/p", s3_key="${vault:K}", s3_secret="${secrets:S}", region="r")
    assert (found.kind, found.path, found.title) == ("bucket", "p", "s3://b/p")
    assert found.store is not None and found.store.options == {
        "access_key_id": "hidden-key",
        "secret_access_key": "hidden-secret",
        "region": "r",
    }
    assert "hidden" not in repr(found)


def test_an_invalid_location_names_its_setting() -> None:
    start = "runtime.scheduler.state_location 's3://b/p': "
    assert refusal("s3://b/p", s3_regoin="r").startswith(f"{start}no s3 param 's3_regoin'; did you")
    assert refusal("s3://b/p", s3_key="${vault:X}").startswith(f"{start}'s3_key': secret 'X' was")
    assert refusal("/a", s3_key="${vault:K}").startswith("runtime.scheduler.state_location '/a': ")
    message = refusal("s3://user:hidden@b/p")
    assert message.startswith("runtime.scheduler.state_location: holds an '@'")


def test_store_of_the_cluster_takes_the_clusters_token() -> None:
    def token(location: str, given: str = "hidden-of-cluster", **params: str) -> str | None:
        settings = RuntimeSettings(scheduler=SchedulerSettings(location, params))
        found = storage.find_place(settings, SECRETS, Path("default"), given)
        assert "hidden" not in repr(found)
        return found.store.options.get("token") if found.store else None

    assert token("caraway://state:8095/p") == "hidden-of-cluster"
    assert token("caraway://state:8095/p", token="${vault:K}") == "hidden-key"
    assert token("caraway://state:8095/p", "", token="${vault:K}") == "hidden-key"
    assert token("/var/results") is None
    assert token("s3://b/p") is None
    assert refusal("caraway://state:8095/p").startswith(
        "runtime.scheduler.state_location 'caraway://state:8095/p': the token is missing"
    )
