"""Assigns the tasks of one query to executors, also after executors are lost."""

from collections import Counter
from collections.abc import Callable, Sequence

from caraway_core.errors import OverloadedError
from caraway_core.ids import ExecutorId
from caraway_core.protocols.fleet import ExchangePart

Ready = Callable[[], Sequence[ExecutorId]]
IsLeaving = Callable[[ExecutorId], bool]


class Slots:
    """The slots of one query: as many as executors were ready when it was planned.

    The number is fixed, because tables are divided into that many shares. The executors behind the
    slots may change: slots of lost or leaving executors move to others.

    Raises:
        OverloadedError: no executor is ready any more.
    """

    def __init__(
        self,
        ready: Ready,
        executors: Sequence[ExecutorId],
        is_leaving: IsLeaving = lambda _executor_id: False,
    ) -> None:
        self._ready = ready
        self._is_leaving = is_leaving
        self._executors = list(executors)
        self._lost: set[ExecutorId] = set()
        for gone in sorted(set(executors) - set(ready())):
            self.lose(gone)

    def __len__(self) -> int:
        return len(self._executors)

    def executor(self, number: int) -> ExecutorId:
        """Return the executor of a task number; numbers beyond the slots wrap around."""
        self._pass_on()
        return self._executors[number % len(self._executors)]

    def nearest(self, parts: Sequence[ExchangePart]) -> ExecutorId:
        """Return the executor that holds most bytes of the parts."""
        self._pass_on()
        sizes: Counter[ExecutorId] = Counter()
        for part in parts:
            if part.executor_id in self._executors:
                sizes[part.executor_id] += part.size_bytes + 1
        return sizes.most_common(1)[0][0] if sizes else self._executors[0]

    def _pass_on(self) -> None:
        for each in filter(self._is_leaving, sorted(set(self._executors))):
            if any(other not in self._lost and other != each for other in self._ready()):
                self.lose(each)

    def lose(self, executor_id: ExecutorId) -> None:
        """Move the slots of an executor to others.

        Raises:
            OverloadedError: there are no others.
        """
        self._lost.add(executor_id)
        left = [each for each in self._ready() if each not in self._lost]
        if not left:
            # An executor that was lost and has returned is better than none.
            left = [each for each in self._ready() if each != executor_id] or list(self._ready())
        if not left:
            raise none_ready()
        load = Counter(each for each in self._executors if each in left)
        for number, each in enumerate(self._executors):
            if each == executor_id:
                chosen = min(left, key=lambda one: load[one])
                load[chosen] += 1
                self._executors[number] = chosen


def none_ready() -> OverloadedError:
    """Return the error to raise while no executor is ready."""
    return OverloadedError(
        "no executor is ready to run the query; see /v1/cluster/executors, and try again",
        retry_after_s=5,
    )
