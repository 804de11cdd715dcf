"""Reads JSON that users send: one value for each key, finite numbers, text that is Unicode.

Python's own reader takes `NaN`, turns `1e400` into infinity and keeps the last of two equal keys.
Each of these hides a mistake of the sender, and reaches the data.
"""

import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

_MOST_DIGITS = 1_000


def parse(text: str | bytes) -> Any:
    """Return the value of a JSON text; a byte order mark is skipped.

    Raises:
        ValueError: it is not such JSON. The message says why, and where if that is known.
    """
    return _parsed(text, _decoder)


def parse_exactly(text: str | bytes) -> object:
    """Do as `parse`, and return numbers with a point or exponent as decimals.

    Raises: as `parse`.
    """
    return _parsed(text, _exact_decoder)


def _parsed(text: str | bytes, decoder: json.JSONDecoder) -> object:
    try:
        if isinstance(text, bytes):
            text = text.decode()
        value = decoder.decode(text.removeprefix("\ufeff"))
        if "\\ud" in text or "\\uD" in text:
            # Half of a surrogate pair is JSON, and no text that could be kept or sent on.
            json.dumps(value, ensure_ascii=False, default=str).encode()
    except json.JSONDecodeError as exc:
        at = f"line {exc.lineno}, column {exc.colno}"
        raise ValueError(f"{at}: {exc.msg[:1].lower()}{exc.msg[1:]}") from exc
    except UnicodeDecodeError as exc:
        raise ValueError(f"byte {exc.start} is not UTF-8") from exc
    except UnicodeEncodeError as exc:
        raise ValueError("an escape stands for half of a Unicode character") from exc
    except RecursionError as exc:
        raise ValueError("it is nested too deeply") from exc
    return value


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = set[str]()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value] # notes each key
        raise ValueError(f'the key "{twice[:100]}" is there twice')
    return found


def _integer(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number has more than {_MOST_DIGITS} digits")
    return int(digits)


def _float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"the number {digits[:40]} is out of range")
    return number


def _decimal(digits: str) -> Decimal:
    _float(digits)
    return Decimal(digits)


def _constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON value")


def _reader(parse_float: Callable[[str], Any]) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=_object,
        parse_float=parse_float,
        parse_int=_integer,
        parse_constant=_constant,
    )


_decoder = _reader(_float)
_exact_decoder = _reader(_decimal)
