"""The formats of files that are decoded here; imports nothing that decoding needs."""

from collections.abc import Mapping

SUFFIXES: Mapping[str, frozenset[str]] = {
    "orc": frozenset({".orc"}),
    "txt": frozenset({".txt"}),
    "md": frozenset({".md", ".markdown"}),
    "pdf": frozenset({".pdf"}),
    "docx": frozenset({".docx"}),
}
"""The suffixes of the names of each format."""
DOCUMENTS = frozenset({"txt", "md", "pdf", "docx"})
"""Formats whose files are one row each."""


def format_of(name: str) -> str | None:
    """Return the format of a file by the suffix of its name, or None."""
    suffix = name[name.rfind(".") :].lower() if "." in name.rpartition("/")[2] else ""
    return next((format_ for format_, known in SUFFIXES.items() if suffix in known), None)
