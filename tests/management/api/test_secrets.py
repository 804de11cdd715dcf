import json

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.domain.scopes import Role
from caraway_management.secrets import linking
from caraway_management.secrets.storing import Owner
from caraway_management.store.tables import Activity, OutboxEntry, Secret
from tests.kit.management import Installation
from tests.management.api.new_projects import new_project

VALUE = "s3cr3t-välue\n\t\"'\\${secrets:OTHER}"


def in_force(installation: Installation, org_id: int, project_id: int) -> dict[str, str]:
    async def read() -> dict[str, str]:
        services = installation.services
        async with services.database.read() as session:
            owner = Owner(org_id, project_id)
            return await linking.values_in_force(session, services.sealer, owner)

    return installation.run(read)


def test_secrets_of_a_project(installation: Installation) -> None:
    owner = installation.add_user()
    org = installation.add_org("acme", owner)
    caller = installation.sign_in(owner)
    project = new_project(caller)
    path = f"/v1/projects/{project}/secrets"
    made = caller.post(path, {"name": "db_password", "value": VALUE})
    assert made.status_code == 200, made.text
    assert made.json() == {
        "id": made.json()["id"],
        "name": "DB_PASSWORD",
        "value": "********",
        "source": "project",
        "created_at": "2026-11-26T12:00:00+00:00",
        "updated_at": "2026-11-26T12:00:00+00:00",
    }
    installation.clock.advance(seconds=5)
    again = caller.post(path, {"name": "Db_Password", "value": "other"}).json()
    assert (again["id"], again["updated_at"]) == (made.json()["id"], "2026-11-26T12:00:05+00:00")
    assert caller.get(path).json() == {"secrets": [again]}
    assert caller.get(f"/v1/apps/{project}/secrets/db_password").json() == again
    assert in_force(installation, org.id, project) == {"DB_PASSWORD": "other"}
    assert caller.delete(f"{path}/db_password").status_code == 204
    assert caller.delete(f"{path}/db_password").status_code == 404
    assert caller.get(f"{path}/DB_PASSWORD").status_code == 404
    assert caller.get(path).json() == {"secrets": []}


def test_a_change_reaches_the_runtime_of_each_project(installation: Installation) -> None:
    owner = installation.add_user()
    org = installation.add_org("acme", owner)
    caller = installation.sign_in(owner)
    first, second, third = (new_project(caller, f"shop-{number}") for number in (1, 2, 3))
    caller.post(f"/v1/orgs/{org.id}/secrets", {"name": "SHARED", "value": "of all"})
    for project in (first, second):
        linked = caller.post(f"/v1/projects/{project}/secret-links", {"secretName": "shared"})
        assert (linked.status_code, linked.json()) == (201, {"secretName": "SHARED"})

    async def forget(session: AsyncSession) -> None:
        await session.execute(delete(OutboxEntry))

    def reached() -> list[str]:
        """Return the projects that were reached since the last time."""
        entries = select(OutboxEntry.subject).where(OutboxEntry.kind == "apply_project")
        found = sorted(set(installation.rows(entries)))
        installation.change(forget)
        return found

    both = [f"project:{first}", f"project:{second}"]
    assert reached() == both
    caller.post(f"/v1/orgs/{org.id}/secrets", {"name": "SHARED", "value": "of all"})
    assert reached() == both
    caller.post(f"/v1/projects/{third}/secrets", {"name": "SHARED", "value": "mine"})
    assert reached() == [f"project:{third}"]
    caller.post(f"/v1/projects/{third}/secret-links", {"secretName": "SHARED"})
    # The project's own wins; the linked one is in force again without it.
    assert in_force(installation, org.id, third) == {"SHARED": "mine"}
    shown = caller.get(f"/v1/projects/{third}/secrets").json()["secrets"]
    assert [each["source"] for each in shown] == ["project"]
    caller.delete(f"/v1/projects/{third}/secrets/SHARED")
    assert in_force(installation, org.id, third) == {"SHARED": "of all"}
    links = f"/v1/projects/{third}/secret-links"
    assert caller.get(links).json() == {"links": [{"secretName": "SHARED"}]}
    assert caller.delete(f"{links}/shared").status_code == 204
    assert caller.delete(f"{links}/shared").status_code == 404
    assert in_force(installation, org.id, third) == {}
    # Deleting a secret of the organization removes its links.
    reached()
    assert caller.delete(f"/v1/orgs/{org.id}/secrets/shared").status_code == 204
    assert reached() == both
    assert in_force(installation, org.id, first) == {}
    assert caller.post(links, {"secretName": "SHARED"}).status_code == 404


