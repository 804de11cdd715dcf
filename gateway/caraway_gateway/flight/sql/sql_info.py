"""Describes the runtime and its SQL by the codes of the protocol."""

from collections.abc import Mapping, Sequence
from importlib import metadata

import pyarrow as pa

from caraway_gateway.flight.sql import metadata_schemas, prepared
from caraway_gateway.flight.sql.protocol import FlightSql_pb2 as proto

Value = str | bool | int | list[str] | dict[int, list[int]]
_STRING, _BOOL, _BIGINT, _BITMASK, _LIST, _MAP = range(6)
_CONVERTED = (
    proto.SQL_CONVERT_BIGINT,
    proto.SQL_CONVERT_BIT,
    proto.SQL_CONVERT_CHAR,
    proto.SQL_CONVERT_DATE,
    proto.SQL_CONVERT_DECIMAL,
    proto.SQL_CONVERT_FLOAT,
    proto.SQL_CONVERT_INTEGER,
    proto.SQL_CONVERT_REAL,
    proto.SQL_CONVERT_SMALLINT,
    proto.SQL_CONVERT_TIMESTAMP,
    proto.SQL_CONVERT_TINYINT,
    proto.SQL_CONVERT_VARCHAR,
)
_SUBSTRAIT = ("0.75.0", metadata.version("substrait-protobuf"))
"""The oldest version whose plans have no fields that later ones removed, and the one of here."""
_KEYWORDS = ["EXPLAIN", "DESCRIBE", "SHOW", "QUALIFY", "UNNEST", "EXCEPT", "INTERSECT", "LATERAL"]
_NUMERIC = ["ABS", "ACOS", "ASIN", "ATAN", "ATAN2", "CEIL", "COS", "COT", "DEGREES", "EXP"]
_NUMERIC += ["FLOOR", "LN", "LOG10", "MOD", "PI", "POWER", "RADIANS", "ROUND", "SIGN", "SIN"]
_NUMERIC += ["SQRT", "TAN", "TRUNC"]
_TEXT = ["ASCII", "BTRIM", "CHR", "CONCAT", "INITCAP", "LEFT", "LENGTH", "LOWER", "LPAD", "LTRIM"]
_TEXT += ["REPEAT", "REPLACE", "REVERSE", "RIGHT", "RPAD", "RTRIM", "SUBSTR", "TRANSLATE", "UPPER"]
_DATES = ["CURRENT_DATE", "CURRENT_TIME", "DATE_BIN", "DATE_PART", "DATE_TRUNC", "EXTRACT", "NOW"]


