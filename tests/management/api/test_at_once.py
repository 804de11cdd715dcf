"""The same creation several times at once: one succeeds, and the others say that it is there."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.kit.deployed_projects import MANIFEST
from tests.kit.management import Caller, Installation
from tests.management.api.plan_values import SMALL

AT_ONCE = 4
TARGETS = {"http": {"url": "https://hooks.example.com/a"}}
SECRET = {"name": "TOKEN", "value": "x"}
ONE, ALL = [201, *[409] * (AT_ONCE - 1)], [200] * AT_ONCE
CASES: list[tuple[str, str, Any, list[int]]] = [
    ("POST", "/v1/orgs", {"name": "Umbrella"}, ONE),
    ("POST", "/v1/users", {"username": "zoe"}, ONE),
    ("POST", "/v1/members", {"username": "bob"}, ONE),
    ("POST", "/v1/projects", {"name": "gone"}, ONE),
    ("POST", "{project}/forks", {"name": "fork"}, ONE),
    ("POST", "{project}/monitors",
     {"name": "Late", "template": "http_5xx", "spec": {"threshold": 1}, "targets": TARGETS}, ONE),
    ("POST", "{project}/reactions",
     {"name": "Late", "kind": "task_history_error", "targets": TARGETS}, ONE),
    ("POST", "{project}/deployments", {}, [202, *[409] * (AT_ONCE - 1)]),
    ("POST", "{project}/secrets", SECRET, ALL),
    ("POST", "/v1/orgs/{org}/secrets", SECRET, ALL),
    ("PUT", "/v1/plans/small", {"limits": SMALL}, ALL),
    ("POST", "{project}/api-keys", {"key_number": 0}, ALL),
    ("DELETE", "{project}", None, [204, *[404] * (AT_ONCE - 1)]),
]  # fmt: skip


def test_of_equal_changes_at_once_one_succeeds_or_all_do(installation: Installation) -> None:
    owner = installation.add_user(is_administrator=True)
    installation.add_user("bob")
    org = installation.add_org("acme", owner)
    caller = installation.sign_in(owner)
    assert caller.delete(f"/v1/projects/{_create(caller, 'gone')}").status_code == 204
    project, wrong = f"/v1/projects/{_create(caller, 'shop')}", []
    for method, path, body, expected in CASES:
        at = path.format(project=project, org=org.id)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            sending = [pool.submit(caller.send, method, at, json=body) for _ in range(AT_ONCE)]
        answers = [each.result() for each in sending]
        # A refusal names the conflict, and not only that something changed.
        is_vague = any("at the same time" in each.text for each in answers)
        if is_vague or sorted(each.status_code for each in answers) != expected:
            wrong.append((method, at, [each.text[:200] for each in answers]))
    assert wrong == []


def _create(caller: Caller, name: str) -> int:
    made = caller.post("/v1/projects", {"name": name, "manifest": MANIFEST})
    id_: int = made.json()["id"]
    return id_
