"""The executors: a StatefulSet with a cache volume for each pod."""

from caraway_kube import naming
from caraway_kube.resources.pods import ContainerResources
from caraway_operator.manifests import containers, pod, processes, sizing, volumes, workloads
from caraway_operator.manifests.desired import DesiredCluster
from caraway_operator.manifests.meta import Object
from caraway_operator.manifests.sizing import MemoryShares

_MARGIN_S = 30


def objects(desired: DesiredCluster) -> list[Object]:
    """Return the StatefulSet of the executors."""
    spec = desired.spec.executor
    resources = sizing.effective(naming.EXECUTOR, spec.resources)
    shared = sizing.shares(naming.EXECUTOR, resources)
    found = [volumes.token(desired), volumes.scratch(), volumes.shared_memory(shared.shm_mib)]
    if spec.flight.enabled:
        found.append(volumes.tls(desired))
    container = containers.container(
        desired,
        spec,
        naming.EXECUTOR,
        arguments=_arguments(desired, resources, shared),
        env=processes.identity(),
        ports={
            "metrics": naming.METRICS_PORT,
            **({"flight": naming.FLIGHT_PORT} if spec.flight.enabled else {}),
        },
        probes=containers.probes(
            spec.probes,
            # Liveness is checked after one wait at most, even where nothing can be joined.
            startup=containers.http(f"/health?wait={containers.WAIT_S}", "metrics"),
            readiness=containers.http("/v1/ready", "metrics"),
            liveness=containers.http("/health", "metrics"),
            start=containers.WAITING,
        ),
        resources=resources,
        mounts=[volumes.data_mount(), *(mount for _, mounts in found for mount in mounts)],
    )
    template = pod.template(
        desired,
        spec,
        naming.EXECUTOR,
        containers=[container],
        volumes=[*volumes.data(spec.cache), *(each for made, _ in found for each in made)],
        grace_s=grace_s(desired),
    )
    kept = spec.cache.retain
    # A stopped cluster keeps its volumes for when it starts again.
    kept_in = kept or desired.spec.stopped
    return [
        workloads.stateful_set(
            desired,
            naming.EXECUTOR,
            desired.executor_count,
            template,
            partition=desired.partition,
            storage=spec.cache,
            retention=workloads.retention(when_deleted=kept, when_scaled=kept_in),
        )
    ]


def grace_s(desired: DesiredCluster) -> int:
    """Return the termination grace period, which is longer than the drain timeout."""
    spec = desired.spec.executor
    given = spec.termination_grace_period_seconds
    return spec.drain_timeout_seconds + _MARGIN_S if given is None else given


def _arguments(
    desired: DesiredCluster, resources: ContainerResources, shared: MemoryShares
) -> list[str]:
    return [
        "executor",
        *processes.joining(desired),
        *("--cores", str(sizing.cores(resources))),
        *("--memory", f"{shared.statements_mib}MiB"),
        *("--object-store-memory", f"{shared.object_store_mib}MiB"),
        *("--metrics", f"0.0.0.0:{naming.METRICS_PORT}"),
        *("--drain-timeout", str(desired.spec.executor.drain_timeout_seconds)),
        *_flight(desired),
    ]


def _flight(desired: DesiredCluster) -> list[str]:
    given = desired.spec.executor.flight
    if not given.enabled:
        return []
    service = naming.object_name(desired.name, naming.EXECUTOR)
    # Kubernetes replaces the name of the variable.
    host = given.advertised_host or f"$(POD_NAME).{service}.{desired.namespace}.svc"
    certificate = [
        *("--flight-certificate", f"{naming.TLS_DIR}/tls.crt"),
        *("--flight-key", f"{naming.TLS_DIR}/tls.key"),
    ]
    return [
        *("--flight", f"0.0.0.0:{naming.FLIGHT_PORT}"),
        *("--flight-advertised", f"{host}:{given.advertised_port}"),
        *(certificate if desired.spec.tls.enabled else []),
    ]
