"""Writes JSON of values that come from outside."""

import json


def dumped(value: object) -> bytes:
    """Return a value as JSON, with integers of any size; other values become texts.

    Raises:
        ValueError: it is nested too deeply, or a text is not Unicode.
    """
    import orjson

    try:
        return orjson.dumps(value, default=str)
    except orjson.JSONEncodeError:
        # It takes integers of 64 bits only. This one is slower, and takes all.
        pass
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return text.encode()
