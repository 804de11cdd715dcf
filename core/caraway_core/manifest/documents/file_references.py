"""The files that manifests and component files refer to, as they are written."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from caraway_core.manifest.documents.document import Document, Location
from caraway_core.manifest.texts.places import SINGULAR

_TEXTS = ("sql_ref", "body_ref")


@dataclass(frozen=True, slots=True)
class FileReference:
    """A path that is written at a location, and the section if it is that of a component."""

    kind: Literal["dependency", "component", "text"]
    location: Location
    path: Any
    section: str = ""


def of_manifest(document: Document) -> Iterator[FileReference]:
    """Yield what a manifest refers to."""
    for index, text in enumerate(_items(document, "dependencies")):
        yield FileReference("dependency", ("dependencies", index), text)
    for section in SINGULAR:
        for index, item in enumerate(_items(document, section)):
            if not isinstance(item, dict):
                continue
            if item.get("ref") is not None:
                where = (section, index, "ref")
                yield FileReference("component", where, item["ref"], section)
            yield from _texts(item, (section, index))


def of_component(document: Document) -> Iterator[FileReference]:
    """Yield what the file of one component refers to."""
    yield from _texts(document.value, ())


def _texts(item: dict[str, object], location: Location) -> Iterator[FileReference]:
    for key in _TEXTS:
        if item.get(key) is not None:
            yield FileReference("text", (*location, key), item[key])


def _items(document: Document, section: str) -> list[object]:
    items = document.value.get(section)
    return items if isinstance(items, list) else []
