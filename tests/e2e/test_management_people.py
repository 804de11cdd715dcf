"""Rights of people in the console of the management service, and their ways to sign in."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit import browsers, management_pages, prefix_proxy
from tests.kit.browsers import Watched
from tests.kit.management_pages import Site, sign_in

pytestmark = [*browsers.NEEDED]
CHANGES = (
    "Add the project", "Deploy", "Pause", "Save the manifest", "Set the secret", "Show the keys",
    "Add a monitor", "Add a reaction", "Invite",
)  # fmt: skip
"""Buttons of changes that viewers may not make."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsers.launched() as found:
        yield found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with management_pages.serving(tmp_path_factory.mktemp("management")) as found:
        # The plan of a new organization has one place.
        found.api("PUT", "/v1/orgs/1/plan", {"plan": "pro"})
        yield found


def sign_in_at_issuer(site: Site, watched: Watched, name: str) -> None:
    site.issuer.claims = {
        "sub": name, "email": f"{name}@example.com", "email_verified": True,
    }  # fmt: skip
    watched.page.get_by_role("link", name="Sign in with the identity provider").click()


def test_the_issuer_leads_back_to_the_place_that_was_wanted(browser: Any, site: Site) -> None:
    place = site.add_project("wanted")
    site.add_user("ada", "viewer")
    with site.opened(browser, place) as watched:
        site.issuer.refuses = True
        sign_in_at_issuer(site, watched, "ada")
        watched.page.get_by_role("alert").get_by_text("did not sign you in").wait_for()
        watched.page.get_by_role("link", name="Go back and sign in again").click()
        site.issuer.refuses = False
        sign_in_at_issuer(site, watched, "ada")
        watched.page.get_by_role("heading", name="wanted", exact=True).wait_for()
        assert watched.page.url == f"{watched.base}{place}"
        sent = [url for url in watched.requests if url.startswith(f"{site.issuer.url}/authorize")]
        # Each sign-in has its own state and nonce.
        assert len(sent) == len({url.partition("state=")[2] for url in sent}) == 2
        assert all("nonce=" in url and "code_challenge=" in url for url in sent)


def test_an_unknown_identity_is_told_so(browser: Any, site: Site) -> None:
    with site.opened(browser, "#/organization") as watched:
        sign_in_at_issuer(site, watched, "stranger")
        alert = watched.page.get_by_role("alert")
        alert.wait_for()
        assert "user" in (alert.text_content() or "")
        back = watched.page.get_by_role("link", name="Go back and sign in again")
        assert back.get_attribute("href") == "../../#/organization"


def test_what_a_role_may_not_do_is_not_offered(browser: Any, site: Site) -> None:
    place = site.add_project("read-only")
    site.add_user("vera", "viewer")
    with site.opened(browser, place) as watched:
        sign_in(watched, "vera")
        watched.page.get_by_role("heading", name="read-only", exact=True).wait_for()
        watched.page.get_by_text("Your role does not change manifests.").wait_for()
        for page in ("Projects", "Organization"):
            assert [each for each in CHANGES if button(watched, each).count()] == []
            watched.open(page)
            watched.page.wait_for_load_state("networkidle")
        assert watched.page.get_by_label("Role of owner").count() == 0
        # Not even by its address.
        assert watched.page.get_by_role("link", name="Activity", exact=True).count() == 0
        watched.page.goto(f"{watched.base}#/activity")
        watched.page.get_by_role("heading", name="Not allowed").wait_for()
    with site.opened(browser, place) as watched:
        sign_in(watched)
        for each in CHANGES[1:-1]:
            button(watched, each).wait_for()


def button(watched: Watched, name: str) -> Any:
    return watched.page.get_by_role("button", name=name, exact=True)


