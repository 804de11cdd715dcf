"""Indexes of OpenSearch and Elasticsearch: documents as rows, with the types of their mapping."""
