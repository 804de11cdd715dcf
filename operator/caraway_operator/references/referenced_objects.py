"""Reads the Secrets and ConfigMaps that a cluster refers to, and creates its own Secrets.

The operator's Secrets are created once and never changed, except to renew certificates. Secrets are
read by name, and only their checksums and the token are kept.
"""

import base64
import binascii
import datetime as dt
import hashlib
import json
import secrets as random
from collections.abc import Mapping
from dataclasses import dataclass, field

from caraway_kube import naming
from caraway_kube.api import errors
from caraway_kube.api.client import KubeClient
from caraway_kube.api.kinds import CONFIG_MAP, SECRET, Object, ObjectRef, ref
from caraway_kube.resources.cluster import CarawayClusterSpec
from caraway_operator.kube import merging, planning
from caraway_operator.manifests import DesiredCluster, secrets
from caraway_operator.references import tls
from caraway_operator.references.tls import KeyPair

_TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class ReferencedObjects:
    """The referenced objects. `missing` describes those that do not exist."""

    checksums: Mapping[str, str] = field(default_factory=dict)
    token: str = field(default="", repr=False)
    missing: tuple[str, ...] = ()
    created: tuple[ObjectRef, ...] = ()
    """Secrets that were created while reading."""
    has_users: bool = False
    """Some Secrets are the users', who change them."""


async def read_manifest(kube: KubeClient, namespace: str, spec: CarawayClusterSpec) -> str | None:
    """Return the manifest from a ConfigMap, or None if it does not exist.

    Raises:
        KubeError: the ConfigMap cannot be read.
    """
    assert spec.manifest_from is not None
    source = spec.manifest_from.config_map
    try:
        resource = await kube.get(CONFIG_MAP, namespace, source.name)
    except errors.ObjectNotFoundError:
        return None
    text = (resource.get("data") or {}).get(source.key)
    return text if isinstance(text, str) else None


async def read_referenced(
    kube: KubeClient,
    desired: DesiredCluster,
    now: dt.datetime,
    known: Mapping[str, str] | None = None,
) -> ReferencedObjects:
    """Read the Secrets that the cluster's pods read, and create those of the operator.

    Of a Secret that is missing, the checksum stays as it was `known`: pods that run have its
    values, and new ones would not start.

    Raises:
        KubeError: an object cannot be read or created.
    """
    names, required = secrets.read_by(desired), secrets.required_keys(desired)
    checksums = {name: seen for name, seen in (known or {}).items() if name in names}
    missing: list[str] = []
    token = ""
    new: list[ObjectRef] = []
    own_secrets = await _own_secrets(kube, desired, now, new)
    token_name = desired.spec.token.secret_name or naming.token_secret(desired.name)
    for name in names:
        try:
            resource = own_secrets.get(name) or await kube.get(SECRET, desired.namespace, name)
        except errors.ObjectNotFoundError:
            if name in required:
                missing.append(f"the Secret '{name}' of the spec does not exist; create it")
            continue
        except errors.RequestRejectedError as error:
            missing.append(f"the Secret '{name}' cannot be read: {error.message}")
            continue
        checksums[name] = _checksum(resource)
        if lacking := sorted(required.get(name, set()) - (resource.get("data") or {}).keys()):
            keys = ", ".join(f"'{key}'" for key in lacking)
            missing.append(f"the Secret '{name}' of the spec lacks the key {keys}; add it")
        if name == token_name:
            token = _value(resource, "token").strip()
    has_users = not set(names) <= own_secrets.keys()
    return ReferencedObjects(checksums, token, tuple(missing), tuple(new), has_users)