def test_an_invitation_makes_a_member(browser: Any, site: Site) -> None:
    site.add_user("ines")
    with site.opened(browser, "#/organization") as owner:
        sign_in(owner)
        invitations = owner.page.get_by_role("region", name="Invitations")
        for email in ("ines@example.com", "wrong@example.com"):
            invitations.get_by_placeholder("E-mail address").fill(email)
            button(owner, "Invite").click()
            owner.page.get_by_role("button", name=f"Revoke {email}").wait_for()
            if email.startswith("ines"):
                value = invitations.get_by_role("status").locator("code").text_content()
        owner.page.get_by_role("button", name="Revoke wrong@example.com").click()
        owner.page.get_by_role("button", name="Revoke wrong@example.com").wait_for(state="detached")
        used = owner.page.get_by_role("row", name="members and open invitations")
        before = used.text_content() or ""

        with site.opened(browser) as invited:
            sign_in(invited, "ines")
            invited.page.get_by_text("You are in no organization.").wait_for()
            invited.page.get_by_placeholder("Value of an invitation").fill("wrong")
            button(invited, "Join the organization").click()
            invited.page.get_by_role("alert").wait_for()
            invited.page.get_by_placeholder("Value of an invitation").fill(value or "")
            button(invited, "Join the organization").click()
            invited.page.get_by_role("heading", name="Projects").wait_for()

        owner.page.reload()
        owner.page.get_by_text("No open invitations.").wait_for()
        # An invitation that was accepted takes no other place.
        used.get_by_text("50").wait_for()
        assert used.text_content() == before
        role = owner.page.get_by_label("Role of ines")
        with owner.page.expect_response(lambda answer: answer.request.method == "PATCH"):
            role.select_option("admin")
        members = site.api("GET", "/v1/members").json()["members"]
        assert [each["roles"] for each in members if each["username"] == "ines"] == [["admin"]]
        owner.page.get_by_role("button", name="Remove ines").click()
        role.wait_for(state="detached")


def test_a_session_that_ends_comes_back_to_its_place_and_its_text(browser: Any, site: Site) -> None:
    place = site.add_project("kept")
    with site.opened(browser, place) as watched:
        sign_in(watched)
        editor = watched.page.get_by_role("textbox", name="Manifest")
        editor.click()
        watched.page.keyboard.press("Control+End")
        watched.page.keyboard.insert_text("# not saved yet\n")
        watched.page.context.clear_cookies()
        button(watched, "Save the manifest").click()
        watched.page.get_by_text("Your session has ended.").wait_for()
        assert watched.page.get_by_role("navigation").count() == 0
        sign_in(watched)
        watched.page.get_by_text("# not saved yet").wait_for()
        assert watched.page.url == f"{watched.base}{place}"
        button(watched, "Save the manifest").click()
        watched.page.get_by_role("button", name="Discard your changes").wait_for(state="detached")
        manifest = site.api("GET", f"/v1/{place[2:]}").json()["config"]["manifest"]
        assert manifest.endswith("# not saved yet\n")
        # Signing out leaves no text behind.
        editor.click()
        watched.page.keyboard.insert_text("# secret")
        button(watched, "Sign out").click()
        watched.page.get_by_role("heading", name="Sign in").wait_for()
        assert watched.page.get_by_text("Your session has ended.").count() == 0
        assert watched.page.evaluate("JSON.stringify({...sessionStorage})") == "{}"


def test_the_link_of_an_invitation_leads_to_the_form_and_back(browser: Any, site: Site) -> None:
    join(browser, site, "jo", f"{site.url}/")


def join(browser: Any, site: Site, name: str, base: str) -> None:
    """Follow the link of an invitation, sign in, and approve."""
    site.add_user(name)
    body = {"email": f"{name}@example.com", "roles": ["viewer"]}
    value = site.api("POST", "/v1/invitations", body).json()["value"]
    with site.opened(browser, f"join?value={value}", base) as watched:
        sign_in(watched, name)
        watched.page.get_by_text("You are invited to the organization").wait_for()
        assert watched.page.url == f"{base}join?value={value}"
        button(watched, "Approve").click()
        watched.page.get_by_text("You are a member of").wait_for()
        watched.page.goto(f"{base}auth/token")
        watched.page.get_by_label("Code that the command line shows").fill("BBBB-BBBB")
        button(watched, "Next").click()
        watched.page.get_by_text("a sign-in that waits").wait_for()
        assert not [url for url in watched.requests if not url.startswith(base)]


def test_everything_works_below_the_prefix_of_a_proxy(browser: Any, site: Site) -> None:
    with prefix_proxy.proxied(site.url, "/data", keeps_host=True) as base:
        join(browser, site, "pia", base)
        with site.opened(browser, "sign-in", base) as watched:
            sign_in(watched)
            watched.page.get_by_role("heading", name="Projects").wait_for()
            assert watched.page.url == base
            for page in ("Organization", "Activity", "Projects"):
                watched.open(page)
                watched.page.wait_for_load_state("networkidle")
                assert watched.page.get_by_text("cannot be loaded").count() == 0
            assert not [url for url in watched.requests if not url.startswith(base)]
