"""Which executor runs a task: the slots of one query, and what becomes of them in a loss."""

from collections import Counter
from collections.abc import Callable, Sequence

from caraway_core.errors import OverloadedError
from caraway_core.ids import ExecutorId
from caraway_core.protocols.fleet import ExchangePart

Ready = Callable[[], Sequence[ExecutorId]]
IsLeaving = Callable[[ExecutorId], bool]


class Slots:
    """As many slots as executors were ready when the query was planned; each is on one of them.

    The number stays, because shares of tables are cut for it; the executors behind it may change:
    those that are lost, and those that are leaving, give their slots to others.

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
        """Name the executor of a task by its number; tasks beyond the slots go round."""
        self._pass_on()
        return self._executors[number % len(self._executors)]

    def nearest(self, parts: Sequence[ExchangePart]) -> ExecutorId:
        """Name the executor on which most bytes of the parts are."""
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
            # An executor that was lost and came back is better than none.
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
    return OverloadedError(
        "no executor is ready to run the query; see /v1/cluster/executors, and try again",
        retry_after_s=5,
    )
