"""Namespaces of tables: the schemas of datasets and views."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from caraway_core.errors import InvalidRequestError, NotFoundError
from caraway_core.ids import TableName

CATALOG = "caraway"
"""The catalog that has the datasets and views of the manifest."""
PUBLIC = "public"
SEPARATOR = "\x1f"
_OTHER_SEPARATOR = "."
_MOST_LENGTH = 512


class NamespaceFormatError(InvalidRequestError):
    """A text that is not a namespace."""


class NoNamespaceError(NotFoundError):
    """There is no such namespace."""


class NoTableError(NotFoundError):
    """There is no such table."""


class NoViewError(NotFoundError):
    """There is no such view."""


@dataclass(frozen=True, slots=True)
class QualifiedName:
    """The name of a dataset or view in its schema; `known_as` is its name in the manifest."""

    schema: str
    name: str
    known_as: TableName

    @classmethod
    def from_name(cls, name: TableName) -> "QualifiedName":
        """Return the parts of a name of the manifest."""
        schema, _, bare = name.rpartition(".")
        return cls(schema or PUBLIC, bare, name)


def parse(text: str) -> tuple[str, ...]:
    """Return the parts of a namespace, which U+001F or dots separate.

    Raises:
        NamespaceFormatError: a part is empty or not printable, or the text is too long.
    """
    separator = SEPARATOR if SEPARATOR in text else _OTHER_SEPARATOR
    parts = tuple(text.split(separator))
    if len(text) > _MOST_LENGTH or not all(part and part.isprintable() for part in parts):
        raise NamespaceFormatError(
            "the namespace is not valid; write its parts with U+001F (%1F) between them, each of "
            "at least one printable character"
        )
    return parts


def schemas(names: Iterable[TableName]) -> list[str]:
    """Return the schemas of some names, sorted; there is always `public`."""
    return sorted({PUBLIC, *(QualifiedName.from_name(name).schema for name in names)})


def inside(names: Iterable[TableName], schema: str) -> Mapping[str, QualifiedName]:
    """Return the names of a schema, sorted."""
    return {each.name: each for each in _sorted(names) if each.schema == schema}


def _sorted(names: Iterable[TableName]) -> Iterator[QualifiedName]:
    yield from sorted(map(QualifiedName.from_name, names), key=lambda each: each.name)


def no_namespace(parts: tuple[str, ...]) -> NoNamespaceError:
    """Return the error for a namespace that does not exist."""
    return NoNamespaceError(f"there is no namespace '{'.'.join(parts)}'; list the namespaces")


def no_table(name: str, parts: tuple[str, ...]) -> NoTableError:
    """Return the error for a table that does not exist."""
    return NoTableError(f"there is no table '{name}' in namespace '{'.'.join(parts)}'")


def no_view(name: str, parts: tuple[str, ...]) -> NoViewError:
    """Return the error for a view that does not exist."""
    return NoViewError(f"there is no view '{name}' in namespace '{'.'.join(parts)}'")
