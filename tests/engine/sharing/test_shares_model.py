"""Executors that come and go at random: what holds of the places of buckets after each step."""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from caraway_engine.sharing.shares import place_buckets, ranked

_MOST = 6


class Places(RuleBasedStateMachine):
    """Owners as a StatefulSet numbers them; one of them may be away for a while."""

    @initialize(count=st.sampled_from([1, 7, 16]), owners=st.integers(1, 4))
    def begin(self, count: int, owners: int) -> None:
        self.count = count
        self.owners = {f"executor-{number}" for number in range(owners)}
        self.places = self._now()
        self.moved: set[int] = set()

    def _now(self) -> list[str]:
        names = tuple(sorted(self.owners))
        return [names[owner] for owner in place_buckets(self.count, names)]

    def _step(self) -> list[tuple[str, str]]:
        before, self.places = self.places, self._now()
        return [(old, new) for old, new in zip(before, self.places, strict=True) if old != new]

    @rule()
    @precondition(lambda self: len(self.owners) < _MOST)
    def join(self) -> None:
        missing = next(n for n in range(_MOST) if f"executor-{n}" not in self.owners)
        self.owners.add(f"executor-{missing}")
        assert {new for _, new in self._step()} <= {f"executor-{missing}"}

    def _missing(self) -> int:
        numbers = [int(name.rpartition("-")[2]) for name in self.owners]
        return max(numbers) + 1 - len(numbers)

    @rule(which=st.integers(0, _MOST))
    @precondition(lambda self: len(self.owners) > 2 and self._missing() == 0)
    def lose(self, which: int) -> None:
        lost = sorted(self.owners)[which % len(self.owners)]
        names = tuple(sorted(self.owners))
        ranks = ranked(self.count, names, 2)
        self.owners.discard(lost)
        moves = self._step()
        assert {old for old, _ in moves} <= {lost}
        for owner, owners in zip(self.places, ranks, strict=True):
            # The next owner holds a copy already, if there are copies.
            assert owner == next(names[each] for each in owners if names[each] != lost)

    @invariant()
    def each_bucket_has_an_owner_that_is_there(self) -> None:
        assert len(self.places) == self.count
        assert set(self.places) <= self.owners

    @invariant()
    def owners_without_gaps_have_even_parts(self) -> None:
        numbers = {int(name.rpartition("-")[2]) for name in self.owners}
        if numbers == set(range(len(numbers))) and self.count >= len(numbers):
            sizes = Counter(self.places)
            assert max(sizes.values()) - min(sizes.values()) <= 1

    @invariant()
    def copies_are_on_different_executors(self) -> None:
        for owners in ranked(self.count, tuple(sorted(self.owners)), 2):
            assert len(set(owners)) == len(owners) == min(2, len(self.owners))


TestPlaces = Places.TestCase
TestPlaces.settings = settings(max_examples=30, stateful_step_count=12, deadline=None)
