"""Functions of SQL that score rows for a search; each session of the engine has them."""
