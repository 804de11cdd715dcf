"""Headers of requests as a manifest writes them."""

import re

from caraway_core.errors import ToolError


def parsed_headers(name: str, text: str) -> dict[str, str]:
    """Read headers that are written as `Name: value`, separated by `;` or line ends.

    Raises:
        ToolError: a part is no header; the message shows no value.
    """
    headers = {}
    for part in filter(None, map(str.strip, re.split(r"[;\n]", text))):
        key, colon, value = part.partition(":")
        if not colon or not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", key.strip()):
            raise ToolError(f"tool '{name}': headers are written as `Name: value; Other: value`")
        headers[key.strip().lower()] = value.strip()
    return headers
