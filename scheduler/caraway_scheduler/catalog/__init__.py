"""The catalog: the datasets and views of the manifest, their states, and what queries see.

Sources are asked in threads; what they answer becomes one snapshot after another, which the
dispatch installs whole. Statements under way keep the snapshot that they began with.
"""
