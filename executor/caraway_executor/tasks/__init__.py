"""The work that schedulers send to an executor: its catalogs, its limits, and where it runs."""
