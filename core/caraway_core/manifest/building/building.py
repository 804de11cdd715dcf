"""Converts checked shapes into the plain values of `values` and `runtime`."""

from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from caraway_core.manifest.building import accelerating, searching
from caraway_core.manifest.models import Model, ModelFile, ModelResources
from caraway_core.manifest.shape import components, top
from caraway_core.manifest.shape import dataset as dataset_shapes
from caraway_core.manifest.shape import runtime as shapes
from caraway_core.manifest.texts import locations, names, scalars
from caraway_core.manifest.values import runtime as values_runtime
from caraway_core.manifest.values.values import (
    VIEW,
    Dataset,
    DeclaredCatalog,
    DeclaredColumn,
    DeclaredStore,
    SnapshotStoreSettings,
    View,
)

Value = TypeVar("Value")


def dataset(shape: dataset_shapes.DatasetSection, base_dir: Path) -> Dataset:
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
        columns=_columns(shape.columns),
        time_column=shape.time_column,
        time_format=shape.time_format,
        ready_state=shape.ready_state,
        unsupported_type_action=shape.unsupported_type_action,
        check_availability=shape.check_availability,
        replication_enabled=shape.replication is not None and shape.replication.enabled,
        acceleration=accelerating.acceleration(shape.acceleration, origin.connector),
        search=searching.search_columns(shape.columns, shape.vectors, shape.full_text_search),
    )


def catalog(shape: components.CatalogSection, base_dir: Path) -> DeclaredCatalog:
    """Build a source catalog that was written in a file of the folder."""
    origin = names.split_origin(shape.from_)
    return DeclaredCatalog(
        name=shape.name,
        source=shape.from_,
        connector=origin.connector,
        path=origin.path,
        base_dir=base_dir,
        description=shape.description,
        include=tuple(shape.include),
        params={**shape.params, **shape.dataset_params},
    )


def view(shape: dataset_shapes.ViewSection, sql: str, base_dir: Path) -> View:
    """Build a view that was written in a file of the folder."""
    return View(
        shape.name,
        sql,
        base_dir,
        shape.description,
        _plain(shape.metadata),
        _columns(shape.columns),
        searching.search_columns(shape.columns, shape.vectors, shape.full_text_search),
    )


def accelerated_view(shape: dataset_shapes.ViewSection, sql: str, base_dir: Path) -> Dataset:
    """Build a view whose rows are kept: a dataset, whose source is the query."""
    return Dataset(
        name=shape.name,
        source=f"{VIEW}:{sql}",
        connector=VIEW,
        path=sql,
        base_dir=base_dir,
        description=shape.description,
        metadata=_plain(shape.metadata),
        columns=_columns(shape.columns),
        acceleration=accelerating.acceleration(shape.acceleration, VIEW),
        search=searching.search_columns(shape.columns, shape.vectors, shape.full_text_search),
    )


def _columns(shapes_: list[dataset_shapes.ColumnSection]) -> tuple[DeclaredColumn, ...]:
    return tuple(DeclaredColumn(c.name, c.type, c.description) for c in shapes_)


def model(shape: components.ModelSection, base_dir: Path) -> Model:
    """Build a model that was written in a file of the folder."""
    origin = names.split_provider(shape.from_)
    return Model(
        name=shape.name,
        source=shape.from_,
        provider=origin.connector,
        path=origin.path,
        base_dir=base_dir,
        description=shape.description,
        metadata=_plain(shape.metadata),
        params=shape.params,
        files=tuple(_same(ModelFile, each) for each in shape.files),
        datasets=tuple(shape.datasets),
        resources=_same(ModelResources, shape.resources) if shape.resources else None,
    )


def stores(shapes_: list[top.SecretStoreSection] | None) -> tuple[DeclaredStore, ...]:
    """Build the secret stores; a manifest that names none reads the environment."""
    if shapes_ is None:
        return (DeclaredStore("env", "env"),)
    return tuple(map(_store, shapes_))


def _store(shape: top.SecretStoreSection) -> DeclaredStore:
    kind, _, place = shape.from_.partition(":")
    params = {**shape.params, "path": place} if place else shape.params
    return DeclaredStore(shape.name, kind, params)


