"""Shapes of answers that several families of routes describe."""

from typing import Any

TEXT: dict[str, Any] = {"text/plain": {"schema": {"type": "string"}}}
ERROR: dict[str, Any] = {
    "application/json": {
        "schema": {
            "type": "object",
            "required": ["error"],
            "properties": {"error": {"type": "string"}},
        }
    }
}