async def _own_secrets(
    kube: KubeClient, desired: DesiredCluster, now: dt.datetime, new: list[ObjectRef]
) -> dict[str, Object]:
    """Return the operator's own Secrets. Missing ones are created and added to `new`."""
    found: dict[str, Object] = {}
    spec = desired.spec
    if spec.token.secret_name is None:
        name = naming.token_secret(desired.name)
        value = random.token_hex(_TOKEN_BYTES)
        found[name] = await _create_once(kube, desired, secrets.token(desired, value), new)
    if desired.makes_redis and spec.state.secret_name is None:
        value = random.token_hex(_TOKEN_BYTES)
        resource = await _create_once(kube, desired, secrets.redis_password(desired, value), new)
        found[naming.state_secret(desired.name)] = resource
    if spec.tls.enabled and spec.tls.secret_name is None:
        found[naming.tls_secret(desired.name)] = await _server_certificate(kube, desired, now, new)
    return found


async def _create_once(
    kube: KubeClient, desired: DesiredCluster, secret: Object, new: list[ObjectRef]
) -> Object:
    name = secret["metadata"]["name"]
    try:
        return _require_own(desired, await kube.get(SECRET, desired.namespace, name))
    except errors.ObjectNotFoundError:
        pass
    try:
        resource = await kube.create(secret)
    except errors.ConflictError:
        return _require_own(desired, await kube.get(SECRET, desired.namespace, name))
    new.append(ref(secret))
    return resource


def _require_own(desired: DesiredCluster, secret: Object) -> Object:
    """Check that the Secret is not about to be deleted with an earlier cluster of the name.

    Raises:
        ConflictError: another cluster owns it.
    """
    for owner in secret["metadata"].get("ownerReferences") or ():
        if owner.get("kind") == naming.CLUSTER_KIND and owner.get("uid") != desired.uid:
            name = secret["metadata"]["name"]
            raise errors.ConflictError(
                f"the Secret '{name}' belongs to an earlier cluster with this name; waiting until "
                "it is deleted"
            )
    return secret


async def _server_certificate(
    kube: KubeClient, desired: DesiredCluster, now: dt.datetime, new: list[ObjectRef]
) -> Object:
    """Return the Secret with the server certificate. CA and certificate are renewed in time."""
    ca_name, name = naming.object_name(desired.name, "ca"), naming.tls_secret(desired.name)
    pair = tls.authority(desired.name, now)
    kept = await _create_once(
        kube, desired, secrets.tls(desired, ca_name, _content(pair, pair)), new
    )
    ca = KeyPair(_value(kept, "tls.crt"), _value(kept, "tls.key"))
    if tls.is_authority_due(ca.certificate, now):
        ca = tls.authority(desired.name, now)
        kept = await _write(kube, secrets.tls(desired, ca_name, _content(ca, ca)), kept)
    more = desired.spec.tls.dns_names
    if desired.spec.executor.flight.enabled:
        service = naming.object_name(desired.name, naming.EXECUTOR)
        more = (*more, f"*.{service}.{desired.namespace}.svc")
    shown = tls.names(desired.name, desired.namespace, more)
    found: Object | None = None
    try:
        found = _require_own(desired, await kube.get(SECRET, desired.namespace, name))
        if planning.is_foreign(found, secrets.tls(desired, name, {})):
            raise errors.ConflictError(
                f"the Secret '{name}' does not belong to this cluster; if it is the server "
                "certificate, set spec.tls.secretName, else rename it"
            )
        if not tls.is_server_due(_value(found, "tls.crt"), ca.certificate, shown, now):
            return found
    except errors.ObjectNotFoundError:
        pass
    server = tls.server(ca, desired.name, shown, now)
    if found is None:
        new.append(ObjectRef(SECRET.name, desired.namespace, name))
    return await _write(kube, secrets.tls(desired, name, _content(server, ca)), found)


async def _write(kube: KubeClient, secret: Object, live: Object | None) -> Object:
    if live is None:
        return await kube.create(secret)
    return await kube.replace(merging.merged(secret, live))


def _content(pair: KeyPair, ca: KeyPair) -> dict[str, str]:
    return {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": ca.certificate}


def _value(secret: Object, key: str) -> str:
    try:
        return base64.b64decode((secret.get("data") or {}).get(key, "")).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _checksum(secret: Object) -> str:
    text = json.dumps(secret.get("data") or {}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
