"""The console of a runtime with API keys, in Chromium: `make test-console`."""

from pathlib import Path

from tests.kit import browsers
from tests.kit.browsers import Watched
from tests.kit.processes import child

pytestmark = [*browsers.NEEDED]


def test_keys_are_asked_for_and_never_in_an_address(tmp_path: Path) -> None:
    manifest = tmp_path / "caraway.yaml"
    manifest.write_text(
        "version: v1\nkind: Caraway\nname: locked\n"
        "runtime: {auth: {api-key: {enabled: true, keys: ['opensesame']}}}\ndatasets: []\n"
    )
    with browsers.launched() as browser, child(tmp_path, manifest) as running:
        context = browser.new_context()
        watched = Watched(context.new_page(), f"http://{running.addresses['http']}/")
        watched.page.goto(watched.base)
        dialog = watched.page.get_by_role("dialog", name="API key")
        dialog.get_by_label("Key").first.fill("wrong")
        dialog.get_by_role("button", name="Use the key").click()
        dialog.get_by_text("does not accept").wait_for()
        dialog.get_by_label("Key").first.fill("opensesame")
        dialog.get_by_role("button", name="Use the key").click()
        watched.page.get_by_text("The runtime is ready.").wait_for()
        assert not any("opensesame" in url for url in watched.requests)
        assert watched.page.evaluate("JSON.stringify({...localStorage, ...sessionStorage})") == "{}"
        assert "opensesame" not in running.logged()
        context.close()
