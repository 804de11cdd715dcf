"""Renders the description of the data for a model: as a page, and as one JSON object."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from caraway_ai.text_to_sql.described import DescribedTable
from caraway_ai.text_to_sql.prompting import INSTRUCTIONS
from caraway_ai.tools.data_access import KnownColumn, SearchedColumn
from caraway_ai.tools.sql_names import plain_name, plain_table
from caraway_core.ids import TableName
from caraway_core.sqltext.sql_functions import SqlFunction

_TITLE = "# SQL over the data of this runtime"
_NOTES = (
    "Statements are PostgreSQL where DataFusion has the function; there are no stored procedures.",
    "Names without quotes are in lower case. A column with capital letters needs double quotes.",
    "Statements of models only read, and only the datasets that were named.",
)
_SEARCH_FUNCTIONS = (
    ("vector_search", "vector_search(table, 'query' [, column] [, limit])",
     "Rows whose text means what the query says; adds `score`.",
     "SELECT id, score FROM vector_search(reviews, 'late delivery') LIMIT 10"),
    ("text_search", "text_search(table, 'query' [, column] [, limit])",
     "Rows whose text has the words of the query; adds `score`.",
     "SELECT id, score FROM text_search(reviews, 'refund') LIMIT 10"),
    ("rrf", "rrf(search, search, ... [, join_key => 'column'])",
     "Fuses searches by reciprocal ranks; adds `fused_score`.",
     "SELECT id FROM rrf(vector_search(reviews, 'late'), text_search(reviews, 'late'))"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SqlDialect:
    """The engine that reads the statements."""

    engine_version: str
    parser: str = "sqlparser-rs"


def as_json(
    tables: Sequence[DescribedTable],
    dialect: SqlDialect,
    functions: Sequence[SqlFunction] = (),
) -> dict[str, Any]:
    """Return every field of the context; `functions` are those of the manifest."""
    return {
        "context": as_markdown(tables, dialect, functions),
        "instructions": list(INSTRUCTIONS),
        "sql": {
            "engine": "Apache DataFusion",
            "version": dialect.engine_version,
            "dialect": "PostgreSQL",
            "parser": dialect.parser,
            "notes": list(_NOTES),
        },
        "datasets": list(map(_dataset, tables)),
        "functions": _functions(tables, functions),
        "samples": [
            {"title": f"Sample data of {each.table.name}", "content": content}
            for each in tables
            if (content := _sample(each))
        ],
    }


def as_markdown(
    tables: Sequence[DescribedTable],
    dialect: SqlDialect,
    functions: Sequence[SqlFunction] = (),
) -> str:
    """Return the context as a page."""
    lines = [_TITLE, ""]
    lines += [f"- {each}" for each in (*INSTRUCTIONS, *_NOTES)]
    lines += [f"- Engine: Apache DataFusion {dialect.engine_version}.", "", "## Datasets", ""]
    lines += [f"- `{each.table.name}`{_described(each.table.description)}" for each in tables]
    lines += ["", "## Schemas", ""]
    lines += _row("table_reference", "column_name", "data_type", "nullable", "description")
    lines += ["|---|---|---|---|---|"]
    for each in tables:
        for column in each.columns:
            nullable = "YES" if column.nullable else "NO"
            description = column.description or ""
            lines += _row(each.table.name, column.name, column.data_type, nullable, description)
    lines += ["", "## Dataset Relationships", ""]
    lines += [line for each in tables for line in _relationships(each)] or ["None is known."]
    lines += ["", "## SQL Functions", "", _summary(tables), ""]
    listed = [*_search(tables), *map(_user_defined, functions)]
    lines += [f"- `{each['syntax']}`{_described(each['description'])}" for each in listed]
    samples = [(each.table.name, _sample(each)) for each in tables]
    if any(content for _, content in samples):
        lines += ["", "## Sample Data", ""]
        for name, content in samples:
            if content:
                lines += [f"### {name}", "", "```", content, "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def _dataset(described: DescribedTable) -> dict[str, object]:
    table = described.table
    schema, _, bare = table.name.rpartition(".")
    return {
        "name": table.name,
        "catalog": "caraway",
        "schema": schema or "public",
        "table": bare,
        "description": table.description,
        "metadata": dict(table.metadata),
        "columns": [_column(described, column) for column in described.columns],
        "primary_key": list(table.primary_key),
        "unique_constraints": [list(each.columns) for each in table.indexes if each.is_unique],
        "foreign_keys": [
            {
                "columns": [each.column],
                "foreign_table": each.other,
                "foreign_columns": [each.other_column],
                "inferred": True,
            }
            for each in described.relations
        ],
        "indexes": [
            _index(each.columns, "unique" if each.is_unique else "lookup") for each in table.indexes
        ],
        "search": {
            "vector": [_vector(table.name, each) for each in table.vector_columns],
            "full_text": [_full_text(table.name, each) for each in table.text_columns],
        },
    }


def _column(described: DescribedTable, column: KnownColumn) -> dict[str, object]:
    table, name = described.table, column.name
    unique = [each.columns for each in table.indexes if each.is_unique]
    return {
        "name": name,
        "data_type": column.data_type,
        "nullable": column.nullable,
        "description": column.description,
        "source_type": column.source_type,
        "metadata": dict(column.metadata),
        "primary_key": name in table.primary_key,
        "unique": table.primary_key == (name,) or (name,) in unique,
        "indexed": any(name in each.columns for each in table.indexes),
        "vector_search": any(each.column == name for each in table.vector_columns),
        "full_text_search": any(each.column == name for each in table.text_columns),
    }


def _index(columns: Sequence[str], kind: str, source: str = "acceleration") -> dict[str, object]:
    name = f"{'_'.join(columns)}_{kind}"
    return {"name": name, "columns": list(columns), "kind": kind, "source": source}


def _vector(table: TableName, searched: SearchedColumn) -> dict[str, object]:
    return {
        "column": searched.column,
        "function": "vector_search",
        "syntax": _call("vector_search", table, searched),
        "model": searched.model,
        "engine": "caraway",
        "row_id_columns": list(searched.row_id),
        "vector_size": searched.vector_size,
        "chunked": searched.chunked,
        "input_mode": "text",
        "index": _index((searched.column,), "vector", "embeddings"),
        "required_columns": [searched.column],
        "notes": "Texts are cut into chunks; the best one counts." if searched.chunked else "",
    }


def _call(function: str, table: TableName, searched: SearchedColumn) -> str:
    return f"{function}({plain_table(table)}, 'query', {plain_name(searched.column)})"


def _full_text(table: TableName, searched: SearchedColumn) -> dict[str, object]:
    return {
        "column": searched.column,
        "function": "text_search",
        "syntax": _call("text_search", table, searched),
        "engine": "caraway",
        "index_store": "memory",
        "row_id_columns": list(searched.row_id),
        "index": _index((searched.column,), "full_text", "full_text_search"),
        "required_columns": [searched.column],
        "notes": "",
    }


def _functions(
    tables: Sequence[DescribedTable], functions: Sequence[SqlFunction]
) -> dict[str, object]:
    return {
        "summary": _summary(tables),
        "json": [],
        "spice_specific": _search(tables),
        "spark_compatibility": {"description": "There are none.", "functions": []},
        "user_defined": list(map(_user_defined, functions)),
    }


def _user_defined(function: SqlFunction) -> Mapping[str, str]:
    return {
        "name": function.name,
        "syntax": function.signature,
        "description": function.description or "",
        "example": function.example,
    }


def _search(tables: Sequence[DescribedTable]) -> list[Mapping[str, str]]:
    if not any(each.table.vector_columns or each.table.text_columns for each in tables):
        return []
    keys = ("name", "syntax", "description", "example")
    return [dict(zip(keys, each, strict=True)) for each in _SEARCH_FUNCTIONS]


def _summary(tables: Sequence[DescribedTable]) -> str:
    more = ", and searches as table functions" if _search(tables) else ""
    return f"The scalar, aggregate and window functions of Apache DataFusion{more}."


def _relationships(described: DescribedTable) -> list[str]:
    table = described.table
    lines = []
    if table.primary_key:
        lines.append(f"- `{table.name}` has the primary key ({', '.join(table.primary_key)}).")
    lines += [
        f"- `{table.name}.{each.column}` is `{each.other}.{each.other_column}`, by its name."
        for each in described.relations
    ]
    lines += [
        f"- `{table.name}` has {'a unique' if each.is_unique else 'an'} index on "
        f"({', '.join(each.columns)})."
        for each in table.indexes
    ]
    for kind, columns in (
        ("by meaning", table.vector_columns),
        ("by words", table.text_columns),
    ):
        lines += [f"- `{table.name}.{each.column}` is searched {kind}." for each in columns]
    return lines


def _sample(described: DescribedTable) -> str:
    lines = [
        f"{name}: {', '.join(map(str, sampled.values))}{'' if sampled.is_all else ', ...'}"
        for name, sampled in described.values.items()
    ]
    lines += [json.dumps(dict(row), ensure_ascii=False, default=str) for row in described.rows]
    # A fence in the data would end that of the page.
    return "\n".join(lines).replace("```", "'''")


def _described(description: str | None) -> str:
    return f": {' '.join(description.split())}" if description else ""


def _row(*cells: str) -> list[str]:
    plain = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
    return [f"| {' | '.join(plain)} |"]
