"""What all processes of the cluster are told: where the head is, where the state, who they are."""

from caraway_operator import naming
from caraway_operator.manifests.containers import from_field, from_secret, variable
from caraway_operator.manifests.meta import Object
from caraway_operator.manifests.secrets import redis_secret
from caraway_operator.manifests.wanted import Wanted


def identity() -> list[Object]:
    """Return the variables of every pod: its name and address, and folders that can be written."""
    return [
        from_field("POD_NAME", "metadata.name"),
        from_field("POD_IP", "status.podIP"),
        variable("HOME", naming.DATA_DIR),
        variable("TMPDIR", "/tmp"),
    ]


def state(wanted: Wanted) -> list[Object]:
    """Return the variables with the URL of the Redis; a password is in no argument."""
    if wanted.makes_redis:
        host = f"{naming.of(wanted.name, naming.STATE)}:{naming.REDIS_PORT}"
        return [
            from_secret("REDIS_PASSWORD", redis_secret(wanted), "password"),
            variable("CARAWAY_STATE", f"redis://:$(REDIS_PASSWORD)@{host}"),
        ]
    given = wanted.spec.redis
    assert given is not None
    if given.url_from:
        return [from_secret("CARAWAY_STATE", given.url_from.name, given.url_from.key)]
    return [variable("CARAWAY_STATE", given.url or "")]


def joining(wanted: Wanted) -> list[str]:
    """Return the flags of who joins the cluster."""
    head = f"{naming.of(wanted.name, naming.HEAD)}:{naming.HEAD_PORT}"
    return ["--head", head, "--node-ip", "$(POD_IP)", "--id", "$(POD_NAME)", *common(wanted)]


def common(wanted: Wanted) -> list[str]:
    """Return the flags of every process."""
    return [
        *("--token-file", naming.TOKEN_FILE),
        *("--data-dir", naming.DATA_DIR),
        *("--log-format", wanted.spec.log_format),
    ]
