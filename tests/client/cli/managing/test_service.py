import json
from pathlib import Path

import pytest

from caraway.management import saved
from caraway.management.saved import SavedCredential, SavedCredentials
from tests.client.cli.conftest import Command
from tests.client.runtime import Answer, FakeRuntime
from tests.kit.management import Installation


def test_without_a_token_login_is_advised(caraway: Command) -> None:
    refused = caraway("orgs", "list")

    assert refused.exit_code == 1
    assert "not signed in to http://127.0.0.1:8070; run `caraway login`" in refused.stderr


def test_a_service_that_is_away_is_named(caraway: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARAWAY_MANAGEMENT_TOKEN", "t")

    refused = caraway("orgs", "list", "--management", "http://127.0.0.1:1")

    assert refused.exit_code == 1
    assert "is the management service running?" in refused.stderr


def test_a_url_that_is_none_is_a_usage_error(
    caraway: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARAWAY_MANAGEMENT_TOKEN", "t")

    refused = caraway("orgs", "list", "--management", "ftp://x")

    assert refused.exit_code == 2


def test_a_token_that_is_refused_is_not_shown(
    caraway: Command, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARAWAY_MANAGEMENT_TOKEN", "wrong-token")

    refused = caraway("orgs", "list", "--management", url)

    assert refused.exit_code == 1
    assert "run `caraway login`" in refused.stderr
    assert "wrong-token" not in refused.output


def test_a_saved_token_is_sent_to_its_own_service_only(
    caraway: Command, runtime: FakeRuntime
) -> None:
    credentials = SavedCredentials().with_service("http://127.0.0.1:1", SavedCredential("secret"))
    saved.save(saved.path(), credentials)
    runtime.answers("GET /v1/orgs", Answer(body=b'{"orgs": []}'))

    refused = caraway("orgs", "list", "--management", runtime.endpoint)

    assert "not signed in" in refused.stderr
    assert runtime.asked == []


def test_organizations_are_listed_and_chosen(
    signed_in: Command, installation: Installation, token: str
) -> None:
    header, row = signed_in("orgs", "list").stdout.splitlines()
    assert (header.split(), row.split()) == (["id", "name", "role"], ["1", "acme", "owner"])

    assert signed_in("orgs", "use", "acme").exit_code == 0
    [kept] = saved.load(saved.path()).services.values()
    assert kept.org == "acme"
    refused = signed_in("orgs", "use", "other")
    assert refused.exit_code == 1
    assert "there are: acme" in refused.stderr


def test_limits_are_shown(signed_in: Command) -> None:
    limits = json.loads(signed_in("orgs", "limits", "--json").stdout)

    assert {"apps", "replicas", "users", "api_rps"} <= limits.keys()


def test_a_linked_directory_names_the_organization(
    signed_in: Command, installation: Installation, folder: Path, url: str, token: str
) -> None:
    link = {"management": url, "org": "elsewhere", "project_id": 1, "project": "p"}
    (folder / ".caraway").mkdir()
    (folder / ".caraway" / "project.json").write_text(json.dumps(link))

    assert "elsewhere" in signed_in("projects", "list").stderr
    assert signed_in("projects", "list", "--org", "acme").exit_code == 0
