"""ConfigMaps: the manifest with what the cluster adds to it, and the limits."""

import json
from typing import Any

from caraway_operator import naming
from caraway_operator.manifests.meta import Object, metadata
from caraway_operator.manifests.wanted import Wanted
from caraway_operator.resources import yaml_text
from caraway_operator.resources.declared import API_KEYS_STORE, RESULT_STORE, params_of

_NOTICE = "# Written by the operator; edit the CarawayCluster instead.\n"


def objects(wanted: Wanted) -> list[Object]:
    """Return the ConfigMaps of a cluster."""
    manifest = {"caraway.yaml": manifest_text(wanted)}
    return [
        _config_map(wanted, naming.manifest_config(wanted.name), manifest),
        _config_map(
            wanted, naming.limits_config(wanted.name), {naming.LIMITS_KEY: limits_text(wanted)}
        ),
    ]


def manifest_text(wanted: Wanted) -> str:
    """Return the manifest that the schedulers run."""
    return _NOTICE + yaml_text.dump(effective(wanted))


def limits_text(wanted: Wanted) -> str:
    """Return the limits that schedulers enforce; they take them up without a restart."""
    if wanted.limits is None:
        return "{}\n"
    content = wanted.limits.model_dump(by_alias=True, exclude_none=True, exclude={"organization"})
    return json.dumps(content, indent=2, sort_keys=True) + "\n"


def effective(wanted: Wanted) -> dict[str, Any]:
    """Return the user's manifest, with keys, certificate, secrets and the place of answers."""
    content = dict(wanted.declared.content)
    runtime = dict(content.get("runtime") or {})
    if keys := [
        f"${{{API_KEYS_STORE}:{index}}}:{key.access}"
        for index, key in enumerate(wanted.spec.auth.api_keys)
    ]:
        runtime["auth"] = _with_keys(dict(runtime.get("auth") or {}), keys)
    if wanted.spec.tls.enabled:
        runtime["tls"] = {
            "certificate_file": f"{naming.TLS_DIR}/tls.crt",
            "key_file": f"{naming.TLS_DIR}/tls.key",
        }
    if place := _place_of_answers(wanted):
        runtime["scheduler"] = {**(runtime.get("scheduler") or {}), **place}
    if runtime:
        content["runtime"] = runtime
    if stores := _stores(wanted):
        declared = content.get("secrets")
        # A manifest that names no store reads the environment; one that names any does not.
        known = [{"from": "env", "name": "env"}] if declared is None else list(declared)
        content["secrets"] = [*known, *stores]
    return content


def _with_keys(auth: dict[str, Any], keys: list[str]) -> dict[str, Any]:
    name = "api_key" if "api_key" in auth else "api-key"
    section = dict(auth.get(name) or {})
    return {**auth, name: {**section, "keys": [*(section.get("keys") or []), *keys]}}


def _place_of_answers(wanted: Wanted) -> dict[str, Any]:
    if wanted.makes_store:
        host = naming.of(wanted.name, naming.STATE)
        return {"state_location": f"caraway://{host}:{naming.STORE_PORT}"}
    given = wanted.spec.result_store
    if given is None:
        return {}
    params = params_of(given)
    return {"state_location": given.url, **({"params": params} if params else {})}


def _stores(wanted: Wanted) -> list[dict[str, str]]:
    spec = wanted.spec
    found = [_store(mount.name, f"{naming.SECRETS_DIR}/{mount.name}") for mount in spec.secrets]
    if spec.auth.api_keys:
        found.append(_store(API_KEYS_STORE, naming.KEYS_DIR))
    if spec.result_store and spec.result_store.secret_params:
        found.append(_store(RESULT_STORE, naming.RESULT_STORE_DIR))
    return found


def _store(name: str, folder: str) -> dict[str, str]:
    return {"from": f"file:{folder}", "name": name}


def _config_map(wanted: Wanted, name: str, content: dict[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(wanted, name),
        "data": content,
    }
