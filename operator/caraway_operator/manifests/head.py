"""The head: a StatefulSet with one pod. Its state is in Redis."""

from caraway_operator import naming
from caraway_operator.manifests import containers, pod, processes, sizing, volumes, workloads
from caraway_operator.manifests.desired import DesiredCluster
from caraway_operator.manifests.meta import Object


def objects(desired: DesiredCluster) -> list[Object]:
    """Return the StatefulSet of the head."""
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
            liveness=containers.tcp("gcs"),
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
