"""The version of Caraway: `pyproject.toml` reads it, and `tools/versions.py` copies it."""

__version__ = "0.1.0"
