"""Searches documents by vectors with LanceDB behind uvicorn: `python -m ... DOCUMENTS VECTORS`.

VECTORS has the vectors of the queries by their texts. So both sides search, and neither embeds.
"""

import json
import socket
import sys
import tempfile
from typing import Any

import lancedb
import pyarrow as pa
import pyarrow.parquet as pq
import uvicorn


class Searches:
    """An ASGI application: POST {"text", "limit"} gives the ids of the nearest documents."""

    def __init__(self, documents: str, vectors: dict[str, list[float]], folder: str) -> None:
        rows = pq.read_table(documents)
        types = [pa.list_(pa.float32(), 384) if f.name == "body_embedding" else f.type
                 for f in rows.schema]  # fmt: skip
        schema = pa.schema(list(zip(rows.column_names, types, strict=True)))
        self._table = lancedb.connect(folder).create_table("documents", rows.cast(schema))
        self._table.create_index(
            metric="cosine", vector_column_name="body_embedding", index_type="IVF_HNSW_SQ",
            num_partitions=1, m=32, ef_construction=200,
        )  # fmt: skip
        self._vectors = vectors

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        asked = json.loads((await receive())["body"])
        found = (
            self._table.search(self._vectors[asked["text"]], vector_column_name="body_embedding")
            .distance_type("cosine").limit(asked["limit"]).ef(800)
            .select(["id", "part", "body", "_distance"]).to_list()
        )  # fmt: skip
        body = json.dumps({"results": found}).encode()
        head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": body})


def main(documents: str, vectors: str) -> None:
    """Serve until the process is ended; print the port once it listens."""
    with open(vectors) as file:
        known = json.load(file)
    with tempfile.TemporaryDirectory() as folder:
        application = Searches(documents, known, folder)
        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        server = uvicorn.Server(uvicorn.Config(application, log_level="error", access_log=False))
        server.run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:])
