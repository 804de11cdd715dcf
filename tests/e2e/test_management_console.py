"""The console of the management service in Chromium: from sign-in to a deployed project."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.kit import browsers
from tests.kit.browsers import Watched
from tests.kit.management_process import Laptop, Served, laptop

pytestmark = [*browsers.NEEDED]
PASSWORD = "correct horse battery"
DEPLOY_MS = 120_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsers.launched() as found:
        yield found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    with laptop(tmp_path_factory.mktemp("management")) as made:
        made.initialize("acme")
        yield made


@pytest.fixture(scope="module")
def service(home: Laptop) -> Iterator[Served]:
    with home.serving() as served:
        set_ = httpx.put(
            f"{served.url}/v1/whoami/password",
            headers={"authorization": f"Bearer {home.token}"}, json={"password": PASSWORD},
        )  # fmt: skip
        assert set_.status_code == 204
        yield served


@pytest.fixture
def watched(browser: Any, service: Served) -> Iterator[Watched]:
    context = browser.new_context(bypass_csp=False)
    page = Watched(context.new_page(), f"{service.url}/")
    page.page.goto(page.base)
    yield page
    assert page.errors == []
    assert page.foreign() == []
    context.close()


def sign_in(watched: Watched, password: str = PASSWORD) -> None:
    watched.page.get_by_label("Username").fill("owner")
    watched.page.get_by_label("Password").fill(password)
    watched.page.get_by_role("button", name="Sign in").click()


def test_a_wrong_password_is_said(watched: Watched) -> None:
    sign_in(watched, "wrong")
    watched.page.get_by_text("unknown user, or wrong password").wait_for()
    assert not any("wrong" in url for url in watched.requests)


def test_from_a_new_project_to_its_runtime(watched: Watched) -> None:
    sign_in(watched)
    watched.page.get_by_placeholder("Name of a new project").fill("shop")
    watched.page.get_by_role("button", name="Add the project").click()
    watched.page.get_by_role("heading", name="shop", exact=True).wait_for()

    editor = watched.page.get_by_role("textbox", name="Manifest")
    good = editor.input_value()
    editor.fill("version: v1\nkind: Caraway\nname: shop\ndatasets: [{from: 7}]\n")
    watched.page.get_by_role("button", name="Save the manifest").click()
    alert = watched.page.get_by_role("alert")
    alert.wait_for()
    # All problems at once, with their lines.
    assert "line 4: datasets[0].name" in (alert.text_content() or "")
    editor.fill(f"{good}# from the console\n")
    watched.page.get_by_role("button", name="Save the manifest").click()
    alert.wait_for(state="detached")

    watched.page.get_by_placeholder("NAME").fill("DB_PASSWORD")
    watched.page.get_by_placeholder("Value").fill("opensesame")
    watched.page.get_by_role("button", name="Set the secret").click()
    watched.page.get_by_role("button", name="Remove DB_PASSWORD").wait_for()
    assert "opensesame" not in watched.page.content()

    watched.page.get_by_role("button", name="Deploy", exact=True).click()
    deployments = watched.page.get_by_role("region", name="Deployments")
    deployments.get_by_text("succeeded").wait_for(timeout=DEPLOY_MS)
    watched.page.get_by_role("button", name="Log").first.click()
    watched.page.get_by_role("region", name="Log of deployment").get_by_text("queued").wait_for()
    watched.page.get_by_role("region", name="Activity").get_by_text("create deployment").wait_for()
    watched.page.get_by_role("button", name="Pause").click()
    watched.page.get_by_text("paused", exact=True).wait_for()


def test_a_token_is_shown_once_and_a_session_ends(watched: Watched) -> None:
    sign_in(watched)
    watched.page.get_by_role("link", name="Organization").click()
    watched.page.get_by_placeholder("Name of a new token").fill("ci")
    watched.page.get_by_role("button", name="Make a token").click()
    shown = watched.page.get_by_text("shown once").text_content() or ""
    assert "cwp_" in shown
    watched.page.reload()
    watched.page.get_by_role("button", name="Revoke ci").wait_for()
    assert watched.page.get_by_text("shown once").count() == 0
    watched.page.get_by_role("button", name="Sign out").click()
    watched.page.get_by_role("heading", name="Sign in").wait_for()
    watched.page.reload()
    watched.page.get_by_role("heading", name="Sign in").wait_for()


@pytest.mark.skipif(not browsers.AXE.exists(), reason="needs axe-core: make check-console")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_keeps_the_rules_of_accessibility(
    browser: Any, service: Served, scheme: str
) -> None:
    context = browser.new_context(color_scheme=scheme, bypass_csp=True)
    watched = Watched(context.new_page(), f"{service.url}/")
    watched.page.goto(watched.base)
    watched.page.get_by_role("heading", name="Sign in").wait_for()
    found = watched.violations()
    sign_in(watched)
    watched.page.get_by_role("heading", name="Projects").wait_for()
    for title in ("Organization", "Activity", "Projects"):
        watched.open(title)
        watched.page.wait_for_load_state("networkidle")
        found += [f"{title}: {each}" for each in watched.violations()]
    watched.page.get_by_role("link", name="shop").click()
    watched.page.get_by_role("region", name="Deployments").wait_for()
    found += [f"project: {each}" for each in watched.violations()]
    assert found == []
    context.close()
