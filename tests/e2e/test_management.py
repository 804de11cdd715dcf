"""The whole way of a project on a laptop, with the real commands, clients and runtimes.

`caraway management` and the runtimes that it starts are processes; people use the command line,
programs the Python client, and queries go to the runtime or through the service.
"""

import contextlib
import json
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from caraway_management.sealing import keys
from tests.kit import deadlines, management, postgres
from tests.kit.managed_projects import PLAIN, Project, status_of
from tests.kit.management_process import START_S, Laptop, laptop

pytestmark = pytest.mark.full
_MANIFEST = """\
version: v1
kind: Caraway
name: shop
runtime:
  auth:
    api-key:
      enabled: true
      keys: ["${secrets:PARTNER_KEY}"]
views:
  - name: orders
    sql: SELECT 1 AS id, 3 AS price UNION ALL SELECT 2, 4
"""
_SUM = "SELECT sum(price) AS total FROM orders"
_PARTNER, _NEW_PARTNER = "partner-key-of-the-test", "another-key-of-the-partner"
_KEY_S = 10.0
"""The longest time until a runtime takes a new key."""
_USERS = 4


@pytest.fixture(params=["sqlite", "postgresql"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Laptop]:
    """A laptop with each kind of database."""
    with contextlib.ExitStack() as stack:
        url = None
        if request.param == "postgresql":
            server = stack.enter_context(postgres.serving())
            made = management.new_postgres_url(server)
            url = made.set(drivername="postgresql").render_as_string(hide_password=False)
            (tmp_path / "keys").write_text(keys.new_line())
        yield stack.enter_context(laptop(tmp_path, database=url))


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Laptop]:
    """A laptop with the embedded database."""
    with laptop(tmp_path) as made:
        yield made


@dataclass
class Load:
    """Users who query a runtime with the key that they are given, and count the answers."""

    endpoint: str
    key: str
    answers: Counter[int] = field(default_factory=Counter)
    _ending: threading.Event = field(default_factory=threading.Event)

    def use(self, key: str) -> None:
        """Have all users send the next requests with another key, and wait until they did."""
        self.key = key
        self.wait_for_more()

    def wait_for_more(self) -> None:
        wanted = self.answers.total() + 3 * _USERS
        deadlines.until(lambda: self.answers.total() >= wanted, "answers", START_S)

    def _send(self) -> None:
        with httpx.Client(timeout=60) as client:
            while not self._ending.is_set():
                self.answers[status_of(self.endpoint, self.key, client)] += 1

    @contextlib.contextmanager
    def running(self) -> Iterator["Load"]:
        with ThreadPoolExecutor(_USERS) as users:
            each = [users.submit(self._send) for _ in range(_USERS)]
            try:
                self.wait_for_more()
                yield self
            finally:
                self._ending.set()
            for user in each:
                user.result()


def accepts(endpoint: str, key: str, status: int = 200) -> None:
    """Wait until a runtime accepts a key, or answers it with another status, as soon as it must."""
    deadlines.until(
        lambda: status_of(endpoint, key) == status, f"status {status} for the key", _KEY_S
    )


def test_a_project_from_init_to_its_end(home: Laptop) -> None:
    home.initialize("acme")
    shop = home.home / "shop"
    shop.mkdir()
    (shop / "caraway.yaml").write_text(_MANIFEST)
    with home.serving() as served, home.client(served) as api:
        home.run("login", "--token", "-", "--management", served.url, stdin=home.token)
        assert json.loads(home.run("orgs", "list", "--json"))[0]["name"] == "acme"
        home.run("secrets", "set", "partner_key", "--of-org", stdin=_PARTNER)
        home.run("projects", "create", "shop")
        home.run("projects", "link", "shop", folder=shop)
        home.run("secrets", "link", "PARTNER_KEY", folder=shop)
        home.run("deploy", "--wait", "--yes", folder=shop)
        project = Project(api, int(api.find_project("shop")["id"]))
        endpoint = project.endpoint()

        assert project.passed_through(_SUM) == [{"total": 7}]
        answer = home.run(
            "sql", "--url", endpoint, "--api-key", project.key(1), "--format", "json", _SUM
        )
        assert json.loads(answer) == [{"total": 7}]
        assert status_of(endpoint, _PARTNER) == 200
        assert status_of(endpoint, "cwk_wrong") == 401

        _rotate_under_load(home, project, endpoint, shop)
        home.run("secrets", "set", "partner_key", "--of-org", stdin=_NEW_PARTNER)
        accepts(endpoint, _NEW_PARTNER)
        accepts(endpoint, _PARTNER, status=401)

        home.run("projects", "pause", folder=shop)
        deadlines.until(lambda: not home.serving_processes(project.id), "no runtime", START_S)
        assert status_of(endpoint, project.key(1)) == 0
        with pytest.raises(Exception, match="paused"):
            project.passed_through(_SUM)
        api.update_project(project.id, description="edited in the pause")
        home.run("projects", "resume", "--wait", folder=shop)
        resumed = api.get_project(project.id)
        assert (resumed["description"], resumed["endpoint"]) == ("edited in the pause", endpoint)
        assert status_of(endpoint, project.key(2)) == 200

        home.run("projects", "fork", "shop", "shop-two")
        fork = Project(api, int(api.find_project("shop-two")["id"]))
        fork.ended(api.list_deployments(fork.id)["deployments"][0]["id"])
        assert fork.passed_through(_SUM) == [{"total": 7}]
        # The keys of one project are not those of another; that of the partner is a secret of both.
        assert status_of(fork.endpoint(), project.key(1)) == 401
        assert status_of(fork.endpoint(), _NEW_PARTNER) == 200

        for name in ("shop-two", "shop"):
            home.run("projects", "delete", name, "--yes")
        deadlines.until(lambda: not home.runtimes(), "no folder of a project", START_S)
        actions = {each["action"] for each in api.every(api.list_activity)}
        assert actions >= {
            "create_project", "create_deployment", "regenerate_api_keys", "pause_project",
            "resume_project", "create_fork", "delete_project",
        }  # fmt: skip


