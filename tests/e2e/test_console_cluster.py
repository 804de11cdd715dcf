"""The console over a cluster of two executors, one of which dies while its query is shown."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit import browsers
from tests.kit.browsers import Watched
from tests.kit.fault_clusters import LONG, FaultCluster, fault_cluster

pytestmark = [*browsers.NEEDED, pytest.mark.timeout(900)]
END_MS = 240_000


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    with fault_cluster(tmp_path_factory.mktemp("c"), 2) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: FaultCluster) -> FaultCluster:
    """Yield a cluster with two healthy executors, whatever the previous test did."""
    shared.served.until_ready(2)
    return shared


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsers.launched() as found:
        yield found


@pytest.fixture
def watched(browser: Any, cluster: FaultCluster) -> Iterator[Watched]:
    context = browser.new_context()
    page = Watched(context.new_page(), f"{cluster.served.url}/")
    page.page.goto(page.base)
    yield page
    assert page.errors == []
    assert page.foreign() == []
    context.close()


def until_ended(watched: Watched) -> str:
    """Wait until a statement has its last state; return it."""
    line = watched.page.locator(".outcome-line .state")
    line.filter(has_text=re.compile("done|failed|cancelled")).wait_for(timeout=END_MS)
    return line.text_content() or ""


def cells(watched: Watched) -> list[str]:
    return list(watched.page.get_by_role("gridcell").all_text_contents())


def rows_of(cluster: FaultCluster) -> list[str]:
    return [str(each[name]) for each in cluster.facts.long for name in ("g", "n", "s")]


def test_the_cluster_page_has_both_executors(watched: Watched) -> None:
    watched.open("Cluster")
    executors = watched.page.get_by_role("region", name="Executors")
    for name in ("e1", "e2"):
        executors.get_by_role("row").filter(has_text=name).get_by_text("ready").wait_for()
    watched.open("Home")
    watched.page.get_by_text("2 of 2").wait_for()


def test_a_distributed_statement_has_its_rows(watched: Watched, cluster: FaultCluster) -> None:
    watched.open("SQL")
    watched.run(LONG)
    assert until_ended(watched) == "done"
    assert cells(watched) == rows_of(cluster)


def test_an_executor_that_dies_costs_no_answer(watched: Watched, cluster: FaultCluster) -> None:
    watched.open("SQL")
    watched.run(LONG)
    cluster.served.until_busy("e1", "e2")
    cluster.of.executors["e2"].kill()
    assert until_ended(watched) == "done"
    assert cells(watched) == rows_of(cluster)
    watched.open("Cluster")
    executors = watched.page.get_by_role("region", name="Executors")
    executors.get_by_role("row").filter(has_text="e2").get_by_text("ready").wait_for(
        state="detached", timeout=END_MS
    )
    cluster.of.begin("e2").wait_up()
    executors.get_by_role("row").filter(has_text="e2").get_by_text("ready").wait_for(timeout=END_MS)
