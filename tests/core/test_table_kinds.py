"""Only the readers of the engine ask what kind a table is; all else asks for its properties."""

import ast

from caraway_core import tables
from caraway_core.tables import TableSpec
from tests.kit import sources

KINDS = {name for name, each in vars(tables).items() if isinstance(each, type)
         and issubclass(each, TableSpec)}  # fmt: skip
READERS = (
    "core/caraway_core/tables/__init__.py",
    "engine/caraway_engine/scans/",
    "engine/caraway_engine/remote/",
)


def asks_for_kind(node: ast.AST) -> bool:
    """Return whether a node is an `isinstance` of a kind of table, or a pattern of one."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        asked = node.args[1:] if node.func.id in ("isinstance", "issubclass") else []
        return any(_named(each) & KINDS for each in asked)
    if isinstance(node, ast.MatchClass):
        return bool(_named(node.cls) & KINDS)
    return False


def _named(node: ast.AST) -> set[str]:
    found = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return found | {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}


def test_only_readers_ask_for_kinds_of_tables() -> None:
    found = {
        path
        for path, tree in sources.modules().items()
        if not path.startswith(READERS)
        for node in ast.walk(tree)
        if asks_for_kind(node)
    }
    assert not found


def test_the_rule_sees_each_form() -> None:
    forms = [
        "isinstance(spec, FilesTable)",
        "isinstance(tables.get(name), FilesTable | tables.ViewTable)",
        "isinstance(spec, (MemoryTable, int))",
    ]
    for each in forms:
        assert any(map(asks_for_kind, ast.walk(ast.parse(each)))), each
    match = "match spec:\n    case StoredTable():\n        pass"
    assert any(map(asks_for_kind, ast.walk(ast.parse(match))))
    assert not any(map(asks_for_kind, ast.walk(ast.parse("isinstance(spec, dict)"))))
