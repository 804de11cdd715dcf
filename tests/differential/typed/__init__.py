"""Random statements of many kinds over three small tables, with DuckDB as the judge.

They are drawn from a seed without hypothesis: a run of thousands takes minutes, and a statement
that differs is read, not shrunk. `python -m tests.differential.typed` draws as many as asked.
"""
