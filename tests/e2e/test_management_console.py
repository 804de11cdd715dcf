"""The console of the management service in Chromium: from sign-in to a deployed project."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit import browsers, management_pages
from tests.kit.browsers import Watched
from tests.kit.management_pages import Site, sign_in

pytestmark = [*browsers.NEEDED]
DEPLOY_MS = 120_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsers.launched() as found:
        yield found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with management_pages.serving(tmp_path_factory.mktemp("management")) as found:
        yield found


@pytest.fixture
def watched(browser: Any, site: Site) -> Iterator[Watched]:
    with site.opened(browser) as found:
        yield found


def write(watched: Watched, text: str) -> None:
    """Replace the manifest by a text."""
    watched.page.get_by_role("textbox", name="Manifest").click()
    watched.page.keyboard.press("Control+a")
    watched.page.keyboard.insert_text(text)


def written(watched: Watched) -> str:
    watched.page.locator(".cm-line").first.wait_for()
    lines = watched.page.locator(".cm-line").all_inner_texts()
    return "\n".join(line.strip("\n") for line in lines)


def test_a_wrong_password_is_said(watched: Watched) -> None:
    sign_in(watched, password="wrong")
    watched.page.get_by_text("unknown user, or wrong password").wait_for()
    assert not any("wrong" in url for url in watched.requests)


def test_from_a_new_project_to_its_runtime(watched: Watched) -> None:
    sign_in(watched)
    watched.page.get_by_placeholder("Name of a new project").fill("shop")
    watched.page.get_by_role("button", name="Add the project").click()
    watched.page.get_by_role("heading", name="shop", exact=True).wait_for()

    good = written(watched)
    write(watched, "version: v1\nkind: Caraway\nname: shop\ndatasets: [{from: 7}]\n")
    watched.page.get_by_role("button", name="Save the manifest").click()
    alert = watched.page.get_by_role("alert")
    alert.wait_for()
    # All problems at once, with their lines, and below these lines.
    assert "line 4: datasets[0].name" in (alert.text_content() or "")
    message = watched.page.locator(".cm-line:nth-child(4) + .cm-problem")
    assert "datasets[0]" in (message.text_content() or "")
    write(watched, f"{good}# from the console\n")
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


def test_a_manifest_is_completed_from_its_schema(watched: Watched, site: Site) -> None:
    place = site.add_project("completed", manifest=None)
    sign_in(watched)
    watched.page.goto(f"{watched.base}{place}")
    editor = watched.page.get_by_role("textbox", name="Manifest")
    editor.click()
    assert not any("manifest.schema.json" in url for url in watched.requests)
    watched.page.keyboard.insert_text("datasets:\n  - from: file:a.csv\n    acceleration:\n      ")
    watched.page.keyboard.type("mod")
    watched.page.get_by_role("option", name="write_mode").wait_for()
    # Keys of the editor take no choice right after the list has opened.
    choices = watched.page.locator(".cm-tooltip-autocomplete").get_by_role("option")
    choices.first.click()
    # The words that the key allows follow.
    watched.page.get_by_role("option", name="file_create").wait_for()
    watched.page.keyboard.type("memo")
    watched.page.get_by_role("option", name="file_create").wait_for(state="detached")
    choices.first.click()
    watched.page.get_by_text("mode: memory").wait_for()
    assert sum("manifest.schema.json" in url for url in watched.requests) == 1
    # A reload loses nothing that is not saved.
    watched.page.reload()
    watched.page.get_by_text("mode: memory").wait_for()
    watched.page.get_by_role("button", name="Discard your changes").click()
    watched.page.get_by_text("mode: memory").wait_for(state="detached")


def test_the_palette_reaches_projects(watched: Watched, site: Site) -> None:
    site.add_project("reached")
    sign_in(watched)
    watched.page.get_by_role("heading", name="Projects").wait_for()
    watched.page.keyboard.press("Control+k")
    watched.page.get_by_role("combobox", name="Go to").fill("reached")
    watched.page.get_by_role("option", name="reached").wait_for()
    watched.page.keyboard.press("Enter")
    watched.page.get_by_role("heading", name="reached", exact=True).wait_for()


def test_keys_rotate(watched: Watched, site: Site) -> None:
    place = site.add_project("rotated")
    keys = f"/v1/{place[2:]}/api-keys"
    before = site.api("GET", keys).json()
    sign_in(watched)
    watched.page.goto(f"{watched.base}{place}")
    watched.page.get_by_role("button", name="Show the keys").click()
    shown = watched.page.get_by_role("region", name="API keys")
    shown.get_by_text(before["api_key"]).wait_for()
    watched.page.get_by_role("button", name="Regenerate the primary key").click()
    shown.get_by_text(before["api_key"]).wait_for(state="detached")
    shown.get_by_text(before["api_key_2"]).wait_for()
    after = site.api("GET", keys).json()
    shown.get_by_text(after["api_key"]).wait_for()
    assert not any(before["api_key"] in url for url in watched.requests)


def test_a_monitor_is_added_changed_and_deleted(watched: Watched, site: Site) -> None:
    place = site.add_project("watched")
    path = f"/v1/{place[2:]}/monitors"
    sign_in(watched)
    watched.page.goto(f"{watched.base}{place}")
    watched.page.get_by_role("button", name="Add a monitor").click()
    form = watched.page.get_by_role("form", name="New monitor")
    form.get_by_label("Name").fill("slow")
    form.get_by_label("Value").select_option("query_latency_p99")
    form.get_by_label("Threshold").fill("250")
    form.get_by_label("Webhook").fill("https://hooks.example.com/slow")
    form.get_by_role("button", name="Add the monitor").click()
    table = watched.page.get_by_role("region", name="Monitors")
    table.get_by_text("is above 250 ms in 5m").wait_for()
    assert "whsec_" in (watched.page.get_by_text("shown once").text_content() or "")

    watched.page.get_by_role("button", name="Edit slow").click()
    form = watched.page.get_by_role("form", name="Monitor slow")
    form.get_by_label("Value").select_option("dataset_status")
    form.get_by_label("Datasets").fill("orders, lines")
    form.get_by_label("State", exact=True).select_option("error")
    form.get_by_role("button", name="Save the monitor").click()
    table.get_by_text("Dataset state of orders, lines is 3 in 5m").wait_for()
    watched.page.get_by_role("button", name="Turn off slow").click()
    watched.page.get_by_role("button", name="Turn on slow").wait_for()
    (kept,) = [each for each in site.api("GET", path).json()["monitors"] if each["name"] == "slow"]
    assert (kept["enabled"], kept["spec"]["datasets"]) == (False, ["orders", "lines"])
    assert kept["targets"]["http"]["url"] == "https://hooks.example.com/slow"

    # The page shows the refusal of the service, and the form keeps its content.
    watched.page.get_by_role("button", name="Add a monitor").click()
    form = watched.page.get_by_role("form", name="New monitor")
    form.get_by_label("Name").fill("slow")
    form.get_by_label("Threshold").fill("1")
    form.get_by_role("button", name="Add the monitor").click()
    watched.page.get_by_role("alert").wait_for()
    assert form.get_by_label("Name").input_value() == "slow"
    form.get_by_role("button", name="Cancel").click()
    watched.page.get_by_role("button", name="Delete slow").click()
    watched.page.get_by_role("button", name="Edit slow").wait_for(state="detached")


def test_a_reaction_is_added_changed_and_deleted(watched: Watched, site: Site) -> None:
    place = site.add_project("reacting")
    path = f"/v1/{place[2:]}/reactions"
    sign_in(watched)
    watched.page.goto(f"{watched.base}{place}")
    watched.page.get_by_role("button", name="Add a reaction").click()
    form = watched.page.get_by_role("form", name="New reaction")
    form.get_by_label("Name").fill("unpaid")
    form.get_by_label("Fires if").select_option("dataset_row_match")
    assert form.get_by_label("Milliseconds or more").count() == 0
    form.get_by_role("textbox", name="Dataset").fill("orders")
    form.get_by_label("Condition, as behind WHERE").fill("paid = 'no'")
    form.get_by_label("Rows at least").fill("3")
    form.get_by_label("Webhook").fill("https://hooks.example.com/unpaid")
    form.get_by_role("button", name="Add the reaction").click()
    table = watched.page.get_by_role("region", name="Reactions")
    table.get_by_text("3 rows of orders with paid = 'no'").wait_for()
    assert "whsec_" in (watched.page.get_by_text("shown once").text_content() or "")

    watched.page.get_by_role("button", name="Edit unpaid").click()
    form = watched.page.get_by_role("form", name="Reaction unpaid")
    # The kind of a reaction stays.
    assert form.get_by_label("Fires if").is_disabled()
    form.get_by_label("Condition, as behind WHERE").fill("paid IS NULL")
    form.get_by_role("button", name="Save the reaction").click()
    table.get_by_text("3 rows of orders with paid IS NULL").wait_for()
    watched.page.get_by_role("button", name="Turn off unpaid").click()
    watched.page.get_by_role("button", name="Turn on unpaid").wait_for()
    (kept,) = site.api("GET", path).json()["reactions"]
    assert (kept["enabled"], kept["spec"]["minRows"], kept["kind"]) == (
        False, 3, "dataset_row_match",
    )  # fmt: skip
    assert kept["targets"]["http"]["url"] == "https://hooks.example.com/unpaid"

    # The page shows the refusal of the service, and the form keeps its content.
    watched.page.get_by_role("button", name="Add a reaction").click()
    form = watched.page.get_by_role("form", name="New reaction")
    form.get_by_label("Name").fill("unpaid")
    form.get_by_label("Fires if").select_option("task_history_slow")
    form.get_by_label("Milliseconds or more").fill("500")
    form.get_by_label("Webhook").fill("https://hooks.example.com/slow")
    form.get_by_role("button", name="Add the reaction").click()
    watched.page.get_by_role("alert").get_by_text("already exists").wait_for()
    assert form.get_by_label("Name").input_value() == "unpaid"
    form.get_by_label("Name").fill("slow")
    form.get_by_role("button", name="Add the reaction").click()
    table.get_by_text("a task is slow: 500 ms or more").wait_for()
    watched.page.get_by_role("button", name="Delete unpaid").click()
    watched.page.get_by_role("button", name="Edit unpaid").wait_for(state="detached")
    (kept,) = site.api("GET", path).json()["reactions"]
    assert (kept["name"], kept["spec"]["thresholdMs"]) == ("slow", 500)


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
def test_every_page_keeps_the_rules_of_accessibility(browser: Any, site: Site, scheme: str) -> None:
    context = browser.new_context(color_scheme=scheme, bypass_csp=True)
    watched = Watched(context.new_page(), f"{site.url}/")
    place = site.add_project(f"seen-{scheme}")
    watched.page.goto(watched.base)
    watched.page.get_by_role("heading", name="Sign in").wait_for()
    found = watched.violations()
    sign_in(watched)
    watched.page.get_by_role("heading", name="Projects").wait_for()
    for title in ("Organization", "Activity", "Projects"):
        watched.open(title)
        watched.page.wait_for_load_state("networkidle")
        found += [f"{title}: {each}" for each in watched.violations()]
    watched.page.goto(f"{watched.base}{place}")
    watched.page.get_by_role("button", name="Add a monitor").click()
    watched.page.get_by_role("form", name="New monitor").wait_for()
    watched.page.get_by_role("button", name="Add a reaction").click()
    watched.page.get_by_role("form", name="New reaction").wait_for()
    watched.page.get_by_role("textbox", name="Manifest").wait_for()
    found += [f"project: {each}" for each in watched.violations()]
    assert found == []
    context.close()
