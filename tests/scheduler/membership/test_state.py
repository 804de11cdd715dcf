"""The pure state machine: events in, state and actions out."""

import dataclasses
from collections.abc import Mapping

import pytest

from caraway_core.ids import CatalogVersion, ExecutorId, TableName
from caraway_core.protocols.fleet import Description
from caraway_core.releases.protocol_versions import PROTOCOL_VERSION, SPOKEN
from caraway_scheduler.membership import events, state
from caraway_scheduler.membership.events import Action, Event, Take
from caraway_scheduler.membership.state import Roll

A = ExecutorId("a")
NOW = 100.0
V1, V2 = CatalogVersion(1), CatalogVersion(2)


class Story:
    """Applies events to a roll, one after another."""

    def __init__(self) -> None:
        self.roll = Roll("1.0")
        self.now = NOW
        self.told = Description(A, "one", PROTOCOL_VERSION, "1.0", "a.test", 2, 1000)

    def tell(self, event: Event) -> tuple[Action, ...]:
        self.roll, actions = state.apply(self.roll, event)
        return actions

    def hear(self, asked_ago: float = 0.0, **facts: object) -> tuple[Action, ...]:
        self.told = dataclasses.replace(self.told, **facts)  # type: ignore[arg-type]
        return self.tell(events.HeartbeatAnswered(self.told, self.now - asked_ago, self.now))

    def want(self, version: CatalogVersion) -> tuple[Action, ...]:
        return self.tell(events.CatalogWanted("here", version, self.now))

    def serve(self, version: CatalogVersion, *failures: str) -> tuple[Action, ...]:
        return self.tell(
            events.CatalogServed(version, frozenset(map(TableName, failures)), self.now)
        )

    def end(
        self,
        step: events.Step,
        error: str = "",
        version: CatalogVersion | None = None,
        failures: Mapping[str, str] | None = None,
    ) -> tuple[Action, ...]:
        named = {TableName(name): text for name, text in (failures or {}).items()}
        return self.tell(
            events.StepEnded(A, self.told.incarnation, step, self.now, error, version, named)
        )

    def make_ready(self, version: CatalogVersion = V1) -> None:
        self.want(version)
        self.serve(version)
        self.hear()
        self.end("install", version=version)
        self.end("probe")
        assert self.state == "ready"

    def make_another_ready(self, version: CatalogVersion = V1) -> None:
        told = Description(ExecutorId("b"), "one", PROTOCOL_VERSION, "1.0", "b.test", 2, 1000)
        self.tell(events.HeartbeatAnswered(told, self.now, self.now))
        for step in ("install", "probe"):
            ended = events.StepEnded(told.executor_id, "one", step, self.now, "", version)
            self.tell(ended)

    @property
    def state(self) -> str:
        return self.roll.records[A].state

    @property
    def reason(self) -> str:
        return state.status(self.roll, self.roll.records[A], self.now).reason

    @property
    def may_work(self) -> bool:
        return state.may_work(self.roll, self.roll.records[A])


@pytest.fixture
def story() -> Story:
    return Story()


def install(version: CatalogVersion, incarnation: str = "one") -> tuple[Action, ...]:
    return (Take("install", A, incarnation, version),)


def test_first_heartbeat_registers(story: Story) -> None:
    assert story.hear() == ()
    assert (story.state, story.reason) == ("registered", "the catalog is not loaded yet")


def test_executor_becomes_ready_by_catalog_and_probe(story: Story) -> None:
    story.want(V1)
    assert story.hear() == install(V1)
    assert story.hear() == (), "one step at a time"
    assert story.reason == "the catalog is being installed"
    assert story.end("install", version=V1) == (Take("probe", A, "one"),)
    assert (story.state, story.reason) == ("registered", "it has not answered a probe yet")
    assert story.end("probe") == ()
    assert (story.state, story.reason) == ("ready", "")
    assert story.may_work


def test_catalog_that_comes_later_is_installed_on_those_present(story: Story) -> None:
    story.hear()
    assert story.want(V1) == install(V1)


def test_new_incarnation_starts_over(story: Story) -> None:
    story.make_ready()
    assert story.hear(incarnation="two") == install(V1, "two")
    assert story.state == "registered"


def test_step_of_an_earlier_incarnation_is_ignored(story: Story) -> None:
    story.want(V1)
    story.hear()
    story.hear(incarnation="two")
    ended = events.StepEnded(A, "one", "install", NOW, version=V1)
    assert story.tell(ended) == ()
    assert story.roll.records[A].held is None


