"""The two halves of the `from` of an embedding model."""

import re
from dataclasses import dataclass

from caraway_core.manifest.values.search_columns import BUILTIN, BUILTIN_MODELS


@dataclass(frozen=True, slots=True)
class EmbedderOrigin:
    """The provider of a model, and what the provider calls it; the latter may be empty."""

    provider: str
    model: str


def split_origin(text: str) -> EmbedderOrigin:
    """Split the `from` of an embedding model at its first `:`.

    Raises:
        ValueError: it names no provider, or a built-in model that does not exist.
    """
    match = re.match(r"\s*([A-Za-z][\w-]*)\s*(?::|$)", text)
    if match is None:
        raise ValueError(
            f"'{text}' names no provider; write '<provider>:<model>', for example 'builtin:minilm'"
        )
    origin = EmbedderOrigin(match[1].lower(), text[match.end() :].strip())
    if origin.provider == BUILTIN and origin.model not in BUILTIN_MODELS:
        known = ", ".join(f"{BUILTIN}:{model}" for model in BUILTIN_MODELS)
        raise ValueError(f"no built-in embedding model '{text}'; known: {known}")
    return origin
