"""Secrets are compared in a time that does not depend on them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import caraway_management

HOME = Path(caraway_management.__file__).parent
SECRET = re.compile(
    r"(^|_)(secret|token|password|csrf|nonce|verifier|challenge|signature|cookie|digest|hash|mac)$"
)
NOT_SECRET = {
    # The digest of a request distinguishes a repetition from another request with the same key.
    ("api/idempotency.py", "present.request_hash != digest"),
}


def names_of(node: ast.expr) -> Iterator[str]:
    """Yield the last names of compared values, but not of columns: the database compares those."""
    match node:
        case ast.Name(id=name):
            yield name
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner[:1].isupper():
            # The database looks for the hash of a random value.
            return
        case ast.Attribute(attr=name):
            yield name
        case ast.Call(func=function):
            yield from names_of(function)


def comparisons(path: Path) -> Iterator[str]:
    """Yield the comparisons of secrets by `==` and `!=` in a module."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            is_equality = any(isinstance(each, ast.Eq | ast.NotEq) for each in node.ops)
            is_query = any(
                isinstance(side, ast.Attribute)
                and isinstance(side.value, ast.Name)
                and side.value.id[:1].isupper()
                for side in sides
            )
            names = [name for side in sides for name in names_of(side)]
            if is_equality and not is_query and any(map(SECRET.search, names)):
                yield ast.unparse(node)


def test_no_secret_is_compared_by_equality() -> None:
    found = {
        (str(path.relative_to(HOME)), text)
        for path in HOME.rglob("*.py")
        for text in comparisons(path)
    }
    assert found == NOT_SECRET


def test_the_rule_finds_such_comparisons(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "row.secret_hash == digest(value)\n"
        "given != self.client_secret\n"
        "Token.value_hash == values.digest(value)\n"
        "hmac.compare_digest(a, b)\n"
    )
    assert list(comparisons(module)) == [
        "row.secret_hash == digest(value)", "given != self.client_secret",
    ]  # fmt: skip
