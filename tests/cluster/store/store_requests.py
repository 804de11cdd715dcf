"""A signed request for a chunk of the chunk store."""

import hashlib

CONTENT = bytes(range(256)) * 40
SIGNED = {"authorization": "Bearer tok-en"}


def name(content: bytes, index: int = 0) -> str:
    return f"{index:08d}-{hashlib.sha256(content).hexdigest()}.arrow"


PATH = f"/chunks/id/jobs/key/{name(CONTENT)}"
