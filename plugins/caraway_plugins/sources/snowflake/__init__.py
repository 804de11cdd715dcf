"""The source of tables of Snowflake."""
