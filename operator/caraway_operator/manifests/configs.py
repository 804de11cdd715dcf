"""ConfigMaps: the manifest, completed with settings of the cluster, and the limits."""

import json
from typing import Any

from caraway_kube import naming
from caraway_kube.resources import yaml_text
from caraway_kube.resources.manifest_checks import API_KEYS_STORE, RESULT_STORE, params_of
from caraway_operator.manifests.desired import DesiredCluster
from caraway_operator.manifests.meta import Object, metadata

_NOTICE = "# Written by the operator; edit the CarawayCluster instead.\n"


def objects(desired: DesiredCluster) -> list[Object]:
    """Return the ConfigMaps of a cluster."""
    manifest = {"caraway.yaml": manifest_text(desired)}
    return [
        _config_map(desired, naming.manifest_config(desired.name), manifest),
        _config_map(
            desired, naming.limits_config(desired.name), {naming.LIMITS_KEY: limits_text(desired)}
        ),
    ]


def manifest_text(desired: DesiredCluster) -> str:
    """Return the manifest that the schedulers run."""
    return _NOTICE + yaml_text.dump(effective_manifest(desired))


def limits_text(desired: DesiredCluster) -> str:
    """Return the limits that schedulers enforce. They reload them without a restart."""
    if desired.limits is None:
        return "{}\n"
    content = desired.limits.model_dump(by_alias=True, exclude_none=True, exclude={"organization"})
    return json.dumps(content, indent=2, sort_keys=True) + "\n"


def effective_manifest(desired: DesiredCluster) -> dict[str, object]:
    """Return the user's manifest with API keys, TLS, secret stores and the result store added."""
    content = dict(desired.manifest.content)
    runtime = dict(content.get("runtime") or {})
    if keys := [
        f"${{{API_KEYS_STORE}:{index}}}:{key.access}"
        for index, key in enumerate(desired.spec.auth.api_keys)
    ]:
        runtime["auth"] = _with_keys(dict(runtime.get("auth") or {}), keys)
    if desired.spec.tls.enabled:
        runtime["tls"] = {
            "certificate_file": f"{naming.TLS_DIR}/tls.crt",
            "key_file": f"{naming.TLS_DIR}/tls.key",
        }
    if desired.spec.executor.flight.enabled:
        flight = dict(runtime.get("flight") or {})
        flight.setdefault("parallel_reads", {"enabled": True})
        runtime["flight"] = flight
    if place := _result_store(desired):
        runtime["scheduler"] = {**(runtime.get("scheduler") or {}), **place}
    if runtime:
        content["runtime"] = runtime
    if stores := _stores(desired):
        declared = content.get("secrets")
        # A manifest without stores reads the environment. One with any store does not.
        known = [{"from": "env", "name": "env"}] if declared is None else list(declared)
        content["secrets"] = [*known, *stores]
    return content


def _with_keys(auth: dict[str, Any], keys: list[str]) -> dict[str, object]:
    name = "api_key" if "api_key" in auth else "api-key"
    section = dict(auth.get(name) or {})
    return {**auth, name: {**section, "keys": [*(section.get("keys") or []), *keys]}}


def _result_store(desired: DesiredCluster) -> dict[str, object]:
    if desired.makes_store:
        host = naming.object_name(desired.name, naming.STATE)
        return {"state_location": f"caraway://{host}:{naming.STORE_PORT}"}
    given = desired.spec.result_store
    if given is None:
        return {}
    params = params_of(given)
    return {"state_location": given.url, **({"params": params} if params else {})}


def _stores(desired: DesiredCluster) -> list[dict[str, str]]:
    spec = desired.spec
    found = [_store(mount.name, f"{naming.SECRETS_DIR}/{mount.name}") for mount in spec.secrets]
    if spec.auth.api_keys:
        found.append(_store(API_KEYS_STORE, naming.KEYS_DIR))
    if spec.result_store and spec.result_store.secret_params:
        found.append(_store(RESULT_STORE, naming.RESULT_STORE_DIR))
    return found


def _store(name: str, folder: str) -> dict[str, str]:
    return {"from": f"file:{folder}", "name": name}


def _config_map(desired: DesiredCluster, name: str, content: dict[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(desired, name),
        "data": content,
    }
