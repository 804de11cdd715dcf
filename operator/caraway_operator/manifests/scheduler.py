"""The schedulers: a Deployment, replaced so that none is missing meanwhile."""

from caraway_operator import naming
from caraway_operator.manifests import (
    configs,
    containers,
    pod,
    processes,
    sizing,
    volumes,
    workloads,
)
from caraway_operator.manifests.meta import Object, metadata
from caraway_operator.manifests.wanted import Wanted

_GOODBYE_S = 5
"""Routers go on sending for a moment to a pod that is told to stop; it serves meanwhile."""
_MARGIN_S = 25


def objects(wanted: Wanted) -> list[Object]:
    """Return the Deployment of the schedulers."""
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata(
                wanted, naming.of(wanted.name, naming.SCHEDULER), naming.SCHEDULER
            ),
            "spec": {
                "replicas": wanted.scheduler_count,
                "selector": {"matchLabels": naming.selector(wanted.name, naming.SCHEDULER)},
                "revisionHistoryLimit": workloads.REVISIONS,
                "progressDeadlineSeconds": wanted.spec.update_strategy.progress_deadline_seconds,
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
                },
                "template": _template(wanted),
            },
        }
    ]


def _template(wanted: Wanted) -> Object:
    spec = wanted.spec.scheduler
    resources = sizing.effective(naming.SCHEDULER, spec.resources)
    shared = sizing.shares(naming.SCHEDULER, resources)
    found = [
        volumes.token(wanted),
        volumes.of_scheduler(wanted),
        volumes.scratch(),
        volumes.shared_memory(shared.shm_mib),
    ]
    container = containers.container(
        wanted,
        spec,
        naming.SCHEDULER,
        arguments=_arguments(wanted, shared.object_store_mib),
        env=[*processes.identity(), *processes.state(wanted)],
        ports={
            "http": naming.HTTP_PORT,
            "flight": naming.FLIGHT_PORT,
            "metrics": naming.METRICS_PORT,
        },
        probes=containers.probes(
            spec.probes,
            startup=containers.http("/health", "metrics"),
            readiness=containers.http("/v1/ready", "metrics"),
            liveness=containers.http("/health", "metrics"),
        ),
        resources=resources,
        mounts=[volumes.data_mount(), *(mount for _, mounts in found for mount in mounts)],
    )
    container["lifecycle"] = {"preStop": {"sleep": {"seconds": _GOODBYE_S}}}
    return pod.template(
        wanted,
        spec,
        naming.SCHEDULER,
        containers=[container],
        volumes=[*volumes.data(), *(each for made, _ in found for each in made)],
        grace_s=grace_s(wanted),
        manifest=configs.manifest_text(wanted),
    )


def grace_s(wanted: Wanted) -> int:
    """Return how long a scheduler may take to stop."""
    given = wanted.spec.scheduler.termination_grace_period_seconds
    shutdown_s = int(wanted.declared.shutdown_timeout_s)
    return shutdown_s + _GOODBYE_S + _MARGIN_S if given is None else given


def _arguments(wanted: Wanted, object_store_mib: int) -> list[str]:
    return [
        *("scheduler", naming.MANIFEST_FILE),
        *processes.joining(wanted),
        *("--http", f"0.0.0.0:{naming.HTTP_PORT}"),
        *("--flight", f"0.0.0.0:{naming.FLIGHT_PORT}"),
        *("--metrics", f"0.0.0.0:{naming.METRICS_PORT}"),
        *("--object-store-memory", f"{object_store_mib}MiB"),
        *("--limits-file", f"{naming.LIMITS_DIR}/{naming.LIMITS_KEY}"),
    ]
