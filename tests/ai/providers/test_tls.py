"""Servers with certificates of an authority that is not known, and one that is."""

import asyncio
import ssl
from pathlib import Path

import pytest

from caraway_core.errors import ModelAwayError, ModelError
from tests.kit.certificates import make_certificate
from tests.kit.models import USER, built

ANSWER = b'{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]}'
REPLY = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n"
    + f"content-length: {len(ANSWER)}\r\n\r\n".encode()
    + ANSWER
)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_an_unknown_authority_is_named_and_a_given_one_is_trusted(
    tmp_path: Path, provider: str
) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make_certificate(certificate, key, is_authority=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(REPLY)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        model = built(provider, url)
        with pytest.raises(ModelAwayError, match=r"certificate.*cannot be verified.*authority"):
            await model.chat({"messages": USER})
        await model.aclose()
        model = built(provider, url, tls_root_certificate=str(certificate))
        if provider == "openai":
            assert (await model.chat({"messages": USER}))["choices"]
        else:
            # The connection is good; only the answer is none of its wire.
            with pytest.raises(ModelError, match="damaged"):
                await model.chat({"messages": USER})
        await model.aclose()
