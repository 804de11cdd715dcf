"""The SQL of `deltalake`, which changes rows of Delta tables; imports nothing of it."""

from caraway_core.loading.dialects import Dialect

DIALECT = Dialect(
    kinds=frozenset(
        {"bool", "int", "decimal", "double", "text", "date", "timestamp", "timestamptz"}
    ),
    exact=frozenset({"like", "add int", "subtract int", "multiply int", "cast int"}),
    literals={
        "true": "TRUE",
        "false": "FALSE",
        "int": "{}",
        "smallest": "CAST('-9223372036854775808' AS BIGINT)",
        "decimal": "CAST('{}' AS DECIMAL({precision}, {scale}))",
        "double": "CAST('{}' AS DOUBLE)",
        "text": "'{}'",
        "date": "CAST('{}' AS DATE)",
        "timestamp": "arrow_cast('{}', 'Timestamp(Microsecond, None)')",
        "timestamptz": "arrow_cast('{}Z', 'Timestamp(Microsecond, Some(\"UTC\"))')",
    },
    casts={
        "int8": "CAST({} AS TINYINT)",
        "int16": "CAST({} AS SMALLINT)",
        "int32": "CAST({} AS INT)",
        "int64": "CAST({} AS BIGINT)",
        "double": "CAST({} AS DOUBLE)",
    },
    wide="CAST({} AS DECIMAL(20, 0))",
    checked="CAST({} AS BIGINT)",
    is_nan="isnan({})",
    aligned="CAST({} AS DECIMAL({precision}, {scale}))",
    most_digits=38,
    writes=frozenset({"case", "concat", "length", "double"}),
    concat="({} || {})",
    length="character_length({})",
    fails="CAST(CASE WHEN isnan({}) THEN 'nan?' END AS BOOLEAN)",
)
"""The library has the engine's release, so an operation that both run is the same. It wraps around
where an integer overflows, and it skips files by statistics, in which NaN is not there."""
