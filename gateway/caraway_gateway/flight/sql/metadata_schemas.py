"""The columns of metadata, as the protocol fixes them."""

import pyarrow as pa


def _text(name: str, *, nullable: bool = True) -> pa.Field:
    return pa.field(name, pa.utf8(), nullable=nullable)


CATALOGS = pa.schema([_text("catalog_name", nullable=False)])
DB_SCHEMAS = pa.schema([_text("catalog_name"), _text("db_schema_name", nullable=False)])
TABLES = pa.schema(
    [
        _text("catalog_name"),
        _text("db_schema_name"),
        _text("table_name", nullable=False),
        _text("table_type", nullable=False),
    ]
)
TABLES_WITH_SCHEMA = TABLES.append(pa.field("table_schema", pa.binary(), nullable=False))
TABLE_TYPES = pa.schema([_text("table_type", nullable=False)])
PRIMARY_KEYS = pa.schema(
    [
        _text("catalog_name"),
        _text("db_schema_name"),
        _text("table_name", nullable=False),
        _text("column_name", nullable=False),
        pa.field("key_sequence", pa.int32(), nullable=False),
        _text("key_name"),
    ]
)
FOREIGN_KEYS = pa.schema(
    [
        _text("pk_catalog_name"),
        _text("pk_db_schema_name"),
        _text("pk_table_name", nullable=False),
        _text("pk_column_name", nullable=False),
        _text("fk_catalog_name"),
        _text("fk_db_schema_name"),
        _text("fk_table_name", nullable=False),
        _text("fk_column_name", nullable=False),
        pa.field("key_sequence", pa.int32(), nullable=False),
        _text("fk_key_name"),
        _text("pk_key_name"),
        pa.field("update_rule", pa.uint8(), nullable=False),
        pa.field("delete_rule", pa.uint8(), nullable=False),
    ]
)
XDBC_TYPE_INFO = pa.schema(
    [
        _text("type_name", nullable=False),
        pa.field("data_type", pa.int32(), nullable=False),
        pa.field("column_size", pa.int32()),
        _text("literal_prefix"),
        _text("literal_suffix"),
        pa.field("create_params", pa.list_(pa.field("item", pa.utf8(), nullable=False))),
        pa.field("nullable", pa.int32(), nullable=False),
        pa.field("case_sensitive", pa.bool_(), nullable=False),
        pa.field("searchable", pa.int32(), nullable=False),
        pa.field("unsigned_attribute", pa.bool_()),
        pa.field("fixed_prec_scale", pa.bool_(), nullable=False),
        pa.field("auto_increment", pa.bool_()),
        _text("local_type_name"),
        pa.field("minimum_scale", pa.int32()),
        pa.field("maximum_scale", pa.int32()),
        pa.field("sql_data_type", pa.int32(), nullable=False),
        pa.field("datetime_subcode", pa.int32()),
        pa.field("num_prec_radix", pa.int32()),
        pa.field("interval_precision", pa.int32()),
    ]
)
SQL_INFO = pa.schema(
    [
        pa.field("info_name", pa.uint32(), nullable=False),
        pa.field(
            "value",
            pa.dense_union(
                [
                    pa.field("string_value", pa.utf8()),
                    pa.field("bool_value", pa.bool_()),
                    pa.field("bigint_value", pa.int64()),
                    pa.field("int32_bitmask", pa.int32()),
                    pa.field("string_list", pa.list_(pa.utf8())),
                    pa.field("int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.int32()))),
                ]
            ),
            nullable=False,
        ),
    ]
)
