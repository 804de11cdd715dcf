"""Volumes, their mounts, and claim templates."""

from caraway_kube import naming
from caraway_kube.resources import quantities
from caraway_kube.resources.manifest_checks import API_KEYS_STORE, RESULT_STORE
from caraway_kube.resources.pods import StorageSpec
from caraway_operator.manifests.desired import DesiredCluster
from caraway_operator.manifests.meta import Object

_READABLE = 0o440
_DATA = "data"


def data_mount() -> Object:
    """Return the mount of the data directory."""
    return mount(_DATA, naming.DATA_DIR, read_only=False)


def scratch() -> tuple[list[Object], list[Object]]:
    """Return the volume for /tmp and its mount, because the root file system is read-only."""
    return [{"name": "tmp", "emptyDir": {}}], [mount("tmp", "/tmp", read_only=False)]


def shared_memory(size_mib: int) -> tuple[list[Object], list[Object]]:
    """Return the volume for /dev/shm, which counts towards the memory limit, and its mount."""
    size = quantities.canonical(f"{size_mib}Mi")
    volume = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": size}}
    return [volume], [mount("shm", "/dev/shm", read_only=False)]


def token(desired: DesiredCluster) -> tuple[list[Object], list[Object]]:
    """Return the volume with the cluster's token, and its mount."""
    name = desired.spec.token.secret_name or naming.token_secret(desired.name)
    items = [{"key": "token", "path": "token"}]
    return [secret("token", name, items)], [mount("token", f"{naming.CONFIG_DIR}/token")]


def tls(desired: DesiredCluster) -> tuple[list[Object], list[Object]]:
    """Return the volume with the server certificate and its mount, if there is one."""
    given = desired.spec.tls
    if not given.enabled:
        return [], []
    volume = secret("tls", given.secret_name or naming.tls_secret(desired.name))
    return [volume], [mount("tls", naming.TLS_DIR)]


def scheduler_volumes(desired: DesiredCluster) -> tuple[list[Object], list[Object]]:
    """Return the volumes with configuration and secrets of schedulers, and their mounts."""
    volumes = [
        config("manifest", naming.manifest_config(desired.name)),
        config("limits", naming.limits_config(desired.name)),
    ]
    mounts = [mount("manifest", naming.MANIFEST_DIR), mount("limits", naming.LIMITS_DIR)]
    spec = desired.spec
    certificate, place = tls(desired)
    volumes += certificate
    mounts += place
    if spec.auth.api_keys:
        sources = [
            _projected(key.name, key.key, str(index))
            for index, key in enumerate(spec.auth.api_keys)
        ]
        volumes.append(_projection(API_KEYS_STORE, sources))
        mounts.append(mount(_volume_name(API_KEYS_STORE), naming.KEYS_DIR))
    if spec.result_store and spec.result_store.secret_params:
        sources = [
            _projected(each.name, each.key, each.param) for each in spec.result_store.secret_params
        ]
        volumes.append(_projection(RESULT_STORE, sources))
        mounts.append(mount(_volume_name(RESULT_STORE), naming.RESULT_STORE_DIR))
    for index, each in enumerate(spec.secrets):
        volumes.append(secret(f"secret-{index}", each.secret_name))
        mounts.append(mount(f"secret-{index}", f"{naming.SECRETS_DIR}/{each.name}"))
    return volumes, mounts


def mount(name: str, path: str, *, read_only: bool = True) -> Object:
    """Return the mount of a volume at a path."""
    resource: Object = {"name": name, "mountPath": path}
    return {**resource, "readOnly": True} if read_only else resource


def secret(name: str, secret_name: str, items: list[Object] | None = None) -> Object:
    """Return a volume with the keys of a Secret."""
    source: Object = {"secretName": secret_name, "defaultMode": _READABLE}
    return {"name": name, "secret": {**source, "items": items} if items else source}


def config(name: str, config_map: str) -> Object:
    """Return a volume with the keys of a ConfigMap."""
    return {"name": name, "configMap": {"name": config_map, "defaultMode": _READABLE}}


def data(storage: StorageSpec | None = None) -> list[Object]:
    """Return the volume of the data directory, unless it comes from a claim."""
    return [] if storage and storage.enabled else [{"name": _DATA, "emptyDir": {}}]


def claims(desired: DesiredCluster, component: str, storage: StorageSpec) -> list[Object]:
    """Return the claim templates. They are immutable, so their labels contain no version."""
    if not storage.enabled:
        return []
    spec: Object = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": quantities.canonical(storage.size)}},
        "volumeMode": "Filesystem",
    }
    if storage.storage_class:
        spec["storageClassName"] = storage.storage_class
    labels = naming.component_selector(desired.name, component)
    return [{"metadata": {"name": _DATA, "labels": labels}, "spec": spec}]


def _projected(name: str, key: str, path: str) -> Object:
    return {"secret": {"name": name, "items": [{"key": key, "path": path}]}}


def _projection(store: str, sources: list[Object]) -> Object:
    source = {"defaultMode": _READABLE, "sources": sources}
    return {"name": _volume_name(store), "projected": source}


def _volume_name(store: str) -> str:
    return store.replace("_", "-")
