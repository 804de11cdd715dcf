"""The source of tables that any driver of ODBC reads."""