def _rotate_under_load(home: Laptop, project: Project, endpoint: str, folder: Path) -> None:
    """Replace both keys, one after the other, while users go on with the one that stays."""
    with Load(endpoint, project.key(1)).running() as load:
        for number in (1, 2):
            load.use(project.key(3 - number))
            old = project.key(number)
            home.run("keys", "regenerate", "--number", str(number), "--yes", folder=folder)
            accepts(endpoint, project.key(number))
            accepts(endpoint, old, status=401)
            assert project.passed_through("SELECT 1 AS one") == [{"one": 1}]
            load.wait_for_more()
    assert set(load.answers) == {200}, load.answers


def test_a_project_with_the_tag_cluster_runs_as_one(embedded: Laptop) -> None:
    embedded.initialize("acme")
    with embedded.serving() as served, embedded.client(served) as api:
        made = api.create_project(
            name="shop", manifest=_MANIFEST.replace("PARTNER_KEY", "OTHER"),
            tags={"kind": "cluster"}, executor={"replicas": 2},
        )  # fmt: skip
        project = Project(api, made["id"])
        api.set_project_secret(project.id, name="other", value=_PARTNER)
        ended = project.deploy()
        assert ended["status"] == "succeeded", ended
        assert project.passed_through(_SUM) == [{"total": 7}]
        endpoint, old = project.endpoint(), project.key(1)
        # The scheduler is ready before its executors, and statements wait for these.
        url, headers = f"{endpoint}/v1/cluster/executors", {"x-api-key": project.key(2)}
        deadlines.until(
            lambda: len(httpx.get(url, headers=headers).raise_for_status().json()) == 2,
            "two executors", START_S,
        )  # fmt: skip
        api.regenerate_api_keys(project.id, key_number=1)
        accepts(endpoint, project.key(1))
        accepts(endpoint, old, status=401)

        before = embedded.runtimes()[project.id]
        api.pause_project(project.id)
        deadlines.until(lambda: not embedded.runtimes()[project.id], "no process", START_S)
        assert len(before) > 3
        assert project.ended(api.resume_project(project.id)["deployment_id"])["error_code"] is None
        assert project.passed_through(_SUM) == [{"total": 7}]
        api.delete_project(project.id)
        deadlines.until(lambda: not embedded.runtimes(), "no folder of the project", START_S)


def test_a_service_that_is_killed_while_it_deploys_runs_nothing_twice(home: Laptop) -> None:
    home.initialize("acme")
    with home.serving() as served, home.client(served) as api:
        project = Project(api, api.create_project(name="shop", manifest=PLAIN)["id"])
        gone = Project(api, api.create_project(name="gone", manifest=PLAIN)["id"])
        first = api.create_deployment(project.id)["id"]
        api.create_deployment(gone.id)
        deadlines.until(lambda: home.serving_processes(project.id), "a runtime starts", START_S)
        served.kill()
    started = home.serving_processes(project.id)
    with home.serving() as served, home.client(served) as api:
        project, gone = Project(api, project.id), Project(api, gone.id)
        assert project.ended(first)["status"] == "succeeded"
        # The runtime that the first service started is that of the second.
        assert home.serving_processes(project.id) == started
        assert project.passed_through("SELECT 1 AS one") == [{"one": 1}]
        second = api.create_deployment(project.id)["id"]
        api.delete_project(gone.id)
        served.kill()
    with home.serving() as served, home.client(served) as api:
        project = Project(api, project.id)
        assert project.ended(second)["status"] == "succeeded"
        deadlines.until(lambda: list(home.runtimes()) == [project.id], "one folder", START_S)
        (runtime,) = home.serving_processes(project.id)
        assert runtime not in started
        assert not home.serving_processes(gone.id)
        assert project.passed_through("SELECT 1 AS one") == [{"one": 1}]
