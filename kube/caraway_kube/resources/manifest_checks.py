"""Checks the manifest of a cluster as the runtime does, before any pod runs it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from caraway_core.errors import ManifestError, Problem
from caraway_core.manifest import Manifest, loading, view_searches
from caraway_core.manifest.documents import document
from caraway_core.manifest.documents.document import Document
from caraway_core.manifest.rules import param_rules
from caraway_kube import naming
from caraway_kube.resources import manifest_texts, yaml_text
from caraway_kube.resources.cluster import CarawayClusterSpec, ResultStoreSpec
from caraway_kube.resources.problems import SpecProblem

API_KEYS_STORE = "caraway_api_keys"
RESULT_STORE = "caraway_result_store"
PATH = Path(naming.MANIFEST_FILE)


@dataclass(frozen=True, slots=True)
class ClusterManifest:
    """A valid manifest as it was written, and the settings that pods depend on."""

    content: dict[str, Any]
    shutdown_timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class CheckedManifest:
    """A valid manifest, or all its problems."""

    manifest: ClusterManifest | None
    problems: tuple[SpecProblem, ...] = ()


def check_text(text: str, spec: CarawayClusterSpec | None = None) -> Manifest:
    """Check a manifest that stands alone, as its user wrote it. Nothing is read.

    Raises:
        ManifestError: it is not valid; the error has every problem, with its line.
    """
    _, manifest, faults = _inspect(spec or CarawayClusterSpec(), text)
    if faults:
        raise ManifestError(faults)
    return manifest


def check_inline(spec: CarawayClusterSpec) -> CheckedManifest:
    """Check the manifest in the resource."""
    return _check(spec, yaml_text.dump(spec.manifest or {}), None)


def check_config_map(spec: CarawayClusterSpec, text: str | None) -> CheckedManifest:
    """Check the manifest in a ConfigMap. `text` is None if ConfigMap or key do not exist."""
    assert spec.manifest_from is not None
    source = spec.manifest_from.config_map
    if text is None:
        message = (
            f"the ConfigMap '{source.name}' with the key '{source.key}' does not exist; create it"
        )
        return CheckedManifest(None, (SpecProblem("spec.manifestFrom.configMap", message),))
    return _check(spec, text, f"{source.name}/{source.key}")


def params_of(store: ResultStoreSpec) -> dict[str, str]:
    """Return the parameters of a result store. Those in Secrets are references."""
    secret = {each.param: f"${{{RESULT_STORE}:{each.param}}}" for each in store.secret_params}
    return {**store.params, **secret}


def _check(spec: CarawayClusterSpec, text: str, source: str | None) -> CheckedManifest:
    try:
        content, manifest, faults = _inspect(spec, text)
    except ManifestError as exc:
        return CheckedManifest(None, tuple(_problem(each, source) for each in exc.problems))
    problems = (
        *_conflicts(spec, manifest, content.value),
        *(_problem(each, source) for each in faults),
    )
    if problems:
        return CheckedManifest(None, problems)
    return CheckedManifest(ClusterManifest(content.value, manifest.runtime.shutdown_timeout_s))


def _inspect(spec: CarawayClusterSpec, text: str) -> tuple[Document, Manifest, list[Problem]]:
    """Return a manifest with a valid structure, and what else is wrong with it.

    Raises:
        ManifestError: its structure is not valid.
    """
    content = document.parse(text, PATH)
    manifest = loading.load_alone(content)
    faults = manifest_texts.problems(spec, content.value)
    problems = [content.problem(path, message) for path, message in faults]
    for each in view_searches.problems(manifest):
        problems.append(content.problem(("views",), f"{each.path}: {each.message}"))
    return content, manifest, problems


def _problem(problem: Problem, source: str | None) -> SpecProblem:
    if source is None:
        # Users do not know the lines of the generated text.
        path = f"spec.manifest.{problem.path}" if problem.path else "spec.manifest"
        return SpecProblem(path, problem.message)
    line = f":{problem.line}" if problem.line else ""
    where = f" {problem.path}" if problem.path else ""
    return SpecProblem(f"ConfigMap {source}{line}{where}", problem.message)


def _conflicts(
    spec: CarawayClusterSpec, manifest: Manifest, content: dict[str, Any]
) -> Iterator[SpecProblem]:
    """Yield the settings that are in both the manifest and the resource."""
    runtime = content.get("runtime") or {}
    if spec.tls.enabled and runtime.get("tls"):
        yield SpecProblem("spec.tls", "the manifest also has runtime.tls; remove one of them")
    if spec.result_store and manifest.runtime.scheduler.state_location:
        message = "the manifest also has runtime.scheduler.state_location; remove one of them"
        yield SpecProblem("spec.resultStore", message)
    if fault := _result_store_fault(spec):
        yield SpecProblem("spec.resultStore", fault)
    if spec.auth.api_keys and _is_auth_off(runtime):
        message = "the manifest disables API keys; remove 'enabled: false' from it"
        yield SpecProblem("spec.auth.apiKeys", message)
    declared = {store.name for store in manifest.secrets}
    reserved = {API_KEYS_STORE, RESULT_STORE}
    for index, mount in enumerate(spec.secrets):
        if mount.name in declared:
            message = f"the manifest also declares the store '{mount.name}'; rename one of them"
            yield SpecProblem(f"spec.secrets[{index}].name", message)
    for name in sorted(declared & reserved):
        yield SpecProblem("spec.manifest.secrets", f"'{name}' is reserved; rename it")


def _result_store_fault(spec: CarawayClusterSpec) -> str:
    given = spec.result_store
    return param_rules.place_fault(given.url, params_of(given)) if given else ""


def _is_auth_off(runtime: dict[str, Any]) -> bool:
    auth = runtime.get("auth") or {}
    section = auth.get("api-key") or auth.get("api_key") or {}
    return section.get("enabled") is False
