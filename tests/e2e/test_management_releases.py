"""Two releases of the management service over one database, as real processes."""

import itertools
from pathlib import Path
from typing import Any

import httpx
import pytest

from caraway.management.client import Management
from caraway_management.sealing import keys
from tests.kit import deadlines, management, postgres, releases
from tests.kit.managed_projects import PLAIN, Project
from tests.kit.management_process import START_S, Served, laptop

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]
_PASSWORD = "a long password of the test"


def answer(api: Management, project_id: int) -> Any:
    return Project(api, project_id).passed_through("SELECT 1 AS one")


def sign_in(served: Served) -> dict[str, str]:
    """Open a session with the password of the owner; return its cookies."""
    body = {"username": "owner", "password": _PASSWORD}
    opened = httpx.post(f"{served.url}/v1/sessions", json=body)
    assert opened.status_code in (200, 201), opened.text
    return dict(opened.cookies)


def projects(api: Management) -> list[str]:
    return sorted(each["name"] for each in api.every(api.list_projects))


def test_instances_of_two_releases_answer_over_one_database(tmp_path: Path) -> None:
    """The earlier one made the database and serves on while the migration is made."""
    earlier = releases.earlier(tmp_path / "earlier", releases.FIRST_MANAGEMENT)
    (tmp_path / "keys").write_text(keys.new_line())
    with postgres.serving() as server:
        made = management.new_postgres_url(server).set(drivername="postgresql")
        url = made.render_as_string(hide_password=False)
        with laptop(tmp_path, database=url, host=earlier) as home:
            home.initialize("acme")
            with home.serving("--deployer", "none") as old, home.client(old) as before:
                first = before.create_project(name="first", manifest=PLAIN)["id"]
                home.host = releases.current()
                with home.serving() as new, home.client(new) as after:
                    both = {before: old, after: new}
                    for served in (old, new):
                        assert httpx.get(f"{served.url}/readyz").status_code == 200
                    before.set_password(password=_PASSWORD)
                    for (api, at), (other, there) in itertools.permutations(both.items()):
                        cookies = sign_in(there)
                        listed = httpx.get(f"{at.url}/v1/orgs", cookies=cookies)
                        assert listed.status_code == 200, listed.text
                        name = f"by-{at.log.stem}"
                        made_id = api.create_project(name=name, manifest=PLAIN)["id"]
                        api.set_project_secret(made_id, name="word", value="secret")
                        assert other.list_project_secrets(made_id)["secrets"][0]["name"] == "WORD"
                        other.update_project(made_id, description=name)
                        assert api.get_project(made_id)["description"] == name
                        other.delete_project(made_id)
                    # The new instance has the deployer, and works for the old one.
                    wanted = before.create_deployment(first)["id"]
                    ended = before.wait_for_deployment(first, wanted, START_S)
                    assert ended["status"] == "succeeded", ended
                    assert after.get_deployment(first, wanted)["status"] == "succeeded"
                    assert answer(before, first) == answer(after, first) == [{"one": 1}]
                    before.pause_project(first)
                    deadlines.until(
                        lambda: not home.serving_processes(first), "no runtime", START_S
                    )
                    for api in both:
                        assert api.get_project(first)["paused_at"]
                    assert projects(before) == projects(after) == ["first"]
            home.host = earlier
            with pytest.raises(AssertionError, match="which this release does not know"):
                home.run("management", "migrate", "--database", url)


def test_a_laptop_is_upgraded_and_goes_back(tmp_path: Path) -> None:
    """The runtime of a project goes on under both releases, and each reads what the other wrote."""
    earlier = releases.earlier(tmp_path / "earlier", releases.MANAGEMENT)
    with laptop(tmp_path, host=earlier) as home:
        home.initialize("acme")
        with home.serving() as served, home.client(served) as api:
            shop = api.create_project(name="shop", manifest=PLAIN)["id"]
            api.set_project_secret(shop, name="word", value="secret")
            assert api.wait_for_deployment(shop, api.create_deployment(shop)["id"], START_S)
            assert answer(api, shop) == [{"one": 1}]
        started = home.serving_processes(shop)
        assert started
        for number, host in enumerate((releases.current(), earlier)):
            home.host = host
            with home.serving() as served, home.client(served) as api:
                assert httpx.get(f"{served.url}/readyz").status_code == 200
                assert answer(api, shop) == [{"one": 1}]
                assert [each["name"] for each in api.list_project_secrets(shop)["secrets"]] == [
                    "WORD"
                ]
                api.create_project(name=f"made-{number}", manifest=PLAIN)
                api.update_project(shop, description=f"changed {number}")
                assert projects(api) == [*(f"made-{each}" for each in range(number + 1)), "shop"]
            assert home.serving_processes(shop) == started
