"""`caraway monitors`: conditions on a project that send a notice."""

from enum import StrEnum
from typing import Annotated

import typer

from caraway.cli.managing import groups, printing, service

_COLUMNS = ("id", "name", "template", "enabled", "state", "last_fired_at", "last_resolved_at")
Monitor = Annotated[str, typer.Argument(metavar="ID", help="Id of a monitor.")]


class Op(StrEnum):
    """How the value is compared with the threshold."""

    GT = "GT"
    GEQ = "GEQ"
    LT = "LT"
    LEQ = "LEQ"
    EQ = "EQ"
    NEQ = "NEQ"


class Severity(StrEnum):
    """How bad it is."""

    WARN = "warn"
    CRITICAL = "critical"


def list_monitors(
    project: service.Project = None,
    url: service.Url = None,
    org: service.Org = None,
    as_json: service.Json = False,
) -> None:
    """List the monitors of a project."""
    with service.connect(url, org) as found:
        monitors = list(found.api.every(found.api.list_monitors, found.project_id(project)))
    printing.rows(monitors, _COLUMNS, as_json=as_json)


def show(
    id_: Monitor,
    project: service.Project = None,
    url: service.Url = None,
    org: service.Org = None,
    as_json: service.Json = False,
) -> None:
    """Show a monitor."""
    with service.connect(url, org) as found:
        printing.record(found.api.get_monitor(found.project_id(project), id_), as_json=as_json)


def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the monitor.")],
    template: Annotated[
        str,
        typer.Option("--template", metavar="NAME", help="What is judged, such as query_failures."),
    ],
    threshold: Annotated[
        float, typer.Option("--threshold", metavar="N", help="The value to compare with.")
    ],
    op: Annotated[Op, typer.Option("--op", help="How to compare.")] = Op.GT,
    window: Annotated[
        str, typer.Option("--window", metavar="TIME", help="1m, 5m, 15m, 30m or 1h.")
    ] = "5m",
    sustain: Annotated[
        int | None,
        typer.Option("--sustain", min=0, metavar="SECONDS", help="How long it must hold."),
    ] = None,
    severity: Annotated[Severity, typer.Option("--severity", help="How bad it is.")] = (
        Severity.WARN
    ),
    dataset: Annotated[
        list[str] | None,
        typer.Option("--dataset", metavar="NAME", help="Dataset to judge; repeatable."),
    ] = None,
    email: Annotated[
        list[str] | None,
        typer.Option("--email", metavar="ADDRESS", help="Send e-mail to; repeatable."),
    ] = None,
    webhook: Annotated[
        str | None, typer.Option("--webhook", metavar="URL", help="Post to an HTTPS URL.")
    ] = None,
    project: service.Project = None,
    url: service.Url = None,
    org: service.Org = None,
    as_json: service.Json = False,
) -> None:
    """Add a monitor. The secret that signs its webhooks is shown only here."""
    spec: dict[str, object] = {
        "op": op.value,
        "threshold": threshold,
        "window": window,
        "severity": severity.value,
    }
    if sustain is not None:
        spec["sustainSecs"] = sustain
    if dataset:
        spec["datasets"] = dataset
    targets: dict[str, object] = {}
    if email:
        targets["email"] = {"emails": email}
    if webhook is not None:
        targets["http"] = {"url": webhook}
    with service.connect(url, org) as found:
        row = found.api.create_monitor(
            found.project_id(project), name=name, template=template, spec=spec, targets=targets
        )
    printing.record(row, as_json=as_json)


def enable(
    id_: Monitor,
    project: service.Project = None,
    url: service.Url = None,
    org: service.Org = None,
) -> None:
    """Judge a monitor again that was disabled."""
    _set_enabled(id_, project, url, org, is_enabled=True)


def disable(
    id_: Monitor,
    project: service.Project = None,
    url: service.Url = None,
    org: service.Org = None,
) -> None:
    """Judge a monitor no more, until it is enabled."""
    _set_enabled(id_, project, url, org, is_enabled=False)


def delete(
    id_: Monitor,
    project: service.Project = None,
    yes: service.Yes = False,
    url: service.Url = None,
    org: service.Org = None,
) -> None:
    """Delete a monitor."""
    with service.connect(url, org) as found:
        project_id = found.project_id(project)
        monitor = found.api.get_monitor(project_id, id_)
        printing.confirm(f"Delete the monitor '{monitor['name']}'?", is_confirmed=yes)
        found.api.delete_monitor(project_id, id_)
    printing.done(f"deleted {monitor['name']}")


def build() -> typer.Typer:
    """Build the command group."""
    return groups.group(
        "monitors",
        "Be told when a project has a problem.",
        {
            "list": list_monitors,
            "show": show,
            "create": create,
            "enable": enable,
            "disable": disable,
            "delete": delete,
        },
    )


def _set_enabled(
    id_: str, project: str | None, url: str | None, org: str | None, *, is_enabled: bool
) -> None:
    with service.connect(url, org) as found:
        monitor = found.api.update_monitor(found.project_id(project), id_, enabled=is_enabled)
    printing.done(f"{'enabled' if is_enabled else 'disabled'} {monitor['name']}")
