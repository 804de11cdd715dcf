"""`caraway deploy`: deploy the manifest of a directory to a project."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from caraway.cli.managing import printing, service
from caraway.cli.managing.service import Service
from caraway.terminal import terminals
from caraway_core.errors import CarawayError

Row = dict[str, Any]
MANIFEST = "caraway.yaml"
_MOST_BYTES = 1_000_000
_TIMEOUT_S = 900.0
Wait = Annotated[
    bool, typer.Option("--wait", help="Wait for the deployment to end, and show its progress.")
]
Timeout = Annotated[
    float,
    typer.Option("--timeout", min=0, metavar="SECONDS", help="How long --wait waits."),
]


def deploy(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help=f"Directory with {MANIFEST}, or a manifest.")
    ] = Path("."),
    wait: Wait = False,
    timeout: Timeout = _TIMEOUT_S,
    project: service.Project = None,
    yes: service.Yes = False,
    url: service.Url = None,
    org: service.Org = None,
    as_json: service.Json = False,
) -> None:
    """Deploy the manifest of DIR to its project; the first time, make the project and link DIR."""
    file = folder / MANIFEST if folder.is_dir() else folder
    manifest = _read(file)
    home = file.parent
    with service.connect(url, org, folder=home) as found:
        target = _target(found, project, manifest, is_confirmed=yes)
        if found.link is None:
            link(found, target, home)
        if target["config"].get("manifest") != manifest:
            target = found.api.update_project(target["id"], manifest=manifest)
        deployment = found.api.create_deployment(target["id"])
        _say(f"deployment {deployment['id']} of {target['name']}")
        if wait:
            deployment = follow(found, target, deployment, timeout)
            target = found.api.get_project(target["id"])
    if as_json:
        printing.record(deployment, as_json=True)
    elif wait and target.get("endpoint"):
        printing.done(f"{target['name']} runs at {target['endpoint']}")
    elif not wait:
        printing.done(f"follow it with: caraway deployments show {deployment['id']} --wait")


def follow(found: Service, project: Row, deployment: Row, timeout_s: float) -> Row:
    """Show the progress of a deployment until it ends, and return it.

    Raises:
        CarawayError: it did not succeed, or not in time.
    """
    try:
        ended = found.api.wait_for_deployment(
            project["id"], deployment["id"], timeout_s, lambda state: _say(_state(state))
        )
    except KeyboardInterrupt:
        _say(f"deployment {deployment['id']} goes on")
        raise typer.Exit(130) from None
    name = f"deployment {ended['id']} of '{project['name']}'"
    match ended["status"]:
        case "succeeded":
            return ended
        case "failed":
            reason = f"{ended['error_message']} ({ended['error_code']})"
            hint = f"see: caraway deployments logs {ended['id']}"
            raise CarawayError(f"{name} failed: {reason}; {hint}")
        case "created":
            raise CarawayError(f"{name} was superseded before it ended")
    raise CarawayError(f"{name} has not ended after {timeout_s:g} s: {_state(ended)}")


def link(found: Service, project: Row, folder: Path) -> None:
    """Link a directory to a project."""
    from caraway.management import links

    org = found.api.org or found.only_org()
    made = links.Link(found.url, org, int(project["id"]), str(project["name"]))
    links.save(folder, made)
    _say(f"linked {folder.resolve()} to {project['name']}")


def _target(found: Service, wanted: str | None, manifest: str, *, is_confirmed: bool) -> Row:
    """Return the project of a directory: the named one, the linked one, or a new one."""
    from caraway.errors import ApiError

    if wanted is None and found.link is not None:
        linked = found.link
        found.check_link(linked)
        try:
            return found.api.get_project(linked.project_id)
        except ApiError as error:
            if error.status != 404:
                raise
        name = linked.project
    else:
        name = wanted or _name_of(manifest)
    if name.isdecimal():
        return found.api.get_project(int(name))
    named = [
        each
        for each in found.api.every(found.api.list_projects)
        if str(each["name"]).lower() == name.lower()
    ]
    if named:
        return named[0]
    printing.confirm(
        f"There is no project '{name}' at {found.url}. Create it?", is_confirmed=is_confirmed
    )
    row = found.api.create_project(name=name)
    _say(f"created the project {row['name']}")
    return row


def _read(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise CarawayError(f"the manifest '{file}' has more than {_MOST_BYTES:,} bytes")
        return content.decode()
    except FileNotFoundError as exc:
        raise CarawayError(
            f"there is no manifest '{file}'; write one with: caraway init {file.parent}"
        ) from exc
    except UnicodeDecodeError as exc:
        raise CarawayError(f"the manifest '{file}' is not UTF-8") from exc


def _name_of(manifest: str) -> str:
    """Return the name that a manifest has; the service checks everything else."""
    import yaml

    try:
        document = yaml.safe_load(manifest)
    except (yaml.YAMLError, ValueError, RecursionError) as exc:
        raise CarawayError(f"the manifest is not valid YAML: {exc}") from exc
    name = document.get("name") if isinstance(document, dict) else None
    if not isinstance(name, str) or not name:
        raise CarawayError("the manifest has no name; add one, or pass --project NAME")
    return name


def _state(deployment: Row) -> str:
    state = str(deployment["status"])
    if deployment.get("error_message"):
        state += f": {deployment['error_message']} ({deployment['error_code']})"
    return state


def _say(words: str) -> None:
    print(terminals.shown(words, sys.stderr), file=sys.stderr, flush=True)
