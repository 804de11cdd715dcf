"""Keys that embedding models and rerankers share."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated

from caraway_core.manifest.sections import After, Items, Section, Text, Texts


@dataclass(frozen=True, slots=True)
class ModelFileSection(Section):
    """A file of a local model, of which only the path is used."""

    path: Text
    name: Text | None = None
    type: Text | None = None
    params: Texts = field(default_factory=dict)


def _paths(files: Iterable[ModelFileSection]) -> tuple[str, ...]:
    return tuple(file.path for file in files)


def _check_name(text: str) -> str:
    if not re.fullmatch(r"[\w][\w.:/@ -]{0,127}", text):
        raise ValueError(
            f"'{text}' is not a model name; use up to 128 letters, digits and '_.:/@-'"
        )
    return text


ModelName = Annotated[Text, After(_check_name)]
ModelFiles = Annotated[tuple[str, ...], After(_paths, Items[ModelFileSection])]
