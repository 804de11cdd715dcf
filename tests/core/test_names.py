"""Public class names are unique in the source."""

import ast
from collections import defaultdict

import pytest

from tests.kit import sources

OF_MANAGEMENT = ("management/", "client/caraway/management/", "client/caraway/cli/managing/")


@pytest.mark.parametrize("is_of_management", [False, True])
def test_a_public_class_name_occurs_once(is_of_management: bool) -> None:
    """Names are unique in the runtime, and in the management service with its client."""
    found = defaultdict(list)
    for path, tree in sources.modules().items():
        if path.startswith(OF_MANAGEMENT) is not is_of_management:
            continue
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path)
    assert len(found) > (200 if is_of_management else 900)
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}
