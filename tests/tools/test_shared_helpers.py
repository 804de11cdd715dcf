"""What several test modules use stands in a module without tests."""

import re

from tools import graph

_IMPORT = re.compile(
    r"^\s*(?:from tests\.[\w.]*\btest_\w+ import|import tests\.[\w.]*\btest_\w+"
    r"|from tests[\w.]* import (?:[\w, ]*\W)?test_\w+)",
    re.MULTILINE,
)


def test_no_test_module_imports_another() -> None:
    importing = [
        str(path.relative_to(graph.ROOT))
        for path in sorted((graph.ROOT / "tests").rglob("*.py"))
        for line in _IMPORT.findall(path.read_text())
        if ".kit.test_" not in line
    ]
    assert importing == []
