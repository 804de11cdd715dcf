"""Hosts models on the executors of the cluster, for all that call models."""

from collections import Counter
from collections.abc import Mapping, Sequence

from caraway_assist.hosting.copies import Copies, HostPlaces
from caraway_assist.hosting.placing import Candidate
from caraway_core.concurrency.tasks import Tasks
from caraway_core.ids import ExecutorId
from caraway_core.manifest.models import ModelResources
from caraway_core.protocols.fleet import Fleet
from caraway_core.protocols.hosting import CopyOrder, HostedSpec
from caraway_scheduler.membership import Membership


class Hosting:
    """The hosted models of this scheduler."""

    def __init__(self, fleet: Fleet, membership: Membership, holder: str) -> None:
        """Take the name under which executors know this process."""
        self._fleet = fleet
        self._membership = membership
        self._holder = holder
        self._hosted: dict[Copies, Tasks] = {}

    @property
    def hosted(self) -> Sequence[Copies]:
        return list(self._hosted)

    def host(self, spec: HostedSpec, resources: ModelResources) -> Copies:
        """Begin to host a model; `release` ends that."""
        order = CopyOrder(
            self._holder, spec, resources.cpu or 1, resources.memory_bytes or 0, resources.gpu
        )
        places = HostPlaces(
            self._candidates, self._membership.is_draining, self._membership.lost, self._counts
        )
        copies = Copies(self._fleet, places, order, resources.copies)
        self._hosted[copies] = Tasks()
        self._hosted[copies].keep(copies.run, "copies of a model", model=spec.name)
        return copies

    async def release(self, copies: Copies) -> None:
        """Host a model no more."""
        if (tasks := self._hosted.pop(copies, None)) is not None:
            await tasks.aclose()

    async def aclose(self) -> None:
        for copies in self.hosted:
            await self.release(copies)

    def _candidates(self) -> Sequence[Candidate]:
        return [
            Candidate(each.executor_id, each.cores, each.memory_bytes, each.gpus, each.models)
            for each in self._membership.ready()
        ]

    def _counts(self) -> Mapping[ExecutorId, int]:
        return Counter(key for copies in self._hosted for key in copies.executors)
