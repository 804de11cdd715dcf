"""Checks of a spec beyond those of single fields."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from caraway_kube import naming
from caraway_kube.resources import quantities
from caraway_kube.resources.cluster import CarawayClusterSpec
from caraway_kube.resources.pods import ContainerResources

MINIMUM_MEMORY_MIB = {
    naming.HEAD: 512,
    naming.SCHEDULER: 768,
    naming.EXECUTOR: 768,
    naming.STATE: 64,
}


@dataclass(frozen=True, slots=True)
class SpecProblem:
    """A problem of a spec, with its path, such as `spec.executor.minReplicas`."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def dotted(location: Sequence[str | int]) -> str:
    """Return a location as a path, such as `spec.secrets[0].name`."""
    text = ""
    for step in location:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def of_name(name: str) -> tuple[SpecProblem, ...]:
    """Return the problems of a cluster's name."""
    problem = naming.name_problem(name)
    return (SpecProblem("metadata.name", problem),) if problem else ()


def of_spec(spec: CarawayClusterSpec) -> tuple[SpecProblem, ...]:
    """Return the problems between fields. The API server checks some of these too."""
    return (*_manifest(spec), *_executor(spec), *_secrets(spec), *_resources(spec), *_redis(spec))


def _manifest(spec: CarawayClusterSpec) -> Iterator[SpecProblem]:
    if spec.manifest is None and spec.manifest_from is None:
        yield SpecProblem("spec.manifest", "one of manifest and manifestFrom is required")
    if spec.manifest is not None and spec.manifest_from is not None:
        yield SpecProblem("spec.manifestFrom", "manifest and manifestFrom are mutually exclusive")


def _executor(spec: CarawayClusterSpec) -> Iterator[SpecProblem]:
    executor = spec.executor
    low, high = executor.min_replicas, executor.max_replicas
    if low is not None and high is None:
        message = "requires maxReplicas, which turns autoscaling on"
        yield SpecProblem("spec.executor.minReplicas", message)
    if low is not None and high is not None and low > high:
        yield SpecProblem("spec.executor.minReplicas", f"{low} is greater than maxReplicas, {high}")
    grace = executor.termination_grace_period_seconds
    if grace is not None and grace <= executor.drain_timeout_seconds:
        yield SpecProblem(
            "spec.executor.terminationGracePeriodSeconds",
            f"must be greater than drainTimeoutSeconds, {executor.drain_timeout_seconds}; "
            "otherwise pods are killed while they drain",
        )


def _secrets(spec: CarawayClusterSpec) -> Iterator[SpecProblem]:
    seen: set[str] = set()
    for index, mount in enumerate(spec.secrets):
        path = f"spec.secrets[{index}].name"
        if mount.name in seen:
            yield SpecProblem(path, f"the store '{mount.name}' is declared twice")
        if mount.name == "secrets" or mount.name.startswith("caraway_"):
            yield SpecProblem(path, f"'{mount.name}' is reserved; choose another name")
        seen.add(mount.name)
    if spec.result_store is not None:
        params = [each.param for each in spec.result_store.secret_params]
        for name in sorted({each for each in params if params.count(each) > 1}):
            yield SpecProblem("spec.resultStore.secretParams", f"'{name}' is given twice")


def _redis(spec: CarawayClusterSpec) -> Iterator[SpecProblem]:
    if spec.redis is not None and (spec.redis.url is None) == (spec.redis.url_from is None):
        yield SpecProblem("spec.redis", "exactly one of url and urlFrom is required")


def _resources(spec: CarawayClusterSpec) -> Iterator[SpecProblem]:
    for component in (naming.HEAD, naming.SCHEDULER, naming.EXECUTOR, naming.STATE):
        path = f"spec.{component}.resources"
        resources = getattr(spec, component).resources
        yield from _requests(path, resources)
        memory = resources.limits.get("memory") or resources.requests.get("memory")
        least = MINIMUM_MEMORY_MIB[component]
        if memory is not None and quantities.whole_mebibytes(memory) < least:
            yield SpecProblem(path, f"memory {memory} is too low; the minimum is {least}Mi")
    yield from _requests("spec.state.storeResources", spec.state.store_resources)


def _requests(path: str, resources: ContainerResources) -> Iterator[SpecProblem]:
    for name, asked in resources.requests.items():
        limit = resources.limits.get(name)
        if limit is not None and quantities.number(asked) > quantities.number(limit):
            yield SpecProblem(
                f"{path}.requests.{name}", f"{asked} is greater than the limit, {limit}"
            )
