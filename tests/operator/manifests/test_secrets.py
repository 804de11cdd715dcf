from base64 import b64decode

from caraway_operator.manifests import secrets
from tests.operator.manifests.clusters import EVERYTHING, pod, wanted

CHECKSUM = "caraway.dev/secrets-checksum"


def test_each_component_reads_what_it_needs() -> None:
    cluster = wanted(EVERYTHING)
    assert {each: secrets.read_by(cluster, each) for each in ("head", "executor", "state")} == {
        "head": ("demo-token", "redis"),
        "executor": ("demo-token",),
        "state": (),
    }
    assert secrets.read_by(cluster, "scheduler") == (
        *("bucket", "cloud", "demo-tls", "demo-token", "keys", "passwords", "redis"),
    )
    assert secrets.read_by(wanted()) == ("demo-state", "demo-token")


def test_secrets_that_variables_come_from_are_read_as_well() -> None:
    env = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "mine", "key": "a"}}}]
    assert "mine" in secrets.read_by(wanted({"executor": {"env": env}}), "executor")


def test_a_new_secret_replaces_the_pods_that_read_it_and_no_others() -> None:
    before = wanted(EVERYTHING, secrets={"demo-token": "1", "passwords": "1", "unrelated": "1"})
    after = wanted(EVERYTHING, secrets={"demo-token": "1", "passwords": "2", "unrelated": "2"})
    assert pod(before, "scheduler") != pod(after, "scheduler")
    assert pod(before, "executor") == pod(after, "executor")
    assert "passwords" not in pod(after, "scheduler")["metadata"]["annotations"][CHECKSUM]


def test_before_any_secret_is_there_nothing_is_said_of_them() -> None:
    assert "annotations" not in pod(wanted(), "executor")["metadata"]


def test_the_password_of_redis_is_for_the_server_and_for_a_url() -> None:
    made = secrets.redis_password(wanted(), "abc")
    assert made["metadata"]["name"] == "demo-state"
    content = {key: b64decode(value).decode() for key, value in made["data"].items()}
    assert content == {"password": "abc", "valkey.conf": "requirepass abc\n"}
