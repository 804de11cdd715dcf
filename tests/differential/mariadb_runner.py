"""A single node whose tables are in MariaDB, as far as MariaDB has their types and values."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from caraway_core.tables import TableSpec
from tests.differential.databases import Load, reading
from tests.kit import mariadb


@contextmanager
def into_mariadb() -> Iterator[Load]:
    """Serve a separate server until the block ends."""
    with mariadb.serving() as server:

        def load(name: str, rows: pa.Table) -> TableSpec | None:
            if not _is_kept(rows):
                return None
            mariadb.load(server, name, rows)
            return mariadb.resolved(server, f'"{name}"')

        yield load


def _is_kept(rows: pa.Table) -> bool:
    names = [each.lower() for each in rows.schema.names]
    if len(set(names)) < len(names) or not all(map(mariadb.column_type, rows.schema.types)):
        return False
    doubles = [each.name for each in rows.schema if pa.types.is_floating(each.type)]
    found, kept = rows.select(doubles), mariadb.kept(rows).select(doubles)
    return repr(found.to_pydict()) == repr(kept.to_pydict())  # Arrow takes -0.0 for 0.0.


in_mariadb = reading(into_mariadb)
