"""`caraway run` as a user starts it."""

import json
import signal
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.kit.certificates import make_certificate, serial_of
from tests.kit.deadlines import until
from tests.kit.processes import Child, child, refused

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
ENDLESS = "SELECT sum(value) FROM generate_series(1, 1000000000000)"


def write(folder: Path, text: str, name: str = "caraway.yaml") -> Path:
    path = folder / name
    path.write_text("version: v1\nkind: Caraway\nname: e2e\n" + text)
    return path


@pytest.fixture
def people(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text("id,name\n1,Ann\n2,Bob\n")
    return write(tmp_path, "datasets:\n  - {from: 'file:people.csv', name: people}\n")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    """A runtime that many tests use, and that none of them stops or configures."""
    folder = tmp_path_factory.mktemp("shared")
    (folder / "parts").mkdir()
    (folder / "parts" / "1.csv").write_text("a\n1\n")
    manifest = write(
        folder,
        "runtime: {cors: {enabled: true, allowed_origins: ['https://app.example']}}\n"
        "datasets:\n  - {from: 'file:parts/', name: parts, params: {file_format: csv}}\n",
    )
    with child(folder, manifest) as running:
        yield running


def test_first_query_metrics_and_clean_stop(tmp_path: Path, people: Path) -> None:
    with child(tmp_path, people) as caraway:
        assert caraway.api.get("/v1/ready").text == "ready"
        assert caraway.sql("SELECT count(*) AS n FROM people").json() == [{"n": 2}]
        page = caraway.metrics.get("/metrics").text
        assert 'query_executions_total{protocol="http"} 1.0' in page
        assert 'http_requests_total{method="POST",path="/v1/sql",status="200"} 1.0' in page
        assert 'dataset_load_state{dataset="people"} 1.0' in page
        assert "process_resident_memory_bytes" in page
        assert "caraway_build_info{" in page
        assert caraway.metrics.get("/health").text == "ok\n"
        assert caraway.metrics.get("/v1/ready").text == "ready"
        statuses = {row["name"]: row for row in caraway.api.get("/v1/status").json()}
        assert statuses["http"]["endpoint"] == caraway.addresses["http"]
        assert statuses["http"]["status"] == "Ready"
        caraway.signal(signal.SIGTERM)
        assert caraway.wait() == 0
        log = caraway.logged()
        assert "✓ people" in log
        assert "curl http://" in log
        assert "Traceback" not in log


def test_json_logs_are_json(tmp_path: Path, people: Path) -> None:
    with child(tmp_path, people, "--log-format", "json") as caraway:
        sql = "SELECT 10 / (150000 - value) AS v FROM generate_series(1, 200000)"
        with (
            pytest.raises(httpx.RemoteProtocolError),
            caraway.api.stream(
                "POST", "/v1/sql", content=sql, headers={"traceparent": f"00-{TRACE}-{'b' * 16}-01"}
            ) as answer,
        ):
            query_id = answer.headers["x-query-id"]
            answer.read()
        caraway.signal(signal.SIGTERM)
        caraway.wait()
        events = [json.loads(line) for line in caraway.logged().splitlines()]
        assert (events[0]["event"], events[-1]["event"]) == ("runtime is up", "stopping")
        [broken] = (event for event in events if event["event"] == "answer aborted")
        assert broken["trace_id"] == TRACE
        assert broken["query_id"] == query_id
        assert "division by zero" in broken["reason"]


def test_stopping_turns_work_away_and_lets_running_queries_finish(
    tmp_path: Path, people: Path
) -> None:
    with people.open("a") as manifest:
        manifest.write("runtime: {shutdown_timeout: 6s}\n")
    with child(tmp_path, people) as caraway:
        answers: list[httpx.Response] = []
        query = threading.Thread(target=lambda: answers.append(caraway.sql(ENDLESS)))
        query.start()
        until(lambda: caraway.api.get("/v1/sql/active").json()["total_count"], "a running query")
        caraway.signal(signal.SIGTERM)
        turned_away = until(lambda: _turned_away(caraway), "503")
        assert isinstance(turned_away, httpx.Response)
        assert turned_away.text == "Runtime is shutting down"
        assert caraway.api.get("/health").text == "ok\n"
        assert caraway.metrics.get("/v1/ready").status_code == 503
        query.join(60)
        assert (answers[0].status_code, answers[0].headers["retry-after"]) == (503, "2")
        assert "shutting down" in answers[0].text
        assert caraway.wait() == 0


def _turned_away(caraway: Child) -> httpx.Response | None:
    """Send a request; the stopping server may close a kept-alive connection while it is used."""
    try:
        answer = caraway.api.get("/v1/datasets")
    except httpx.TransportError:
        return None
    return answer if answer.status_code == 503 else None


def test_sighup_reloads_without_dropping_a_query(tmp_path: Path, people: Path) -> None:
    pq.write_table(pa.table({"v": list(range(200_000))}), tmp_path / "numbers.parquet")
    manifest = people.read_text()
    people.write_text(manifest + "  - {from: 'file:numbers.parquet', name: numbers}\n")
    with child(tmp_path, people) as caraway:
        with caraway.api.stream(
            "POST", "/v1/sql", content="SELECT a.v FROM people p CROSS JOIN numbers a"
        ) as answer:
            chunks = answer.iter_bytes()
            size = len(next(chunks))
            (tmp_path / "pets.csv").write_text("name\nRex\n")
            people.write_text(manifest + "  - {from: 'file:pets.csv', name: pets}\n")
            caraway.signal(signal.SIGHUP)
            until(lambda: caraway.sql("SELECT * FROM pets").status_code == 200, "the new dataset")
            until(lambda: caraway.sql("SELECT * FROM numbers").status_code == 400, "removal")
            rest = b"".join(chunks)
        assert (size + len(rest)) > 400_000 * 7
        assert rest.endswith(b"}]")
        people.write_text(people.read_text() + "views: 3\n")
        caraway.signal(signal.SIGHUP)
        until(lambda: "manifest not reloaded" in caraway.logged(), "the refusal in the log")
        assert caraway.sql("SELECT name FROM pets").json() == [{"name": "Rex"}]


def test_watch_applies_changes_of_the_file(tmp_path: Path, people: Path) -> None:
    with child(tmp_path, people, "--watch") as caraway:
        people.write_text(people.read_text() + "views:\n  - {name: v, sql: SELECT 7 AS x}\n")
        until(lambda: caraway.sql("SELECT * FROM v").status_code == 200, "the new view")
        assert caraway.sql("SELECT * FROM v").json() == [{"x": 7}]


def test_new_files_of_a_folder_are_seen(shared: Child) -> None:
    assert shared.sql("SELECT count(*) AS n FROM parts").json() == [{"n": 1}]
    (shared.log.parent / "parts" / "2.csv").write_text("a\n2\n")
    until(
        lambda: shared.sql("SELECT count(*) AS n FROM parts").json() == [{"n": 2}],
        "the row of the new file",
    )


def test_dataset_that_appears_later_becomes_ready(tmp_path: Path) -> None:
    manifest = write(tmp_path, "datasets:\n  - {from: 'file:late.csv', name: late}\n")
    with child(tmp_path, manifest) as caraway:
        assert caraway.api.get("/v1/ready").status_code == 503
        (tmp_path / "late.csv").write_text("a\n1\n")
        until(lambda: caraway.api.get("/v1/ready").status_code == 200, "ready")
        assert caraway.sql("SELECT * FROM late").json() == [{"a": 1}]


def test_half_sent_body_and_lost_client_leave_the_process_healthy(shared: Child) -> None:
    host, port = shared.addresses["http"].split(":")
    head = b"POST /v1/sql HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"
    with socket.create_connection((host, int(port))) as half:
        half.sendall(head + b"SELECT 1")
    with socket.create_connection((host, int(port))) as lost:
        body = ENDLESS.encode()
        lost.sendall(head.replace(b"100", str(len(body)).encode()) + body)
        until(lambda: shared.api.get("/v1/sql/active").json()["total_count"], "the query")
    until(
        lambda: not shared.api.get("/v1/sql/active").json()["total_count"],
        "the end of the query whose client left",
    )
    assert shared.sql("SELECT 1 AS x").json() == [{"x": 1}]
    assert "Traceback" not in shared.logged()


def test_body_of_200_mb_is_413_and_the_process_lives_on(shared: Child) -> None:
    response = shared.api.post("/v1/sql", content=b"-" * 200_000_000)
    assert response.status_code == 413
    assert "larger than 134217728 bytes" in response.text
    assert shared.sql("SELECT 1 AS x").json() == [{"x": 1}]


def test_answer_that_fails_midway_is_aborted(shared: Child) -> None:
    sql = "SELECT 10 / (150000 - value) AS v FROM generate_series(1, 200000)"
    with pytest.raises(httpx.RemoteProtocolError):
        shared.sql(sql)
    assert shared.sql("SELECT 1 AS x").json() == [{"x": 1}]
    assert "division by zero" in shared.logged()
    assert "Traceback" not in shared.logged()


def test_keys_are_required_and_read_only_keys_cannot_write(tmp_path: Path) -> None:
    manifest = write(
        tmp_path,
        "runtime:\n  auth:\n    api-key:\n      keys: ['${secrets:READER}:ro', 'writer:rw']\n"
        "datasets:\n  - from: memory:log\n    name: log\n    access: read_write\n"
        "    columns: [{name: a, type: bigint}]\n",
    )
    with child(tmp_path, manifest, environ={"READER": "s3cret"}) as caraway:
        assert caraway.api.get("/health").status_code == 200
        assert caraway.metrics.get("/v1/ready").status_code == 200
        for path in ("/v1/ready", "/v1/datasets", "/v1/sql/active"):
            refusal = caraway.api.get(path)
            assert (refusal.status_code, refusal.text) == (401, "Unauthorized")
        assert caraway.api.get("/v1/ready", headers={"X-API-Key": "s3cret"}).status_code == 200
        assert caraway.api.get("/v1/ready", headers={"X-API-Key": "wrong"}).status_code == 401
        bearer = {"Authorization": "Bearer s3cret", "X-API-Key": ""}
        assert caraway.api.get("/v1/sql/active", headers=bearer).status_code == 403
        insert = "INSERT INTO log VALUES (1)"
        refused_write = caraway.api.post("/v1/sql", content=insert, headers=bearer)
        assert refused_write.status_code == 403
        assert "access: read_write" in refused_write.text
        written = caraway.api.post("/v1/sql", content=insert, headers={"X-API-Key": "writer"})
        assert written.json() == [{"count": 1}]
        again = caraway.api.post("/v1/sql", content="SELECT 1", headers=bearer)
        assert again.headers["results-cache-scope"] == "user"
        assert "Authorization" in again.headers["vary"]
        assert "s3cret" not in caraway.logged()


def test_cors_answers_the_origins_that_are_allowed(shared: Child) -> None:
    asked = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST",
             "Access-Control-Request-Headers": "x-api-key, content-type"}  # fmt: skip
    preflight = shared.api.options("/v1/sql", headers=asked)
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == "https://app.example"
    other = shared.api.get("/v1/status", headers={"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in other.headers


def test_certificate_is_served_and_reloaded(tmp_path: Path) -> None:
    first = make_certificate(tmp_path / "tls.crt", tmp_path / "tls.key")
    manifest = write(tmp_path, "runtime:\n  tls: {enabled: true, certificate_file: tls.crt, "
                               "key_file: tls.key}\n")  # fmt: skip

    def serial() -> int:
        host, port = caraway.addresses["http"].split(":")
        pem = ssl.get_server_certificate((host, int(port)))
        return serial_of(pem)

    with child(tmp_path, manifest, secure=True) as caraway:
        assert caraway.api.get("/v1/ready").text == "ready"
        assert serial() == first
        (tmp_path / "tls.key").write_text("not a key")
        until(lambda: "certificate not reloaded" in caraway.logged(), "the refusal in the log")
        assert serial() == first
        second = make_certificate(tmp_path / "tls.crt", tmp_path / "tls.key")
        until(lambda: serial() == second, "the new certificate")


def test_second_process_on_one_data_directory_is_refused(shared: Child, people: Path) -> None:
    second = refused(shared.log.parent, people)
    assert second.returncode == 1
    assert "is in use by another process" in second.stderr
    assert "Traceback" not in second.stderr


@pytest.mark.parametrize(
    "flag", ["--http", "--flight", pytest.param("--metrics", marks=pytest.mark.full)]
)
def test_address_in_use_is_refused(tmp_path: Path, people: Path, flag: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        answer = refused(tmp_path, people, flag, f"127.0.0.1:{taken.getsockname()[1]}")
    assert answer.returncode == 1
    assert "ddress already in use" in answer.stderr
    assert f"{flag} HOST:PORT" in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("datasets: [", "caraway.yaml:"),
        # One place distinguishes these; tests/core/manifest tests it.
        pytest.param("datasts: []\n", "did you mean 'datasets'?", marks=pytest.mark.full),
        pytest.param("evals: [{name: e}]\n", "'evals' is not impl", marks=pytest.mark.full),
        pytest.param(
            "datasets: [{from: 'oracle:t', name: t}]\n",
            "connector 'oracle'",
            marks=pytest.mark.full,
        ),
        ("runtime: {auth: {api-key: {keys: ['${secrets:NO_SUCH}']}}}\n", "NO_SUCH"),
    ],
)
def test_unusable_manifest_is_refused_without_a_trace(
    tmp_path: Path, text: str, message: str
) -> None:
    answer = refused(tmp_path, write(tmp_path, text))
    assert answer.returncode == 1
    assert message in answer.stderr
    assert "Traceback" not in answer.stderr
