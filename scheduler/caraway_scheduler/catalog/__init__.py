"""The catalog: the datasets and views of the manifest, their states, and their tables.

Sources are called in threads. Their tables form a new snapshot after each change, which dispatch
installs as a whole. Running statements keep the snapshot that they started with.
"""
