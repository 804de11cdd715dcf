"""The source of Iceberg tables, and of the catalogs that list them."""
