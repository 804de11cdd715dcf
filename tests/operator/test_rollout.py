"""Rollouts against a small likeness of Kubernetes' own controllers, and single decisions."""

from dataclasses import dataclass, field, replace

import pytest

from caraway_operator import rollout
from caraway_operator.naming import EXECUTOR, HEAD, SCHEDULER, STATE
from caraway_operator.pods import PodView, SetView, Trouble
from caraway_operator.rollout import Rollout, Scene
from caraway_operator.scaling.draining import Drain
from caraway_operator.scheduler_link import ExecutorView

NAME = "shop-executor"
CRASH = Trouble("CrashLoopBackOff", "it ends at once")


@dataclass
class Sim:
    """A cluster whose pods come up at once, unless their template is bad."""

    wish: int = 3
    replicas: int = 3
    partition: int = 0
    template: str = "old"
    pods: dict[int, str] = field(default_factory=dict)
    bad: frozenset[str] = frozenset()
    single: dict[str, str] = field(default_factory=dict)
    wanted: str = "old"
    drained: set[str] = field(default_factory=set)
    drain: Drain | None = None
    step: str = ""
    since: float = 0.0
    now: float = 0.0
    log: list[str] = field(default_factory=list)
    refused_by: str = ""
    """Executors of other templates than this one are refused by schedulers."""

    def __post_init__(self) -> None:
        self.pods = dict.fromkeys(range(self.replicas), self.template)
        self.single = dict.fromkeys((SCHEDULER, HEAD, STATE), "old")

    def scene(self) -> Scene:
        sets = {EXECUTOR: self._executors()}
        for component, template in self.single.items():
            ok = template not in self.bad
            sets[component] = SetView(component, 1, 1, int(ok), 1, True, template)
        pods = [
            PodView(f"{NAME}-{n}", f"u{n}", EXECUTOR, self._works(t), t,
                    trouble=CRASH if t in self.bad else None)
            for n, t in self.pods.items()
        ]  # fmt: skip
        pods += [
            PodView(c, c, c, t not in self.bad, trouble=CRASH if t in self.bad else None)
            for c, t in self.single.items()
        ]
        views = [
            ExecutorView(f"{NAME}-{n}", is_ready=self._works(t) and f"{NAME}-{n}" not in
                         self.drained, is_draining=f"{NAME}-{n}" in self.drained,
                         is_drained=f"{NAME}-{n}" in self.drained,
                         is_refused=t not in self.bad and not self._works(t))
            for n, t in self.pods.items()
        ]  # fmt: skip
        return Scene(
            now=self.now,
            sets=sets,
            templates=dict.fromkeys((EXECUTOR, SCHEDULER, HEAD, STATE), self.wanted),
            pods=pods,
            executors=views,
            drain=self.drain,
            step=self.step,
            since=self.since,
            deadline_s=900,
            drain_timeout_s=120,
            wish=self.wish,
        )

    def turn(self) -> Rollout:
        """Decide once, do it, and let the controllers do theirs."""
        self.now += 1
        found = rollout.decide(self.scene())
        self.drain, self.step, self.since = found.drain, found.step, found.since
        if found.begin:
            self.drained.add(found.begin)
        if found.undo:
            self.drained.discard(found.undo)
        self.template, self.partition = self.wanted, found.partition
        for component in (SCHEDULER, HEAD, STATE):
            if component not in found.hold and self.single[component] != self.wanted:
                self.single[component] = self.wanted
                self.log.append(component)
        for number in range(self.replicas, self.wish + found.surge):
            self._replace(number)
        self.replicas = max(self.replicas, self.wish + found.surge)
        for pod in found.evict:
            self._replace(pod.ordinal)
        for number in sorted(self.pods, reverse=True):
            if number >= self.partition and self.pods[number] != self.template:
                self._replace(number)
                break
        return found

    def run(self, turns: int = 60) -> Rollout:
        found = Rollout()
        for _ in range(turns):
            found = self.turn()
        return found

    def _replace(self, number: int) -> None:
        self.pods[number] = self.template if number >= self.partition else self.pods[number]
        self.drained.discard(f"{NAME}-{number}")
        self.log.append(str(number))

    def _works(self, template: str) -> bool:
        if template in self.bad:
            return False
        return not self.refused_by or template == self.single[SCHEDULER]

    def _executors(self) -> SetView:
        ready = sum(self._works(template) for template in self.pods.values())
        updated = sum(template == self.template for template in self.pods.values())
        return SetView(
            NAME, self.replicas, len(self.pods), ready, updated, True, self.template,
            self.template, self.partition,
        )  # fmt: skip


def test_nothing_happens_without_a_change() -> None:
    assert rollout.decide(Sim().scene()) == Rollout()


