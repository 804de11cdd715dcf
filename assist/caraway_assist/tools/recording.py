"""Writes calls of tools to the task history."""

from collections.abc import Callable

from caraway_ai import json_values
from caraway_ai.tools.toolbox import ToolUse
from caraway_assist.tools.data import span_of
from caraway_scheduler.history.tasks import TaskHistory, TaskRecord

_LONGEST_OUTPUT = 8_192


def recorder(history: TaskHistory) -> Callable[[ToolUse], None]:
    """Return the function that records a finished call as a task `tool_use::<name>`."""

    def record(use: ToolUse) -> None:
        output = None
        if history.settings.captures_output and use.error is None:
            output = _text(use.result)[:_LONGEST_OUTPUT]
        history.add(
            TaskRecord(
                span=span_of(use.caller),
                task=f"tool_use::{use.tool_name}",
                input=_text(use.arguments),
                start_ns=use.start_ns,
                end_ns=use.end_ns,
                error_message=use.error,
                captured_output=output,
                labels={"tool": use.tool_name},
                principal=use.caller.principal,
            )
        )

    return record


def _text(value: object) -> str:
    return json_values.dumped(value).decode()
