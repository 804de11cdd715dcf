import pytest

from caraway_management.domain.plans import PLANS
from tests.kit.management import Installation
from tests.management.api.plan_values import SMALL


def test_everybody_reads_plans_and_administrators_write_them(installation: Installation) -> None:
    administrator = installation.sign_in(installation.add_user(is_administrator=True))
    owner = installation.add_user()
    org = installation.add_org("acme", owner)
    user = installation.sign_in(owner)
    plans = user.get("/v1/plans").json()["plans"]
    assert [each["name"] for each in plans] == sorted(PLANS)
    assert {each["name"]: each["limits"] for each in plans}["pro"] == PLANS["pro"].as_json()
    assert user.put("/v1/plans/small", {"limits": SMALL}).status_code == 403
    assert user.delete("/v1/plans/pro").status_code == 403
    assert installation.anonymous().get("/v1/plans").status_code == 401
    made = administrator.put("/v1/plans/small", {"limits": SMALL})
    assert (made.status_code, made.json()["limits"]) == (200, SMALL)
    administrator.put(f"/v1/orgs/{org.id}/plan", {"plan": "small"})
    changed = administrator.put("/v1/plans/small", {"limits": {"users": 3}})
    assert changed.json()["limits"] == {**SMALL, "users": 3}
    assert changed.json()["revision"] == 2
    assert user.get("/v1/limits").json()["users"] == 3
    assert user.get("/v1/plans/small").json() == changed.json()
    assert administrator.delete("/v1/plans/small").status_code == 409
    administrator.put(f"/v1/orgs/{org.id}/plan", {"plan": "pro"})
    assert administrator.delete("/v1/plans/small").status_code == 204
    assert administrator.get("/v1/plans/small").status_code == 404
    assert administrator.delete("/v1/plans/community").status_code == 409


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        ({**SMALL, "users": -2}, "users"),
        ({**SMALL, "users": "5"}, "users"),
        ({**SMALL, "users": True}, "users"),
        ({**SMALL, "api_rps": 2**31}, "api_rps"),
        ({**SMALL, "request_timeout_secs": 10**30}, "request_timeout_secs"),
        ({**SMALL, "cats": 1}, "cats"),
        ({**SMALL, "sql_query_timeout_secs": 0}, "sql_query_timeout_secs"),
        ({**SMALL, "resources": {"max_cpu": 17, "max_memory_gi": 1}}, "resources.max_cpu"),
        ({"users": 1}, "api_rps"),
    ],
)
def test_wrong_limits_are_refused(
    installation: Installation, limits: dict[str, object], field: str
) -> None:
    administrator = installation.sign_in(installation.add_user(is_administrator=True))
    answer = administrator.put("/v1/plans/small", {"limits": limits})
    assert answer.status_code == 400
    missing = {"api_rps": "apps"}.get(field, field)
    assert list(answer.json()["details"]["fieldErrors"]) in ([field], [missing])
    assert administrator.get("/v1/plans/small").status_code == 404


@pytest.mark.parametrize("name", ["Small", "-a", "a.b", "x" * 64, "%00", "%20"])
def test_wrong_names_are_refused(installation: Installation, name: str) -> None:
    administrator = installation.sign_in(installation.add_user(is_administrator=True))
    assert administrator.put(f"/v1/plans/{name}", {"limits": SMALL}).status_code == 400
    assert administrator.get(f"/v1/plans/{name}").status_code == 404
