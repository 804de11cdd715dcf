import json
import threading

import pytest
from sqlalchemy import select

from caraway import Management
from caraway.errors import ApiError
from caraway.management import saved
from caraway_management.store.tables import DeviceSignIn
from tests.client.cli.conftest import Command
from tests.client.runtime import Answer, FakeRuntime
from tests.kit import deadlines
from tests.kit.management import Caller, Installation

PASSWORD = "correct horse battery"


def test_a_token_is_read_from_standard_input_and_remembered(
    caraway: Command, url: str, token: str
) -> None:
    signed_in = caraway("login", "--token", "-", "--management", url, stdin=f"{token}\n")

    assert (signed_in.exit_code, signed_in.stdout) == (0, f"signed in to {url} as ada\n")
    assert token not in signed_in.output
    assert saved.path().stat().st_mode & 0o777 == 0o600
    # The service of the last sign-in is used.
    assert caraway("orgs", "list").exit_code == 0


def test_a_token_that_is_refused_is_not_remembered(caraway: Command, url: str) -> None:
    refused = caraway("login", "--token", "-", "--management", url, stdin="wrong\n")

    assert refused.exit_code == 1
    assert not saved.path().exists()


def test_logout_forgets_the_token_and_leaves_it_valid(
    caraway: Command, url: str, token: str, management: Management
) -> None:
    caraway("login", "--token", "-", "--management", url, stdin=token)

    assert caraway("logout").stdout == f"signed out of {url}\n"

    assert "not signed in" in caraway("orgs", "list", "--management", url).stderr
    assert management.get_whoami()["name"] == "ada"
    assert caraway("logout").exit_code == 1


def test_whoami_shows_the_user_and_the_organization(signed_in: Command, url: str) -> None:
    lines = dict(line.split(maxsplit=1) for line in signed_in("whoami").stdout.splitlines())

    assert lines["management"] == url
    assert lines["user"] == "ada"
    assert json.loads(signed_in("whoami", "--json").stdout)["user"]["username"] == "ada"


def test_a_sign_in_that_is_approved_in_a_browser_gives_a_token(
    caraway: Command, runtime: FakeRuntime
) -> None:
    begun = {
        "code": "device-code", "user_code": "BCDF-GHJK", "expires_in": 900, "interval": 0,
        "verification_url_complete": "http://x/auth/token?code=BCDF-GHJK",
    }  # fmt: skip
    runtime.answers("POST /v1/device-sign-ins", Answer(201, json.dumps(begun).encode()))
    runtime.answers(
        "POST /auth/token/exchange",
        Answer(202, b'{"status": "pending"}'),
        Answer(200, b'{"access_token": "secret", "access_denied": false}'),
    )
    who = {"name": "ada", "credential_id": "token:7", "kind": "cli"}
    runtime.answers("GET /v1/whoami", Answer(body=json.dumps(who).encode()))
    runtime.answers("DELETE /v1/tokens/7", Answer(204))

    shown = caraway("login", "--management", runtime.endpoint)

    assert shown.exit_code == 0
    assert "Open http://x/auth/token?code=BCDF-GHJK" in shown.stderr
    assert "secret" not in shown.output
    assert [json.loads(each.body) for each in runtime.asked[1:3]] == [{"code": "device-code"}] * 2
    assert saved.load(saved.path()).credential_of(runtime.endpoint).token == "secret"

    assert caraway("logout").exit_code == 0
    assert runtime.asked[-1].headers["authorization"] == "Bearer secret"


def test_a_sign_in_that_is_denied_gives_no_token(caraway: Command, runtime: FakeRuntime) -> None:
    begun = {"code": "c", "user_code": "u", "expires_in": 900, "interval": 0,
             "verification_url_complete": "http://x"}  # fmt: skip
    runtime.answers("POST /v1/device-sign-ins", Answer(201, json.dumps(begun).encode()))
    denied = b'{"access_token": null, "access_denied": true}'
    runtime.answers("POST /auth/token/exchange", Answer(200, denied))

    refused = caraway("login", "--management", runtime.endpoint)

    assert refused.exit_code == 1
    assert "the sign-in was denied" in refused.stderr
    assert not saved.path().exists()


def test_a_real_service_signs_a_command_line_in_and_out(
    caraway: Command, installation: Installation, url: str, token: str
) -> None:
    statuses: list[int] = []
    login = threading.Thread(
        target=lambda: statuses.append(caraway("login", "--management", url).exit_code)
    )
    login.start()
    waiting = deadlines.until(
        lambda: installation.rows(select(DeviceSignIn.user_code)), "a sign-in waits"
    )
    _session(installation, token).post(f"/v1/device-sign-ins/{waiting[0]}/approve")
    login.join(60)

    assert statuses == [0]
    value = saved.load(saved.path()).credential_of(url).token
    with Management(value, url=url) as mine:
        assert mine.get_whoami()["name"] == "ada"
    assert caraway("logout").exit_code == 0
    with Management(value, url=url) as mine, pytest.raises(ApiError) as refused:
        mine.get_whoami()
    assert refused.value.status == 401


def _session(installation: Installation, token: str) -> Caller:
    """Return a caller with a session of ada, as the web page has one."""
    Caller(installation.client, token).put("/v1/whoami/password", {"password": PASSWORD})
    body = {"username": "ada", "password": PASSWORD}
    value = installation.anonymous().post("/v1/sessions", body).json()["access_token"]
    installation.client.cookies.clear()
    return Caller(installation.client, value)
