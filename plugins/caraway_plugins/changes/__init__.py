"""Change events as producers send them, and what they mean to the rows of a dataset.

Bytes go in and a table of changes comes out; nothing here applies one. Only the registry of Avro
schemas is asked over the network.
"""