def runtime(shape: shapes.RuntimeSection | None, base_dir: Path) -> values_runtime.RuntimeSettings:
    """Build the runtime settings; relative paths are relative to the folder."""
    if shape is None:
        return values_runtime.RuntimeSettings()
    return values_runtime.RuntimeSettings(
        auth=_auth(shape.auth),
        tls=_tls(shape.tls, base_dir),
        cors=_same(values_runtime.CorsSettings, shape.cors),
        console=_same(values_runtime.ConsoleSettings, shape.console),
        task_history=_same(values_runtime.TaskHistorySettings, shape.task_history),
        caching=values_runtime.CachingSettings(
            _results_cache(shape),
            _same(
                values_runtime.SearchResultsCacheSettings,
                shape.caching.search_results if shape.caching else None,
            ),
            _embeddings_cache(shape),
        ),
        query=_query(shape.query, base_dir),
        cpu_cores=shape.cpu.cores if shape.cpu else None,
        dataset_load_parallelism=shape.dataset_load_parallelism,
        shutdown_timeout_s=shape.shutdown_timeout_s,
        ready_state=shape.ready_state,
        output_level=shape.output_level,
        params=shape.params,
        flight=_flight(shape.flight),
        http=_same(values_runtime.HttpSettings, shape.http),
        mcp=_same(values_runtime.McpSettings, shape.mcp),
        quotas=_same(values_runtime.QuotaSettings, shape.quotas),
        telemetry=_telemetry(shape.telemetry),
        scheduler=_scheduler(shape.scheduler, base_dir),
        jobs=_same(values_runtime.JobSettings, shape.jobs),
        iceberg=_iceberg(shape.iceberg, base_dir),
        packages=_same(values_runtime.PackageSettings, shape.packages),
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


def _auth(shape: shapes.AuthSection | None) -> values_runtime.AuthSettings:
    api_key = (shape.api_key or shape.api_key_dashed) if shape else None
    if api_key is None or not api_key.enabled:
        return values_runtime.AuthSettings()
    return values_runtime.AuthSettings(enabled=True, keys=tuple(filter(None, api_key.keys)))


def _tls(shape: shapes.TlsSection | None, base_dir: Path) -> values_runtime.TlsSettings | None:
    if shape is None or not shape.enabled:
        return None
    return _same(
        values_runtime.TlsSettings,
        shape,
        certificate_file=_path(shape.certificate_file, base_dir),
        key_file=_path(shape.key_file, base_dir),
        client_auth_ca_file=_path(shape.client_auth_ca_file, base_dir),
    )


def _embeddings_cache(
    shape: shapes.RuntimeSection,
) -> values_runtime.EmbeddingsCacheSettings | None:
    if shape.caching is None or shape.caching.embeddings is None:
        return None
    return _same(values_runtime.EmbeddingsCacheSettings, shape.caching.embeddings)


def _results_cache(shape: shapes.RuntimeSection) -> values_runtime.SqlResultsCacheSettings:
    if shape.caching and shape.caching.sql_results:
        return _same(values_runtime.SqlResultsCacheSettings, shape.caching.sql_results)
    if (old := shape.results_cache) is None:
        return values_runtime.SqlResultsCacheSettings()
    return values_runtime.SqlResultsCacheSettings(
        enabled=old.enabled,
        max_size_bytes=old.cache_max_size,
        item_ttl_s=old.item_ttl,
        eviction_policy=old.eviction_policy,
        hashing_algorithm=old.hashing_algorithm,
        cache_key_type=old.cache_key_type,
    )


def _query(shape: shapes.QuerySection | None, base_dir: Path) -> values_runtime.QuerySettings:
    if shape is None:
        return values_runtime.QuerySettings()
    temp_directory = _path(shape.temp_directory, base_dir)
    # A limit of no time at all would refuse everything; people write 0 for "no limit".
    timeout_s = shape.timeout_s or None
    shared = shape.distribution and _same(values_runtime.DistributionSettings, shape.distribution)
    return _same(
        values_runtime.QuerySettings,
        shape,
        temp_directory=temp_directory,
        timeout_s=timeout_s,
        planning_timeout_s=shape.planning_timeout_s or None,
        distribution=shared or values_runtime.DistributionSettings(),
    )


def _flight(shape: shapes.FlightSection | None) -> values_runtime.FlightSettings:
    parallel = shape and shape.parallel_reads
    reads = parallel and _same(values_runtime.ParallelReadSettings, parallel)
    return _same(values_runtime.FlightSettings, shape, parallel_reads=reads)


def _telemetry(shape: shapes.TelemetrySection | None) -> values_runtime.TelemetrySettings:
    if shape is None:
        return values_runtime.TelemetrySettings()
    exporter = shape.otel_exporter and _same(values_runtime.OtelExporter, shape.otel_exporter)
    return _same(values_runtime.TelemetrySettings, shape, otel_exporter=exporter)


def _scheduler(
    shape: shapes.SchedulerSection | None, base_dir: Path
) -> values_runtime.SchedulerSettings:
    if shape is None or shape.state_location is None:
        return values_runtime.SchedulerSettings()
    location = locations.absolute(shape.state_location, base_dir)
    return values_runtime.SchedulerSettings(location, shape.params)


def _iceberg(shape: shapes.IcebergSection | None, base_dir: Path) -> values_runtime.IcebergSettings:
    if shape is None:
        return values_runtime.IcebergSettings()
    location = shape.location and locations.absolute(shape.location, base_dir)
    return _same(values_runtime.IcebergSettings, shape, location=location)


def snapshots(shape: top.SnapshotsSection | None, base_dir: Path) -> SnapshotStoreSettings | None:
    """Build the place for snapshots; None where there is none or it is off."""
    if shape is None or not shape.enabled or shape.location is None:
        return None
    location = locations.absolute(shape.location, base_dir)
    return SnapshotStoreSettings(location, shape.params, shape.bootstrap_on_failure_behavior)


def _path(text: str | None, base_dir: Path) -> Path | None:
    return None if text is None else base_dir / text


def _plain(metadata: dict[str, Any]) -> dict[str, object]:
    return {key: scalars.plain(value) for key, value in metadata.items()}
