"""The extras of sources, of secrets and of the management service, each in its own environment."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import adbc_driver_sqlite
import boto3
import httpx
import pyarrow as pa
import pytest

from tests.kit import (
    clickhouse_server,
    duckdb_files,
    dynamodb_server,
    fakesnow_server,
    file_servers,
    flight_sql_server,
    mariadb,
    mongo_server,
    odbc_drivers,
    spark_server,
    sqlite_files,
)
from tests.kit.pdf_files import pdf
from tests.kit.processes import child
from tests.kit.s3 import KEY, REGION, SECRET, S3Server, s3_server
from tests.package.environments import environment, ran
from tests.package.running import HEAD, WORDS, started

__all__ = ["s3_server"]

pytestmark = pytest.mark.full
ROWS = (
    "CREATE TABLE items (id INTEGER PRIMARY KEY, note TEXT)",
    "INSERT INTO items VALUES (1, 'one')",
)


def read(folder: Path, extra: str, source: str, params: Mapping[str, str]) -> None:
    """Read the only row of a table through an environment with only this extra."""
    given = ", ".join(f"{name}: {json.dumps(value)}" for name, value in params.items())
    table = f"{{from: {source}, name: items, params: {{{given}}}}}"
    with started(folder, extra, f"datasets: [{WORDS}}}, {table}]\n") as runtime:
        found = runtime.sql("SELECT id, note FROM items WHERE id = 1")
        assert found.json() == [{"id": 1, "note": "one"}], found.text


def test_duckdb(tmp_path: Path) -> None:
    duckdb_files.run(tmp_path / "items.duckdb", *ROWS)
    read(tmp_path, "duckdb", "duckdb:items", {"duckdb_open": "items.duckdb"})


def test_sqlite(tmp_path: Path) -> None:
    sqlite_files.run(tmp_path / "items.db", *ROWS)
    read(tmp_path, "sqlite", "sqlite:items", {"sqlite_file": "items.db"})


def test_adbc(tmp_path: Path) -> None:
    sqlite_files.run(tmp_path / "items.db", *ROWS)
    driver = adbc_driver_sqlite._driver_path()  # The extra brings no driver.
    params = {"adbc_driver_path": driver, "adbc_uri": str(tmp_path / "items.db")}
    read(tmp_path, "adbc", "adbc:items", params)


def test_clickhouse(tmp_path: Path) -> None:
    with clickhouse_server.serving() as server:
        server.run("CREATE TABLE items (id Int64, note String) ENGINE = Memory")
        server.run("INSERT INTO items VALUES (1, 'one')")
        read(tmp_path, "clickhouse", "clickhouse:items", server.request("items").params)


def test_snowflake(tmp_path: Path) -> None:
    with fakesnow_server.serving() as server:
        server.run(
            'CREATE TABLE DB.S.ITEMS ("id" INT, "note" VARCHAR)',
            "INSERT INTO DB.S.ITEMS VALUES (1, 'one')",
        )
        given = server.request("").params
        table = f"{{from: snowflake:db.s.items, name: items, params: {json.dumps(given)}}}"
        with started(tmp_path, "snowflake", f"datasets: [{WORDS}}}, {table}]\n") as runtime:
            found = runtime.sql("SELECT CAST(id AS BIGINT) AS id, note FROM items WHERE id = 1")
            assert found.json() == [{"id": 1, "note": "one"}], found.text


def test_spark(tmp_path: Path) -> None:
    with spark_server.serving() as server:
        server.load("items", pa.table({"id": [1], "note": ["one"]}))
        request = server.request("items")
        table = {"from": f"spark:{request.path}", "name": "items", "params": dict(request.params)}
        with started(tmp_path, "spark", f"datasets: [{WORDS}}}, {json.dumps(table)}]\n") as runtime:
            found = runtime.sql("SELECT id, note FROM items WHERE id = 1")
            assert found.json() == [{"id": 1, "note": "one"}], found.text


def test_odbc(tmp_path: Path) -> None:
    sqlite_files.run(tmp_path / "items.db", *ROWS)
    read(tmp_path, "odbc", "odbc:items", odbc_drivers.of_sqlite(tmp_path / "items.db", "").params)


def test_mysql(tmp_path: Path) -> None:
    with mariadb.serving() as server:
        server.execute(*ROWS)
        read(tmp_path, "mysql", "mysql:items", server.params)


def test_flightsql(tmp_path: Path) -> None:
    with flight_sql_server.serving() as server:
        for each in ROWS:
            server.connection.execute(each)
        login = {"flightsql_endpoint": server.uri, **flight_sql_server.LOGIN}
        read(tmp_path, "flightsql", "flightsql:items", login)


def test_documents(tmp_path: Path) -> None:
    (tmp_path / "note.pdf").write_bytes(pdf("a lost machine"))
    note = "{from: 'file:note.pdf', name: note}"
    with started(tmp_path, "documents", f"datasets: [{WORDS}}}, {note}]\n") as runtime:
        found = runtime.sql("SELECT content FROM note").json()
        assert found == [{"content": "a lost machine"}]


def test_sftp(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "items.csv").write_text("id,note\n1,one\n")
    with file_servers.sftp(tmp_path / "files") as served:
        read(tmp_path, "sftp", f"sftp:{served.address}/items.csv", served.sftp_login)


def test_aws(tmp_path: Path, s3_server: S3Server) -> None:
    service = boto3.client(
        "secretsmanager", endpoint_url=s3_server.endpoint, region_name=REGION,
        aws_access_key_id=KEY, aws_secret_access_key=SECRET,
    )  # fmt: skip
    service.create_secret(Name="app/file", SecretString=json.dumps({"delimiter": ";"}))
    service.close()
    (tmp_path / "other.csv").write_text("id;word\n7;tea\n")
    store = (
        "{from: 'aws_secrets_manager:app/file', name: aws, "
        f"params: {{aws_region: {REGION}, aws_endpoint: '{s3_server.endpoint}'}}}}"
    )
    other = "{from: 'file:other.csv', name: other, params: {csv_delimiter: '${aws:delimiter}'}}"
    (tmp_path / "words.csv").write_text("id,word\n1,tea\n")
    (tmp_path / "caraway.yaml").write_text(
        f"{HEAD}secrets: [{store}]\ndatasets: [{WORDS}}}, {other}]\n"
    )
    keys = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    program = environment("aws") / "caraway"
    with child(tmp_path, tmp_path, environ=keys, program=program) as runtime:
        assert runtime.sql("SELECT id FROM other").json() == [{"id": 7}], runtime.logged()


def test_keyring(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("id;word\n7;tea\n")
    (tmp_path / "words.csv").write_text("id,word\n1,tea\n")
    other = "{from: 'file:other.csv', name: other, params: {csv_delimiter: '${k:DELIMITER}'}}"
    (tmp_path / "caraway.yaml").write_text(
        f"{HEAD}secrets: [{{from: keyring, name: k}}]\ndatasets: [{WORDS}}}, {other}]\n"
    )
    (tmp_path / "given_keyring.py").write_text(
        "from keyring.backend import KeyringBackend\n"
        "class Given(KeyringBackend):\n"
        "    priority = 1\n"
        "    def get_password(self, service, username):\n"
        "        return {('caraway', 'DELIMITER'): ';'}.get((service, username))\n"
        "    set_password = delete_password = None\n"
    )
    environ = {
        "PYTHON_KEYRING_BACKEND": "given_keyring.Given",
        "PYTHONPATH": str(tmp_path),
    }
    program = environment("keyring") / "caraway"
    with child(tmp_path, tmp_path, environ=environ, program=program) as runtime:
        assert runtime.sql("SELECT id FROM other").json() == [{"id": 7}], runtime.logged()


def test_dynamodb(tmp_path: Path) -> None:
    with dynamodb_server.serving() as server:
        server.create("items", {"id": "N"})
        server.put("items", [{"id": 1, "note": "one"}])
        read(tmp_path, "aws", "dynamodb:items", server.params())


def test_mongodb(tmp_path: Path) -> None:
    with mongo_server.serving() as server:
        server.put("items", [{"id": 1, "note": "one"}])
        read(tmp_path, "mongodb", "mongodb:items", server.params())


def test_management(tmp_path: Path) -> None:
    caraway = environment("management") / "caraway"
    home = {"HOME": str(tmp_path)}
    flags: list[str | Path] = ["management", "--data-dir", tmp_path / "service"]
    made = ran([caraway, "management", "init", *flags[1:], "--org", "acme"], tmp_path, home)
    reader, writer = os.pipe()
    with (tmp_path / "log").open("w") as log:
        service = subprocess.Popen(
            [caraway, *flags, "--http", "127.0.0.1:0", "--ready-fd", str(writer)],
            pass_fds=(writer,), stdout=log, stderr=log, env={**os.environ, **home}, cwd=tmp_path,
        )  # fmt: skip
    os.close(writer)
    try:
        with os.fdopen(reader) as pipe:
            line = pipe.readline()
        assert line, (tmp_path / "log").read_text()
        bearer = {"authorization": f"Bearer {json.loads(made)['token']}"}
        url = f"http://{json.loads(line)['http']}/v1/projects"
        answer = httpx.get(url, headers=bearer)
        assert answer.status_code == 200, answer.text
    finally:
        service.terminate()
        assert service.wait(60) == 0, (tmp_path / "log").read_text()