def test_another_protocol_version_is_refused_once(story: Story) -> None:
    story.want(V1)
    (refuse,) = story.hear(protocol_version=PROTOCOL_VERSION + 1, build="2.0")
    assert isinstance(refuse, Take) and refuse.step == "refuse"
    expected = (
        f"executor 'a' (build 2.0) speaks version {PROTOCOL_VERSION + 1} of the protocol, "
        f"the scheduler (build 1.0) {SPOKEN}; upgrade and downgrade in steps of one release"
    )
    assert (refuse.reason, story.reason) == (expected, expected)
    assert story.state == "refused"
    assert story.end("refuse") == ()
    assert story.hear() == ()


@pytest.mark.parametrize(
    ("oldest", "newest"),
    [
        (PROTOCOL_VERSION - 1, 0),
        (PROTOCOL_VERSION - 2, PROTOCOL_VERSION - 1),
        (PROTOCOL_VERSION, PROTOCOL_VERSION + 1),
    ],
)
def test_executors_of_the_releases_before_and_after_get_work(
    story: Story, oldest: int, newest: int
) -> None:
    story.want(V1)
    assert story.hear(protocol_version=oldest, newest_version=newest) == install(V1)
    assert story.state == "registered"


@pytest.mark.parametrize(
    ("oldest", "newest"),
    [(PROTOCOL_VERSION - 2, 0), (PROTOCOL_VERSION + 1, PROTOCOL_VERSION + 2)],
)
def test_executors_two_releases_away_are_refused(story: Story, oldest: int, newest: int) -> None:
    story.want(V1)
    (refuse,) = story.hear(protocol_version=oldest, newest_version=newest)
    assert isinstance(refuse, Take) and refuse.step == "refuse"
    assert (str(oldest) in refuse.reason, str(PROTOCOL_VERSION) in refuse.reason) == (True, True)


def test_refused_executor_that_was_replaced_registers(story: Story) -> None:
    story.want(V1)
    story.hear(protocol_version=PROTOCOL_VERSION + 1)
    story.end("refuse")
    assert story.hear(protocol_version=PROTOCOL_VERSION, incarnation="two") == install(V1, "two")
    assert story.state == "registered"


def test_draining_executor_gets_no_work_until_its_next_incarnation(story: Story) -> None:
    story.make_ready()
    assert story.hear(is_draining=True) == ()
    assert (story.state, story.may_work) == ("draining", False)
    assert story.want(V2) == ()
    story.hear(is_draining=False, incarnation="two")
    assert story.state == "registered"


def test_drain_that_a_call_found_holds_until_the_next_incarnation(story: Story) -> None:
    story.make_ready()
    story.tell(events.Draining(A, story.now))
    story.hear()
    assert story.state == "draining"


def test_silence_is_loss(story: Story) -> None:
    story.make_ready()
    story.now += state.LOST_AFTER_S - 0.1
    assert story.tell(events.TimePassed(story.now)) == ()
    story.now += 0.1
    (abandon,) = story.tell(events.TimePassed(story.now))
    assert abandon == events.Abandon(A, "it did not respond for 5 s")
    assert (story.state, story.reason) == ("lost", "it did not respond for 5 s")
    assert story.tell(events.TimePassed(story.now)) == ()


def test_failed_call_is_loss_at_once(story: Story) -> None:
    story.make_ready()
    assert story.tell(events.ExecutorLost(A, "the actor died", NOW)) == (
        events.Abandon(A, "the actor died"),
    )
    assert not story.may_work
    assert story.tell(events.ExecutorLost(A, "again", NOW)) == ()
    assert story.tell(events.ExecutorLost(ExecutorId("nobody"), "x", NOW)) == ()


def test_lost_executor_that_answers_must_prove_itself_again(story: Story) -> None:
    story.make_ready()
    story.tell(events.ExecutorLost(A, "x", NOW))
    story.now += 1
    assert story.hear(asked_ago=2.0) == (), "the answer is older than the loss"
    assert story.state == "lost"
    assert story.hear(catalogs={"here": V1}) == (Take("probe", A, "one"),)
    assert story.state == "registered"
    story.end("probe")
    assert story.state == "ready"


def test_lost_executor_is_listed_for_a_while(story: Story) -> None:
    story.make_ready()
    story.tell(events.ExecutorLost(A, "x", NOW))
    story.now += state.LISTED_FOR_S - 1
    assert story.tell(events.TimePassed(story.now)) == ()
    story.now += 1
    assert story.tell(events.TimePassed(story.now)) == (events.Forget(A),)
    assert story.roll.records == {}


def test_executor_stays_ready_while_the_catalog_is_renewed(story: Story) -> None:
    story.make_ready()
    assert story.want(V2) == install(V2)
    assert (story.state, story.may_work) == ("ready", True)
    story.hear(catalogs={"here": V1})
    assert story.state == "ready"
    assert story.end("install", version=V2) == ()
    story.serve(V2)
    assert (story.state, story.may_work) == ("ready", True)


def test_slow_executor_gets_no_statements_over_the_new_catalog(story: Story) -> None:
    story.make_ready()
    story.want(V2)
    story.serve(V2)
    assert (story.state, story.may_work) == ("ready", False)


