"""Checks manifests of projects as the runtime does. Nothing of this host is read."""

import asyncio
from typing import Any

from caraway_core.errors import ManifestError, Problem
from caraway_core.manifest import Manifest
from caraway_core.manifest.documents import document
from caraway_kube.resources import manifest_checks, yaml_text
from caraway_management.domain import refusals
from caraway_management.domain.refusals import RefusedError

PATH = manifest_checks.PATH
MOST_BYTES = 1024 * 1024
_MOST_PROBLEMS = 100


async def check_apart(manifest: str | dict[str, object]) -> str:
    """Return the text of a valid manifest. A large one takes a second, so a thread checks it.

    Raises:
        RefusedError: it is not valid; `details` has every problem, with its line.
    """
    return await asyncio.to_thread(check, manifest)


def check(manifest: str | dict[str, object]) -> str:
    """Return the text of a valid manifest: as it was written, or made from an object.

    Raises:
        RefusedError: it is not valid.
    """
    text = manifest if isinstance(manifest, str) else _dump(manifest)
    try:
        parse(text)
    except ManifestError as exc:
        raise refusal(exc, has_lines=isinstance(manifest, str)) from exc
    return text


def parse(text: str) -> Manifest:
    """Return the manifest in a text.

    Raises:
        ManifestError: it is not valid; the error has every problem.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError as exc:
        raise ManifestError([Problem("", 0, "", "is not valid Unicode")]) from exc
    if size > MOST_BYTES:
        raise ManifestError([Problem("", 0, "", f"has more than {MOST_BYTES} bytes")])
    return manifest_checks.check_text(text)


def with_details(text: str) -> str:
    """Return a valid manifest whose runtime logs details."""
    content: dict[str, Any] = document.parse(text, PATH).value
    content["runtime"] = {**(content.get("runtime") or {}), "output_level": "verbose"}
    return yaml_text.dump(content)


def refusal(
    exc: ManifestError, *, has_lines: bool = True, status: int = 400, code: str = "invalid_manifest"
) -> RefusedError:
    """Return the refusal of a manifest that is not valid."""
    words = [_words(each, has_lines) for each in exc.problems]
    shown = words[:_MOST_PROBLEMS]
    if len(words) > len(shown):
        shown.append(f"and {len(words) - len(shown)} more problems")
    return RefusedError(
        status, f"the manifest is not valid: {words[0]}", code, fields={"manifest": shown}
    )


def _words(problem: Problem, has_lines: bool) -> str:
    # Users know neither the file of the pod nor the lines of a generated text.
    where = [f"line {problem.line}"] if has_lines and problem.line else []
    where += [problem.path] if problem.path else []
    return ": ".join([*where, problem.message])


def _dump(content: dict[str, object]) -> str:
    try:
        return yaml_text.dump(content)
    except (RecursionError, ValueError) as exc:
        raise refusals.invalid_field("manifest", "cannot be written as YAML") from exc
