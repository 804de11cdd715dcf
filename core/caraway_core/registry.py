"""Names of plug-ins and where they live; nothing is imported until it is asked for."""

import difflib
import importlib
from collections.abc import Mapping
from typing import Any

from caraway_core.errors import NotInstalledError, UnknownPluginError

SOURCES: Mapping[str, str] = {
    "file": "caraway_plugins.sources.files:LocalFiles",
    "s3": "caraway_plugins.sources.files:ObjectFiles",
    "gs": "caraway_plugins.sources.files:ObjectFiles",
    "abfss": "caraway_plugins.sources.files:ObjectFiles",
    "http": "caraway_plugins.sources.web:WebFile",
    "https": "caraway_plugins.sources.web:WebFile",
    "memory": "caraway_plugins.sources.memory:MemorySource",
    "cdc": "caraway_plugins.changes.pushed:Pushed",
    "debezium": "caraway_plugins.changes.kafka.table:KafkaTable",
    "delta": "caraway_plugins.sources.delta:DeltaSource",
    "postgres": "caraway_plugins.sources.postgres.source:PostgresSource",
}

CHANGE_SOURCES: Mapping[str, str] = {
    "debezium": "caraway_plugins.changes.kafka.source:KafkaChanges",
    "postgres": "caraway_plugins.changes.postgres.source:PostgresChanges",
}

REMOTE_READERS: Mapping[str, str] = {
    "postgres": "caraway_plugins.sources.postgres.reader:PostgresReader",
}

SECRET_STORES: Mapping[str, str] = {
    "env": "caraway_plugins.secrets.environment:Environment",
    "file": "caraway_plugins.secrets.files:Files",
    "dotenv": "caraway_plugins.secrets.dotenv:DotEnv",
}

STATE_STORES: Mapping[str, str] = {
    "sqlite": "caraway_plugins.stores.sqlite:SqliteStateStore",
    "redis": "caraway_plugins.stores.redis:RedisStateStore",
}

RESULT_STORES: Mapping[str, str] = {
    "file": "caraway_plugins.stores.folder:FolderResultStore",
    "bucket": "caraway_plugins.stores.bucket:BucketResultStore",
    "remote": "caraway_plugins.stores.remote:RemoteResultStore",
}

RESULT_PLACES: Mapping[str, str] = {
    "file": "caraway_plugins.stores.locations:folder",
    "s3": "caraway_plugins.stores.locations:bucket",
    "gs": "caraway_plugins.stores.locations:bucket",
    "abfss": "caraway_plugins.stores.locations:bucket",
    "caraway": "caraway_plugins.stores.locations:remote",
}

EXECUTORS: Mapping[str, str] = {
    "engine-process": "caraway_executor.engines.isolated:IsolatedExecutor",
    "in-process": "caraway_executor.local:LocalExecutor",
    "scheduler": "caraway_executor.engines.planner:IsolatedPlanner",
    "worker": "caraway_executor.worker:Worker",
}

ENGINES: Mapping[str, str] = {
    "fork-server": "caraway_executor.engines.starting:ForkServer",
}

FLEETS: Mapping[str, str] = {
    "ray": "caraway_scheduler.dispatch.fleets.ray_fleet:RayFleet",
}

COMMANDS: Mapping[str, str] = {
    "run": "caraway_scheduler.composition.command:run",
    "validate": "caraway_scheduler.composition.command:validate",
    "head": "caraway_cluster.head:run",
    "scheduler": "caraway_scheduler.composition.command:schedule",
    "executor": "caraway_executor.command:run",
    "operator": "caraway_operator.command:run",
    "store": "caraway_cluster.store.command:run",
    "cluster up": "caraway_cluster.command:up",
    "cluster scale": "caraway_cluster.command:scale",
    "cluster status": "caraway_cluster.command:status",
    "cluster down": "caraway_cluster.command:down",
}

EXTRAS: Mapping[str, str] = {
    "caraway_engine": "runtime",
    "caraway_executor": "runtime",
    "caraway_executor.command": "cluster",
    "caraway_plugins": "runtime",
    "caraway_plugins.changes.kafka.source": "changes",
    "caraway_plugins.changes.kafka.table": "changes",
    "caraway_plugins.changes.postgres.source": "changes",
    "caraway_plugins.sources.delta": "delta",
    "caraway_plugins.sources.postgres.reader": "postgres",
    "caraway_plugins.sources.postgres.source": "postgres",
    "caraway_plugins.stores.redis": "cluster",
    "caraway_scheduler": "runtime",
    "caraway_scheduler.dispatch.fleets.ray_fleet": "cluster",
}


def load(kind: str, table: Mapping[str, str], name: str) -> Any:
    """Import what `name` stands for.

    Raises:
        UnknownPluginError: the table does not hold the name; the message lists what it holds.
        NotInstalledError: the plug-in, or a package that it needs, is not installed.
    """
    if name not in table:
        raise UnknownPluginError(unknown(kind, name, table))
    module_name, _, attribute = table[name].partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as exc:
        extra = EXTRAS.get(module_name) or EXTRAS.get(module_name.split(".")[0], "runtime")
        raise NotInstalledError(
            f"{kind} '{name}' needs the package '{exc.name}', which is not installed; "
            f"install it with: pip install 'caraway[{extra}]'"
        ) from exc
    return getattr(module, attribute)


def unknown(kind: str, name: str, known: Mapping[str, str]) -> str:
    """Word the refusal of an unknown name: the nearest known one, and all of them."""
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return f"no {kind} '{name}'{hint} Known: {', '.join(sorted(known))}"
