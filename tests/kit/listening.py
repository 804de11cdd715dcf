"""Serves an application on a real port, for tests with real clients."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn


@asynccontextmanager
async def listening(application: Any) -> AsyncIterator[str]:
    """Serve on a free local port until the block ends; yield the address."""
    # asyncio sends without delay only on sockets that name the protocol.
    with socket.socket(proto=socket.IPPROTO_TCP) as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        config = uvicorn.Config(application, log_config=None, lifespan="off")
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve(sockets=[held]))
        try:
            yield f"http://127.0.0.1:{held.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving
