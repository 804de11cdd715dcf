"""Files that the engine cannot read: this package decodes them to Arrow batches.

`declared` says which formats there are, `decoders` how one file of each is read, `resolving` which
files a dataset has, and `table` how the rows of a request are made of them.
"""
