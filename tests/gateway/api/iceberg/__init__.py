"""Tests of the table catalog."""