def test_a_list_of_secrets_is_set_whole_or_not_at_all(installation: Installation) -> None:
    owner = installation.add_user()
    org = installation.add_org("acme", owner)
    caller = installation.sign_in(owner)
    first, second = new_project(caller, "shop-1"), new_project(caller, "shop-2")

    def one(project: int, name: str, value: str = "x") -> dict[str, object]:
        return {"project_id": project, "name": name, "value": value}

    single = caller.put("/v1/secrets", one(first, "a"))
    assert (single.status_code, single.json()["name"]) == (200, "A")
    both = caller.put("/v1/secrets", [one(first, "B", "1"), one(second, "C", "2")])
    assert [each["name"] for each in both.json()["secrets"]] == ["B", "C"]
    for wrong, status in (
        ([one(first, "D"), one(second, "1x")], 400),
        ([one(first, "D"), one(99_999, "E")], 404),
        ([one(first, "D"), one(second, "E", "")], 400),
        ([], 400),
        ([one(first, f"N{number}") for number in range(101)], 400),
        ({"project_id": first, "name": "D"}, 400),
        ({**one(first, "D"), "org_id": 7}, 400),
    ):
        assert caller.put("/v1/secrets", wrong).status_code == status, wrong
    assert in_force(installation, org.id, first) == {"A": "x", "B": "1"}


def test_problems_are_named_by_the_fields_of_the_body(installation: Installation) -> None:
    owner = installation.add_user()
    installation.add_org("acme", owner)
    caller = installation.sign_in(owner)
    project = new_project(caller)
    good = {"project_id": project, "name": "A", "value": "x"}
    for body, fields in (
        ({**good, "project_id": "1"}, {"project_id"}),
        ({**good, "value": 5}, {"value"}),
        ({"project_id": project, "value": "x"}, {"name"}),
        ([good, {**good, "value": ""}], {"1.value"}),
        ([good, "x"], {"1"}),
        ([], set()),
        (5, set()),
    ):
        refused = caller.put("/v1/secrets", body)
        details = refused.json()["details"]
        assert (refused.status_code, set(details["fieldErrors"])) == (400, fields), body
        assert bool(details["formErrors"]) is not bool(fields), details
    path = f"/v1/projects/{project}"
    for given, field in (
        ({"manifest": 5}, "manifest"),
        ({"spicepod": 5}, "spicepod"),
        ({"resources": {"limits": {"cpu": True}}}, "resources.limits.cpu"),
    ):
        refused = caller.put(path, given)
        assert refused.status_code == 400
        assert list(refused.json()["details"]["fieldErrors"]) == [field]
        assert refused.json()["error"].startswith(f"{field}: ")


def test_viewers_and_other_organizations_see_nothing(installation: Installation) -> None:
    owner = installation.add_user()
    org = installation.add_org("acme", owner)
    stranger = installation.add_user()
    installation.add_org("umbrella", stranger)
    caller, other = installation.sign_in(owner), installation.sign_in(stranger)
    viewer = installation.sign_in(installation.add_member(org, Role.VIEWER))
    member = installation.sign_in(installation.add_member(org, Role.MEMBER))
    project = new_project(caller)
    caller.post(f"/v1/projects/{project}/secrets", {"name": "A", "value": VALUE})
    caller.post(f"/v1/orgs/{org.id}/secrets", {"name": "B", "value": VALUE})
    body = {"name": "A", "value": "y"}
    routes = [
        ("GET", f"/v1/projects/{project}/secrets", None, 404),
        ("POST", f"/v1/projects/{project}/secrets", body, 404),
        ("GET", f"/v1/projects/{project}/secrets/A", None, 404),
        ("DELETE", f"/v1/projects/{project}/secrets/A", None, 404),
        ("PUT", "/v1/secrets", {**body, "project_id": project}, 404),
        ("GET", f"/v1/projects/{project}/secret-links", None, 404),
        ("POST", f"/v1/projects/{project}/secret-links", {"secretName": "B"}, 404),
        ("DELETE", f"/v1/projects/{project}/secret-links/B", None, 404),
        ("GET", f"/v1/projects/{project}/api-keys", None, 404),
        ("POST", f"/v1/projects/{project}/api-keys", {}, 404),
        ("GET", f"/v1/orgs/{org.id}/secrets", None, 403),
        ("POST", f"/v1/orgs/{org.id}/secrets", body, 403),
        ("GET", f"/v1/orgs/{org.id}/secrets/B", None, 403),
        ("DELETE", f"/v1/orgs/{org.id}/secrets/B", None, 403),
    ]
    for method, path, sent, status in routes:
        assert other.send(method, path, json=sent).status_code == status, (method, path)
        assert viewer.send(method, path, json=sent).status_code == 403, (method, path)
        assert installation.anonymous().send(method, path, json=sent).status_code == 401
    assert member.get(f"/v1/projects/{project}/secrets").status_code == 200
    assert in_force(installation, org.id, project) == {"A": VALUE}


def test_values_are_nowhere_in_clear(installation: Installation) -> None:
    owner = installation.add_user()
    org = installation.add_org("acme", owner)
    caller = installation.sign_in(owner)
    project = new_project(caller)
    path = f"/v1/projects/{project}/secrets"
    answers = [
        caller.post(path, {"name": "A", "value": VALUE}),
        caller.post(path, {"name": "wrong name", "value": VALUE}),
        caller.post(path, {"name": "B", "value": VALUE + "\0"}),
        caller.post(path, {"name": "B", "value": {"a": VALUE}}),
        caller.post(path, {"name": "B", "value": VALUE, "extra": VALUE}),
        caller.put("/v1/secrets", [{"name": "B", "value": VALUE}]),
        caller.get(path),
    ]
    assert [each.status_code for each in answers] == [200, 400, 400, 400, 400, 400, 200]
    for each in answers:
        assert "s3cr3t" not in each.text
    for row in installation.rows(select(Secret)):
        assert "s3cr3t" not in json.dumps([row.sealed, row.name])
    for entry in installation.rows(select(Activity)):
        assert "s3cr3t" not in str(vars(entry))
    for work in installation.rows(select(OutboxEntry)):
        assert "s3cr3t" not in str(vars(work))
    assert in_force(installation, org.id, project) == {"A": VALUE}


def test_names_and_values_of_all_characters(installation: Installation) -> None:
    owner = installation.add_user()
    org = installation.add_org("acme", owner)
    caller = installation.sign_in(owner)
    project = new_project(caller)
    path = f"/v1/projects/{project}/secrets"
    for name in ("", "1A", "A-B", "A B", "é", "A\n", "A\0", "../x", "A" * 256, "\ud800", "${A}"):
        sent = caller.send(
            "POST", path, content=json.dumps({"name": name, "value": "x"}),
            headers={"content-type": "application/json"},
        )  # fmt: skip
        assert sent.status_code == 400, (name, sent.text)
    text = "".join(map(chr, [*range(1, 0x800), 0x2028, 0xFFFF, 0x1F600]))
    assert caller.post(path, {"name": "A" * 255, "value": text}).status_code == 200
    assert in_force(installation, org.id, project) == {"A" * 255: text}
    for value in ("", "x\0", "x" * 32_769, "é" * 20_000):
        assert caller.post(path, {"name": "B", "value": value}).status_code == 400
    half = caller.send(
        "POST", path, content=b'{"name":"B","value":"\\ud800"}',
        headers={"content-type": "application/json"},
    )  # fmt: skip
    assert half.status_code == 400
    for name in ("%00", "%ff", "A%0d%0aX-Y:1", "x" * 400):
        assert caller.get(f"{path}/{name}").status_code == 400, name


