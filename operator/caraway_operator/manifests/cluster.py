"""All objects of a cluster, in the order in which they are created.

Objects that take a few lines are built here, the others in the module of their kind.
"""

from caraway_kube import naming
from caraway_operator.manifests import (
    accounts,
    configs,
    containers,
    executor,
    pod,
    policies,
    processes,
    scheduler,
    services,
    sizing,
    state,
    volumes,
    workloads,
)
from caraway_operator.manifests.desired import POD_MONITOR, SERVICE_MONITOR, DesiredCluster
from caraway_operator.manifests.meta import Object, metadata


def _budgets(desired: DesiredCluster) -> list[Object]:
    """Return a PodDisruptionBudget for each component with more than one pod."""
    made = []
    if desired.scheduler_count > 1:
        made.append(_budget(desired, naming.SCHEDULER, {"minAvailable": 1}))
    if desired.executor_count > 1:
        made.append(_budget(desired, naming.EXECUTOR, {"maxUnavailable": 1}))
    return made


def _budget(desired: DesiredCluster, component: str, allowed: Object) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(desired, naming.object_name(desired.name, component), component),
        "spec": {
            **allowed,
            "selector": {"matchLabels": naming.component_selector(desired.name, component)},
            # A pod that is not ready would block the drain of its node forever.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def _monitors(desired: DesiredCluster) -> list[Object]:
    """Return ServiceMonitor and PodMonitor, if enabled and if their kinds exist."""
    given = desired.spec.monitoring
    made = []
    if given.service_monitor and SERVICE_MONITOR in desired.kinds:
        made.append(_monitor(desired, SERVICE_MONITOR, naming.SCHEDULER, "endpoints"))
    if given.pod_monitor and POD_MONITOR in desired.kinds:
        made.append(_monitor(desired, POD_MONITOR, naming.EXECUTOR, "podMetricsEndpoints"))
    return made


def _monitor(desired: DesiredCluster, kind: str, component: str, endpoints: str) -> Object:
    given = desired.spec.monitoring
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": kind,
        "metadata": metadata(
            desired, naming.object_name(desired.name, component), component, labels=given.labels
        ),
        "spec": {
            "selector": {"matchLabels": naming.component_selector(desired.name, component)},
            endpoints: [{"port": "metrics", "path": "/metrics", "interval": given.interval}],
        },
    }


_ALIVE_S = 30
"""The head touches its file every 2 s."""


def _head(desired: DesiredCluster) -> list[Object]:
    """Return the StatefulSet of the head: one pod, whose state is in Redis."""
    spec = desired.spec.head
    resources = sizing.effective(naming.HEAD, spec.resources)
    shared = sizing.shares(naming.HEAD, resources)
    found = [volumes.token(desired), volumes.scratch(), volumes.shared_memory(shared.shm_mib)]
    container = containers.container(
        desired,
        spec,
        naming.HEAD,
        arguments=[
            "head",
            *("--address", f"$(POD_IP):{naming.HEAD_PORT}"),
            *processes.common(desired),
        ],
        env=[*processes.identity(), *processes.state(desired)],
        ports={"gcs": naming.HEAD_PORT},
        probes=containers.probes(
            spec.probes,
            startup=containers.tcp("gcs"),
            readiness=containers.tcp("gcs"),
            # The state server is watched by the head; the kubelet asks for the head itself.
            liveness=containers.fresh(naming.HEAD_ALIVE, _ALIVE_S),
        ),
        resources=resources,
        mounts=[volumes.data_mount(), *(mount for _, mounts in found for mount in mounts)],
    )
    template = pod.template(
        desired,
        spec,
        naming.HEAD,
        containers=[container],
        volumes=[*volumes.data(), *(each for made, _ in found for each in made)],
        grace_s=spec.termination_grace_period_seconds,
    )
    replicas = 0 if desired.spec.stopped else 1
    return [workloads.stateful_set(desired, naming.HEAD, replicas, template)]


_BUILDERS = (
    accounts.objects,
    configs.objects,
    services.objects,
    policies.objects,
    _budgets,
    state.objects,
    _head,
    scheduler.objects,
    executor.objects,
    _monitors,
)


def objects(desired: DesiredCluster) -> list[Object]:
    """Return all objects of a cluster except Secrets, which are created once."""
    return [resource for build in _BUILDERS for resource in build(desired)]
