"""Clients against the real process: the command line, the library and Arrow Flight."""

import os
import subprocess
from pathlib import Path

import pyarrow.flight as flight
import pytest

from caraway.client import Client
from tests.kit.processes import CARAWAY, child

EXAMPLES = Path(__file__).parents[2] / "examples"


def caraway(*arguments: str, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(CARAWAY), *arguments], capture_output=True, text=True, timeout=60, cwd=folder,
        env={**os.environ, "HOME": str(folder), **environ},
    )  # fmt: skip


def test_starter_manifest_validates_serves_and_answers(tmp_path: Path) -> None:
    assert caraway("init", "mine", folder=tmp_path).returncode == 0
    valid = caraway("validate", "mine", folder=tmp_path)
    assert valid.returncode == 0, valid.stderr
    assert "valid (" in valid.stdout
    with child(tmp_path, tmp_path / "mine") as runtime:
        endpoint = f"http://{runtime.addresses['http']}"
        for arguments, words in (
            (("sql", "SELECT 41 + 1 AS answer"), "| 42     |"),
            (("sql", "--format", "csv", "--param", "x=3", "SELECT :x * 2 AS y"), "y\n6\n"),
            (("datasets", "--status"), "ready"),
            (("status",), runtime.addresses["http"]),
            (("catalogs",), "caraway"),
            (("ready", "--verbose"), "[+] components ok"),
        ):
            answer = caraway(*arguments, "--endpoint", endpoint, folder=tmp_path)
            assert answer.returncode == 0, answer.stderr
            assert words in answer.stdout
        mistake = caraway("sql", "SELEC 1", "--endpoint", endpoint, folder=tmp_path)
        assert mistake.returncode == 1
        assert "syntax error" in mistake.stderr


def test_quickstart_answers_what_its_comments_promise(tmp_path: Path) -> None:
    made = subprocess.run(
        [str(CARAWAY.parent / "python"), str(EXAMPLES / "make_data.py")], timeout=60
    )
    assert made.returncode == 0
    with child(tmp_path, EXAMPLES / "quickstart") as runtime:
        with Client(
            http_url=f"http://{runtime.addresses['http']}",
            flight_url=f"grpc://{runtime.addresses['flight']}",
        ) as client:
            assert client.is_service_ready()
            assert {row["status"] for row in client.datasets(status=True)} == {"ready"}
            wanted = "SELECT * FROM revenue_by_region WHERE year = :y"
            rows = client.sql(wanted, {"y": 2024}).to_pylist()
            assert rows and {"region", "year", "orders", "revenue"} == set(rows[0])
            assert client.sql("SELECT count(*) AS n FROM best_sellers")["n"][0].as_py() > 0
            assert client.sql("SELECT * FROM orders").num_rows > 10_000


def test_flight_serves_the_same_rows(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id,name\n1,Ann\n2,Bob\n")
    manifest = tmp_path / "caraway.yaml"
    manifest.write_text(
        "version: v1\nkind: Caraway\nname: flown\n"
        "runtime: {auth: {api-key: {keys: ['reader:ro']}}}\n"
        "datasets: [{from: 'file:people.csv', name: people}]\n"
    )
    with child(tmp_path, manifest) as runtime:
        with flight.connect(f"grpc://{runtime.addresses['flight']}") as client:
            header, token = client.authenticate_basic_token("", "reader")
            options = flight.FlightCallOptions(headers=[(header, token)])
            descriptor = flight.FlightDescriptor.for_command(b"SELECT * FROM people ORDER BY id")
            info = client.get_flight_info(descriptor, options)
            table = client.do_get(info.endpoints[0].ticket, options).read_all()
            assert table.to_pylist() == [{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"}]
            with pytest.raises(flight.FlightUnauthenticatedError):
                client.get_flight_info(descriptor)
        listed = {
            row["name"]: row["status"]
            for row in runtime.api.get("/v1/status", headers={"X-API-Key": "reader"}).json()
        }
        assert listed["flight"] == "Ready"
