"""The state: one pod with Redis and the result store, on one volume."""

from caraway_kube import naming
from caraway_operator.manifests import containers, pod, processes, sizing, volumes, workloads
from caraway_operator.manifests.desired import DesiredCluster
from caraway_operator.manifests.meta import Object
from caraway_operator.manifests.secrets import redis_secret

REDIS = "redis"
_START = containers.StartTimes(delay_s=2)


def objects(desired: DesiredCluster) -> list[Object]:
    """Return the StatefulSet of the state, or nothing if both are external."""
    spec = desired.spec.state
    resources = [
        *([_redis(desired)] if desired.makes_redis else []),
        *([_store(desired)] if desired.makes_store else []),
    ]
    if not resources:
        return []
    found = volumes.scratch()[0] + volumes.data(spec.storage)
    if desired.makes_redis:
        items: list[Object] = [{"key": "valkey.conf", "path": "valkey.conf"}]
        found.append(volumes.secret(REDIS, redis_secret(desired), items))
    if desired.makes_store:
        found += volumes.token(desired)[0]
    template = pod.template(
        desired,
        spec,
        naming.STATE,
        containers=resources,
        volumes=found,
        grace_s=spec.termination_grace_period_seconds,
    )
    return [
        workloads.stateful_set(
            desired,
            naming.STATE,
            0 if desired.spec.stopped else 1,
            template,
            storage=spec.storage,
            retention=workloads.retention(when_deleted=spec.storage.retain, when_scaled=True),
        )
    ]


def _redis(desired: DesiredCluster) -> Object:
    spec = desired.spec.state
    resources = sizing.effective(naming.STATE, spec.resources)
    resource = containers.container(
        desired,
        spec,
        REDIS,
        # The password is in the file. Acknowledged writes must be on disk; the scheduler
        # rejects a server with other settings.
        arguments=[
            f"{naming.REDIS_DIR}/valkey.conf",
            *("--port", str(naming.REDIS_PORT)),
            *("--dir", naming.DATA_DIR),
            *("--save", ""),
            *("--appendonly", "yes"),
            *("--appendfsync", "always"),
            *("--maxmemory", f"{sizing.redis_mib(resources)}mb"),
            *("--maxmemory-policy", "noeviction"),
        ],
        env=processes.identity(),
        ports={REDIS: naming.REDIS_PORT},
        probes=containers.probes(
            spec.probes,
            startup=containers.tcp(REDIS),
            readiness=containers.tcp(REDIS),
            liveness=containers.tcp(REDIS),
            start=_START,
        ),
        resources=resources,
        mounts=[
            volumes.data_mount(),
            volumes.mount(REDIS, naming.REDIS_DIR),
            *volumes.scratch()[1],
        ],
    )
    return {**resource, "command": ["valkey-server"]}


def _store(desired: DesiredCluster) -> Object:
    spec = desired.spec.state
    probe = containers.http("/health", sizing.STORE)
    return containers.container(
        desired,
        spec,
        sizing.STORE,
        arguments=[
            "store",
            *("--dir", f"{naming.DATA_DIR}/store"),
            *("--listen", f"0.0.0.0:{naming.STORE_PORT}"),
            *("--token-file", naming.TOKEN_FILE),
            *("--log-format", desired.spec.log_format),
        ],
        env=processes.identity(),
        ports={sizing.STORE: naming.STORE_PORT},
        probes=containers.probes(
            spec.probes, startup=probe, readiness=probe, liveness=probe, start=_START
        ),
        resources=sizing.effective(sizing.STORE, spec.store_resources),
        mounts=[volumes.data_mount(), *volumes.token(desired)[1], *volumes.scratch()[1]],
    )
