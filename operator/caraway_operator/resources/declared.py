"""The manifest of a cluster, checked with what checks it in the runtime, before any pod runs it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from caraway_core.errors import ManifestError, Problem
from caraway_core.manifest import Manifest, document, loading, param_rules
from caraway_operator import naming
from caraway_operator.resources import contents, yaml_text
from caraway_operator.resources.cluster import ClusterSpec, ResultStore
from caraway_operator.resources.problems import SpecProblem

API_KEYS_STORE = "caraway_api_keys"
RESULT_STORE = "caraway_result_store"
_PATH = Path(naming.MANIFEST_FILE)


@dataclass(frozen=True, slots=True)
class Declared:
    """A manifest as it was written, and what of it the pods depend on."""

    content: dict[str, Any]
    shutdown_timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Checked:
    """A manifest, if it can be used; else everything that is wrong with it."""

    declared: Declared | None
    problems: tuple[SpecProblem, ...] = ()


def inline(spec: ClusterSpec) -> Checked:
    """Check the manifest that stands in the resource."""
    return _check(spec, yaml_text.dump(spec.manifest or {}), None)


def from_config_map(spec: ClusterSpec, text: str | None) -> Checked:
    """Check the manifest that stands in a ConfigMap. None: there is no such ConfigMap, or key."""
    assert spec.manifest_from is not None
    source = spec.manifest_from.config_map
    if text is None:
        message = f"there is no ConfigMap '{source.name}' with the key '{source.key}'; create it"
        return Checked(None, (SpecProblem("spec.manifestFrom.configMap", message),))
    return _check(spec, text, f"{source.name}/{source.key}")


def params_of(store: ResultStore) -> dict[str, str]:
    """Return the params of a result store, those in Secrets as references."""
    secret = {each.param: f"${{{RESULT_STORE}:{each.param}}}" for each in store.secret_params}
    return {**store.params, **secret}


def _check(spec: ClusterSpec, text: str, source: str | None) -> Checked:
    try:
        content = document.parse(text, _PATH)
        manifest = loading.load_alone(content)
    except ManifestError as exc:
        return Checked(None, tuple(_problem(each, source) for each in exc.problems))
    faults = contents.problems(spec, content.value)
    found = (
        *_conflicts(spec, manifest, content.value),
        *(_problem(content.problem(path, message), source) for path, message in faults),
    )
    if found:
        return Checked(None, found)
    return Checked(Declared(content.value, manifest.runtime.shutdown_timeout_s))


def _problem(problem: Problem, source: str | None) -> SpecProblem:
    if source is None:
        # Lines are those of a text that only the operator has seen.
        path = f"spec.manifest.{problem.path}" if problem.path else "spec.manifest"
        return SpecProblem(path, problem.message)
    line = f":{problem.line}" if problem.line else ""
    where = f" {problem.path}" if problem.path else ""
    return SpecProblem(f"ConfigMap {source}{line}{where}", problem.message)


def _conflicts(
    spec: ClusterSpec, manifest: Manifest, content: dict[str, Any]
) -> Iterator[SpecProblem]:
    """Yield what is said both in the manifest and in the resource."""
    runtime = content.get("runtime") or {}
    if spec.tls.enabled and runtime.get("tls"):
        yield SpecProblem("spec.tls", "the manifest has runtime.tls as well; keep one of them")
    if spec.result_store and manifest.runtime.scheduler.state_location:
        message = "the manifest has runtime.scheduler.state_location as well; keep one of them"
        yield SpecProblem("spec.resultStore", message)
    if fault := _result_store_fault(spec):
        yield SpecProblem("spec.resultStore", fault)
    if spec.auth.api_keys and _is_auth_off(runtime):
        message = "the manifest switches API keys off; take 'enabled: false' out of it"
        yield SpecProblem("spec.auth.apiKeys", message)
    declared = {store.name for store in manifest.secrets}
    reserved = {API_KEYS_STORE, RESULT_STORE}
    for index, mount in enumerate(spec.secrets):
        if mount.name in declared:
            message = f"the manifest declares the store '{mount.name}' as well; rename one of them"
            yield SpecProblem(f"spec.secrets[{index}].name", message)
    for name in sorted(declared & reserved):
        yield SpecProblem("spec.manifest.secrets", f"'{name}' belongs to Caraway; rename it")


def _result_store_fault(spec: ClusterSpec) -> str:
    given = spec.result_store
    return param_rules.place_fault(given.url, params_of(given)) if given else ""


def _is_auth_off(runtime: dict[str, Any]) -> bool:
    auth = runtime.get("auth") or {}
    section = auth.get("api-key") or auth.get("api_key") or {}
    return section.get("enabled") is False
