"""Environment variables and flags that the cluster's processes have in common."""

from caraway_kube import naming
from caraway_operator.manifests.containers import from_field, from_secret, variable
from caraway_operator.manifests.desired import DesiredCluster
from caraway_operator.manifests.meta import Object
from caraway_operator.manifests.secrets import redis_secret


def identity() -> list[Object]:
    """Return the variables of every pod: its name and address, and writable directories."""
    return [
        from_field("POD_NAME", "metadata.name"),
        from_field("POD_IP", "status.podIP"),
        variable("HOME", naming.DATA_DIR),
        variable("TMPDIR", "/tmp"),
    ]


def state(desired: DesiredCluster) -> list[Object]:
    """Return the variables with the URL of Redis. Its password is not in the arguments."""
    if desired.makes_redis:
        host = f"{naming.object_name(desired.name, naming.STATE)}:{naming.REDIS_PORT}"
        return [
            from_secret("REDIS_PASSWORD", redis_secret(desired), "password"),
            variable("CARAWAY_STATE", f"redis://:$(REDIS_PASSWORD)@{host}"),
        ]
    given = desired.spec.redis
    assert given is not None
    if given.url_from:
        return [from_secret("CARAWAY_STATE", given.url_from.name, given.url_from.key)]
    return [variable("CARAWAY_STATE", given.url or "")]


def joining(desired: DesiredCluster) -> list[str]:
    """Return the flags of processes that join the head."""
    head = f"{naming.object_name(desired.name, naming.HEAD)}:{naming.HEAD_PORT}"
    return ["--head", head, "--node-ip", "$(POD_IP)", "--id", "$(POD_NAME)", *common(desired)]


def common(desired: DesiredCluster) -> list[str]:
    """Return the flags of every process."""
    return [
        *("--token-file", naming.TOKEN_FILE),
        *("--data-dir", naming.DATA_DIR),
        *("--log-format", desired.spec.log_format),
    ]
