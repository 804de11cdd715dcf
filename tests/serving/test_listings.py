from pathlib import Path

import pytest

from caraway_core.ids import TableName
from tests.kit.runtime import running

ALL_COLUMNS = "from,name,replication_enabled,acceleration_enabled,status,error,error_message"
MANIFEST = """
    datasets:
      - {from: 'file:people.csv', name: people}
      - {from: 'file:absent.csv', name: absent}
    views:
      - {name: names, sql: SELECT name FROM people}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text("id,name\n1,Ann\n")
    return tmp_path


async def test_datasets_without_status(folder: Path) -> None:
    async with running(folder, MANIFEST) as runtime:
        response = await runtime.api.get("/v1/datasets")
        assert response.json()[0] == {
            "from": "file:people.csv",
            "name": "people",
            "replication_enabled": False,
            "acceleration_enabled": False,
        }


async def test_datasets_with_status_tell_errors_by_code(folder: Path) -> None:
    async with running(folder, MANIFEST) as runtime:
        people, absent = (await runtime.api.get("/v1/datasets?status=true")).json()
        assert (people["status"], people["error"], people["error_message"]) == (
            "ready", None, None,
        )  # fmt: skip
        assert absent["status"] == "error"
        assert absent["error"] == {
            "category": "dataset", "type": "not_found", "code": "dataset.not_found",
        }  # fmt: skip
        assert "absent.csv" in absent["error_message"]


async def test_datasets_as_csv(folder: Path) -> None:
    async with running(folder, MANIFEST) as runtime:
        response = await runtime.api.get("/v1/datasets?status=true&format=csv")
        assert response.headers["content-type"].startswith("text/csv")
        lines = response.text.splitlines()
        assert lines[0] == ALL_COLUMNS
        assert lines[1] == "file:people.csv,people,false,false,ready,,"
        assert lines[2].startswith("file:absent.csv,absent,false,false,error,dataset.not_found,")


async def test_datasets_by_source(folder: Path) -> None:
    async with running(folder, MANIFEST) as runtime:
        assert len((await runtime.api.get("/v1/datasets?source=file")).json()) == 2
        assert (await runtime.api.get("/v1/datasets?source=s3")).json() == []


@pytest.mark.parametrize(
    ("path", "header"),
    [
        ("/v1/catalogs", "from,name"),
        ("/v1/pods", "name,version,datasets_count,models_count,dependencies_count"),
        ("/v1/spicepods", "name,version,datasets_count,models_count,dependencies_count"),
        ("/v1/status", "name,endpoint,status"),
        ("/v1/datasets", ALL_COLUMNS),
    ],
)
async def test_csv_by_format_or_by_accept(folder: Path, path: str, header: str) -> None:
    async with running(folder, MANIFEST) as runtime:
        by_format = await runtime.api.get(f"{path}?format=csv")
        by_accept = await runtime.api.get(path, headers={"accept": "text/csv"})
        assert by_format.text == by_accept.text
        assert by_format.text.splitlines()[0] == header
        as_json = await runtime.api.get(path)
        assert isinstance(as_json.json(), list)


async def test_csv_of_datasets_without_status_leaves_the_last_columns_empty(folder: Path) -> None:
    async with running(folder, MANIFEST) as runtime:
        lines = (await runtime.api.get("/v1/datasets?format=csv")).text.splitlines()
        assert lines[1] == "file:people.csv,people,false,false,,,"


async def test_manifest_summary(folder: Path) -> None:
    async with running(folder, MANIFEST) as runtime:
        assert (await runtime.api.get("/v1/pods")).json() == [
            {"name": "test", "version": "v1", "datasets_count": 2, "models_count": 0,
             "dependencies_count": 0}
        ]  # fmt: skip


async def test_catalogs_by_source(folder: Path) -> None:
    async with running(folder, MANIFEST) as runtime:
        assert (await runtime.api.get("/v1/catalogs")).json() == [
            {"from": "caraway", "name": "caraway"}
        ]
        assert (await runtime.api.get("/v1/catalogs?from=iceberg")).json() == []


async def test_connections(folder: Path) -> None:
    async with running(folder, MANIFEST) as runtime:
        rows = (await runtime.api.get("/v1/status")).json()
        assert [row["name"] for row in rows] == ["http", "flight", "metrics", "opentelemetry"]
        assert rows[3] == {"name": "opentelemetry", "endpoint": "N/A", "status": "Disabled"}


@pytest.mark.parametrize("path", ["/v1/datasets", "/v1/pods", "/v1/status"])
async def test_wrong_parameters_are_400_in_text(folder: Path, path: str) -> None:
    async with running(folder, MANIFEST) as runtime:
        response = await runtime.api.get(f"{path}?format=xml")
        assert response.status_code == 400
        assert response.headers["content-type"].startswith("text/plain")
        assert "query parameter 'format': Input should be 'json' or 'csv'" in response.text


async def test_wrong_parameter_of_catalogs_is_400_in_json(folder: Path) -> None:
    async with running(folder, MANIFEST) as runtime:
        response = await runtime.api.get("/v1/catalogs?format=xml")
        assert response.status_code == 400
        assert "query parameter 'format'" in response.json()["error"]


async def test_unknown_routes_and_methods_say_so(folder: Path) -> None:
    async with running(folder, MANIFEST) as runtime:
        absent = await runtime.api.get("/v1/nothing")
        assert (absent.status_code, absent.text) == (
            404, "no route GET /v1/nothing; GET /openapi.json lists the routes",
        )  # fmt: skip
        wrong = await runtime.api.delete("/v1/datasets")
        assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET")
        assert "use GET" in wrong.text
        shared = await runtime.api.delete("/v1/datasets/people/acceleration")
        assert (shared.status_code, shared.headers["allow"]) == (405, "GET, PATCH")
        assert "use GET, PATCH" in shared.json()["message"]


async def test_health_needs_nothing_and_ready_follows_the_datasets(folder: Path) -> None:
    async with running(folder, MANIFEST) as runtime:
        for client in (runtime.api, runtime.metrics):
            health = await client.get("/health")
            assert (health.status_code, health.text) == (200, "ok\n")
            ready = await client.get("/v1/ready")
            assert (ready.status_code, ready.text) == (503, "not ready")
        verbose = await runtime.api.get("/v1/ready?verbose=true")
        assert verbose.status_code == 503
        assert verbose.text.splitlines() == [
            "[-] components not ready: dataset absent (error)",
            "[ ] executors: no gate asked for",
            "not ready",
        ]


@pytest.mark.parametrize(
    ("query", "status", "text"),
    [
        ("", 200, "ready"),
        ("min_ready_executors=0&min_ready_executors_percent=0", 200, "ready"),
        ("min_ready_executors=1", 400, "scheduler role"),
        ("min_ready_executors_percent=50", 400, "scheduler role"),
        ("min_ready_executors_percent=101", 400, "between 0 and 100"),
        ("min_ready_executors=-1", 400, "0 or more"),
        ("min_ready_executors=x", 400, "min_ready_executors"),
        ("verbose=maybe", 400, "verbose"),
    ],
)
async def test_executor_gates_outside_the_scheduler_role(
    folder: Path, query: str, status: int, text: str
) -> None:
    async with running(folder, "datasets: [{from: 'file:people.csv', name: p}]\n") as runtime:
        response = await runtime.api.get(f"/v1/ready?{query}")
        assert response.status_code == status
        assert response.headers["content-type"].startswith("text/plain")
        assert text in response.text


@pytest.mark.parametrize(("state", "status"), [("on_load", 503), ("on_registration", 200)])
async def test_ready_state_decides_whether_loading_is_waited_for(
    folder: Path, state: str, status: int
) -> None:
    manifest = f"runtime: {{ready_state: {state}}}\ndatasets: [{{from: 'file:p.csv', name: p}}]\n"
    async with running(folder, manifest) as runtime:
        # The status during the first load.
        dataset = runtime.services.catalog.datasets[TableName("p")]
        dataset.status, dataset.error = "initializing", None
        assert (await runtime.api.get("/v1/ready")).status_code == status


async def test_view_that_cannot_be_planned_blocks_readiness(folder: Path) -> None:
    manifest = "views: [{name: v, sql: SELECT * FROM nothing}]\n"
    async with running(folder, manifest) as runtime:
        response = await runtime.api.get("/v1/ready?verbose=true")
        assert response.status_code == 503
        assert "view v (error)" in response.text
