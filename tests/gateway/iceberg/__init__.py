"""Tests of tables as Iceberg clients load them."""
