"""A provider of models that costs next to nothing: `python -m bench.model_double`.

It prints its port. A stream has as many tokens as `max_tokens`, and the field `seed` is the pause
between them in milliseconds.
"""

import asyncio
import json
import sys

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_LISTING = b'{"object":"list","data":[]}'


def _frame(delta: str, finish: str = "null") -> bytes:
    data = (
        '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":'
        f'[{{"index":0,"delta":{delta},"finish_reason":{finish}}}]}}'
    )
    return _part(f"data: {data}\n\n".encode())


def _part(body: bytes) -> bytes:
    return f"{len(body):x}\r\n".encode() + body + b"\r\n"


_TOKEN = _frame('{"content":"token "}')
_END = _frame("{}", '"stop"') + _part(b"data: [DONE]\n\n") + b"0\r\n\r\n"


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            lines = head.decode().lower().split("\r\n")
            sizes = [int(line[15:]) for line in lines if line.startswith("content-length:")]
            body = json.loads(await reader.readexactly(sizes[0])) if sizes and sizes[0] else None
            if body is None:
                size = f"content-length: {len(_LISTING)}\r\n\r\n".encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n" + size)
                writer.write(_LISTING)
                continue
            await _stream(writer, body.get("max_tokens") or 1, (body.get("seed") or 0) / 1000)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def _stream(writer: asyncio.StreamWriter, tokens: int, pause_s: float) -> None:
    writer.write(_HEAD + _frame('{"role":"assistant","content":"first "}'))
    clock = asyncio.get_running_loop().time
    started = clock()
    for number in range(1, tokens):
        if pause_s:
            await asyncio.sleep(started + number * pause_s - clock())
        writer.write(_TOKEN)
        await writer.drain()
    writer.write(_END)
    await writer.drain()


async def main() -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        sys.exit(0)