def test_there_are_bounds_of_number_and_size(installation: Installation) -> None:
    owner = installation.add_user()
    installation.add_org("acme", owner)
    caller = installation.sign_in(owner)
    project = new_project(caller)
    statuses = [
        caller.put(
            "/v1/secrets",
            [
                {"project_id": project, "name": f"A{start + number}", "value": "x" * size}
                for number in range(count)
            ],
        ).status_code
        for start, count, size in ((0, 100, 1), (100, 100, 1), (200, 1, 1), (0, 16, 32_000))
    ]
    assert statuses == [200, 200, 400, 400]


def test_swapped_rows_do_not_open(installation: Installation) -> None:
    owner = installation.add_user()
    org = installation.add_org("acme", owner)
    caller = installation.sign_in(owner)
    first, second = new_project(caller, "shop-1"), new_project(caller, "shop-2")
    caller.post(f"/v1/projects/{first}/secrets", {"name": "A", "value": "of the first"})
    caller.post(f"/v1/projects/{second}/secrets", {"name": "A", "value": "of the second"})

    async def swap(session: object) -> None:
        stolen = select(Secret.sealed).where(Secret.project_id == first).scalar_subquery()
        await session.execute(  # type: ignore[attr-defined]
            update(Secret).where(Secret.project_id == second).values(sealed=stolen)
        )

    installation.change(swap)
    assert in_force(installation, org.id, first) == {"A": "of the first"}
    try:
        in_force(installation, org.id, second)
    except Exception as exc:
        assert "belongs to another place" in str(exc)
        assert "of the first" not in str(exc)
    else:
        raise AssertionError("a swapped row was opened")


def test_changes_are_recorded_once(installation: Installation) -> None:
    owner = installation.add_user()
    installation.add_org("acme", owner)
    caller = installation.sign_in(owner)
    project = new_project(caller)
    before = len(installation.rows(select(Activity)))
    path = f"/v1/projects/{project}/secrets"
    caller.post(path, {"name": "A", "value": "x"})
    one = {"project_id": project, "name": "B", "value": "x"}
    caller.put("/v1/secrets", [one, {**one, "name": "C"}])
    caller.delete(f"{path}/a")
    caller.delete(f"{path}/a")
    entries = installation.rows(select(Activity).order_by(Activity.id))[before:]
    assert [
        (each.action, each.resource_name, each.project_id, each.outcome) for each in entries
    ] == [
        ("set_project_secret", "A", project, "succeeded"),
        ("put_secrets", "2 secrets", project, "succeeded"),
        ("delete_project_secret", "A", project, "succeeded"),
        ("delete_project_secret", "", None, "refused"),
    ]


def test_secrets_of_a_transferred_project_can_be_opened(installation: Installation) -> None:
    owner = installation.add_user()
    org, other = installation.add_org("acme", owner), installation.add_org("umbrella", owner)
    caller = installation.sign_in(owner)
    project = new_project(caller)
    caller.post(f"/v1/projects/{project}/secrets", {"name": "OWN", "value": VALUE})
    caller.post(f"/v1/orgs/{org.id}/secrets", {"name": "SHARED", "value": "x"})
    caller.post(f"/v1/projects/{project}/secret-links", {"secretName": "SHARED"})
    keys = caller.get(f"/v1/projects/{project}/api-keys").json()
    body = {"org": "umbrella", "confirm": "shop"}
    assert caller.post(f"/v1/projects/{project}/transfer", body).status_code == 200
    assert in_force(installation, other.id, project) == {"OWN": VALUE}
    moved = installation.sign_in(owner, org="umbrella")
    assert moved.get(f"/v1/projects/{project}/api-keys").json() == keys