def test_failed_installation_is_retried_after_a_pause(story: Story) -> None:
    story.make_ready()
    story.want(V2)
    assert story.end("install", error="disk full") == ()
    assert (story.state, story.reason) == ("registered", "install: disk full")
    assert story.hear() == ()
    for pause_s in (1, 2, 4, 8, 16, 30, 30):
        story.now += pause_s - 0.1
        assert story.hear() == ()
        story.now += 0.1
        assert story.hear() == install(V2)
        story.end("install", error="disk full")


def test_an_installation_that_failed_for_hours_is_still_retried(story: Story) -> None:
    """After 1,024 attempts the pause raised OverflowError, which ended the heartbeats."""
    story.make_ready()
    story.want(V2)
    story.end("install", error="disk full")
    for _ in range(1_100):
        story.now += 30
        assert story.hear() == install(V2)
        story.end("install", error="disk full")


def test_failures_belong_to_the_catalog_in_which_they_happened(story: Story) -> None:
    story.want(V1)
    story.hear()
    story.end("install", error="x")
    assert story.want(V2) == install(V2), "at once"


def test_failed_probe_is_retried(story: Story) -> None:
    story.want(V1)
    story.hear()
    story.end("install", version=V1)
    story.end("probe", error="no memory")
    assert (story.state, story.reason) == ("registered", "probe: no memory")
    story.now += 1
    assert story.hear(catalogs={"here": V1}) == (Take("probe", A, "one"),)
    story.end("probe")
    assert (story.state, story.reason) == ("ready", "")


def test_table_that_fails_everywhere_delays_no_executor(story: Story) -> None:
    story.want(V1)
    story.hear()
    story.end("install", version=V1, failures={"t": "no such file"})
    story.end("probe")
    story.serve(V1, "t")
    assert story.state == "ready"


def test_table_that_fails_only_there_holds_no_executor_up_if_no_other_may_work(
    story: Story,
) -> None:
    story.want(V1)
    story.serve(V1)
    story.hear()
    report, *others = story.end("install", version=V1, failures={"t": "no such file"})
    assert report == events.ReportFailedTables(V1, {TableName("t"): "no such file"})
    assert others == [Take("probe", A, "one")]
    story.end("probe")
    assert story.state == "ready" and story.may_work


def test_table_with_a_known_failure_delays_no_executor(story: Story) -> None:
    story.want(V1)
    story.serve(V1, "v")
    story.hear()
    failures = {"v": "table 't' not found"}
    assert story.end("install", version=V1, failures=failures) == (Take("probe", A, "one"),)


def test_table_that_fails_on_one_executor_delays_it(story: Story) -> None:
    story.want(V1)
    story.serve(V1)
    story.make_another_ready()
    story.hear()
    assert story.end("install", version=V1, failures={"t": "no such file"}) == ()
    assert story.state == "registered"
    assert story.reason == "table 't' cannot be read there: no such file"
    assert story.hear() == ()
    story.now += 1
    assert story.hear() == install(V1)
    story.end("install", version=V1)
    story.end("probe")
    assert story.state == "ready"


def test_heartbeat_from_before_the_installation_does_not_undo_it(story: Story) -> None:
    story.make_ready()
    assert story.hear(asked_ago=1.0, catalogs={}) == ()
    assert story.state == "ready"
    story.now += 1
    assert story.hear(catalogs={}) == install(V1), "it has dropped the catalog since"


def test_catalogs_of_other_schedulers_are_ignored(story: Story) -> None:
    story.want(V1)
    assert story.hear(catalogs={"elsewhere": V1}) == install(V1)


def test_executor_gets_no_work_until_its_drain_is_undone(story: Story) -> None:
    story.make_ready()
    assert story.tell(events.DrainsWanted({A: "one"}, story.now)) == ()
    assert (story.state, story.may_work) == ("draining", False)
    assert story.reason == "it was asked to drain and takes no new work"
    story.hear(catalogs={"here": V1})
    assert story.state == "draining"
    assert story.tell(events.DrainsWanted({}, story.now)) == ()
    assert (story.state, story.may_work, story.reason) == ("ready", True, "")


def test_drain_request_applies_to_one_incarnation(story: Story) -> None:
    story.make_ready()
    story.tell(events.DrainsWanted({A: "one"}, story.now))
    assert story.hear(incarnation="two", catalogs={}) == install(V1, "two")
    assert story.state == "registered"


def test_executor_gets_the_catalog_it_missed_while_draining(story: Story) -> None:
    story.make_ready()
    story.tell(events.DrainsWanted({A: "one"}, story.now))
    assert story.want(V2) == ()
    story.serve(V2)
    assert story.tell(events.DrainsWanted({}, story.now)) == install(V2)
    assert not story.may_work
