"""Table and column names of the runtime, for completion."""

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Protocol

from caraway.client import Client
from caraway.requests import parsing
from caraway.requests.parsing import Row
from caraway.rows.formats import Format
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import CarawayError

DEFAULT_SCHEMA = "public"
FRESH_FOR_S = 30.0

COLUMNS_SQL = (
    "SELECT table_schema, table_name, column_name FROM information_schema.columns LIMIT 20000"
)

FUNCTIONS_SQL = "SELECT name, kind FROM runtime.functions ORDER BY name"


class RowSource(Protocol):
    """Returns the rows of a statement."""

    def sql(self, query: str) -> list[Row]: ...


class LineRows:
    """Rows as JSON lines, which need no pyarrow in a shell that would otherwise not load it."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def sql(self, query: str) -> list[Row]:
        """Run a statement and return its rows."""
        with closing(self._client.sql_chunks(query, None, Format.NDJSON)) as chunks:
            return [parsing.parse_object(line) for line in parsing.iter_lines(chunks)]


@dataclass(frozen=True, slots=True)
class Names:
    """Column names by table, and the functions of the manifest.

    Tables outside the default schema are named `schema.table`.
    """

    columns_by_table: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    functions: tuple[str, ...] = ()
    table_functions: tuple[str, ...] = ()

    def tables(self) -> list[str]:
        return sorted(self.columns_by_table)

    def columns(self) -> list[str]:
        return sorted({name for names in self.columns_by_table.values() for name in names})


def from_rows(rows: list[Row], functions: Iterable[Row] = ()) -> Names:
    """Group the results of COLUMNS_SQL by table, and of FUNCTIONS_SQL by kind."""
    columns: dict[str, list[str]] = {}
    for row in rows:
        schema, table = str(row["table_schema"]), str(row["table_name"])
        name = table if schema == DEFAULT_SCHEMA else f"{schema}.{table}"
        columns.setdefault(name, []).append(str(row["column_name"]))
    kinds: dict[str, list[str]] = {}
    for row in functions:
        kinds.setdefault(str(row["kind"]), []).append(f"{row['name']}(")
    return Names(
        {table: tuple(names) for table, names in columns.items()},
        tuple(kinds.get("scalar", ())),
        tuple(kinds.get("table", ())),
    )


class NameCache:
    """Caches the names for half a minute."""

    def __init__(self, client: RowSource, clock: SecondsClock) -> None:
        self._client = client
        self._clock = clock
        self._names = Names()
        self._stale_at = float("-inf")

    def __call__(self) -> Names:
        if self._clock() >= self._stale_at:
            self._stale_at = self._clock() + FRESH_FOR_S
            self._names = self._fetch() or self._names
        return self._names

    def _fetch(self) -> Names | None:
        try:
            return from_rows(self._client.sql(COLUMNS_SQL), self._client.sql(FUNCTIONS_SQL))
        except (CarawayError, KeyError):
            # Completion is optional: without a response, keep the names known so far.
            return None
