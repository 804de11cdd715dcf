from caraway_management.domain.scopes import Role
from tests.kit.management import Installation
from tests.management.api.new_projects import new_project


def test_entries_are_listed_filtered_and_paged(installation: Installation) -> None:
    owner = installation.add_user("olga")
    org = installation.add_org("acme", owner)
    caller = installation.sign_in(owner)
    admin = installation.sign_in(installation.add_member(org, Role.ADMIN, "adam"))
    project = new_project(caller)
    installation.clock.advance(minutes=1)
    secrets = f"/v1/projects/{project}/secrets"
    for number in range(3):
        admin.post(secrets, {"name": f"S{number}", "value": "x"})
    installation.clock.advance(minutes=1)
    admin.delete(f"{secrets}/NONE")

    def listed(**asked: object) -> list[tuple[str, str]]:
        answer = caller.get("/v1/activity", params=asked)
        assert answer.status_code == 200, answer.text
        return [(each["action"], each["outcome"]) for each in answer.json()["activity"]]

    everything = [
        ("delete_project_secret", "refused"),
        *[("set_project_secret", "succeeded")] * 3,
        ("create_project", "succeeded"),
    ]
    assert listed() == everything
    assert listed(actor="olga") == everything[-1:]
    assert listed(actor="adam", outcome="refused") == everything[:1]
    assert listed(action="set_project_secret") == everything[1:4]
    assert listed(resource="secret") == everything[1:4]
    assert listed(resource="project", resource_id=project) == everything[-1:]
    assert listed(project_id=project, action="create_project") == everything[-1:]
    assert listed(since="2026-11-26T12:01:00Z", until="2026-11-26T12:02:00") == everything[1:4]
    assert listed(actor="nobody' OR 1=1 --") == []

    pages, cursor = [], None
    while True:
        asked = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = caller.get("/v1/activity", params=asked).json()
        pages.append(page["activity"])
        # Later entries do not move the pages.
        new_project(caller, f"later-{len(pages)}")
        if (cursor := page["next_cursor"]) is None:
            break
    assert [each["action"] for page in pages for each in page] == [each for each, _ in everything]
    one = pages[1][0]
    assert caller.get(f"/v1/activity/{one['id']}").json() == one
    assert one["actor"] == {"user_id": one["actor"]["user_id"], "name": "adam"}
    assert one["resource"]["kind"] == "secret"
    assert one["credential"]["kind"] == "user"
    assert one["project_id"] == project


def test_only_administrators_of_the_organization_read_it(installation: Installation) -> None:
    owner = installation.add_user()
    org = installation.add_org("acme", owner)
    caller = installation.sign_in(owner)
    new_project(caller)
    id_ = caller.get("/v1/activity").json()["activity"][0]["id"]
    stranger = installation.add_user()
    installation.add_org("umbrella", stranger)
    other = installation.sign_in(stranger)
    assert other.get("/v1/activity").json() == {"activity": [], "next_cursor": None}
    assert other.get(f"/v1/activity/{id_}").status_code == 404
    for role, status in ((Role.VIEWER, 403), (Role.MEMBER, 403), (Role.ADMIN, 200)):
        member = installation.sign_in(installation.add_member(org, role))
        assert member.get("/v1/activity").status_code == status
        assert member.get(f"/v1/activity/{id_}").status_code == status


def test_wrong_filters_are_refused(installation: Installation) -> None:
    owner = installation.add_user()
    installation.add_org("acme", owner)
    caller = installation.sign_in(owner)
    for asked in (
        {"limit": 0}, {"limit": 101}, {"cursor": "x"}, {"cursor": "c-1"}, {"actor": "a\0b"},
        {"actor": "x" * 256}, {"since": "yesterday"}, {"outcome": "other"}, {"resource": "A B"},
        {"action": ""}, {"project_id": 0}, {"resource_id": "a\r\nb"},
    ):  # fmt: skip
        assert caller.get("/v1/activity", params=asked).status_code == 400, asked
    for fine in ({"cursor": "c" + "9" * 19}, {"since": "0001-01-01T00:00:00+14:00"}):
        assert caller.get("/v1/activity", params=fine).status_code == 200, fine
    for id_ in ("0", "x", "9" * 30):
        assert caller.get(f"/v1/activity/{id_}").status_code == 400
    assert caller.get("/v1/activity/77777").status_code == 404
