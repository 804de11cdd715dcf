"""A manifest with all keys that are refused or have no effect."""

from pathlib import Path

EVERYTHING = Path(__file__).with_name("everything.yaml")
