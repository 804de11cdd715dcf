"""The dialect of PostgreSQL; imports nothing of its driver."""

from caraway_core.loading.dialects import Dialect

POSTGRES = Dialect(
    kinds=frozenset(
        {"bool", "int", "decimal", "double", "text", "date", "timestamp", "timestamptz"}
    ),
    exact=frozenset(
        {
            "like", "add int", "subtract int", "multiply int", "shift int", "add decimal",
            "subtract decimal", "multiply decimal", "cast int", "cast decimal", "cast double",
            "group", "sort", "limit", "offset", "filter", "count", "count distinct", "extreme",
            "join", "outer join", "sum int", "sum decimal", "sum double", "avg decimal",
            "avg double",
        }
    ),
    literals={
        "true": "TRUE",
        "false": "FALSE",
        "int": "({})::int8",
        "smallest": "('-9223372036854775808')::int8",
        "decimal": "({})::numeric",
        "double": "('{}')::float8",
        "text": "'{}'::text",
        "date": "DATE '{}'",
        "timestamp": "TIMESTAMP '{}'",
        "timestamptz": "TIMESTAMPTZ '{}+00'",
    },
    casts={
        "int8": "({})::int2",
        "int16": "({})::int2",
        "int32": "({})::int4",
        "int64": "({})::int8",
        "shift": "({})::int4",
        "decimal": "({})::numeric",
        "double": "({})::float8",
        "text": "({})::text",
        "texts": "({})::text[]",
    },
    collation=' COLLATE "C"',
    is_nan="{} = 'NaN'::float8",
    sends_decimals_as_text=True,
    writes=frozenset({"case", "concat", "length", "double"}),
    concat="({} || {})",
    length="length({})",
    fails="(({})::text)::boolean",
)  # fmt: skip
