"""The state: one pod with a Redis and with the store of answers, on one volume."""

from caraway_operator import naming
from caraway_operator.manifests import containers, pod, processes, sizing, volumes, workloads
from caraway_operator.manifests.meta import Object
from caraway_operator.manifests.secrets import redis_secret
from caraway_operator.manifests.wanted import Wanted

REDIS = "redis"


def objects(wanted: Wanted) -> list[Object]:
    """Return the StatefulSet of the state; nothing, if both are somewhere else."""
    spec = wanted.spec.state
    made = [
        *([_redis(wanted)] if wanted.makes_redis else []),
        *([_store(wanted)] if wanted.makes_store else []),
    ]
    if not made:
        return []
    found = volumes.scratch()[0] + volumes.data(spec.storage)
    if wanted.makes_redis:
        items: list[Object] = [{"key": "valkey.conf", "path": "valkey.conf"}]
        found.append(volumes.secret(REDIS, redis_secret(wanted), items))
    if wanted.makes_store:
        found += volumes.token(wanted)[0]
    template = pod.template(
        wanted,
        spec,
        naming.STATE,
        containers=made,
        volumes=found,
        grace_s=spec.termination_grace_period_seconds,
    )
    return [
        workloads.stateful_set(
            wanted,
            naming.STATE,
            0 if wanted.spec.stopped else 1,
            template,
            storage=spec.storage,
            retention=workloads.retention(when_deleted=spec.storage.retain, when_scaled=True),
        )
    ]


def _redis(wanted: Wanted) -> Object:
    spec = wanted.spec.state
    resources = sizing.effective(naming.STATE, spec.resources)
    made = containers.container(
        wanted,
        spec,
        REDIS,
        # The password is in the file. What was acknowledged must be on the disk: the scheduler
        # refuses a server that is set otherwise.
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
        ),
        resources=resources,
        mounts=[
            volumes.data_mount(),
            volumes.mount(REDIS, naming.REDIS_DIR),
            *volumes.scratch()[1],
        ],
    )
    return {**made, "command": ["valkey-server"]}


def _store(wanted: Wanted) -> Object:
    spec = wanted.spec.state
    probe = containers.http("/health", sizing.STORE)
    return containers.container(
        wanted,
        spec,
        sizing.STORE,
        arguments=[
            "store",
            *("--dir", f"{naming.DATA_DIR}/store"),
            *("--listen", f"0.0.0.0:{naming.STORE_PORT}"),
            *("--token-file", naming.TOKEN_FILE),
            *("--log-format", wanted.spec.log_format),
        ],
        env=processes.identity(),
        ports={sizing.STORE: naming.STORE_PORT},
        probes=containers.probes(spec.probes, startup=probe, readiness=probe, liveness=probe),
        resources=sizing.effective(sizing.STORE, spec.store_resources),
        mounts=[volumes.data_mount(), *volumes.token(wanted)[1], *volumes.scratch()[1]],
    )
