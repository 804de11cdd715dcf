"""Reads the observed state of a cluster from the object cache."""

from dataclasses import replace

from caraway_kube import naming
from caraway_kube.api.kinds import POD, SERVICE, VOLUME_CLAIM, Object, ObjectRef
from caraway_kube.naming import SCHEDULER
from caraway_operator.kube.object_cache import ObjectCache
from caraway_operator.policy import decisions
from caraway_operator.policy.status import ClusterFacts, ObservedFacts
from caraway_operator.states import pods
from caraway_operator.states.pods import WorkloadView


def with_observed(facts: ClusterFacts, objects: ObjectCache) -> ClusterFacts:
    """Return the facts with the current workloads, pods, claims and missing Services.

    Services that were unreachable before stay so.
    """
    live = objects.of_cluster(facts.namespace, facts.name)
    workloads = _workloads(live, facts)
    missing = _missing_services(live, facts) if workloads else []
    return replace(
        facts,
        observed=ObservedFacts(
            workloads=workloads,
            pods=[
                pods.pod_view(each)
                for which, each in live.items()
                if which.kind == POD.name and not pods.is_left_behind(each)
            ],
            claim_problems=pods.claim_problems(volume_claims(objects, facts)),
            unreachable=tuple(sorted({*facts.observed.unreachable, *missing})),
        ),
    )


def with_applied_replicas(facts: ClusterFacts) -> ClusterFacts:
    """Return the facts with the applied replicas as desired, for specs that cannot be read."""
    replicas = {name: workload.replicas for name, workload in facts.workloads.items()}
    return replace(facts, desired_replicas=replicas)


def volume_claims(objects: ObjectCache, facts: ClusterFacts) -> list[Object]:
    """Return the claims of the cluster's pods."""
    live = objects.of_cluster(facts.namespace, facts.name)
    return [each for which, each in live.items() if which.kind == VOLUME_CLAIM.name]


def scheduler_pods(objects: ObjectCache, facts: ClusterFacts) -> list[Object]:
    """Return the pods of the cluster's schedulers."""
    live = objects.of_cluster(facts.namespace, facts.name)
    return [
        each
        for which, each in live.items()
        if which.kind == POD.name
        and each["metadata"]["labels"].get(naming.COMPONENT_LABEL) == SCHEDULER
    ]


def managed_objects(objects: ObjectCache, facts: ClusterFacts) -> dict[ObjectRef, Object]:
    """Return the live objects that the operator writes."""
    return {
        which: each
        for which, each in objects.of_cluster(facts.namespace, facts.name).items()
        if which.kind not in (POD.name, VOLUME_CLAIM.name)
    }


def _missing_services(live: dict[ObjectRef, Object], facts: ClusterFacts) -> list[str]:
    """Return which of the Services that every cluster needs do not exist."""
    names = (facts.name, naming.object_name(facts.name, naming.HEAD))
    return [n for n in names if ObjectRef(SERVICE.name, facts.namespace, n) not in live]


def _workloads(live: dict[ObjectRef, Object], facts: ClusterFacts) -> dict[str, WorkloadView]:
    workloads = {}
    for component in decisions.COMPONENTS:
        kind = "Deployment" if component == SCHEDULER else "StatefulSet"
        which = ObjectRef(kind, facts.namespace, naming.object_name(facts.name, component))
        if which in live:
            workloads[component] = pods.workload_view(live[which])
    return workloads
