"""Tests of the Iceberg table format."""
