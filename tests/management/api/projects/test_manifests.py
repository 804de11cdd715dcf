import json
from typing import Any

import pytest

from tests.kit.management import Caller, Installation

ALIASES = "b0: &b0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"b{n}: &b{n} [{', '.join([f'*b{n - 1}'] * 9)}]\n" for n in range(1, 20)
)
MANIFEST = "version: v2\nkind: Spicepod\nname: shop\n"


@pytest.fixture
def owner(installation: Installation) -> Caller:
    """The owner of an organization with the plan `enterprise`."""
    user = installation.add_user()
    installation.add_org("acme", user)
    return installation.sign_in(user)


def _create(caller: Caller, **settings: Any) -> dict[str, Any]:
    answer = caller.post("/v1/projects", {"name": "shop", **settings})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def test_a_manifest_is_kept_as_it_was_written(owner: Caller) -> None:
    text = f"# The shop.\n{MANIFEST}"
    path = f"/v1/projects/{_create(owner, manifest=text)['id']}"
    assert owner.get(path).json()["config"]["manifest"] == text
    content = {"version": "v2", "kind": "Spicepod", "name": "two"}
    changed = owner.put(path, {"spicepod": content}).json()
    assert changed["config"]["manifest"] == "version: v2\nkind: Spicepod\nname: two\n"
    assert owner.put(path, {"manifest": None}).json()["config"]["manifest"] is None


def test_all_problems_are_named_with_their_lines(owner: Caller) -> None:
    made = _create(owner, manifest=MANIFEST)
    path = f"/v1/projects/{made['id']}"
    text = MANIFEST + (
        "datasets:\n"
        "  - from: nothing:a\n"
        "    name: a\n"
        "    params: {x: y}\n"
        "  - name: b\n"
        "views:\n"
        "  - name: c\n"
        "    sql: SELECT * FROM\n"
    )
    answer = owner.put(path, {"manifest": text})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_manifest")
    problems = answer.json()["details"]["fieldErrors"]["manifest"]
    assert len(problems) > 1
    assert any(each.startswith("line 8: datasets[1]") for each in problems), problems
    assert all("/etc/" not in each for each in problems)
    # The lines of an object are not the user's.
    wrong = owner.put(path, {"manifest": {"version": "v2", "kind": "Spicepod", "datasets": 3}})
    assert not any("line" in each for each in wrong.json()["details"]["fieldErrors"]["manifest"])
    assert owner.get(path).json() == made


@pytest.mark.parametrize(
    "text",
    [
        "", "a: [", "- a", "version: v2\n", MANIFEST + "\x00", MANIFEST + "datasets: {",
        MANIFEST + "dependencies: [/etc]\n", MANIFEST + "datasets:\n  - ref: /etc/passwd\n",
        MANIFEST + "views:\n  - name: a\n    sql_ref: /etc/passwd\n",
        MANIFEST + "a: &a [*a]\n", MANIFEST + "x: !!python/object/apply:os.system [id]\n",
    ],
)  # fmt: skip
def test_wrong_manifests_are_refused_and_no_file_is_read(owner: Caller, text: str) -> None:
    answer = owner.post("/v1/projects", {"name": "shop", "manifest": text})
    assert (answer.status_code, answer.json().get("code")) == (400, "invalid_manifest")
    assert "root:" not in answer.text
    assert owner.get("/v1/projects").json() == {"projects": []}


def test_a_manifest_may_fill_a_body_and_not_more(owner: Caller) -> None:
    path = f"/v1/projects/{_create(owner)['id']}"
    most = 1024 * 1024 - 200
    large = MANIFEST + "#" * (most - len(MANIFEST))
    assert owner.put(path, {"manifest": large}).status_code == 200
    assert owner.get(path).json()["config"]["manifest"] == large
    assert owner.put(path, {"manifest": large + "#" * 400}).status_code == 413


@pytest.mark.parametrize(
    "text",
    [
        MANIFEST + "datasets:\n" + "  - {from: 'file:a.csv', name: a}\n" * 25_000,
        MANIFEST + "x: " + "[" * 500_000,
        MANIFEST + "x: " + "{a: " * 200_000,
        MANIFEST + ALIASES,
    ],
    ids=["many datasets", "deep lists", "deep mappings", "aliases"],
)  # fmt: skip
def test_hostile_manifests_are_refused_with_a_bounded_answer(owner: Caller, text: str) -> None:
    answer = owner.post("/v1/projects", {"name": "shop", "manifest": text})
    assert answer.status_code == 400, answer.text[:500]
    assert answer.json()["code"] == "invalid_manifest"
    assert len(answer.content) < 100_000


def test_objects_that_are_no_manifests_are_refused(owner: Caller) -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    bodies: list[Any] = [{"a": deep}, {"version": "\ud800"}, {"version": float("1e308")}, [], 7]
    for body in bodies:
        content = json.dumps({"name": "shop", "manifest": body})
        answer = owner.send("POST", "/v1/projects", content=content)
        assert answer.status_code == 400, body


def test_a_plan_without_manifests_refuses_them(installation: Installation) -> None:
    user = installation.add_user(is_administrator=True)
    installation.add_org("acme", user, "community")
    caller = installation.sign_in(user)
    caller.put("/v1/plans/community", {"limits": {"pods": 0}})
    refused = caller.post("/v1/projects", {"name": "shop", "manifest": MANIFEST})
    assert (refused.status_code, refused.json()["code"]) == (403, "plan_limit")
    made = _create(caller)
    refused = caller.put(f"/v1/projects/{made['id']}", {"manifest": MANIFEST})
    assert (refused.status_code, refused.json()["code"]) == (403, "plan_limit")
