"""The executors: a StatefulSet, each with a volume for what it keeps at hand."""

from caraway_operator import naming
from caraway_operator.manifests import containers, pod, processes, sizing, volumes, workloads
from caraway_operator.manifests.meta import Object
from caraway_operator.manifests.sizing import Shares
from caraway_operator.manifests.wanted import Wanted
from caraway_operator.resources.pods import Resources

_MARGIN_S = 30


def objects(wanted: Wanted) -> list[Object]:
    """Return the StatefulSet of the executors."""
    spec = wanted.spec.executor
    resources = sizing.effective(naming.EXECUTOR, spec.resources)
    shared = sizing.shares(naming.EXECUTOR, resources)
    found = [volumes.token(wanted), volumes.scratch(), volumes.shared_memory(shared.shm_mib)]
    container = containers.container(
        wanted,
        spec,
        naming.EXECUTOR,
        arguments=_arguments(wanted, resources, shared),
        env=processes.identity(),
        ports={"metrics": naming.METRICS_PORT},
        probes=containers.probes(
            spec.probes,
            startup=containers.http("/health", "metrics"),
            readiness=containers.http("/v1/ready", "metrics"),
            liveness=containers.http("/health", "metrics"),
        ),
        resources=resources,
        mounts=[volumes.data_mount(), *(mount for _, mounts in found for mount in mounts)],
    )
    template = pod.template(
        wanted,
        spec,
        naming.EXECUTOR,
        containers=[container],
        volumes=[*volumes.data(spec.cache), *(each for made, _ in found for each in made)],
        grace_s=grace_s(wanted),
    )
    kept = spec.cache.retain
    # Whoever only stops wants to go on with what is there.
    kept_in = kept or wanted.spec.stopped
    return [
        workloads.stateful_set(
            wanted,
            naming.EXECUTOR,
            wanted.executor_count,
            template,
            partition=wanted.partition,
            storage=spec.cache,
            retention=workloads.retention(when_deleted=kept, when_scaled=kept_in),
        )
    ]


def grace_s(wanted: Wanted) -> int:
    """Return how long an executor may take to stop: longer than it drains."""
    spec = wanted.spec.executor
    given = spec.termination_grace_period_seconds
    return spec.drain_timeout_seconds + _MARGIN_S if given is None else given


def _arguments(wanted: Wanted, resources: Resources, shared: Shares) -> list[str]:
    return [
        "executor",
        *processes.joining(wanted),
        *("--cores", str(sizing.cores(resources))),
        *("--memory", f"{shared.statements_mib}MiB"),
        *("--object-store-memory", f"{shared.object_store_mib}MiB"),
        *("--metrics", f"0.0.0.0:{naming.METRICS_PORT}"),
        *("--drain-timeout", str(wanted.spec.executor.drain_timeout_seconds)),
    ]
