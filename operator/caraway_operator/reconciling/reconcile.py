"""Reconciles one cluster: reads its desired and observed state, decides, writes, reports status.

All decisions are made by pure modules. This one does the I/O.
"""

import datetime as dt
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from caraway_core.concurrency.clocks import SecondsClock
from caraway_kube import naming
from caraway_kube.api import errors
from caraway_kube.api.client import KubeClient
from caraway_kube.api.kinds import CLUSTER, POD, SERVICE, VOLUME_CLAIM, Object
from caraway_kube.naming import EXECUTOR, SCHEDULER
from caraway_kube.resources.cluster import CarawayClusterSpec
from caraway_operator.kube import planning
from caraway_operator.kube.events import EventContent, EventRecorder
from caraway_operator.kube.object_cache import ObjectCache
from caraway_operator.kube.planning import OwnerReference
from caraway_operator.manifests import DesiredCluster
from caraway_operator.policy import decisions, status
from caraway_operator.policy.decisions import Decision
from caraway_operator.policy.status import ClusterFacts
from caraway_operator.reconciling import cluster_events, observed_state, patches, sampling
from caraway_operator.reconciling.desired_state import FRESH_S, DesiredState, DesiredStateReader
from caraway_operator.reconciling.reconcile_cache import ReconcileCache
from caraway_operator.reconciling.sampling import LoadSampler
from caraway_operator.reconciling.writing import WriteResult, write_plan
from caraway_operator.scheduler_client import (
    ExecutorView,
    OperatorRefusedError,
    SchedulerClient,
    SchedulerClientError,
    SchedulerEndpoint,
)
from caraway_operator.states.cluster_state import ClusterState
from caraway_operator.states.progress import ReconcileProgress, progress_status, read_progress
from caraway_operator.watching.resource_cache import Key, ResourceCache, key

logger = logging.getLogger(__name__)
RESYNC_S = 60.0
_SOON_S = 2.0
_LEAST_S = 0.1
_ROLLING_S = 5.0


@dataclass(frozen=True, slots=True)
class ReconcileResult:
    """When to reconcile again, and what was written."""

    requeue_after_s: float
    written: WriteResult = field(default_factory=WriteResult)
    failed: bool = False


