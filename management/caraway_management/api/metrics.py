"""The figures of projects, and metrics in the form of Prometheus."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from prometheus_client import CollectorRegistry, generate_latest
from starlette.responses import PlainTextResponse

from caraway_core.process.durations import Labels
from caraway_management.api.access import INSTANCE, Caller, ProjectId, needs
from caraway_management.domain import figures, samples
from caraway_management.domain.monitoring import Sample
from caraway_management.monitoring import measuring
from caraway_management.projects import finding
from caraway_serving.metric_families import CONTENT_TYPE, Families, Page, Table, counter, gauge

router = APIRouter(tags=["metrics"])
of_projects = APIRouter(tags=["metrics"])

_Samples = Sequence[tuple[int, str, Sample]]
"""The id and the name of each project, and its last sample."""
_LABELS = "project_id project"
Window = Literal["1m", "5m", "15m", "30m", "1h", "6h", "24h", "7d"]
_GAUGES = {
    samples.INSTANCES: "Instances that should run",
    samples.INSTANCES_READY: "Instances that answer",
    samples.CPU_CORES: "Cores that the project may use",
    samples.MEMORY_BYTES: "Memory that is used",
    samples.MEMORY_LIMIT_BYTES: "Memory that may be used",
    samples.DISK_BYTES: "Storage that is used",
    samples.DISK_LIMIT_BYTES: "Storage that may be used",
    samples.EXECUTORS: "Executors that are ready",
}
_COUNTERS = {
    samples.CPU_SECONDS: "CPU time",
    samples.QUERIES: "Statements",
    samples.QUERY_FAILURES: "Statements that failed",
    samples.FLIGHT_FAILURES: "Statements over Flight that failed",
    samples.HTTP_REQUESTS: "HTTP requests",
    samples.HTTP_5XX: "HTTP requests that the runtime failed",
    samples.LLM_FAILURES: "Calls of models that failed",
    samples.ROWS_INGESTED: "Rows of changes",
}


@of_projects.get("/{projectId}/metrics")
async def get_project_metrics(
    project_id: ProjectId,
    caller: Annotated[Caller, needs("apps:read")],
    window: Annotated[Window, Query(description="How far back to look.")] = "1h",
) -> dict[str, object]:
    """Return the figures of a project's runtime over a window.

    A figure that is not known is null. `window`, `requests` and `points` are ours.
    """
    now = caller.services.now()
    since = now - timedelta(seconds=figures.WINDOWS_S[window])
    async with caller.services.database.read() as session:
        project = await finding.find_project(session, caller.org.id, project_id)
        found = await measuring.of_project(session, project, since, now)
    return {
        "window": window,
        "from": since.isoformat(),
        "to": now.isoformat(),
        **figures.summarize(found),
        "points": figures.points(found),
    }


@router.get("/v1/metrics", response_class=PlainTextResponse)
async def get_metrics(caller: Annotated[Caller, needs("apps:read")]) -> Response:
    """Return the last metrics of the organization's projects in the form of Prometheus.

    Only in Caraway.
    """
    async with caller.services.database.read() as session:
        found = await measuring.latest_of_org(session, caller.org.id, caller.services.now())
    return _page(found)


@router.get("/metrics", include_in_schema=False)
async def get_service_metrics(request: Request) -> Response:
    """Return the metrics of this process, without anything of its organizations."""
    registry: CollectorRegistry = request.scope[INSTANCE].tally.registry
    return Response(generate_latest(registry), media_type=CONTENT_TYPE)


def _page(found: _Samples) -> Response:
    page = Page(lambda: Families("caraway_project_").families_of(_PROJECTS, found))
    return Response(page.render(), media_type=CONTENT_TYPE)


def _values(name: str, found: _Samples) -> Mapping[Labels, float]:
    """Return a figure of all projects whose samples have it."""
    return {
        (str(id_), project): float(sample.values[name])
        for id_, project, sample in found
        if name in sample.values
    }


_PROJECTS: Table[_Samples] = (
    *(gauge(name, text, _LABELS, partial(_values, name)) for name, text in _GAUGES.items()),
    *(counter(name, text, _LABELS, partial(_values, name)) for name, text in _COUNTERS.items()),
)
