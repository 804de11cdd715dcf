"""Public class names are unique in the source."""

import ast
from collections import defaultdict

from tests.kit import sources


def test_a_public_class_name_occurs_once() -> None:
    found = defaultdict(list)
    for path, tree in sources.modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path)
    assert len(found) > 900
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}