def test_one_executor_then_schedulers_then_the_others_then_state_then_head() -> None:
    sim = Sim(wanted="new")

    found = sim.run()

    assert sim.log == ["2", SCHEDULER, "1", "0", STATE, HEAD]
    assert found == Rollout()


def test_executors_of_another_version_of_the_protocol_follow_the_schedulers() -> None:
    sim = Sim(wanted="new", refused_by="version")

    sim.run()

    assert sim.log == ["2", SCHEDULER, "1", "0", STATE, HEAD]


def test_a_bad_template_stops_at_the_first_executor_and_says_why() -> None:
    sim = Sim(wanted="bad", bad=frozenset({"bad"}))

    found = sim.run()

    assert sim.log == ["2"]
    assert found.trouble == CRASH
    assert found.hold == {SCHEDULER, HEAD, STATE}


def test_the_way_back_from_a_bad_template_replaces_the_broken_one_only() -> None:
    sim = Sim(wanted="bad", bad=frozenset({"bad"}))
    sim.run()
    sim.wanted = "old"

    found = sim.run()

    assert sim.log == ["2", "2"]
    assert found == Rollout()


def test_the_way_on_from_a_bad_template_replaces_the_broken_one_first() -> None:
    sim = Sim(wanted="bad", bad=frozenset({"bad"}))
    sim.run()
    sim.wanted = "good"

    sim.run()

    assert sim.log == ["2", "2", SCHEDULER, "1", "0", STATE, HEAD]


def test_a_cluster_that_never_worked_is_replaced_at_once() -> None:
    sim = Sim(template="bad", bad=frozenset({"bad"}), wanted="good")
    sim.single = dict.fromkeys((SCHEDULER, HEAD, STATE), "bad")

    sim.run(5)

    assert set(sim.single.values()) == {"good"}
    assert set(sim.pods.values()) == {"good"}


def test_a_single_executor_is_joined_by_another_one_first() -> None:
    sim = Sim(wish=1, replicas=1, wanted="new")

    sim.run()

    assert sim.log == ["1", SCHEDULER, "0", STATE, HEAD]


def test_a_change_in_the_middle_begins_anew() -> None:
    sim = Sim(wanted="new")
    while "1" not in sim.log:
        sim.turn()
    sim.wanted = "newer"

    sim.run()

    assert set(sim.pods.values()) == {"newer"}
    assert sim.drain is None
    assert not sim.drained


def test_only_the_schedulers_follow_a_new_manifest() -> None:
    sim = Sim()
    scene = sim.scene()
    scene = replace(scene, templates={**scene.templates, SCHEDULER: "new"})

    found = rollout.decide(scene)

    assert found.hold == frozenset()
    assert (found.is_active, found.message) == (True, "the scheduler is replaced")


@pytest.mark.parametrize("wish", [2, 3, 5])
def test_at_most_one_executor_is_away_at_a_time(wish: int) -> None:
    sim = Sim(wish=wish, replicas=wish, wanted="new")
    for _ in range(80):
        before = dict(sim.pods)
        sim.turn()
        changed = [number for number in before if before[number] != sim.pods[number]]
        assert len(changed) <= 1
        assert len(sim.drained) <= 1


def test_no_executor_is_replaced_before_it_has_drained() -> None:
    sim = Sim(wanted="new")
    sim.turn()
    found = rollout.decide(sim.scene())
    assert (found.begin, found.partition) == (f"{NAME}-2", 3)

    busy = ExecutorView(f"{NAME}-2", is_ready=False, is_draining=True, running=1)
    scene = replace(sim.scene(), drain=found.drain, executors=[busy])

    assert rollout.decide(scene).partition == 3
    late = replace(scene, now=scene.now + 200)
    assert rollout.decide(late).partition == 2


def test_nobody_drains_while_too_few_are_ready() -> None:
    sim = Sim(wanted="new")
    sim.turn()

    found = rollout.decide(replace(sim.scene(), is_capable=False))

    assert (found.begin, found.drain) == (None, None)
    assert "waits for executors" in found.message


def test_a_step_that_takes_too_long_is_told() -> None:
    sim = Sim(wanted="new")
    sim.turn()
    first = rollout.decide(replace(sim.scene(), is_capable=False))
    late = replace(
        sim.scene(), is_capable=False, step=first.step, since=first.since, now=first.since + 901
    )

    trouble = rollout.decide(late).trouble

    assert trouble is not None
    assert trouble.reason == "ProgressDeadlineExceeded"


def test_a_drain_of_a_rollout_that_was_called_off_is_undone() -> None:
    sim = Sim()

    found = rollout.decide(replace(sim.scene(), drain=Drain(f"{NAME}-2", 0.0, "update")))

    assert (found.undo, found.drain) == (f"{NAME}-2", None)


