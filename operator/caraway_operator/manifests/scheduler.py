"""The schedulers: a Deployment without unavailable pods during updates."""

from dataclasses import replace

from caraway_kube import naming
from caraway_operator.manifests import (
    configs,
    containers,
    pod,
    processes,
    sizing,
    volumes,
    workloads,
)
from caraway_operator.manifests.desired import DesiredCluster
from caraway_operator.manifests.meta import Object, metadata

_SHUTDOWN_DELAY_S = 5
"""Clients are sent to a terminating pod for a moment, and keep connections to it."""
_MARGIN_S = 25
_READY = "/v1/ready?probe=pod"
_START = replace(containers.WAITING, failures=3600 // containers.WAIT_S)
"""Restarting a scheduler that waits for executors or for a dataset does not help."""


def objects(desired: DesiredCluster) -> list[Object]:
    """Return the Deployment of the schedulers."""
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata(
                desired, naming.object_name(desired.name, naming.SCHEDULER), naming.SCHEDULER
            ),
            "spec": {
                "replicas": desired.scheduler_count,
                "selector": {
                    "matchLabels": naming.component_selector(desired.name, naming.SCHEDULER)
                },
                "revisionHistoryLimit": workloads.REVISIONS,
                "progressDeadlineSeconds": desired.spec.update_strategy.progress_deadline_seconds,
                "strategy": {
                    "type": "RollingUpdate",
                    # All at once: a new value of a Secret must not wait for several starts in a
                    # row. Where there is no room for all, some are made as others leave.
                    "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0},
                },
                "template": _template(desired),
            },
        }
    ]


def _template(desired: DesiredCluster) -> Object:
    spec = desired.spec.scheduler
    resources = sizing.effective(naming.SCHEDULER, spec.resources)
    shared = sizing.shares(naming.SCHEDULER, resources)
    found = [
        volumes.token(desired),
        volumes.scheduler_volumes(desired),
        volumes.scratch(),
        volumes.shared_memory(shared.shm_mib),
    ]
    container = containers.container(
        desired,
        spec,
        naming.SCHEDULER,
        arguments=_arguments(desired, shared.object_store_mib),
        env=[
            *processes.identity(),
            *processes.state(desired),
            # Not a flag: an image of an earlier release would refuse it.
            containers.variable("CARAWAY_SHUTDOWN_DELAY", str(_SHUTDOWN_DELAY_S)),
        ],
        ports={
            "http": naming.HTTP_PORT,
            "flight": naming.FLIGHT_PORT,
            "metrics": naming.METRICS_PORT,
        },
        probes=containers.probes(
            spec.probes,
            startup=containers.http(_startup_path(desired), "metrics"),
            readiness=containers.http(_READY, "metrics"),
            liveness=containers.http("/health", "metrics"),
            start=_START,
        ),
        resources=resources,
        mounts=[volumes.data_mount(), *(mount for _, mounts in found for mount in mounts)],
    )
    return pod.template(
        desired,
        spec,
        naming.SCHEDULER,
        containers=[container],
        volumes=[*volumes.data(), *(each for made, _ in found for each in made)],
        grace_s=grace_s(desired),
        manifest=configs.manifest_text(desired),
    )


def grace_s(desired: DesiredCluster) -> int:
    """Return the termination grace period."""
    given = desired.spec.scheduler.termination_grace_period_seconds
    shutdown_s = int(desired.manifest.shutdown_timeout_s)
    return shutdown_s + _SHUTDOWN_DELAY_S + _MARGIN_S if given is None else given


def _startup_path(desired: DesiredCluster) -> str:
    """Return the probe that keeps a new scheduler from serving until an executor works for it.

    Later, readiness must not depend on executors: without them, a scheduler still accepts jobs and
    reports errors. Kubernetes stops the startup probe once it has succeeded.
    """
    executor = desired.spec.executor
    has_executors = executor.replicas > 0 or executor.max_replicas is not None
    gate = "&min_ready_executors=1" if has_executors else ""
    return f"{_READY}&wait={containers.WAIT_S}{gate}"


def _arguments(desired: DesiredCluster, object_store_mib: int) -> list[str]:
    return [
        *("scheduler", naming.MANIFEST_FILE),
        *processes.joining(desired),
        *("--http", f"0.0.0.0:{naming.HTTP_PORT}"),
        *("--flight", f"0.0.0.0:{naming.FLIGHT_PORT}"),
        *("--metrics", f"0.0.0.0:{naming.METRICS_PORT}"),
        *("--object-store-memory", f"{object_store_mib}MiB"),
        *("--limits-file", f"{naming.LIMITS_DIR}/{naming.LIMITS_KEY}"),
    ]
