"""What a cluster is made of beside its spec: the Secrets and ConfigMaps that it names.

Secrets that the operator makes are made once and never written again, but for certificates that
end. They are read by name, and nothing of them is kept but checksums and the token.
"""

import base64
import binascii
import datetime as dt
import hashlib
import json
import secrets as random
from collections.abc import Mapping
from dataclasses import dataclass, field

from caraway_operator import naming, tls
from caraway_operator.kube import carrying, errors, planning
from caraway_operator.kube.client import Kube
from caraway_operator.kube.kinds import CONFIG_MAP, SECRET, Object, Ref, ref
from caraway_operator.manifests import Wanted, secrets
from caraway_operator.resources.cluster import ClusterSpec
from caraway_operator.tls import Pair

_TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class Sources:
    """What was read. `missing` is what is referred to and not there."""

    checksums: Mapping[str, str] = field(default_factory=dict)
    token: str = field(default="", repr=False)
    missing: tuple[str, ...] = ()
    made: tuple[Ref, ...] = ()
    """Secrets that were made for this."""


async def manifest_text(kube: Kube, namespace: str, spec: ClusterSpec) -> str | None:
    """Return the manifest that a ConfigMap holds; None if it is not there.

    Raises:
        KubeError: it cannot be read.
    """
    assert spec.manifest_from is not None
    source = spec.manifest_from.config_map
    try:
        found = await kube.get(CONFIG_MAP, namespace, source.name)
    except errors.MissingError:
        return None
    text = (found.get("data") or {}).get(source.key)
    return text if isinstance(text, str) else None


async def gather(kube: Kube, wanted: Wanted, now: dt.datetime) -> Sources:
    """Read what the cluster's pods read; make what the operator shall make.

    Raises:
        KubeError: something cannot be read, or made.
    """
    checksums: dict[str, str] = {}
    missing: list[str] = []
    token = ""
    new: list[Ref] = []
    made = await _made(kube, wanted, now, new)
    token_name = wanted.spec.token.secret_name or naming.token_secret(wanted.name)
    for name in secrets.read_by(wanted):
        try:
            found = made.get(name) or await kube.get(SECRET, wanted.namespace, name)
        except errors.MissingError:
            missing.append(f"there is no Secret '{name}', which the spec refers to; create it")
            continue
        except errors.RefusedError as error:
            missing.append(f"the Secret '{name}' cannot be read: {error.message}")
            continue
        checksums[name] = _checksum(found)
        if name == token_name:
            token = _value(found, "token").strip()
    return Sources(checksums, token, tuple(missing), tuple(new))


async def _made(kube: Kube, wanted: Wanted, now: dt.datetime, new: list[Ref]) -> dict[str, Object]:
    """Make sure of the operator's own Secrets; returns them as they are, and adds to `new`."""
    found: dict[str, Object] = {}
    spec = wanted.spec
    if spec.token.secret_name is None:
        name = naming.token_secret(wanted.name)
        value = random.token_hex(_TOKEN_BYTES)
        found[name] = await _once(kube, wanted, secrets.token(wanted, value), new)
    if wanted.makes_redis and spec.state.secret_name is None:
        value = random.token_hex(_TOKEN_BYTES)
        made = await _once(kube, wanted, secrets.redis_password(wanted, value), new)
        found[naming.state_secret(wanted.name)] = made
    if spec.tls.enabled and spec.tls.secret_name is None:
        found[naming.tls_secret(wanted.name)] = await _certified(kube, wanted, now, new)
    return found


async def _once(kube: Kube, wanted: Wanted, secret: Object, new: list[Ref]) -> Object:
    name = secret["metadata"]["name"]
    try:
        return _own(wanted, await kube.get(SECRET, wanted.namespace, name))
    except errors.MissingError:
        pass
    try:
        made = await kube.create(secret)
    except errors.ConflictError:
        return _own(wanted, await kube.get(SECRET, wanted.namespace, name))
    new.append(ref(secret))
    return made


def _own(wanted: Wanted, secret: Object) -> Object:
    """Refuse what is about to go with an earlier cluster of the name.

    Raises:
        ConflictError: another cluster owns it.
    """
    for owner in secret["metadata"].get("ownerReferences") or ():
        if owner.get("kind") == naming.CLUSTER_KIND and owner.get("uid") != wanted.uid:
            name = secret["metadata"]["name"]
            raise errors.ConflictError(
                f"the Secret '{name}' is of an earlier cluster of this name; waiting until it is "
                "gone"
            )
    return secret


async def _certified(kube: Kube, wanted: Wanted, now: dt.datetime, new: list[Ref]) -> Object:
    """Make sure of a CA and of a certificate that is signed by it; make them anew in time."""
    ca_name, name = naming.of(wanted.name, "ca"), naming.tls_secret(wanted.name)
    made = tls.authority(wanted.name, now)
    kept = await _once(kube, wanted, secrets.tls(wanted, ca_name, _content(made, made)), new)
    ca = Pair(_value(kept, "tls.crt"), _value(kept, "tls.key"))
    if tls.is_authority_due(ca.certificate, now):
        ca = tls.authority(wanted.name, now)
        kept = await _written(kube, secrets.tls(wanted, ca_name, _content(ca, ca)), kept)
    shown = tls.names(wanted.name, wanted.namespace, wanted.spec.tls.dns_names)
    found: Object | None = None
    try:
        found = _own(wanted, await kube.get(SECRET, wanted.namespace, name))
        if planning.is_stranger(found, secrets.tls(wanted, name, {})):
            raise errors.ConflictError(
                f"the Secret '{name}' does not belong to this cluster; if it is the certificate to "
                "serve with, name it in spec.tls.secretName, else rename it"
            )
        if not tls.is_server_due(_value(found, "tls.crt"), ca.certificate, shown, now):
            return found
    except errors.MissingError:
        pass
    server = tls.server(ca, wanted.name, shown, now)
    if found is None:
        new.append(Ref(SECRET.name, wanted.namespace, name))
    return await _written(kube, secrets.tls(wanted, name, _content(server, ca)), found)


async def _written(kube: Kube, secret: Object, live: Object | None) -> Object:
    if live is None:
        return await kube.create(secret)
    return await kube.replace(carrying.merged(secret, live))


def _content(pair: Pair, ca: Pair) -> dict[str, str]:
    return {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": ca.certificate}


def _value(secret: Object, key: str) -> str:
    try:
        return base64.b64decode((secret.get("data") or {}).get(key, "")).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _checksum(secret: Object) -> str:
    text = json.dumps(secret.get("data") or {}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
