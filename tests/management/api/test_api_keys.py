from sqlalchemy import select

from caraway_management.domain.scopes import Role
from caraway_management.secrets import api_keys
from caraway_management.store.tables import ApiKey, OutboxEntry
from tests.kit.management import Caller, Installation
from tests.management.api.new_projects import new_project


def test_one_key_is_regenerated_while_the_other_stays(installation: Installation) -> None:
    owner = installation.add_user()
    installation.add_org("acme", owner)
    caller = installation.sign_in(owner)
    path = f"/v1/projects/{new_project(caller)}/api-keys"
    first = caller.get(path).json()
    assert set(first) == {"api_key", "api_key_2"}
    assert first["api_key"].startswith("cwk_")
    assert first["api_key"] != first["api_key_2"]
    assert caller.get(path).json() == first
    second = caller.post(path).json()
    assert second["regenerated_key"] == 1
    assert second["api_key"] != first["api_key"]
    assert second["api_key_2"] == first["api_key_2"]
    third = caller.post(path, {"key_number": 2}).json()
    assert third["api_key"] == second["api_key"]
    assert third["api_key_2"] != second["api_key_2"]
    both = caller.post(path, {"key_number": 0}).json()
    assert not {both["api_key"], both["api_key_2"]} & {third["api_key"], third["api_key_2"]}
    shown = {"api_key": both["api_key"], "api_key_2": both["api_key_2"]}
    assert caller.get(path).json() == shown
    for wrong in (3, -1, "1", 1.5, None, True):
        assert caller.post(path, {"key_number": wrong}).status_code == 400, wrong
    assert caller.get(path).json() == shown


def test_the_key_of_the_service_is_never_shown_nor_regenerated(installation: Installation) -> None:
    owner = installation.add_user()
    installation.add_org("acme", owner)
    caller = installation.sign_in(owner)
    project = new_project(caller)
    shown = caller.get(f"/v1/projects/{project}/api-keys").text

    def own() -> str:
        async def read() -> str:
            services = installation.services
            async with services.database.read() as session:
                keys = await api_keys.read(session, services.sealer, project)
                return keys[api_keys.OF_SERVICE]

        return installation.run(read)

    key = own()
    assert key not in shown
    caller.post(f"/v1/projects/{project}/api-keys", {"key_number": 0})
    assert own() == key
    stored = installation.rows(select(ApiKey).where(ApiKey.project_id == project))
    assert sorted(each.number for each in stored) == [1, 2, 3]
    assert all(key not in each.sealed + each.value_hash for each in stored)


def test_new_keys_reach_the_runtime(installation: Installation) -> None:
    owner = installation.add_user()
    installation.add_org("acme", owner)
    caller = installation.sign_in(owner)
    project = new_project(caller)
    caller.post(f"/v1/projects/{project}/api-keys", {"key_number": 2})
    entries = installation.rows(select(OutboxEntry))
    assert [(each.kind, each.subject) for each in entries] == [
        ("apply_project", f"project:{project}")
    ]


def test_viewers_do_not_read_keys(installation: Installation) -> None:
    owner = installation.add_user()
    org = installation.add_org("acme", owner)
    caller = installation.sign_in(owner)
    path = f"/v1/projects/{new_project(caller)}/api-keys"

    def of(role: Role) -> Caller:
        return installation.sign_in(installation.add_member(org, role))

    assert [of(role).get(path).status_code for role in (Role.VIEWER, Role.MEMBER)] == [403, 200]
    assert [of(role).post(path).status_code for role in (Role.VIEWER, Role.MEMBER)] == [403, 200]
