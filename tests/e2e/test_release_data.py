"""Data that one release stored is read by the next, and by the one before after a downgrade.

Both releases run as real processes over the same data directory, one after the other.
"""

from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.kit import releases
from tests.kit.deadlines import until
from tests.kit.processes import Child, child
from tests.kit.ray_cluster import Host

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]
MANIFEST = """\
version: v1
kind: Caraway
name: kept
datasets:
  - from: cdc:accounts
    name: accounts
    columns: [{name: id, type: bigint}, {name: v, type: bigint}]
    acceleration: {enabled: true, engine: file, primary_key: id}
  - from: file:people.csv
    name: people
    acceleration: {enabled: true, engine: file, refresh_on_startup: auto}
"""


def load(at: Child) -> None:
    """Wait for datasets that take longer to load than the start waits."""
    until(lambda: at.api.get("/v1/ready").status_code == 200, "all datasets are ready")


def send(at: Child, *ids: int) -> None:
    load(at)
    events = [{"op": "c", "before": None, "after": {"id": each, "v": each * 2}} for each in ids]
    answer = at.api.post("/v1/datasets/accounts/cdc", json=events)
    assert answer.status_code == 200, answer.text


def check(at: Child, *ids: int) -> None:
    load(at)
    found = at.sql("SELECT id, v FROM accounts ORDER BY id").json()
    assert found == [{"id": each, "v": each * 2} for each in ids]
    assert at.sql("SELECT count(*) AS n FROM people").json() == [{"n": 2}]


def job_of(at: Child) -> str:
    """Run a job, and return its id when its result is stored."""
    job = at.api.post("/v1/queries", json={"sql": "SELECT sum(v) AS s FROM accounts"}).json()
    name: str = job["query_id"]
    at.api.get(f"/v1/queries/{name}/status?wait=30")
    return name


@pytest.mark.parametrize("first", ["current", "earlier"])
def test_data_of_one_release_is_read_by_the_other(tmp_path: Path, first: str) -> None:
    hosts = {"current": releases.current(), "earlier": releases.earlier(tmp_path / "earlier")}
    second = "earlier" if first == "current" else "current"
    manifest = tmp_path / "caraway.yaml"
    manifest.write_text(MANIFEST)
    (tmp_path / "people.csv").write_text("id\n1\n2\n")

    def run(host: Host) -> AbstractContextManager[Child]:
        return child(tmp_path, manifest, environ=dict(host.environ))

    with run(hosts[first]) as at:
        send(at, 1, 2)
        check(at, 1, 2)
    with run(hosts[second]) as at:
        check(at, 1, 2)
        send(at, 3)
        check(at, 1, 2, 3)
    with run(hosts[first]) as at:
        check(at, 1, 2, 3)
