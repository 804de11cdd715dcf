"""The routes of the table catalog: those of the specification, and the Iceberg REST protocol."""
