"""The version of Caraway, and the versions of its protocols."""
