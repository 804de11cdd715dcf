"""Secrets, keys, members, tokens, monitors, activity and metrics."""

import json

import pytest

from caraway import Management
from caraway.errors import ApiError
from tests.client.cli.conftest import Command
from tests.kit.management import Installation


@pytest.fixture(autouse=True)
def project(management: Management) -> int:
    """The project sales."""
    return int(management.create_project(name="sales")["id"])


def test_a_secret_is_set_from_standard_input_and_never_shown(
    signed_in: Command, management: Management, project: int
) -> None:
    done = signed_in("secrets", "set", "token", "-p", "sales", stdin="very secret\n")

    assert (done.exit_code, done.stdout) == (0, "set TOKEN\n")
    listed = signed_in("secrets", "list", "-p", "sales").stdout
    assert listed.splitlines()[1].split()[:2] == ["TOKEN", "project"]
    shown = signed_in("secrets", "list", "-p", "sales", "--json").stdout
    assert "very secret" not in listed + shown
    assert signed_in("secrets", "delete", "TOKEN", "-p", "sales", "--yes").exit_code == 0
    assert management.list_project_secrets(project)["secrets"] == []


def test_an_empty_secret_is_refused(signed_in: Command) -> None:
    refused = signed_in("secrets", "set", "token", "-p", "sales", stdin="\n")

    assert refused.exit_code == 1
    assert "expected a value on standard input" in refused.stderr


def test_a_secret_of_the_organization_is_linked_and_unlinked(
    signed_in: Command, management: Management, project: int
) -> None:
    assert signed_in("secrets", "set", "shared", "--of-org", stdin="x").stdout == "set SHARED\n"
    assert signed_in("secrets", "link", "shared", "-p", "sales").stdout == "linked SHARED\n"

    [secret] = management.list_project_secrets(project)["secrets"]
    assert (secret["name"], secret["source"]) == ("SHARED", "organization")
    assert "SHARED" in signed_in("secrets", "list", "--of-org").stdout
    assert signed_in("secrets", "unlink", "shared", "-p", "sales").exit_code == 0
    assert management.list_project_secrets(project)["secrets"] == []
    assert signed_in("secrets", "delete", "shared", "--of-org", "-y").exit_code == 0


def test_one_key_is_regenerated_and_the_other_stays(
    signed_in: Command, management: Management, project: int
) -> None:
    before = json.loads(signed_in("keys", "show", "-p", "sales", "--json").stdout)

    assert signed_in("keys", "regenerate", "-p", "sales").exit_code == 1  # Not confirmed.
    assert management.get_api_keys(project) == before
    done = signed_in("keys", "regenerate", "--number", "2", "-p", "sales", "--yes", "--json")

    after = json.loads(done.stdout)
    assert after["api_key"] == before["api_key"]
    assert after["api_key_2"] != before["api_key_2"]
    assert after["regenerated_key"] == 2


def test_a_member_is_added_changed_and_removed(
    signed_in: Command, installation: Installation, management: Management
) -> None:
    installation.add_user("bob")

    assert signed_in("members", "add", "bob", "--role", "viewer").stdout == "added bob as viewer\n"
    assert signed_in("members", "change", "Bob", "--role", "admin").stdout == "Bob is admin\n"
    rows = signed_in("members", "list").stdout.splitlines()[1:]
    assert [row.split()[1:3] for row in rows] == [["ada", "owner"], ["bob", "admin"]]
    assert signed_in("members", "remove", "bob", "--yes").stdout == "removed bob\n"
    assert len(management.list_members()["members"]) == 1
    assert "'bob' is no member" in signed_in("members", "remove", "bob", "--yes").stderr


def test_an_invitation_is_made_and_accepted(
    signed_in: Command, installation: Installation, management: Management, url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    value = signed_in("members", "invite", "bob@example.com").stdout.strip()
    bob = installation.sign_in(installation.add_user("bob")).token
    monkeypatch.setenv("CARAWAY_MANAGEMENT_TOKEN", bob or "")

    joined = signed_in("members", "join", "--json", stdin=value)

    assert json.loads(joined.stdout)["org"]["name"] == "acme"
    assert len(management.list_members()["members"]) == 2


def test_a_token_is_made_used_and_revoked(signed_in: Command, url: str) -> None:
    made = signed_in("tokens", "create", "ci", "--scope", "apps:read", "--expires", "30d",
                     "--only-org")  # fmt: skip
    value = made.stdout.strip()

    with Management(value, url=url, max_retries=0) as limited:
        assert len(limited.list_projects()["projects"]) == 1
        with pytest.raises(ApiError, match="scope"):
            limited.create_project(name="other")
        rows = json.loads(signed_in("tokens", "list", "--json").stdout)
        token = next(each for each in rows if each["name"] == "ci")
        assert (token["scopes"], token["org_id"]) == (["apps:read"], 1)
        revoked = signed_in("tokens", "revoke", str(token["id"]), "--yes")
        assert revoked.stdout == "revoked ci\n"
        with pytest.raises(ApiError):
            limited.list_projects()


def test_days_that_are_none_are_a_usage_error(signed_in: Command) -> None:
    refused = signed_in("tokens", "create", "ci", "--scope", "apps:read", "--expires", "soon")

    assert refused.exit_code == 2
    assert "a number of days" in refused.stderr


def test_a_monitor_is_made_switched_and_deleted(
    signed_in: Command, management: Management, project: int
) -> None:
    made = signed_in(
        "monitors", "create", "failures", "--template", "query_failures", "--threshold", "3",
        "--webhook", "https://example.com/hook", "-p", "sales", "--json",
    )  # fmt: skip
    assert made.exit_code == 0, made.stderr
    id_ = json.loads(made.stdout)["id"]

    monitor = management.get_monitor(project, id_)
    assert monitor["spec"]["threshold"] == 3
    assert monitor["targets"]["http"]["url"] == "https://example.com/hook"
    assert signed_in("monitors", "disable", id_, "-p", "sales").stdout == "disabled failures\n"
    assert management.get_monitor(project, id_)["enabled"] is False
    assert signed_in("monitors", "enable", id_, "-p", "sales").stdout == "enabled failures\n"
    assert "failures" in signed_in("monitors", "list", "-p", "sales").stdout
    assert "query_failures" in signed_in("monitors", "show", id_, "-p", "sales").stdout
    assert signed_in("monitors", "delete", id_, "-p", "sales", "-y").exit_code == 0
    left = [each["name"] for each in management.list_monitors(project)["monitors"]]
    assert left == ["Storage at 90 %"]


def test_changes_are_listed(signed_in: Command) -> None:
    rows = signed_in("activity").stdout.splitlines()

    assert rows[0].split()[:4] == ["timestamp", "actor", "action", "resource"]
    assert rows[1].split()[1:5] == ["ada", "create_project", "project", "sales"]
    assert len(json.loads(signed_in("activity", "--limit", "1", "--json").stdout)) == 1


def test_metrics_of_a_project_are_shown(signed_in: Command) -> None:
    shown = json.loads(signed_in("metrics", "-p", "sales", "--window", "5m", "--json").stdout)

    assert shown["window"] == "5m"
    assert signed_in("metrics", "-p", "sales").stdout.startswith("no samples yet: ")
