"""Values of documents as JSON, for columns whose values have several types."""

import base64
import json
from datetime import datetime
from decimal import Decimal
from math import isfinite


def text_of(value: object) -> str | None:
    """Return a text as it is, and other values as JSON."""
    return value if value is None or isinstance(value, str) else _written(value)


def _written(value: object) -> str:
    match value:
        case None | bool() | int() | str():
            return json.dumps(value, ensure_ascii=False)
        case float() | Decimal():
            return str(value) if isfinite(value) else json.dumps(str(value))
        case bytes():
            return json.dumps(base64.b64encode(value).decode())
        case datetime():
            return json.dumps(value.isoformat())
        case list():
            return "[" + ", ".join(map(_written, value)) + "]"
        case dict():
            pairs = (
                f"{json.dumps(k, ensure_ascii=False)}: {_written(v)}" for k, v in value.items()
            )
            return "{" + ", ".join(pairs) + "}"
    return json.dumps(str(value), ensure_ascii=False)
