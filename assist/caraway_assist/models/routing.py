"""Chooses between the models of a worker: in turn, by weight, or in the order of a fallback."""

import time
from collections.abc import Mapping, Sequence

from caraway_assist.models.states import ModelState
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import ModelAwayError, ModelError
from caraway_core.manifest.values.workers import DeclaredWorker

_LONGEST_REST_S = 600.0


class ModelRoute:
    """Chooses the models for calls of one worker, and keeps the health of these models.

    A model rests after a failure: it is chosen only if all others that are ready rest, too.
    """

    def __init__(self, worker: DeclaredWorker, clock: SecondsClock = time.monotonic) -> None:
        self.worker = worker
        self._clock = clock
        self._credits = {each.name: 0.0 for each in worker.models}
        self._rests_until: dict[str, float] = {}

    def choose(self, states: Mapping[str, ModelState]) -> Sequence[str]:
        """Return the models for a call in the order to try them; it counts as one call.

        Raises:
            ModelAwayError: none of them is ready.
        """
        ready = [
            each.name
            for each in self.worker.models
            if (state := states.get(each.name)) is not None
            and state.status == "ready"
            and state.loaded is not None
        ]
        if not ready:
            raise ModelAwayError(self._no_model(states))
        fresh = [name for name in ready if not self.rests(name)]
        resting = [name for name in ready if name not in fresh]
        resting.sort(key=lambda name: self._rests_until[name])
        return [*self._in_turn(fresh), *resting]

    def rests(self, model: str) -> bool:
        """Return whether a model failed a short while ago."""
        return self._rests_until.get(model, 0.0) > self._clock()

    def failed(self, model: str, error: ModelError) -> None:
        """Note that a call of a model failed for a reason that is not in the request."""
        rest_s = self.worker.cooldown_s
        if isinstance(error, ModelAwayError) and error.type == "rate_limit":
            # The provider says how long.
            rest_s = min(float(error.retry_after_s), _LONGEST_REST_S)
        self._rests_until[model] = self._clock() + rest_s

    def succeeded(self, model: str) -> None:
        """Note that a model answered."""
        self._rests_until.pop(model, None)

    def _in_turn(self, names: Sequence[str]) -> Sequence[str]:
        """Return the models with the next one first.

        Each gets its weight as credit at every call, and the one that is chosen pays for it. So
        calls are spread evenly, and shares are exact after few of them.
        """
        if self.worker.routing == "fallback" or len(names) < 2:
            return names
        weights = {each.name: each.weight for each in self.worker.models if each.name in names}
        for name, weight in weights.items():
            self._credits[name] += weight
        ordered = sorted(names, key=lambda name: -self._credits[name])
        self._credits[ordered[0]] -= sum(weights.values())
        return ordered

    def _no_model(self, states: Mapping[str, ModelState]) -> str:
        told = []
        for each in self.worker.models:
            state = states.get(each.name)
            if state is not None and state.error is not None:
                told.append(state.error.message)
            else:
                told.append(f"model '{each.name}' is still loading")
        return f"worker '{self.worker.name}': none of its models is ready: {'; '.join(told)}"
