from dataclasses import replace

from caraway_operator.scaling.draining import Drain, Scene, Step, decide
from caraway_operator.scheduler_link import ExecutorView

SCENE = Scene(
    now=1000.0,
    wish=2,
    replicas=3,
    present=3,
    name="shop-executor",
    drain=None,
    executors=(),
    timeout_s=120,
)
DRAIN = Drain("shop-executor-2", 950.0)
BUSY = ExecutorView("shop-executor-2", is_ready=False, is_draining=True, running=1)
DONE = ExecutorView("shop-executor-2", is_ready=False, is_draining=True, is_drained=True)


def test_what_is_as_wished_stays() -> None:
    assert decide(replace(SCENE, wish=3)) == Step(3)


def test_more_are_made_at_once() -> None:
    assert decide(replace(SCENE, wish=9)) == Step(9)


def test_the_highest_drains_first_and_stays_meanwhile() -> None:
    step = decide(SCENE)

    assert (step.replicas, step.begin) == (3, "shop-executor-2")
    assert step.drain == Drain("shop-executor-2", 1000.0)
    assert step.is_waiting


def test_an_executor_that_still_works_stays() -> None:
    step = decide(replace(SCENE, drain=DRAIN, executors=(BUSY,)))

    assert (step.replicas, step.drain, step.is_waiting) == (3, DRAIN, True)


def test_one_goes_once_it_has_drained() -> None:
    step = decide(replace(SCENE, wish=0, drain=DRAIN, executors=(DONE,)))

    assert (step.replicas, step.drain, step.is_waiting) == (2, None, True)


def test_one_that_no_scheduler_knows_goes_at_once() -> None:
    assert decide(replace(SCENE, drain=DRAIN, executors=())).replicas == 2


def test_one_that_is_broken_goes_at_once() -> None:
    broken = ExecutorView("shop-executor-2", is_ready=False)

    assert decide(replace(SCENE, drain=DRAIN, executors=(broken,))).replicas == 2


def test_nobody_goes_while_no_scheduler_answers() -> None:
    assert decide(replace(SCENE, drain=DRAIN, executors=None)).replicas == 3


def test_the_time_to_drain_is_bounded_whoever_answers() -> None:
    late = replace(SCENE, drain=replace(DRAIN, since=800.0))

    for executors in (None, (BUSY,)):
        step = decide(replace(late, executors=executors))
        assert (step.replicas, step.drain) == (2, None)
        assert "did not drain in 120 s" in step.why


def test_the_next_one_waits_until_the_last_one_is_gone() -> None:
    step = decide(replace(SCENE, wish=1, replicas=2, present=3))

    assert (step.replicas, step.begin, step.is_waiting) == (2, None, True)


def test_a_drain_is_undone_when_the_wish_changes() -> None:
    step = decide(replace(SCENE, wish=3, drain=DRAIN, executors=(BUSY,)))

    assert step == Step(3, undo="shop-executor-2")


def test_a_drain_of_another_one_is_undone_first() -> None:
    step = decide(replace(SCENE, drain=Drain("shop-executor-5", 900.0)))

    assert (step.replicas, step.undo, step.begin) == (3, "shop-executor-5", None)


def test_a_drain_of_a_rollout_is_not_undone_here() -> None:
    updating = Drain("shop-executor-2", 900.0, "update")

    assert decide(replace(SCENE, wish=3, drain=updating)).undo is None


def test_without_schedulers_all_go_at_once() -> None:
    assert decide(replace(SCENE, wish=0, has_schedulers=False)).replicas == 0
