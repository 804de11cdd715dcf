from base64 import b64decode

from caraway_operator.manifests import secrets
from tests.operator.manifests.clusters import EVERYTHING, desired, pod

CHECKSUM = "caraway.dev/secrets-checksum"


def test_each_component_reads_what_it_needs() -> None:
    cluster = desired(EVERYTHING)
    assert {each: secrets.read_by(cluster, each) for each in ("head", "executor", "state")} == {
        "head": ("demo-token", "redis"),
        "executor": ("demo-token",),
        "state": (),
    }
    assert secrets.read_by(cluster, "scheduler") == (
        *("bucket", "cloud", "demo-tls", "demo-token", "keys", "passwords", "redis"),
    )
    assert secrets.read_by(desired()) == ("demo-state", "demo-token")


def test_secrets_of_environment_variables_are_read() -> None:
    env = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "mine", "key": "a"}}}]
    assert "mine" in secrets.read_by(desired({"executor": {"env": env}}), "executor")


def test_a_changed_secret_replaces_only_the_pods_that_read_it() -> None:
    before = desired(EVERYTHING, secrets={"demo-token": "1", "passwords": "1", "unrelated": "1"})
    after = desired(EVERYTHING, secrets={"demo-token": "1", "passwords": "2", "unrelated": "2"})
    assert pod(before, "scheduler") != pod(after, "scheduler")
    assert pod(before, "executor") == pod(after, "executor")
    assert "passwords" not in pod(after, "scheduler")["metadata"]["annotations"][CHECKSUM]


def test_without_secrets_there_is_no_checksum() -> None:
    assert "annotations" not in pod(desired(), "executor")["metadata"]


def test_the_password_of_redis_is_in_the_config_and_valid_in_a_url() -> None:
    made = secrets.redis_password(desired(), "abc")
    assert made["metadata"]["name"] == "demo-state"
    content = {key: b64decode(value).decode() for key, value in made["data"].items()}
    assert content == {"password": "abc", "valkey.conf": "requirepass abc\n"}
