"""Decodes change events of producers into changes to the rows of a dataset.

The input is bytes, the output a table of changes; applying changes does not belong here. The only
network access is to the registry of Avro schemas.
"""
