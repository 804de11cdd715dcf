"""Finds the references to secrets in a manifest that lead to none."""

from collections.abc import Iterator, Mapping

from caraway_core.errors import CarawayError, Problem
from caraway_core.manifest.secrets.references import build_resolver
from caraway_core.manifest.values.values import VIEW, Manifest


def problems(manifest: Manifest, environ: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a problem for each text whose secrets cannot be filled in here."""
    try:
        resolver = build_resolver(manifest, environ)
    except CarawayError as exc:
        yield Problem(str(manifest.path), 0, "secrets", exc.message)
        return
    for where, text in _texts(manifest):
        try:
            resolver.expand(text)
        except CarawayError as exc:
            yield Problem(str(manifest.path), 0, where, exc.message)


def _texts(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yield the texts in which references are replaced, and their places."""
    for dataset in manifest.datasets:
        if dataset.connector != VIEW:
            yield f"dataset '{dataset.name}': from", dataset.path
        yield from _params(f"dataset '{dataset.name}'", dataset.params)
    for catalog in manifest.catalogs:
        yield f"catalog '{catalog.name}': from", catalog.path
        yield from _params(f"catalog '{catalog.name}'", catalog.params)
    for model in manifest.models:
        yield f"model '{model.name}': from", model.path
        yield from _params(f"model '{model.name}'", model.params)
    for embedder in manifest.embedders:
        yield from _params(f"embedding model '{embedder.name}'", embedder.params)
    for reranker in manifest.rerankers:
        yield from _params(f"reranker '{reranker.name}'", reranker.params)
    for tool in manifest.tools:
        yield from _params(f"tool '{tool.name}'", tool.params)
        yield from _params(f"tool '{tool.name}'", tool.env, "env")
    for number, key in enumerate(manifest.runtime.auth.keys):
        yield f"runtime.auth.api-key.keys[{number}]", key
    yield from _params("runtime.scheduler", manifest.runtime.scheduler.params)
    if manifest.snapshots is not None:
        yield from _params("snapshots", manifest.snapshots.params)


def _params(
    title: str, params: Mapping[str, str], section: str = "params"
) -> Iterator[tuple[str, str]]:
    for name, text in params.items():
        yield f"{title}: {section}.{name}", text
