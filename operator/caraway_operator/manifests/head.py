"""The head: a StatefulSet of one pod, whose state is in the Redis."""

from caraway_operator import naming
from caraway_operator.manifests import containers, pod, processes, sizing, volumes, workloads
from caraway_operator.manifests.meta import Object
from caraway_operator.manifests.wanted import Wanted


def objects(wanted: Wanted) -> list[Object]:
    """Return the StatefulSet of the head."""
    spec = wanted.spec.head
    resources = sizing.effective(naming.HEAD, spec.resources)
    shared = sizing.shares(naming.HEAD, resources)
    found = [volumes.token(wanted), volumes.scratch(), volumes.shared_memory(shared.shm_mib)]
    container = containers.container(
        wanted,
        spec,
        naming.HEAD,
        arguments=[
            "head",
            *("--address", f"$(POD_IP):{naming.HEAD_PORT}"),
            *processes.common(wanted),
        ],
        env=[*processes.identity(), *processes.state(wanted)],
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
        wanted,
        spec,
        naming.HEAD,
        containers=[container],
        volumes=[*volumes.data(), *(each for made, _ in found for each in made)],
        grace_s=spec.termination_grace_period_seconds,
    )
    replicas = 0 if wanted.spec.stopped else 1
    return [workloads.stateful_set(wanted, naming.HEAD, replicas, template)]
