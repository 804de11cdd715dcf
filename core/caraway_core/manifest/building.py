"""Converts checked shapes into the plain values of `values` and `runtime`."""

from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from caraway_core.manifest import accelerating, locations, names, scalars
from caraway_core.manifest import runtime as values_runtime
from caraway_core.manifest.shape import dataset as dataset_shapes
from caraway_core.manifest.shape import runtime as shapes
from caraway_core.manifest.shape import top
from caraway_core.manifest.values import (
    VIEW,
    Column,
    Dataset,
    DeclaredStore,
    SnapshotStore,
    View,
)

Value = TypeVar("Value")


def dataset(shape: dataset_shapes.Dataset, base_dir: Path) -> Dataset:
    """Build a dataset that was written in a file of the folder."""
    origin = names.split_origin(shape.from_)
    return Dataset(
        name=shape.name,
        source=shape.from_,
        connector=origin.connector,
        path=origin.path,
        base_dir=base_dir,
        description=shape.description,
        metadata=_plain(shape.metadata),
        access=shape.access,
        params=shape.params,
        columns=tuple(Column(c.name, c.type, c.description) for c in shape.columns),
        time_column=shape.time_column,
        time_format=shape.time_format,
        ready_state=shape.ready_state,
        unsupported_type_action=shape.unsupported_type_action,
        check_availability=shape.check_availability,
        replication_enabled=shape.replication is not None and shape.replication.enabled,
        acceleration=accelerating.acceleration(shape.acceleration, origin.connector),
    )


def view(shape: dataset_shapes.View, sql: str, base_dir: Path) -> View:
    """Build a view that was written in a file of the folder."""
    return View(shape.name, sql, base_dir, shape.description, _plain(shape.metadata))


def accelerated_view(shape: dataset_shapes.View, sql: str, base_dir: Path) -> Dataset:
    """Build a view whose rows are kept: a dataset, whose source is the query."""
    return Dataset(
        name=shape.name,
        source=f"{VIEW}:{sql}",
        connector=VIEW,
        path=sql,
        base_dir=base_dir,
        description=shape.description,
        metadata=_plain(shape.metadata),
        acceleration=accelerating.acceleration(shape.acceleration, VIEW),
    )


def stores(shapes_: list[top.SecretStore] | None) -> tuple[DeclaredStore, ...]:
    """Build the secret stores; a manifest that names none reads the environment."""
    if shapes_ is None:
        return (DeclaredStore("env", "env"),)
    return tuple(map(_store, shapes_))


def _store(shape: top.SecretStore) -> DeclaredStore:
    kind, _, place = shape.from_.partition(":")
    params = {**shape.params, "path": place} if place else shape.params
    return DeclaredStore(shape.name, kind, params)


def runtime(shape: shapes.Runtime | None, base_dir: Path) -> values_runtime.Runtime:
    """Build the runtime settings; relative paths are relative to the folder."""
    if shape is None:
        return values_runtime.Runtime()
    return values_runtime.Runtime(
        auth=_auth(shape.auth),
        tls=_tls(shape.tls, base_dir),
        cors=_same(values_runtime.Cors, shape.cors),
        task_history=_same(values_runtime.TaskHistory, shape.task_history),
        caching=values_runtime.Caching(_results_cache(shape)),
        query=_query(shape.query, base_dir),
        cpu_cores=shape.cpu.cores if shape.cpu else None,
        dataset_load_parallelism=shape.dataset_load_parallelism,
        shutdown_timeout_s=shape.shutdown_timeout_s,
        ready_state=shape.ready_state,
        output_level=shape.output_level,
        params=shape.params,
        flight=_same(values_runtime.Flight, shape.flight),
        http=_same(values_runtime.Http, shape.http),
        mcp=_same(values_runtime.Mcp, shape.mcp),
        telemetry=_telemetry(shape.telemetry),
        scheduler=_scheduler(shape.scheduler, base_dir),
        jobs=_same(values_runtime.Jobs, shape.jobs),
    )


def _same(value: type[Value], shape: BaseModel | None, **replaced: Any) -> Value:
    """Build a value whose fields are named as those of its shape; lists become tuples."""
    if shape is None:
        return value()
    content = {
        field.name: getattr(shape, field.name)
        for field in fields(value)  # type: ignore[arg-type]  # every value is a dataclass
    }
    frozen = {key: tuple(v) if isinstance(v, list) else v for key, v in content.items()}
    return value(**{**frozen, **replaced})


def _auth(shape: shapes.Auth | None) -> values_runtime.Auth:
    api_key = (shape.api_key or shape.api_key_dashed) if shape else None
    if api_key is None or not api_key.enabled:
        return values_runtime.Auth()
    return values_runtime.Auth(enabled=True, keys=tuple(filter(None, api_key.keys)))


def _tls(shape: shapes.Tls | None, base_dir: Path) -> values_runtime.Tls | None:
    if shape is None or not shape.enabled:
        return None
    return _same(
        values_runtime.Tls,
        shape,
        certificate_file=_path(shape.certificate_file, base_dir),
        key_file=_path(shape.key_file, base_dir),
    )


def _results_cache(shape: shapes.Runtime) -> values_runtime.SqlResultsCache:
    if shape.caching and shape.caching.sql_results:
        return _same(values_runtime.SqlResultsCache, shape.caching.sql_results)
    if (old := shape.results_cache) is None:
        return values_runtime.SqlResultsCache()
    return values_runtime.SqlResultsCache(
        enabled=old.enabled,
        max_size_bytes=old.cache_max_size,
        item_ttl_s=old.item_ttl,
        eviction_policy=old.eviction_policy,
        hashing_algorithm=old.hashing_algorithm,
        cache_key_type=old.cache_key_type,
    )


def _query(shape: shapes.Query | None, base_dir: Path) -> values_runtime.Query:
    if shape is None:
        return values_runtime.Query()
    temp_directory = _path(shape.temp_directory, base_dir)
    # A limit of no time at all would refuse everything; people write 0 for "no limit".
    timeout_s = shape.timeout_s or None
    shared = shape.distribution and _same(values_runtime.Distribution, shape.distribution)
    return _same(
        values_runtime.Query,
        shape,
        temp_directory=temp_directory,
        timeout_s=timeout_s,
        distribution=shared or values_runtime.Distribution(),
    )


def _telemetry(shape: shapes.Telemetry | None) -> values_runtime.Telemetry:
    if shape is None:
        return values_runtime.Telemetry()
    exporter = shape.otel_exporter and _same(values_runtime.OtelExporter, shape.otel_exporter)
    return _same(values_runtime.Telemetry, shape, otel_exporter=exporter)


def _scheduler(shape: shapes.Scheduler | None, base_dir: Path) -> values_runtime.Scheduler:
    if shape is None or shape.state_location is None:
        return values_runtime.Scheduler()
    location = locations.absolute(shape.state_location, base_dir)
    return values_runtime.Scheduler(location, shape.params)


def snapshots(shape: top.Snapshots | None, base_dir: Path) -> SnapshotStore | None:
    """Build the place for snapshots; None where there is none or it is off."""
    if shape is None or not shape.enabled or shape.location is None:
        return None
    location = locations.absolute(shape.location, base_dir)
    return SnapshotStore(location, shape.params, shape.bootstrap_on_failure_behavior)


def _path(text: str | None, base_dir: Path) -> Path | None:
    return None if text is None else base_dir / text


def _plain(metadata: dict[str, Any]) -> dict[str, object]:
    return {key: scalars.plain(value) for key, value in metadata.items()}
