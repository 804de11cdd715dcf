"""The pictures of the guide are those of the pages: `CARAWAY_WRITE_DOCS=1` writes them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.kit import browsers, pictures
from tests.kit.browsers import Watched
from tests.kit.management_pages import serving, sign_in
from tests.kit.processes import child

pytestmark = [*browsers.NEEDED]
ROWS = 5_000
CITIES = ("Bern", "Chur", "Genf", "Thun", "Zug")
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "console.md"
MOST_OF_ALL = 500_000
MANIFEST = """\
version: v1
kind: Caraway
name: shop
datasets:
  - from: file:orders.parquet
    name: orders
    description: Orders of all shops
    acceleration: {enabled: true}
  - {from: 'file:missing.csv', name: returns}
views:
  - {name: by_city, sql: 'SELECT city, sum(amount) AS amount FROM orders GROUP BY city'}
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsers.launched() as found:
        yield found


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("pictures")
    orders = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "city": [CITIES[number % 5] for number in range(ROWS)],
            "amount": [round(number * 7919 % 10_007 / 100, 2) for number in range(ROWS)],
        }
    )
    pq.write_table(orders, folder / "orders.parquet")
    manifest = folder / "caraway.yaml"
    manifest.write_text(MANIFEST)
    with child(folder, manifest) as running:
        yield f"http://{running.addresses['http']}/"


def opened(browser: Any, base: str, place: str, scheme: str = "light") -> Watched:
    context = browser.new_context(
        viewport=pictures.SIZE, color_scheme=scheme, locale="en-GB", timezone_id="UTC"
    )
    watched = Watched(context.new_page(), base)
    watched.page.goto(base + place)
    watched.page.wait_for_load_state("networkidle")
    return watched


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("", "What needs attention"),
        ("#/data/public/orders", "5,000 rows"),
        ("#/tools", "get_readiness"),
    ],
)
def test_pages_look_as_in_the_guide(browser: Any, runtime: str, place: str, text: str) -> None:
    watched = opened(browser, runtime, place)
    watched.page.get_by_text(text).first.wait_for()
    pictures.check(watched.page, place.split("/")[1] if place else "home")
    watched.page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_result_looks_as_in_the_guide(browser: Any, runtime: str, scheme: str) -> None:
    watched = opened(browser, runtime, "#/sql", scheme)
    watched.run(
        "SELECT city, count(*) AS orders, round(sum(amount)) AS amount\n"
        "FROM orders\nGROUP BY city\nORDER BY city"
    )
    watched.page.get_by_test_id("row-count").get_by_text("5 rows").wait_for()
    pictures.check(watched.page, f"sql-{scheme}")
    watched.page.context.close()


def test_a_project_looks_as_in_the_guide(browser: Any, tmp_path: Path) -> None:
    with serving(tmp_path) as site:
        watched = opened(browser, f"{site.url}/", site.add_project("shop"))
        sign_in(watched)
        watched.page.locator(".cm-line").first.wait_for()
        watched.page.wait_for_load_state("networkidle")
        pictures.check(watched.page, "management")
        watched.page.context.close()


def test_the_guide_shows_every_picture_and_they_are_small() -> None:
    files = sorted(pictures.FOLDER.glob("*"))
    text = GUIDE.read_text()
    assert files and [each.name for each in files if f"pictures/{each.name}" not in text] == []
    assert sum(each.stat().st_size for each in files) < MOST_OF_ALL
