"""Gives the models of the manifest the tools that their params name."""

from caraway_ai.tool_loop import LoopSettings, LoopTools
from caraway_ai.tool_loop.running import DEFAULT_ROUNDS
from caraway_ai.tools.protocol import ToolCaller
from caraway_assist.models.service import ToolsOf
from caraway_assist.models.states import ModelCaller, ModelState
from caraway_assist.tools.data import caller_of
from caraway_assist.tools.service import ToolService
from caraway_core.errors import ModelError, ToolError
from caraway_core.ids import TableName
from caraway_core.manifest import Model
from caraway_core.manifest.texts import names
from caraway_serving import spans

_MOST_ROUNDS = 100


def tools_of(tools: ToolService) -> ToolsOf:
    """Return the function that chooses the tools of a model, for one call of it."""

    def chosen(state: ModelState, caller: ModelCaller) -> LoopTools | None:
        model = state.model
        mode = model.params.get("tools", "")
        if not mode or not caller.uses_tools:
            return None
        try:
            selection = tools.select(mode)
        except ToolError as exc:
            raise ModelError(f"model '{model.name}': 'tools': {exc.message}", "invalid") from exc
        if not selection.tools:
            return None
        tables = allowed_tables(model)

        def of_call() -> ToolCaller:
            # The call of the model has a span of its own, which is current while it runs.
            return caller_of(caller.principal, spans.current.get() or caller.span, tables)

        settings = LoopSettings(_most_rounds(model), shows_progress=caller.shows_progress)
        return LoopTools(selection, of_call, settings)

    return chosen


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
