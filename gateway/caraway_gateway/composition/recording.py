"""The task history of a process, and where its traces are sent."""

import time
from contextlib import AsyncExitStack

from caraway_core import manifest as manifests
from caraway_core.manifest import SecretResolver
from caraway_core.process.data_directory import DataDirectory
from caraway_scheduler.history.tasks import HistorySettings, TaskHistory


def history(
    settings: manifests.RuntimeSettings,
    data: DataDirectory,
    secrets: SecretResolver,
    stack: AsyncExitStack,
) -> TaskHistory:
    """Return the history that the manifest asks for; the stack ends the export of traces."""
    task_history_settings = settings.task_history
    history = TaskHistory(
        HistorySettings(
            enabled=task_history_settings.enabled,
            retention_s=task_history_settings.retention_period_s,
            captures_output=task_history_settings.captured_output != "none",
            min_sql_duration_s=task_history_settings.min_sql_duration_s,
        ),
        data.node_id,
        time.time_ns,
    )
    exporter = settings.telemetry.otel_exporter
    if exporter is not None and exporter.enabled and exporter.endpoint:
        # Imported here: it costs a fifth of a second that most starts need not pay.
        from caraway_scheduler.history.exporting import TraceExporter

        tracing = TraceExporter(
            secrets.expand(exporter.endpoint),
            secrets.expand_all(exporter.headers),
            data.node_id,
            settings.telemetry.properties,
        )
        stack.callback(tracing.close)
        history.subscribe(tracing.listener)
    return history
