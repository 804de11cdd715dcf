"""Decides where the copies of a model are: a pure function of the executors."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from caraway_core.ids import ExecutorId


@dataclass(frozen=True, slots=True)
class Candidate:
    """An executor that could host a copy; `models` are the keys of those that it hosts."""

    executor_id: ExecutorId
    cores: int
    memory_bytes: int
    gpus: int = 0
    models: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CopyNeeds:
    """The needs of the copies of one model. A model has at most one copy on each executor."""

    key: str
    copies: int = 1
    cores: int = 1
    memory_bytes: int = 0
    gpus: int = 0

    def fits(self, candidate: Candidate) -> bool:
        """Return whether an executor without other models has room for a copy."""
        return (
            self.cores <= candidate.cores
            and self.gpus <= candidate.gpus
            and (not candidate.memory_bytes or self.memory_bytes <= candidate.memory_bytes)
        )


def chosen(
    need: CopyNeeds,
    candidates: Sequence[Candidate],
    held: Collection[ExecutorId],
    unfit: Collection[ExecutorId],
    counts: Mapping[ExecutorId, int],
) -> list[ExecutorId]:
    """Return the executors that should host a copy.

    Copies stay where they are (`held`), then those of other schedulers are shared, then executors
    with the fewest models come first. Schedulers that see the same executors choose the same.
    `unfit` are executors that have refused a copy.
    """

    def rank(candidate: Candidate) -> tuple[bool, bool, int, bytes]:
        models = max(len(candidate.models), counts.get(candidate.executor_id, 0))
        text = f"{need.key}\0{candidate.executor_id}"
        return (
            candidate.executor_id not in held,
            need.key not in candidate.models,
            models,
            hashlib.sha256(text.encode()).digest(),
        )

    usable = [
        candidate
        for candidate in candidates
        if candidate.executor_id not in unfit and need.fits(candidate)
    ]
    return [candidate.executor_id for candidate in sorted(usable, key=rank)[: need.copies]]


def lacking(
    need: CopyNeeds, candidates: Sequence[Candidate], refusals: Mapping[ExecutorId, str]
) -> str:
    """Say why no executor hosts a copy."""
    if not candidates:
        return "no executor is ready"
    if not any(map(need.fits, candidates)):
        wants = f"cpu {need.cores}, memory {need.memory_bytes >> 20} MiB, gpu {need.gpus}"
        most = (
            f"cpu {max(candidate.cores for candidate in candidates)}, "
            f"memory {max(candidate.memory_bytes for candidate in candidates) >> 20} MiB, "
            f"gpu {max(candidate.gpus for candidate in candidates)}"
        )
        return f"no executor is large enough for its 'resources' ({wants}); the largest have {most}"
    return next(iter(refusals.values()), "no executor has room for it")
