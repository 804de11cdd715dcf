"""Datasets that are the answer of a GraphQL query: the text of the query, and its pages."""
