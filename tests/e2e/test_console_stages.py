"""The stages of a statement in Chromium, over a cluster of two whose tasks the test holds."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from caraway_gateway.composition import app
from tests.kit import browsers
from tests.kit.browsers import Watched
from tests.kit.held_tasks import SQL, holding
from tests.kit.listening import listening

pytestmark = [*browsers.NEEDED]
MANIFEST = "datasets: [{from: 'file:facts.parquet', name: facts}]"


def seen(url: str, release: Callable[[], object]) -> list[str]:
    """Run a statement, look at its stages, let it end, and return its rows."""
    with browsers.launched() as browser:
        watched = Watched(browser.new_page(), f"{url}/")
        watched.page.goto(watched.base)
        watched.open("SQL")
        watched.run(SQL)
        stages = watched.page.get_by_role("region", name="Stages")
        scanning = stages.get_by_role("button").filter(has_text="1 of 2")
        scanning.click()
        chosen = watched.page.get_by_role("complementary", name="The chosen node")
        chosen.get_by_text("reads facts").wait_for()
        watched.open("Queries and jobs")
        running = watched.page.get_by_role("region", name="Running statements")
        running.get_by_role("button", name="Stages").click()
        running.get_by_role("button").filter(has_text="1 of 2").wait_for()
        watched.page.get_by_text("No statement of yours is running.").wait_for(state="hidden")
        release()
        watched.page.get_by_text("No statement of yours is running.").wait_for()
        watched.open("SQL")
        watched.run(SQL)
        watched.page.get_by_role("gridcell", name="2", exact=True).wait_for()
        assert stages.count() == 0
        found: list[str] = watched.page.get_by_role("gridcell").all_text_contents()
        assert watched.errors == []
        browser.close()
    return found


async def test_stages_are_drawn_while_a_statement_runs(tmp_path: Path) -> None:
    async with (
        holding(tmp_path, MANIFEST) as (cluster, gate),
        listening(app.build_api(cluster.runtime.services)) as url,
    ):
        release = asyncio.get_running_loop().call_soon_threadsafe
        rows = await asyncio.to_thread(seen, url, lambda: release(gate.set))
    assert rows == ["0", "100", "1", "100", "2", "100"]
