"""Gives the models of the manifest the tools that their params name."""

from caraway_ai.protocols import ChatModel
from caraway_ai.tool_loop import LoopSettings, ModelWithTools
from caraway_ai.tool_loop.model import DEFAULT_ROUNDS
from caraway_ai.tools.protocol import ToolCaller
from caraway_core.errors import ModelError, ToolError
from caraway_core.ids import TableName
from caraway_core.manifest import Model, names
from caraway_scheduler.models.service import Extension
from caraway_scheduler.models.states import ModelCaller, ModelState
from caraway_scheduler.tools.data import caller_of
from caraway_scheduler.tools.service import ToolService
from caraway_serving import spans

_MOST_ROUNDS = 100


def extension(tools: ToolService) -> Extension:
    """Return the function that adds tools to a model, for one call of it."""

    def extended(state: ModelState, chat: ChatModel, caller: ModelCaller) -> ChatModel:
        model = state.model
        mode = model.params.get("tools", "")
        if not mode or not caller.uses_tools:
            return chat
        try:
            selection = tools.select(mode)
        except ToolError as exc:
            raise ModelError(f"model '{model.name}': 'tools': {exc.message}", "invalid") from exc
        if not selection.tools:
            return chat
        tables = allowed_tables(model)

        def of_call() -> ToolCaller:
            # The call of the model has a span of its own, which is current while it runs.
            return caller_of(caller.principal, spans.current.get() or caller.span, tables)

        settings = LoopSettings(_most_rounds(model), shows_progress=caller.shows_progress)
        return ModelWithTools(chat, selection, of_call, settings)

    return extended


def _most_rounds(model: Model) -> int:
    text = model.params.get("tool_recursion_limit", str(DEFAULT_ROUNDS))
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= _MOST_ROUNDS):
        raise ModelError(
            f"model '{model.name}': 'tool_recursion_limit' must be a whole number from 1 to "
            f"{_MOST_ROUNDS}",
            "invalid",
        )
    return int(text)


def allowed_tables(model: Model) -> frozenset[TableName] | None:
    """Return the tables that tools of a model may read; None means all."""
    if not model.datasets:
        return None
    return frozenset(TableName(each) for name in model.datasets for each in names.spellings(name))
