"""Names of datasets and views, and the two halves of their `from`."""

import re
import string
from collections.abc import Iterable
from dataclasses import dataclass

from caraway_core.sqltext.grammar import CLOSED_QUOTED_NAME

MEMORY_PATH = "store"
"""The path of `memory:` that is a table of memories of models."""
SOURCE_SCHEMA = "caraway_source"
"""Holds the sources of accelerated datasets, for statements of the runtime alone."""
RESERVED_SCHEMAS = frozenset({"runtime", "information_schema", SOURCE_SCHEMA})
OWN_CATALOG = "caraway"
RESERVED_CATALOGS = RESERVED_SCHEMAS | {OWN_CATALOG, "datafusion", "public", "exchange"}
"""Names that source catalogs cannot have."""

_PART = rf'(?:{CLOSED_QUOTED_NAME}|[^".]*)'
_NAME = re.compile(rf"({_PART})(?:\.({_PART}))?")
_OF_THREE = re.compile(rf"({_PART})\.({_PART})\.({_PART})")
_IN_CATALOG = re.compile(rf'(?:"caraway"|(?i:caraway))\.(?P<name>{_PART}\.{_PART})$')
_UNQUOTED = re.compile(r"[\w$-]{1,128}")
_QUOTED = re.compile(r'[^"./\\\x00-\x1f\x7f]{1,128}')
_COMPONENT = re.compile(r"\w[\w.:/@+-]{0,127}")
# Only ASCII, as the SQL engine folds: a name must be found under the text it is queried by.
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


@dataclass(frozen=True, slots=True)
class Origin:
    """The two halves of a `from`."""

    connector: str
    path: str


def canonical(text: str) -> str:
    """Return the name that SQL knows a table by: unquoted parts in lower case.

    Raises:
        ValueError: it is no name, has more than two parts, or is in a reserved schema.
    """
    match = _NAME.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"'{text}' is not a table name; write 'table' or 'schema.table'")
    parts = [_canonical_part(part) for part in match.groups() if part is not None]
    if len(parts) == 2 and parts[0].translate(_LOWER) in RESERVED_SCHEMAS:
        raise ValueError(f"the schema '{parts[0]}' belongs to the runtime; choose another")
    return ".".join(parts)


def identity(name: str) -> str:
    """Return what two canonical names share when they name one table."""
    return name.removeprefix("public.")


def spellings(text: str) -> tuple[str, str]:
    """Return the canonical names that a table name may stand for: `t` and `public.t` are one.

    The catalog may stand before the schema. Other catalogs have no second spelling.

    Raises:
        ValueError: as `canonical`.
    """
    if (parts := in_catalog(text)) is not None:
        return ".".join(parts), ".".join(parts)
    match = _IN_CATALOG.match(text.strip())
    name = canonical(match["name"] if match else text)
    bare = identity(name)
    return name, bare if bare != name else f"public.{bare}"


def in_catalog(text: str) -> tuple[str, str, str] | None:
    """Return the parts of a name of three parts, as SQL knows them; None: it is not one.

    Names of the runtime's own catalog are not among them.
    """
    match = _OF_THREE.fullmatch(text.strip())
    if match is None:
        return None
    try:
        catalog, schema, table = map(_canonical_part, match.groups())
    except ValueError:
        return None
    return None if catalog == OWN_CATALOG else (catalog, schema, table)


def catalog(text: str) -> str:
    """Return the name that SQL knows a source catalog by.

    Raises:
        ValueError: it is no name, or belongs to the runtime.
    """
    name = _canonical_part(text.strip())
    if name.translate(_LOWER) in RESERVED_CATALOGS:
        raise ValueError(f"the name '{name}' belongs to the runtime; choose another")
    return name


def is_writable(part: str) -> bool:
    """Return whether a statement can name a schema or a table, in quotes where necessary."""
    return _QUOTED.fullmatch(part) is not None


def split_origin(text: str) -> Origin:
    """Split a `from` at its first `:`, or at its first `/` when that comes sooner.

    Raises:
        ValueError: it names no connector.
    """
    match = re.match(r"\s*([A-Za-z][\w.+-]*)\s*(?:[:/]|$)", text)
    if match is None or match[1].startswith("."):
        raise ValueError(
            f"'{text}' names no connector; write '<connector>:<path>', for example 'file:{text}'"
        )
    connector = match[1].lower()
    return Origin(connector, text[match.end() :].strip().removeprefix("//"))


def split_provider(text: str) -> Origin:
    """Split the `from` of a model at its first `:`, or at its first `/` when that comes sooner.

    Raises:
        ValueError: it names no provider.
    """
    try:
        return split_origin(text)
    except ValueError:
        raise ValueError(
            f"'{text}' names no provider; write '<provider>:<model>', for example 'openai:{text}'"
        ) from None


def component(text: str) -> str:
    """Return the name of a model, if it can be one.

    Raises:
        ValueError: it cannot.
    """
    if not _COMPONENT.fullmatch(text):
        raise ValueError(
            f"'{text[:100]}' is not a name; use letters, digits and any of '._:/@+-', at most 128"
        )
    return text


def canonical_all(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the names that SQL knows some tables by.

    Raises:
        ValueError: as `canonical`.
    """
    return tuple(".".join(in_catalog(text) or (canonical(text),)) for text in texts)


def _canonical_part(part: str) -> str:
    if part.startswith('"'):
        name = part[1:-1].replace('""', '"')
        if not _QUOTED.fullmatch(name):
            raise ValueError(
                f"{part} is not a table name: quoted names hold no dots, slashes or quotes"
            )
        return name
    if not _UNQUOTED.fullmatch(part):
        raise ValueError(
            f"'{part}' is not a table name; use letters, digits and '_', or quote it: '\"{part}\"'"
        )
    return part.translate(_LOWER)
