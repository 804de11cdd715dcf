"""The source of tables of ClickHouse."""