def test_what_kubernetes_has_not_noticed_yet_is_waited_for() -> None:
    sim = Sim(wanted="new")
    sim.turn()
    scene = sim.scene()
    unseen = replace(scene.sets[EXECUTOR], is_observed=False)

    found = rollout.decide(replace(scene, sets={**scene.sets, EXECUTOR: unseen}))

    assert (found.is_active, found.begin, found.partition) == (True, None, 3)


def test_pods_of_a_set_whose_status_is_still_empty_are_not_outdated() -> None:
    # Kubernetes made the pods, the scheduler of Kubernetes found no volume for them yet, and the
    # StatefulSet has not said yet which revision is its newest.
    waits = Trouble("Unschedulable", "pod has unbound immediate PersistentVolumeClaims")
    scene = Sim().scene()
    young = SetView(NAME, 3, 0, 0, 0, False, "old")
    pods = [replace(pod, is_ready=False, trouble=waits) for pod in scene.pods if pod.revision]

    found = rollout.decide(replace(scene, sets={EXECUTOR: young}, pods=pods))

    assert found == Rollout()


def test_the_last_executor_is_waited_for_by_name_and_for_as_long_as_any() -> None:
    sim = Sim(wanted="new")
    while sim.log != ["2", SCHEDULER, "1", "0"]:
        sim.turn()
    scene = replace(sim.scene(), now=1e9, step="executors:shop-executor-0", since=1e9)
    gone = [pod for pod in scene.pods if pod.name != f"{NAME}-0"]
    late = replace(scene.sets[EXECUTOR], present=2, ready=2, updated=2)
    scene = replace(scene, pods=gone, sets={**scene.sets, EXECUTOR: late})

    found = rollout.decide(scene)
    again = rollout.decide(replace(scene, step=found.step, since=found.since, now=1e9 + 5))

    assert found.hold == {HEAD, STATE} and (found.step, found.since) == ("executor:ready", 1e9)
    assert again.message == "waits for the executor to be ready" and again.trouble is None


def test_a_head_that_does_not_work_is_removed_where_a_new_one_waits() -> None:
    sim = Sim()
    scene = sim.scene()
    head = replace(scene.sets[HEAD], ready=0, updated=0, revision="new")
    broken = PodView("shop-head-0", "u", HEAD, is_ready=False, revision="old", trouble=CRASH)
    pods = [*(pod for pod in scene.pods if pod.component != HEAD), broken]

    found = rollout.decide(replace(scene, sets={**scene.sets, HEAD: head}, pods=pods))

    assert found.evict == (broken,)


def test_executors_are_replaced_without_a_drain_where_no_scheduler_serves() -> None:
    sim = Sim(wanted="new")
    sim.turn()
    scene = sim.scene()
    idle = replace(scene.sets[SCHEDULER], ready=0)

    found = rollout.decide(
        replace(scene, sets={**scene.sets, SCHEDULER: idle}, executors=None, is_capable=False)
    )

    assert (found.partition, found.begin) == (2, None)


def test_an_executor_that_kubernetes_does_not_replace_is_removed() -> None:
    sim = Sim(wanted="new")
    sim.turn()
    scene = sim.scene()
    lowered = replace(scene.sets[EXECUTOR], partition=2)
    scene = replace(scene, sets={**scene.sets, EXECUTOR: lowered})
    first = rollout.decide(scene)

    late = rollout.decide(replace(scene, step=first.step, since=first.since, now=scene.now + 31))

    assert first.evict == ()
    assert [pod.name for pod in late.evict] == [f"{NAME}-2"]


def test_a_scheduler_is_being_replaced_until_the_new_one_is_ready() -> None:
    sim = Sim()
    scene = sim.scene()
    # The new pod waits for its first executor, the old one serves.
    both = replace(scene.sets[SCHEDULER], present=2, ready=1, updated=1)
    first = rollout.decide(replace(scene, sets={**scene.sets, SCHEDULER: both}))
    coming = replace(scene.sets[SCHEDULER], ready=0)

    last = rollout.decide(
        replace(scene, sets={**scene.sets, SCHEDULER: coming}, step=first.step, since=first.since)
    )

    assert (first.is_active, first.message) == (True, "the scheduler is replaced")
    assert last.is_active


def test_a_scheduler_that_restarts_or_is_added_is_no_rollout() -> None:
    scene = Sim().scene()
    restarting = replace(scene.sets[SCHEDULER], ready=0)
    added = replace(scene.sets[SCHEDULER], replicas=2)

    for there in (restarting, added):
        assert not rollout.decide(replace(scene, sets={**scene.sets, SCHEDULER: there})).is_active
