"""Rules of forks: where the state of the cluster of a fork is, and what both projects share."""

from typing import Any
from urllib.parse import urlsplit

from caraway_core.manifest import Manifest
from caraway_core.manifest.rules import param_rules
from caraway_management.domain import refusals
from caraway_management.domain.refusals import RefusedError


def check_state_location(wanted: str | None, source: str | None) -> None:
    """Check the state location of a fork against that of its source.

    Raises:
        RefusedError: it is missing, not needed, cannot be used, or overlaps that of the source.
    """
    if source is None and wanted is None:
        return
    if source is None:
        raise _refused(
            "not_applicable", "the source has no runtime.scheduler.state_location; leave it out"
        )
    if wanted is None:
        raise _refused(
            "required", "the source keeps its state in a bucket; name another place for the fork"
        )
    assert wanted is not None
    if "://" not in wanted or len(wanted) > 1_000:
        raise _refused("unsupported", "must be the URL of a place, such as s3://bucket/folder")
    if fault := param_rules.place_fault(wanted, {}):
        raise _refused("unsupported", fault)
    if _overlaps(wanted, source):
        raise _refused(
            "overlaps_source", "must be neither the place of the source, nor inside or around it"
        )


def shared_state(manifest: Manifest) -> list[str]:
    """Return what a project and its fork both write, by its place in the manifest."""
    shared = ["snapshots.location"] if manifest.snapshots is not None else []
    return shared + [
        f"datasets[{each.name}]" for each in manifest.datasets if each.access == "read_write"
    ]


def set_state_location(content: dict[str, Any], location: str) -> None:
    """Write a state location into the content of a manifest that has one."""
    content["runtime"]["scheduler"]["state_location"] = location


def _overlaps(one: str, other: str) -> bool:
    first, second = _place(one), _place(other)
    return first.startswith(second) or second.startswith(first)


def _place(url: str) -> str:
    parts = urlsplit(url)
    # The host of a bucket has no case; its folders end where a name ends.
    path = "/".join(part for part in parts.path.split("/") if part not in ("", "."))
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}/{path}".rstrip("/") + "/"


def _refused(kind: str, message: str) -> RefusedError:
    return refusals.invalid_field(
        "scheduler_state_location", message, f"scheduler_state_location_{kind}"
    )