class Reconciler:
    """Reconciles clusters. A cluster must not be reconciled twice at the same time."""

    def __init__(
        self,
        kube: KubeClient,
        schedulers: SchedulerClient,
        objects: ObjectCache,
        resources: ResourceCache,
        recorder: EventRecorder,
        clock: SecondsClock,
        version: str,
    ) -> None:
        self._kube = kube
        self._schedulers = schedulers
        self._objects = objects
        self._resources = resources
        self._recorder = recorder
        self._clock = clock
        self._reader = DesiredStateReader(kube, resources, clock, version)
        self._sampler = LoadSampler(schedulers, clock)
        self._caches: dict[Key, ReconcileCache] = {}
        self.endpoint: Callable[[str, str, str], SchedulerEndpoint] = service_endpoint

    @property
    def kinds(self) -> frozenset[str]:
        """Optional kinds that the API server serves."""
        return self._reader.kinds

    @kinds.setter
    def kinds(self, kinds: frozenset[str]) -> None:
        self._reader.kinds = kinds

    def forget_cluster(self, which: Key) -> None:
        """Drop the cache of a cluster that was deleted."""
        self._caches.pop(which, None)

    async def reconcile(self, cluster: Object) -> ReconcileResult:
        """Move a cluster one step towards its desired state.

        Raises:
            KubeError: the status of the cluster could not be written.
        """
        cache = self._caches.setdefault(key(cluster), ReconcileCache())
        metadata = cluster["metadata"]
        progress = read_progress(self._last_status(cluster, cache).get("progress"))
        name, namespace = metadata["name"], metadata["namespace"]
        facts = ClusterFacts(name, namespace, metadata.get("generation", 0), progress=progress)
        if metadata.get("deletionTimestamp"):
            # Kubernetes removes what the cluster owns. Nothing is created any more.
            facts = replace(facts, is_terminating=True)
            return await self._publish_status(cluster, cache, facts, progress, RESYNC_S)
        facts = observed_state.with_observed(facts, self._objects)
        facts = observed_state.with_applied_replicas(facts)
        try:
            state = await self._reader.read_desired(cluster, cache, facts)
        except errors.KubeError as error:
            rejected = replace(facts.spec, is_accepted=False)
            facts = replace(facts, failures=[error.message], spec=rejected)
            await self._publish_status(cluster, cache, facts, progress, RESYNC_S)
            return ReconcileResult(_SOON_S, failed=True)
        facts = state.facts
        if state.cluster is None:
            for problem in (*facts.spec.problems, *facts.spec.refused):
                event = EventContent("SpecRefused", problem, "Check", "Warning")
                await self._recorder.record_event(cluster, event)
            return await self._publish_status(cluster, cache, facts, progress, FRESH_S)
        if state.cluster.spec.paused:
            facts = replace(facts, spec=replace(facts.spec, is_paused=True))
            return await self._publish_status(cluster, cache, facts, progress, RESYNC_S)
        return await self._apply_desired(cluster, cache, state, state.cluster)

    async def _apply_desired(
        self, cluster: Object, cache: ReconcileCache, desired: DesiredState, spec: DesiredCluster
    ) -> ReconcileResult:
        facts, before = desired.facts, desired.facts.progress
        objects = self._reader.build_objects(cache, spec)
        state = await self._cluster_state(cache, spec, objects, facts, desired.has_surge_room)
        decision = await self._cancel_drain(cache, facts, decisions.decide(state))
        settled, hold = decisions.apply_decision(objects, decision)
        live = observed_state.managed_objects(self._objects, facts)
        plan = planning.plan(settled, live, _owner(cluster), cache.writes.applied, hold)
        facts = replace(facts, desired_replicas=state.desired_replicas, decision=decision)
        if decision.start_drain and decision.progress.drain != before.drain:
            # Stored before the drain starts, so that a later process can cancel it.
            await self._publish_status(cluster, cache, facts, decision.progress, 0)
        written = await write_plan(self._kube, self._objects, cache.writes, plan, self._clock())
        written = replace(written, created=(*desired.created, *written.created))
        for event in cluster_events.write_events(written):
            await self._recorder.record_event(cluster, event)
        failures = [*written.failures, *cache.referenced.missing]
        failures += await self._expand_volumes(facts, settled)
        failures += await self._refresh_keys(facts, spec)
        failures += await self._drain_and_delete(cache, facts, decision)
        broken = replace(facts.observed, unreachable=_unreachable(written))
        facts = replace(facts, failures=failures, observed=broken)
        facts = observed_state.with_observed(facts, self._objects)
        facts = await self._with_answers(cache, replace(facts, refusal=state.refusal or None))
        is_ready = status.is_ready(facts)
        progress = replace(
            decision.progress,
            was_ready=decision.progress.was_ready or is_ready,
            full=dict(facts.desired_replicas) if is_ready else decision.progress.full,
        )
        after_s = _requeue_after_s(spec.spec, decision, written, bool(failures))
        if spec.spec.manifest_from is not None or cache.referenced.has_users:
            # An event may have led here: what was read before is still due at its own time.
            age_s = self._clock() - cache.read_at
            after_s = min(after_s, max(FRESH_S - age_s, _LEAST_S))
        if facts.unready_parts or facts.refusal:
            after_s = min(after_s, sampling.EVERY_S)
        result = await self._publish_status(cluster, cache, facts, progress, after_s)
        for event in cluster_events.state_events(facts):
            await self._recorder.record_event(cluster, event)
        return replace(result, written=written, failed=bool(written.failures))

    async def _cluster_state(
        self,
        cache: ReconcileCache,
        desired: DesiredCluster,
        objects: Sequence[Object],
        facts: ClusterFacts,
        can_surge: bool,
    ) -> ClusterState:
        replicas, progress = await self._sampler.desired_replicas(
            cache, desired, objects, facts, facts.progress
        )
        state = ClusterState(
            now=self._clock(),
            spec=desired.spec,
            workloads=facts.workloads,
            pods=facts.observed.pods,
            templates=decisions.template_hashes(objects),
            desired_replicas=replicas,
            progress=progress,
            can_surge=can_surge,
        )
        if not decisions.needs_schedulers(state):
            return state
        endpoint = self._endpoint_of(cache, facts)
        try:
            views: Sequence[ExecutorView] = await self._schedulers.executors(endpoint)
            least = decisions.min_ready_executors(desired.spec, replicas[EXECUTOR], views)
            capable = await self._schedulers.is_ready(endpoint, least)
        except OperatorRefusedError as error:
            refused = replace(state, refusal=error.message)
            return replace(refused, is_capable=decisions.is_capable_by_pods(refused))
        except SchedulerClientError as error:
            logger.debug("no scheduler answers", extra={"reason": error.message})
            return state
        return replace(state, executors=views, is_capable=capable)

    async def _cancel_drain(
        self, cache: ReconcileCache, facts: ClusterFacts, decision: Decision
    ) -> Decision:
        """Cancel a drain. If that fails, the drain is kept and cancelled later."""
        if decision.cancel_drain is None:
            return decision
        try:
            await self._schedulers.undrain(self._endpoint_of(cache, facts), decision.cancel_drain)
        except SchedulerClientError:
            if not facts.workloads.get(SCHEDULER):
                # No scheduler follows the drain, and it is deleted with the state.
                return decision
            kept = replace(decision.progress, drain=facts.progress.drain)
            return replace(decision, progress=kept, start_drain=None)
        return decision

    async def _drain_and_delete(
        self, cache: ReconcileCache, facts: ClusterFacts, decision: Decision
    ) -> list[str]:
        if decision.start_drain:
            endpoint = self._endpoint_of(cache, facts)
            try:
                await self._schedulers.drain(endpoint, decision.start_drain)
            except SchedulerClientError as error:
                logger.info(
                    "cannot drain the executor",
                    extra={"executor": decision.start_drain, "reason": error.message},
                )
        failures = []
        for pod in decision.pods_to_delete:
            try:
                await self._kube.delete(POD, facts.namespace, pod.name, pod.uid)
            except errors.KubeError as error:
                failures.append(error.message)
        return failures

    async def _with_answers(self, cache: ReconcileCache, facts: ClusterFacts) -> ClusterFacts:
        """Return the facts with the parts that are not ready, or with the schedulers' refusal."""
        workload = facts.workloads.get(SCHEDULER)
        if workload is None or not workload.ready:
            return facts
        try:
            parts = await self._schedulers.unready_parts(self._endpoint_of(cache, facts))
        except OperatorRefusedError as error:
            return replace(facts, refusal=error.message)
        except SchedulerClientError as error:
            logger.debug("cannot ask for unready parts", extra={"reason": error.message})
            return facts
        return replace(facts, unready_parts=parts, refusal=facts.refusal or "")

    async def _expand_volumes(self, facts: ClusterFacts, settled: Sequence[Object]) -> list[str]:
        failures = []
        claims = observed_state.volume_claims(self._objects, facts)
        for expansion in patches.expansions(settled, claims):
            try:
                answer = await self._kube.merge(
                    VOLUME_CLAIM, facts.namespace, expansion.claim, expansion.patch
                )
            except errors.KubeError as error:
                failures.append(
                    f"the volume '{expansion.claim}' cannot be expanded to {expansion.size}: "
                    f"{error.message}"
                )
            else:
                self._objects.put(answer)
        return failures

    async def _refresh_keys(self, facts: ClusterFacts, desired: DesiredCluster) -> list[str]:
        failures = []
        pods = observed_state.scheduler_pods(self._objects, facts)
        for pod, patch in patches.refreshes(desired, pods):
            try:
                answer = await self._kube.merge(POD, facts.namespace, pod, patch)
            except errors.ObjectNotFoundError:
                continue
            except errors.KubeError as error:
                failures.append(
                    f"the pod '{pod}' cannot be given changed API keys: {error.message}"
                )
            else:
                self._objects.put(answer)
        return failures

    def _endpoint_of(self, cache: ReconcileCache, facts: ClusterFacts) -> SchedulerEndpoint:
        return self.endpoint(facts.namespace, facts.name, cache.referenced.token)

    def _last_status(self, cluster: Object, cache: ReconcileCache) -> Mapping[str, object]:
        """Return the current status, even if the watch has not delivered the last write yet."""
        if cache.status is not None and cache.status_version == _version(cluster):
            return cache.status
        found: Mapping[str, Any] = cluster.get("status") or {}
        return found

    async def _publish_status(
        self,
        cluster: Object,
        cache: ReconcileCache,
        facts: ClusterFacts,
        progress: ReconcileProgress,
        requeue_after_s: float,
    ) -> ReconcileResult:
        previous = self._last_status(cluster, cache)
        now = dt.datetime.fromtimestamp(self._clock(), dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        desired = status.cluster_status(facts, previous, progress_status(progress), now)
        if changed := status.status_patch(previous, desired):
            namespace, name = key(cluster)
            try:
                answer = await self._kube.merge(
                    CLUSTER, namespace, name, {"status": changed}, "status"
                )
            except errors.ObjectNotFoundError:
                # It was deleted while no watch was open. Nothing must be created for it.
                self._resources.drop_cluster(cluster)
                return ReconcileResult(_SOON_S)
            cache.status = {k: v for k, v in desired.items() if v is not None}
            cache.status_version = _version(cluster)
            self._resources.put_cluster(answer)
        return ReconcileResult(requeue_after_s)


def service_endpoint(namespace: str, name: str, token: str) -> SchedulerEndpoint:
    """Return the endpoint of a cluster's schedulers: its Service."""
    return SchedulerEndpoint(f"http://{name}.{namespace}.svc:{naming.METRICS_PORT}", token)


def _unreachable(written: WriteResult) -> tuple[str, ...]:
    """Return the Services that could not be written."""
    return tuple(sorted(each.name for each in written.broken if each.kind == SERVICE.name))


def _requeue_after_s(
    spec: CarawayClusterSpec, decision: Decision, written: WriteResult, has_failed: bool
) -> float:
    is_draining = decision.start_drain or decision.cancel_drain or decision.progress.drain
    if written.is_incomplete or is_draining:
        return _SOON_S
    if decision.is_rolling or decision.is_scaling or written.failures:
        return _ROLLING_S
    if spec.executor.max_replicas is not None or has_failed:
        return sampling.EVERY_S
    return RESYNC_S


def _owner(cluster: Object) -> OwnerReference:
    metadata = cluster["metadata"]
    return OwnerReference(
        naming.API_VERSION, naming.CLUSTER_KIND, metadata["name"], metadata["uid"]
    )


def _version(object_: Object) -> str:
    return str(object_["metadata"].get("resourceVersion", ""))
