"""Tracks statements that ran while an engine process ended, and refuses repeat offenders.

One of the running statements ended the process. It is known for certain only if it ran alone. So
every statement of an ended process becomes a suspect. Suspects run again one at a time, and one is
refused for a while if:

- the engine ended twice while it ran, the last time with no other statement;
- or the engine ended three times while it ran with others.

A statement that finishes is no longer a suspect.
"""

import asyncio
import datetime
import hashlib
import json
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Literal

from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import StatementRefusedError

REFUSED_S = 300.0
ENDS_ALONE = 2
ENDS_BESIDE_OTHERS = 3
_MOST = 1_000
_TURN_S = 30.0

Cause = Literal["memory", "crash", "hung"]
"""The cause of an end: too much memory, the process crashed, or it did not stop when asked."""

_REMEDIES: Mapping[Cause, str] = {
    "memory": "let it read or create fewer and smaller values, or raise "
    "`runtime.query.memory_limit` (on executors `--memory`)",
    "crash": "rewrite it, and report the bug",
    "hung": "let it read or create fewer rows: join by equality, or filter before the join",
}


@dataclass(frozen=True, slots=True)
class End:
    """The end of an engine process; `detail` is for users: "it used 2 GiB of 1 GiB"."""

    cause: Cause
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A statement that ran while an engine process ended; processes share this value."""

    key: str
    ends: int
    last: End
    was_alone: bool
    """True if no other statement ran at the last end."""
    seen_s: float
    """The time of the last end, in seconds since 1970."""

    @property
    def is_refused(self) -> bool:
        return self.ends >= (ENDS_ALONE if self.was_alone else ENDS_BESIDE_OTHERS)

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def decode(content: bytes) -> "Suspect":
        fields = json.loads(content)
        return Suspect(**{**fields, "last": End(**fields["last"])})


def key(sql: str, parameters: Mapping[str, object] | None = None) -> str:
    """Return a key of fixed length that identifies a statement with its parameters."""
    digest = hashlib.blake2b(sql.strip().encode(errors="surrogatepass"), digest_size=16)
    for name, value in sorted((parameters or {}).items()):
        digest.update(f"\0{name}={value!r}".encode(errors="surrogatepass"))
    return digest.hexdigest()


class Suspects:
    """The suspects of one process, including those that other processes reported.

    `clock` returns seconds since 1970, because other processes read the times. A suspect is
    forgotten `refused_s` after the last end, and the oldest first if there are more than `most`.
    """

    def __init__(
        self, clock: SecondsClock, refused_s: float = REFUSED_S, most: int = _MOST
    ) -> None:
        self._clock = clock
        self._refused_s = refused_s
        self._most = most
        self._known: OrderedDict[str, Suspect] = OrderedDict()
        self.ends: Counter[Cause] = Counter()
        self.refusals: Counter[Cause] = Counter()

    def __len__(self) -> int:
        self._forget()
        return len(self._known)

    def ended(self, keys: Collection[str], end: End) -> tuple[Suspect, ...]:
        """Record that an engine process ended while these statements ran; return the suspects."""
        self.ends[end.cause] += 1
        running = frozenset(keys)
        noted = [self._noted(each, end, was_alone=len(running) == 1) for each in running]
        self.learn(noted)
        return tuple(noted)

    def learn(self, suspects: Iterable[Suspect]) -> None:
        """Merge suspects of another process where they have more ends."""
        for each in suspects:
            suspect = self.find(each.key)
            if suspect is None or (each.ends, each.seen_s) >= (suspect.ends, suspect.seen_s):
                self._known[each.key] = each
                self._known.move_to_end(each.key)
        self._forget()

    def find(self, key: str) -> Suspect | None:
        """Return the suspect with a key, unless it has expired."""
        if not self._known:
            return None
        suspect = self._known.get(key)
        return None if suspect is None or self._is_over(suspect) else suspect

    def cleared(self, key: str) -> None:
        """Record that a statement finished, with any result, and the engine did not end."""
        self._known.pop(key, None)

    def check(self, key: str) -> None:
        """Check that a statement may run.

        Raises:
            StatementRefusedError: the statement ended the engine too often.
        """
        suspect = self.find(key)
        if suspect is None or not suspect.is_refused:
            return
        self.refusals[suspect.last.cause] += 1
        raise StatementRefusedError(self._told(suspect))

    def _told(self, suspect: Suspect) -> str:
        times = {2: "twice", 3: "three times"}.get(suspect.ends, f"{suspect.ends} times")
        detail = f" ({suspect.last.detail})" if suspect.last.detail else ""
        until = datetime.datetime.fromtimestamp(suspect.seen_s + self._refused_s, datetime.UTC)
        return (
            f"the statement is refused until {until:%H:%M:%S} UTC: it ended the engine {times}: "
            f"{suspect.last.cause}{detail}; {_REMEDIES[suspect.last.cause]}"
        )

    def _noted(self, key: str, end: End, *, was_alone: bool) -> Suspect:
        now_s, suspect = self._clock(), self.find(key)
        if suspect is None:
            return Suspect(key, 1, end, was_alone, now_s)
        # Proof from a run alone is kept when a later end had other statements as well.
        is_proven = suspect.is_refused and suspect.was_alone
        return replace(
            suspect, ends=suspect.ends + 1, last=end, was_alone=was_alone or is_proven, seen_s=now_s
        )

    def _is_over(self, suspect: Suspect) -> bool:
        return self._clock() - suspect.seen_s >= self._refused_s

    def _forget(self) -> None:
        for each in [each for each in self._known.values() if self._is_over(each)]:
            del self._known[each.key]
        while len(self._known) > self._most:
            self._known.popitem(last=False)


class SuspectTurns:
    """Lets suspects run one at a time; other statements run immediately.

    A turn ends after `longest_s` even if its statement still runs. A statement that ends an engine
    does so within seconds, while innocent ones may take hours.
    """

    def __init__(self, suspects: Suspects, longest_s: float = _TURN_S) -> None:
        self._suspects = suspects
        self._longest_s = longest_s
        self._turn = asyncio.Lock()

    async def await_turn(self, key: str) -> Callable[[], None]:
        """Wait for a turn if the statement is a suspect; return the function that ends the turn.

        Raises:
            StatementRefusedError: the statement ended the engine too often, perhaps while it
                waited.
        """
        self._suspects.check(key)
        if self._suspects.find(key) is None:
            return _nothing
        await self._turn.acquire()
        passed = _once(self._turn.release)
        try:
            self._suspects.check(key)
        except BaseException:
            passed()
            raise
        timer = asyncio.get_running_loop().call_later(self._longest_s, passed)

        def over() -> None:
            timer.cancel()
            passed()

        return over


def _once(act: Callable[[], None]) -> Callable[[], None]:
    left = [act]

    def call() -> None:
        if left:
            left.pop()()

    return call


def _nothing() -> None:
    """Do nothing; other statements need no turn."""
