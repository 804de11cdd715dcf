"""Secrets: those that are made once, and which of them each component reads."""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any

from caraway_operator import naming
from caraway_operator.manifests import meta
from caraway_operator.manifests.meta import Object, metadata
from caraway_operator.manifests.wanted import Wanted
from caraway_operator.resources.pods import Pods


def token(wanted: Wanted, value: str) -> Object:
    """Return the Secret that the cluster's processes show to each other."""
    return _secret(wanted, naming.token_secret(wanted.name), {"token": value})


def redis_password(wanted: Wanted, value: str) -> Object:
    """Return the Secret of the Redis that the operator makes; the value must be fit for a URL."""
    content = {"password": value, "valkey.conf": f"requirepass {value}\n"}
    return _secret(wanted, naming.state_secret(wanted.name), content)


def tls(wanted: Wanted, name: str, content: Mapping[str, str]) -> Object:
    """Return a Secret with a certificate: `tls.crt`, `tls.key`, and what else is given."""
    return {**_secret(wanted, name, content), "type": "kubernetes.io/tls"}


def read_by(wanted: Wanted, component: str | None = None) -> tuple[str, ...]:
    """Return the names of all Secrets that a component reads; None is the whole cluster."""
    components = [component] if component else list(_READERS)
    return tuple(sorted({name for each in components for name in _READERS[each](wanted)}))


def checksum(wanted: Wanted, component: str) -> str | None:
    """Return what changes when a Secret that the component reads does; None before any is there."""
    known = [
        f"{name}={wanted.secrets[name]}"
        for name in read_by(wanted, component)
        if name in wanted.secrets
    ]
    return meta.checksum("\n".join(known)) if known else None


def redis_secret(wanted: Wanted) -> str:
    """Return the Secret with the password of the Redis that the operator makes."""
    return wanted.spec.state.secret_name or naming.state_secret(wanted.name)


def _secret(wanted: Wanted, name: str, content: Mapping[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(wanted, name),
        "type": "Opaque",
        "data": {key: b64encode(value.encode()).decode() for key, value in content.items()},
    }


def _token(wanted: Wanted) -> str:
    return wanted.spec.token.secret_name or naming.token_secret(wanted.name)


def _redis(wanted: Wanted) -> Iterator[str]:
    if wanted.makes_redis:
        yield redis_secret(wanted)
    elif wanted.spec.redis and wanted.spec.redis.url_from:
        yield wanted.spec.redis.url_from.name


def _head(wanted: Wanted) -> Iterator[str]:
    yield _token(wanted)
    yield from _redis(wanted)
    yield from _of_env(wanted.spec.head)


def _scheduler(wanted: Wanted) -> Iterator[str]:
    spec = wanted.spec
    yield _token(wanted)
    yield from _redis(wanted)
    if spec.tls.enabled:
        yield spec.tls.secret_name or naming.tls_secret(wanted.name)
    yield from (key.name for key in spec.auth.api_keys)
    if spec.result_store:
        yield from (param.name for param in spec.result_store.secret_params)
    yield from (mount.secret_name for mount in spec.secrets)
    yield from _of_env(spec.scheduler)


def _executor(wanted: Wanted) -> Iterator[str]:
    yield _token(wanted)
    yield from _of_env(wanted.spec.executor)


def _state(wanted: Wanted) -> Iterator[str]:
    if wanted.makes_redis:
        yield redis_secret(wanted)
    if wanted.makes_store:
        yield _token(wanted)
    yield from _of_env(wanted.spec.state)


_READERS = {
    naming.HEAD: _head,
    naming.SCHEDULER: _scheduler,
    naming.EXECUTOR: _executor,
    naming.STATE: _state,
}


def _of_env(pods: Pods) -> Iterator[str]:
    """Yield the Secrets that variables come from; nothing is known of their form."""
    for variable in pods.env:
        yield from _named(variable, "valueFrom", "secretKeyRef", "name")
    for source in pods.env_from:
        yield from _named(source, "secretRef", "name")


def _named(value: Any, *steps: str) -> Iterator[str]:
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    if isinstance(value, str):
        yield value
