"""The source of tables that any driver of ADBC reads."""