def values() -> Mapping[int, tuple[int, Value]]:
    """Return all that is said: by code which member of the union, and its value."""
    strings: dict[int, str] = {
        proto.FLIGHT_SQL_SERVER_NAME: "Caraway",
        proto.FLIGHT_SQL_SERVER_VERSION: metadata.version("caraway"),
        proto.FLIGHT_SQL_SERVER_ARROW_VERSION: pa.__version__,
        proto.FLIGHT_SQL_SERVER_SUBSTRAIT_MIN_VERSION: _SUBSTRAIT[0],
        proto.FLIGHT_SQL_SERVER_SUBSTRAIT_MAX_VERSION: _SUBSTRAIT[1],
        proto.SQL_IDENTIFIER_QUOTE_CHAR: '"',
        proto.SQL_SEARCH_STRING_ESCAPE: "\\",
        proto.SQL_EXTRA_NAME_CHARACTERS: "$",
        proto.SQL_SCHEMA_TERM: "schema",
        proto.SQL_PROCEDURE_TERM: "",
        proto.SQL_CATALOG_TERM: "catalog",
    }
    yes = (
        proto.FLIGHT_SQL_SERVER_SQL,
        proto.FLIGHT_SQL_SERVER_SUBSTRAIT,
        proto.FLIGHT_SQL_SERVER_CANCEL,
        proto.FLIGHT_SQL_SERVER_BULK_INGESTION,
        proto.SQL_ALL_TABLES_ARE_SELECTABLE,
        proto.SQL_SUPPORTS_COLUMN_ALIASING,
        proto.SQL_NULL_PLUS_NULL_IS_NULL,
        proto.SQL_SUPPORTS_TABLE_CORRELATION_NAMES,
        proto.SQL_SUPPORTS_EXPRESSIONS_IN_ORDER_BY,
        proto.SQL_SUPPORTS_ORDER_BY_UNRELATED,
        proto.SQL_SUPPORTS_LIKE_ESCAPE_CLAUSE,
        proto.SQL_SUPPORTS_NON_NULLABLE_COLUMNS,
        proto.SQL_CATALOG_AT_START,
        proto.SQL_CORRELATED_SUBQUERIES_SUPPORTED,
    )
    no = (
        proto.FLIGHT_SQL_SERVER_READ_ONLY,
        proto.FLIGHT_SQL_SERVER_INGEST_TRANSACTIONS_SUPPORTED,
        proto.SQL_DDL_CATALOG,
        proto.SQL_DDL_SCHEMA,
        proto.SQL_DDL_TABLE,
        proto.SQL_SUPPORTS_DIFFERENT_TABLE_CORRELATION_NAMES,
        proto.SQL_SUPPORTS_INTEGRITY_ENHANCEMENT_FACILITY,
        proto.SQL_SELECT_FOR_UPDATE_SUPPORTED,
        proto.SQL_STORED_PROCEDURES_SUPPORTED,
        proto.SQL_MAX_ROW_SIZE_INCLUDES_BLOBS,
        proto.SQL_TRANSACTIONS_SUPPORTED,
        proto.SQL_DATA_DEFINITION_CAUSES_TRANSACTION_COMMIT,
        proto.SQL_DATA_DEFINITIONS_IN_TRANSACTIONS_IGNORED,
        proto.SQL_BATCH_UPDATES_SUPPORTED,
        proto.SQL_SAVEPOINTS_SUPPORTED,
        proto.SQL_NAMED_PARAMETERS_SUPPORTED,
        proto.SQL_LOCATORS_UPDATE_COPY,
        proto.SQL_STORED_FUNCTIONS_USING_CALL_SYNTAX_SUPPORTED,
    )
    numbers: dict[int, int] = {
        proto.SQL_MAX_BINARY_LITERAL_LENGTH: 0,
        proto.SQL_MAX_CHAR_LITERAL_LENGTH: 0,
        proto.SQL_MAX_COLUMN_NAME_LENGTH: 0,
        proto.SQL_MAX_COLUMNS_IN_GROUP_BY: 0,
        proto.SQL_MAX_COLUMNS_IN_INDEX: 0,
        proto.SQL_MAX_COLUMNS_IN_ORDER_BY: 0,
        proto.SQL_MAX_COLUMNS_IN_SELECT: 0,
        proto.SQL_MAX_COLUMNS_IN_TABLE: 0,
        proto.SQL_MAX_CONNECTIONS: 0,
        proto.SQL_MAX_CURSOR_NAME_LENGTH: 0,
        proto.SQL_MAX_INDEX_LENGTH: 0,
        proto.SQL_DB_SCHEMA_NAME_LENGTH: 0,
        proto.SQL_MAX_PROCEDURE_NAME_LENGTH: 0,
        proto.SQL_MAX_CATALOG_NAME_LENGTH: 0,
        proto.SQL_MAX_ROW_SIZE: 0,
        proto.SQL_MAX_STATEMENT_LENGTH: 0,
        proto.SQL_MAX_STATEMENTS: prepared.MOST,
        proto.SQL_MAX_TABLE_NAME_LENGTH: 0,
        proto.SQL_MAX_TABLES_IN_SELECT: 0,
        proto.SQL_MAX_USERNAME_LENGTH: 0,
    }
    masks: dict[int, int] = {
        proto.SQL_IDENTIFIER_CASE: proto.SQL_CASE_SENSITIVITY_LOWERCASE,
        proto.SQL_QUOTED_IDENTIFIER_CASE: proto.SQL_CASE_SENSITIVITY_UNKNOWN,
        proto.SQL_NULL_ORDERING: proto.SQL_NULLS_SORTED_HIGH,
        proto.SQL_OUTER_JOINS_SUPPORT_LEVEL: proto.SQL_FULL_OUTER_JOINS,
        proto.SQL_DEFAULT_TRANSACTION_ISOLATION: proto.SQL_TRANSACTION_NONE,
        proto.FLIGHT_SQL_SERVER_TRANSACTION: proto.SQL_SUPPORTED_TRANSACTION_NONE,
        proto.FLIGHT_SQL_SERVER_STATEMENT_TIMEOUT: int(prepared.IDLE_S * 1000),
        proto.FLIGHT_SQL_SERVER_TRANSACTION_TIMEOUT: 0,
        proto.SQL_SUPPORTED_GROUP_BY: _bits(
            proto.SQL_GROUP_BY_UNRELATED, proto.SQL_GROUP_BY_BEYOND_SELECT
        ),
        proto.SQL_SUPPORTED_GRAMMAR: _bits(proto.SQL_MINIMUM_GRAMMAR, proto.SQL_CORE_GRAMMAR),
        proto.SQL_ANSI92_SUPPORTED_LEVEL: _bits(proto.ANSI92_ENTRY_SQL),
        proto.SQL_SCHEMAS_SUPPORTED_ACTIONS: 0,
        proto.SQL_CATALOGS_SUPPORTED_ACTIONS: 0,
        proto.SQL_SUPPORTED_POSITIONED_COMMANDS: 0,
        proto.SQL_SUPPORTED_SUBQUERIES: _bits(
            proto.SQL_SUBQUERIES_IN_COMPARISONS,
            proto.SQL_SUBQUERIES_IN_EXISTS,
            proto.SQL_SUBQUERIES_IN_INS,
        ),
        proto.SQL_SUPPORTED_UNIONS: _bits(proto.SQL_UNION, proto.SQL_UNION_ALL),
        proto.SQL_SUPPORTED_TRANSACTIONS_ISOLATION_LEVELS: _bits(proto.SQL_TRANSACTION_NONE),
        proto.SQL_SUPPORTED_RESULT_SET_TYPES: _bits(proto.SQL_RESULT_SET_TYPE_FORWARD_ONLY),
        proto.SQL_SUPPORTED_CONCURRENCIES_FOR_RESULT_SET_UNSPECIFIED: 0,
        proto.SQL_SUPPORTED_CONCURRENCIES_FOR_RESULT_SET_FORWARD_ONLY: 0,
        proto.SQL_SUPPORTED_CONCURRENCIES_FOR_RESULT_SET_SCROLL_SENSITIVE: 0,
        proto.SQL_SUPPORTED_CONCURRENCIES_FOR_RESULT_SET_SCROLL_INSENSITIVE: 0,
    }
    lists: dict[int, list[str]] = {
        proto.SQL_KEYWORDS: _KEYWORDS,
        proto.SQL_NUMERIC_FUNCTIONS: _NUMERIC,
        proto.SQL_STRING_FUNCTIONS: _TEXT,
        proto.SQL_SYSTEM_FUNCTIONS: ["COALESCE", "NULLIF", "VERSION"],
        proto.SQL_DATETIME_FUNCTIONS: _DATES,
    }
    converted = {each: list(_CONVERTED) for each in _CONVERTED}
    said: dict[int, tuple[int, Value]] = {}
    said.update((code, (_STRING, text)) for code, text in strings.items())
    said.update((code, (_BOOL, True)) for code in yes)
    said.update((code, (_BOOL, False)) for code in no)
    said.update((code, (_BIGINT, number)) for code, number in numbers.items())
    said.update((code, (_BITMASK, mask)) for code, mask in masks.items())
    said.update((code, (_LIST, names)) for code, names in lists.items())
    said[proto.SQL_SUPPORTS_CONVERT] = (_MAP, converted)
    return said


def table(codes: Sequence[int]) -> pa.Table:
    """Return the values of some codes, or of all if none is named."""
    said = values()
    wanted = [code for code in codes if code in said] if codes else sorted(said)
    members: list[list[object]] = [[] for _ in range(6)]
    types, offsets = [], []
    for code in wanted:
        member, value = said[code]
        types.append(member)
        offsets.append(len(members[member]))
        members[member].append(list(value.items()) if isinstance(value, dict) else value)
    union = metadata_schemas.SQL_INFO.field("value").type
    children = [pa.array(values, union.field(index).type) for index, values in enumerate(members)]
    value = pa.UnionArray.from_dense(
        pa.array(types, pa.int8()),
        pa.array(offsets, pa.int32()),
        children,
        [union.field(index).name for index in range(union.num_fields)],
    )
    names = pa.array(wanted, pa.uint32())
    return pa.Table.from_arrays([names, value], schema=metadata_schemas.SQL_INFO)


def _bits(*places: int) -> int:
    return sum(1 << place for place in places)
