"""Secrets: those that the operator creates, and which ones each component reads."""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping

from caraway_kube import naming
from caraway_kube.resources.pods import ComponentSpec
from caraway_operator.manifests import meta
from caraway_operator.manifests.desired import DesiredCluster
from caraway_operator.manifests.meta import Object, metadata


def token(desired: DesiredCluster, value: str) -> Object:
    """Return the Secret with the token by which the cluster's processes authenticate."""
    return _secret(desired, naming.token_secret(desired.name), {"token": value})


def redis_password(desired: DesiredCluster, value: str) -> Object:
    """Return the Secret with the password of the managed Redis, which must be valid in a URL."""
    content = {"password": value, "valkey.conf": f"requirepass {value}\n"}
    return _secret(desired, naming.state_secret(desired.name), content)


def tls(desired: DesiredCluster, name: str, content: Mapping[str, str]) -> Object:
    """Return a Secret of type kubernetes.io/tls."""
    return {**_secret(desired, name, content), "type": "kubernetes.io/tls"}


def read_by(desired: DesiredCluster, component: str | None = None) -> tuple[str, ...]:
    """Return the names of all Secrets that a component, or the whole cluster, reads."""
    components = [component] if component else list(_READERS)
    names = {name for each in components for name in _READERS[each](desired)}
    if naming.SCHEDULER in components:
        names.update(key.name for key in desired.spec.auth.api_keys)
    return tuple(sorted(names))


def required_keys(desired: DesiredCluster) -> Mapping[str, set[str]]:
    """Return the Secrets without which pods do not start, and their keys that pods need."""
    variables = list(_variables_of_all(desired))
    optional = {name for name, _, is_optional in variables if is_optional}
    optional -= {name for name, _, is_optional in variables if not is_optional}
    keys: dict[str, set[str]] = {name: set() for name in read_by(desired) if name not in optional}
    for name, key in _keys(desired):
        keys.setdefault(name, set()).add(key)
    return keys


def checksum(desired: DesiredCluster, component: str) -> str | None:
    """Return a checksum of the Secrets whose changes replace the pods of a component.

    None if none exists yet. Schedulers take over changed API keys while they run.
    """
    return _checksum(desired, _READERS[component](desired))


def keys_checksum(desired: DesiredCluster) -> str | None:
    """Return a checksum of the Secrets with API keys, or None if there is none."""
    return _checksum(desired, (key.name for key in desired.spec.auth.api_keys))


def redis_secret(desired: DesiredCluster) -> str:
    """Return the name of the Secret with the password of the managed Redis."""
    return desired.spec.state.secret_name or naming.state_secret(desired.name)


def _checksum(desired: DesiredCluster, names: Iterable[str]) -> str | None:
    known = [
        f"{name}={desired.secrets[name]}" for name in sorted(set(names)) if name in desired.secrets
    ]
    return meta.checksum("\n".join(known)) if known else None


def _secret(desired: DesiredCluster, name: str, content: Mapping[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(desired, name),
        "type": "Opaque",
        "data": {key: b64encode(value.encode()).decode() for key, value in content.items()},
    }


def _keys(desired: DesiredCluster) -> Iterator[tuple[str, str]]:
    """Yield the Secrets and keys that pods need."""
    spec = desired.spec
    yield _token(desired), "token"
    if desired.makes_redis:
        yield from ((redis_secret(desired), key) for key in ("password", "valkey.conf"))
    elif spec.redis and spec.redis.url_from:
        yield spec.redis.url_from.name, spec.redis.url_from.key
    if spec.tls.enabled:
        name = spec.tls.secret_name or naming.tls_secret(desired.name)
        yield from ((name, key) for key in ("tls.crt", "tls.key"))
    yield from ((each.name, each.key) for each in spec.auth.api_keys)
    if spec.result_store:
        yield from ((each.name, each.key) for each in spec.result_store.secret_params)
    for name, key, is_optional in _variables_of_all(desired):
        if key and not is_optional:
            yield name, key


def _variables(pods: ComponentSpec) -> Iterator[tuple[str, str, bool]]:
    """Yield the Secrets of environment variables: name, key or '', and whether it is optional.

    Malformed entries are ignored.
    """
    refs = [(each.get("valueFrom") or {}).get("secretKeyRef") for each in pods.env]
    refs += [each.get("secretRef") for each in pods.env_from]
    for found in refs:
        if isinstance(found, dict) and isinstance(found.get("name"), str):
            yield found["name"], str(found.get("key") or ""), found.get("optional") is True


def _variables_of_all(desired: DesiredCluster) -> Iterator[tuple[str, str, bool]]:
    for component in _READERS:
        yield from _variables(getattr(desired.spec, component))


def _token(desired: DesiredCluster) -> str:
    return desired.spec.token.secret_name or naming.token_secret(desired.name)


def _redis(desired: DesiredCluster) -> Iterator[str]:
    if desired.makes_redis:
        yield redis_secret(desired)
    elif desired.spec.redis and desired.spec.redis.url_from:
        yield desired.spec.redis.url_from.name


def _head(desired: DesiredCluster) -> Iterator[str]:
    yield _token(desired)
    yield from _redis(desired)
    yield from _of_env(desired.spec.head)


def _scheduler(desired: DesiredCluster) -> Iterator[str]:
    spec = desired.spec
    yield _token(desired)
    yield from _redis(desired)
    if spec.tls.enabled:
        yield spec.tls.secret_name or naming.tls_secret(desired.name)
    if spec.result_store:
        yield from (param.name for param in spec.result_store.secret_params)
    yield from (mount.secret_name for mount in spec.secrets)
    yield from _of_env(spec.scheduler)


def _executor(desired: DesiredCluster) -> Iterator[str]:
    spec = desired.spec
    yield _token(desired)
    if spec.tls.enabled and spec.executor.flight.enabled:
        yield spec.tls.secret_name or naming.tls_secret(desired.name)
    yield from _of_env(spec.executor)


def _state(desired: DesiredCluster) -> Iterator[str]:
    if desired.makes_redis:
        yield redis_secret(desired)
    if desired.makes_store:
        yield _token(desired)
    yield from _of_env(desired.spec.state)


_READERS = {
    naming.HEAD: _head,
    naming.SCHEDULER: _scheduler,
    naming.EXECUTOR: _executor,
    naming.STATE: _state,
}


def _of_env(pods: ComponentSpec) -> Iterator[str]:
    """Yield the Secrets of environment variables."""
    yield from (name for name, _, _ in _variables(pods))
