"""Rows of APIs over HTTP: requests, pages, values of JSON, and the table that reads them."""
