"""Samples of runtimes, and the routes that show them."""

from dataclasses import replace

import httpx
from sqlalchemy import select

from caraway_management.api import app
from caraway_management.deployers.protocol import NoDeployer
from caraway_management.domain.deployments import Observed, Phase
from caraway_management.passthrough.runtimes import Runtimes
from caraway_management.passthrough.sampling import Sampler
from caraway_management.store.tables import MetricSample
from tests.kit.fake_runtime import FakeRuntime
from tests.kit.management import Caller, Installation
from tests.management.api.deploying import deploy
from tests.management.api.new_projects import new_project

PAGE = """
# TYPE caraway_build info
caraway_build_info{{cores="4",version="1"}} 1.0
# TYPE process_cpu_seconds counter
process_cpu_seconds_total {cpu}
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 1000.0
# TYPE query_executions counter
query_executions_total{{protocol="http"}} {queries}
"""


class Deployed(NoDeployer):
    """A deployer whose runtimes have metrics."""

    async def observe(self, project_id: int, created: int | None = None) -> Observed:
        place = f"http://metrics-{project_id}" if project_id % 3 else None
        return Observed(Phase.READY, metrics_endpoint=place)


class Sampled:
    """An installation whose runtimes are sampled by hand."""

    def __init__(self, installation: Installation, runtime: FakeRuntime) -> None:
        self.installation = installation
        self.may = True
        services = replace(installation.services, deployer=Deployed())

        async def may_sample() -> bool:
            return self.may

        self.sampler = Sampler(services, Runtimes(runtime), may_sample)

    def sample(self) -> int:
        return self.installation.run(self.sampler.run_once)


def begun(installation: Installation, name: str = "acme") -> Caller:
    owner = installation.add_user()
    installation.add_org(name, owner)
    return installation.sign_in(owner)


def test_figures_come_from_samples(installation: Installation) -> None:
    caller = begun(installation)
    project = new_project(caller)
    settings = {"storage_size_gb": 10, "resources": {"limits": {"memory": "2Gi"}}}
    assert caller.put(f"/v1/projects/{project}", settings).status_code == 200
    runtime = FakeRuntime()
    sampled = Sampled(installation, runtime)
    assert sampled.sample() == 0
    deploy(installation, project)
    for number in range(3):
        page = PAGE.format(cpu=60.0 * number, queries=number)
        runtime.answer = lambda request, page=page: httpx.Response(200, text=page)  # type: ignore[misc]
        assert sampled.sample() == 1
        installation.clock.advance(seconds=30)
    assert str(runtime.last.url) == f"http://metrics-{project}/metrics"
    assert "authorization" not in runtime.last.headers
    shown = caller.get(f"/v1/projects/{project}/metrics?window=5m").json()
    assert shown == caller.get(f"/v1/apps/{project}/metrics?window=5m").json()
    assert shown["metrics"]["pod"]["cpu_usage_percent"] == 50.0
    pod = shown["metrics"]["pod"]
    assert (pod["memory_usage_bytes"], pod["memory_limit_bytes"]) == (1000, 2 * 1024**3)
    assert pod["disk_limit_bytes"] == 10 * 1000**3
    # Typed clients read no "1000.0" into an integer.
    counted = [pod["memory_usage_bytes"], shown["requests"]["queries"], *shown["cluster"].values()]
    counted += [shown["points"][1][each] for each in ("queries", "memory_usage_bytes")]
    assert {type(each) for each in counted} <= {int, type(None)}
    exported = caller.get("/v1/metrics").text
    assert "\ncaraway_project_disk_limit_bytes{" in exported
    assert shown["requests"]["queries"] == 2
    assert len(shown["points"]) == 3
    assert caller.get(f"/v1/projects/{project}/metrics?window=2h").status_code == 400
    assert caller.get(f"/v1/projects/{project}/metrics").json()["window"] == "1h"
    installation.clock.advance(hours=2)
    empty = caller.get(f"/v1/projects/{project}/metrics").json()
    assert (empty["points"], empty["requests"]["queries"]) == ([], None)
    installation.clock.advance(days=9)
    sampled.sample()
    assert len(installation.rows(select(MetricSample))) == 1


def test_one_instance_samples_and_failures_are_kept_as_such(installation: Installation) -> None:
    caller = begun(installation)
    first, second, third = (new_project(caller, f"shop-{number}") for number in (1, 2, 3))
    for project in (first, second, third):
        deploy(installation, project)
    runtime = FakeRuntime()
    sampled = Sampled(installation, runtime)
    sampled.may = False
    assert sampled.sample() == 0

    def answer(request: httpx.Request) -> httpx.Response:
        if str(first) in request.url.host:
            raise httpx.ConnectError("refused")
        return httpx.Response(200, text="<html>{")

    runtime.answer = answer
    sampled.may = True
    assert sampled.sample() == 3
    rows = installation.rows(select(MetricSample))
    assert [row.values for row in rows] == [{"instances": 1, "instances_ready": 0}] * 3


def test_metrics_in_the_form_of_prometheus(installation: Installation) -> None:
    caller = begun(installation)
    other = begun(installation, "umbrella")
    project = new_project(caller)
    deploy(installation, project)
    runtime = FakeRuntime()
    runtime.answer = lambda request: httpx.Response(200, text=PAGE.format(cpu=5.0, queries=7))
    Sampled(installation, runtime).sample()
    page = caller.get("/v1/metrics")
    assert page.headers["content-type"].startswith("text/plain")
    line = f'caraway_project_queries_total{{project="shop",project_id="{project}"}} 7.0'
    assert line in page.text
    assert 'project="shop"' not in other.get("/v1/metrics").text
    installation.clock.advance(minutes=10)
    assert 'project="shop"' not in caller.get("/v1/metrics").text
    assert installation.anonymous().get("/v1/metrics").status_code == 401


def test_metrics_of_the_service_have_no_names_of_tenants(installation: Installation) -> None:
    caller = begun(installation, "secretive")
    project = new_project(caller, "hidden-shop")
    caller.get(f"/v1/projects/{project}")
    caller.get("/v1/no/such/hidden-path")
    page = installation.anonymous().get("/metrics").text
    assert 'operation="get_project",status="200"' in page
    assert "process_cpu_seconds_total" in page
    assert not [word for word in ("secretive", "hidden") if word in page]


def test_instances_have_metrics_of_their_own(installation: Installation) -> None:
    # Registries of a process are shared by default, which would fail here.
    first, second = app.build(installation.services), app.build(installation.services)
    assert first.state.tally is not second.state.tally
