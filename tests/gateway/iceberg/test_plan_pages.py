"""Pages of planned scans: their owners, their tokens, and plans that have ended."""

from pathlib import Path
from typing import Any

import pytest

from caraway_core.errors import NotFoundError
from caraway_core.tables import ResultPlace
from caraway_gateway.iceberg import plan_pages
from caraway_gateway.iceberg.plan_pages import (
    NoPlanError,
    NoPlanTaskError,
    PlanOwner,
    PlanPage,
)
from caraway_plugins.stores import published
from caraway_plugins.stores.published import Published

ADA = PlanOwner("ada", "t", {"type": "eq", "term": "a", "value": 1})


@pytest.fixture
def place(tmp_path: Path) -> Published:
    return published.opened(ResultPlace("file", str(tmp_path)))


def test_plan_is_found_by_its_principal_for_its_table(place: Published) -> None:
    plan = plan_pages.new_id()
    plan_pages.begin(place, plan, ADA)
    assert plan_pages.owner(place, plan, "ada", "t") == ADA
    for principal, table in (("bob", "t"), ("ada", "u"), ("", ""), ("ada", "T")):
        with pytest.raises(NoPlanError, match="plan the scan again"):
            plan_pages.owner(place, plan, principal, table)


@pytest.mark.parametrize(
    "plan",
    ["", "..", "../plans", "0" * 31, "0" * 33, "A" * 32, "0" * 32 + "/..", "/etc/passwd", "\0",
     "0" * 32 + "\n"],
)  # fmt: skip
def test_no_id_leads_out_of_the_folder_of_plans(place: Published, plan: str) -> None:
    place.write("plan.json", b'["ada", "t", null, ""]')
    place.write("plans/plan.json", b'["ada", "t", null, ""]')
    with pytest.raises(NoPlanError):
        plan_pages.owner(place, plan, "ada", "t")


def test_token_means_its_page() -> None:
    plan = plan_pages.new_id()
    assert plan_pages.new_id() != plan
    assert plan_pages.parsed(plan_pages.token(plan, 999_999)) == (plan, 999_999)


@pytest.mark.parametrize(
    "token",
    [None, 7, "", ".", "0" * 32, f"{'0' * 32}.", f"{'0' * 32}.-1", f"{'0' * 32}.1000000",
     f"{'0' * 32}.1\n", f"{'0' * 32}.1.1", f"../{'0' * 29}.1", f"{'0' * 32}.\u0661", ["x"],
     "x" * 1_000_000],
)  # fmt: skip
def test_other_tokens_mean_none(token: object) -> None:
    with pytest.raises(NoPlanTaskError):
        plan_pages.parsed(token)


def test_written_page_is_read_as_it_is(place: Published) -> None:
    plan = plan_pages.new_id()
    assert plan_pages.read(place, plan, 0, ADA) is None
    page = PlanPage([{"data-file": {"file-path": "a"}}], is_last=False)
    plan_pages.write(place, plan, 0, page)
    plan_pages.write(place, plan, 1, PlanPage((), True, (503, "try again")))
    assert plan_pages.read(place, plan, 0, ADA) == page
    assert plan_pages.read(place, plan, 1, ADA) == PlanPage([], True, (503, "try again"))


@pytest.mark.parametrize("count", [0, 1, 2_000, 2_001, 5_000])
def test_tasks_of_a_file_are_cut_into_pages_without_loss(place: Published, count: int) -> None:
    owner = PlanOwner("ada", "t", None, "state/tasks.json")
    tasks = [{"n": number} for number in range(count)]
    place.write("state/tasks.json", str(tasks).replace("'", '"').encode())
    found, number = list[Any](), 0
    while (page := plan_pages.read(place, "", number, owner)) is not None:
        found += page.tasks
        number += 1
        assert page.is_last == (len(found) == count)
    assert found == tasks


def test_list_of_tasks_that_is_gone_has_no_pages(place: Published) -> None:
    assert plan_pages.read(place, "", 0, PlanOwner("ada", "t", None, "gone.json")) is None


@pytest.mark.parametrize(
    ("size", "most"), [(0, 2_000), (10_000, 838), (9_000_000, 1), (100_000_000, 1)]
)
def test_long_filters_make_short_pages(size: int, most: int) -> None:
    """Each task of a page has the filter. A page has at least one task."""
    assert PlanOwner("ada", "t", "x" * size).most_tasks == pytest.approx(most, abs=1)


def test_page_that_may_still_come_is_awaited(place: Published) -> None:
    plan = plan_pages.new_id()
    plan_pages.write(place, plan, 0, PlanPage([{}], is_last=False))
    plan_pages.check_follows(place, plan, 1, ADA)
    for number in (0, 2):
        with pytest.raises(NoPlanTaskError, match="any more"):
            plan_pages.check_follows(place, plan, number, ADA)
    plan_pages.write(place, plan, 1, PlanPage([{}], is_last=True))
    with pytest.raises(NoPlanTaskError):
        plan_pages.check_follows(place, plan, 2, ADA)
    of_file = PlanOwner("ada", "t", None, "state/tasks.json")
    with pytest.raises(NoPlanTaskError):
        plan_pages.check_follows(place, plan, 1, of_file)


def test_cancelled_plan_gets_no_more_pages_and_keeps_those_it_has(place: Published) -> None:
    plan = plan_pages.new_id()
    plan_pages.write(place, plan, 0, PlanPage([{}], is_last=False))
    assert not plan_pages.is_cancelled(place, plan)
    plan_pages.cancel(place, plan)
    plan_pages.cancel(place, plan)
    assert plan_pages.is_cancelled(place, plan)
    with pytest.raises(NotFoundError):
        plan_pages.check_follows(place, plan, 1, ADA)
    assert plan_pages.read(place, plan, 0, ADA) is not None


def test_time_of_the_last_question_is_known_to_other_schedulers(place: Published) -> None:
    plan = plan_pages.new_id()
    assert plan_pages.asked_ms(place, plan) == 0
    plan_pages.ask(place, plan)
    first = plan_pages.asked_ms(place, plan)
    plan_pages.ask(place, plan)
    assert plan_pages.asked_ms(place, plan) >= first > 1_600_000_000_000
