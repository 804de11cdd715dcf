"""A management service with an issuer of OpenID Connect, for tests of its pages."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.kit import oidc_issuer
from tests.kit.browsers import Watched
from tests.kit.management_process import laptop
from tests.kit.oidc_issuer import CLIENT_ID, CLIENT_SECRET, Issuer

ORGANIZATION, OWNER, PASSWORD = "acme", "owner", "correct horse battery"

MANIFEST = "version: v1\nkind: Caraway\nname: shop\ndatasets: []\n"


@dataclass(frozen=True, slots=True)
class Site:
    """A running service, whose owner has a password."""

    url: str
    token: str
    issuer: Issuer

    def api(self, method: str, path: str, json: Any = None) -> httpx.Response:
        """Send a request as the owner, without the page."""
        headers = {"authorization": f"Bearer {self.token}"}
        answer = httpx.request(method, f"{self.url}{path}", headers=headers, json=json)
        assert answer.status_code < 300, answer.text
        return answer

    def add_project(self, name: str, manifest: str | None = MANIFEST) -> str:
        """Add a project; return its place in the page."""
        made = self.api("POST", "/v1/projects", {"name": name, "manifest": manifest}).json()
        return f"#/projects/{made['id']}"

    def add_user(self, name: str, role: str | None = None) -> int:
        """Add a user, whom the issuer signs in; with a role he is a member."""
        body = {"username": name, "email": f"{name}@example.com", "password": PASSWORD}
        made = self.api("POST", "/v1/users", body).json()
        if role is not None:
            self.api("POST", "/v1/members", {"username": name, "roles": [role]})
        return int(made["id"])

    @contextlib.contextmanager
    def opened(self, browser: Any, place: str = "", base: str = "") -> Iterator[Watched]:
        """Open a page that agrees to everything, until the block ends; it must have no errors.

        `base` is the URL of a proxy, if there is one.
        """
        context = browser.new_context()
        watched = Watched(context.new_page(), base or f"{self.url}/")
        watched.page.on("dialog", lambda dialog: dialog.accept())
        watched.page.goto(watched.base + place)
        yield watched
        assert watched.errors == []
        assert [url for url in watched.foreign() if not url.startswith(self.issuer.url)] == []
        context.close()


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Site]:
    """Serve until the block ends."""
    environ = {"CARAWAY_MANAGEMENT_OIDC_CLIENT_SECRET": CLIENT_SECRET}
    with oidc_issuer.listening() as issuer, laptop(folder, environ=environ) as home:
        home.initialize(ORGANIZATION)
        flags = ("--oidc-issuer", issuer.url, "--oidc-client-id", CLIENT_ID)
        with home.serving(*flags) as served:
            site = Site(served.url, home.token, issuer)
            site.api("PUT", "/v1/whoami/password", {"password": PASSWORD})
            yield site


def sign_in(watched: Watched, name: str = OWNER, password: str = PASSWORD) -> None:
    """Sign in with a password, on the page that asks for it."""
    watched.page.get_by_label("Username").fill(name)
    watched.page.get_by_label("Password").fill(password)
    watched.page.get_by_role("button", name="Sign in").click()
