"""Every task has an owner: `caraway_core.concurrency.tasks` or a TaskGroup."""

import ast
from collections.abc import Iterator

import pytest

from tests.kit import sources

OWNER = "core/caraway_core/concurrency/tasks.py"
METHODS = frozenset({"create_task", "ensure_future"})
CALLBACKS = frozenset(
    {"call_soon", "call_soon_threadsafe", "call_later", "call_at", "add_done_callback",
     "add_reader", "add_signal_handler"}
)  # fmt: skip
BRIDGES = frozenset({"run_coroutine_threadsafe"})
"""A thread waits for their results, which must not be dropped."""


def escapes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line of each task that has no owner, and why."""
    groups, asynchronous = _groups(tree), _asynchronous(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            if node.attr in METHODS and _named(node)[1] not in groups:
                yield node.lineno, f"{node.attr} without an owner"
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            name = _last(node.value.func)
            if name in BRIDGES | {"gather", "shield"}:
                yield node.lineno, f"what {name} returns is dropped"
        elif isinstance(node, ast.Call) and _last(node.func) in CALLBACKS:
            for each in _callbacks(node):
                called, receiver = _named(each)
                if called in asynchronous and receiver in ("", "self"):
                    yield node.lineno, f"{_last(node.func)} of a coroutine"
        elif isinstance(node, ast.ImportFrom) and node.module == "asyncio":
            if names := (METHODS | BRIDGES) & {each.name for each in node.names}:
                yield node.lineno, f"import of {', '.join(names)}"


def _named(node: ast.AST) -> tuple[str, str]:
    """Return the last name of an expression, and the text before it, which takes long to make."""
    return _last(node), ast.unparse(node.value) if isinstance(node, ast.Attribute) else ""


def _last(node: ast.AST) -> str:
    """Return the last name of an expression."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _groups(tree: ast.Module) -> set[str]:
    """Return the names of TaskGroups, by `async with` or by an annotation."""
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.withitem) and node.optional_vars is not None:
            if ast.unparse(node.context_expr) == "asyncio.TaskGroup()":
                found.add(ast.unparse(node.optional_vars))
        elif isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            if any(_last(each) == "TaskGroup" for each in ast.walk(node.annotation)):
                found.add(node.arg if isinstance(node, ast.arg) else ast.unparse(node.target))
    return found


def _asynchronous(tree: ast.Module) -> set[str]:
    plain = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    found = {node.name for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef)}
    return found - plain


def _callbacks(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the callbacks of a call, also inside `partial` and `lambda`."""
    for argument in call.args[:2]:
        if isinstance(argument, ast.Lambda) and isinstance(argument.body, ast.Call):
            yield argument.body.func
        elif isinstance(argument, ast.Call) and _last(argument.func) == "partial":
            yield argument.args[0]
        else:
            yield argument


def test_every_task_has_an_owner() -> None:
    found = {
        f"{path}:{line}: {why}"
        for path, tree in sources.modules().items()
        if path != OWNER
        for line, why in escapes(tree)
    }
    assert found == set(), "use caraway_core.concurrency.tasks, or a TaskGroup"


@pytest.mark.parametrize("text", [
    "asyncio.create_task(work())",
    "task = asyncio.ensure_future(work())",
    "asyncio.get_running_loop().create_task(work())",
    "loop.create_task(work())",
    "self._loop.create_task(work())",
    "begin = asyncio.create_task",
    "each = [*map(asyncio.ensure_future, works)]",
    "from asyncio import create_task",
    "asyncio.run_coroutine_threadsafe(work(), loop)",
    "asyncio.gather(one(), two())",
    "async def work(): ...\nloop.call_soon(work)",
    "async def work(): ...\nloop.call_later(1, lambda: work())",
    "async def work(self): ...\ndef f(self): loop.call_soon(partial(self.work, 1))",
    "async def f():\n    async with other() as group:\n        group.create_task(work())",
])  # fmt: skip
def test_a_task_without_an_owner_is_found(text: str) -> None:
    assert len(list(escapes(ast.parse(text)))) == 1


@pytest.mark.parametrize("text", [
    "async def f():\n  async with asyncio.TaskGroup() as group:\n    group.create_task(work())",
    "def f(group: asyncio.TaskGroup):\n    return [group.create_task(each()) for each in works]",
    "self._group: asyncio.TaskGroup | None = None\nself._group.create_task(work())",
    "tasks.begin(work())",
    "return_ = asyncio.run_coroutine_threadsafe(work(), loop).result()",
    "async def f():\n    await asyncio.gather(one(), two())",
    "def settle(): ...\nloop.call_soon(settle)",
    "def f(task: asyncio.Task[None]): ...",
])  # fmt: skip
def test_a_task_with_an_owner_is_not(text: str) -> None:
    assert list(escapes(ast.parse(text))) == []
