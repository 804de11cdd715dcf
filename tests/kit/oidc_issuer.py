"""An OIDC issuer in the process of the test, reached without a network or on a port of its own."""

import base64
import contextlib
import hashlib
import json
import secrets
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from caraway_management.credentials.oidc import Oidc
from caraway_management.credentials.settings import OidcSettings

ISSUER = "https://issuer.example"
CLIENT_ID, CLIENT_SECRET = "caraway", "s3cret/with+signs"


class Issuer:
    """Signs users in without a password; tests change its answers."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self.url = ISSUER
        self.refuses = False
        """True if the user does not agree to be signed in."""
        self._codes: dict[str, dict[str, str]] = {}
        self.key: RSAKey | ECKey = RSAKey.generate_key(2048, {"kid": "one"})
        self.algorithm = "RS256"
        self.claims: dict[str, Any] = {"sub": "u1"}
        """What an ID token says beside what it must; None leaves out."""
        self.metadata: dict[str, Any] = {}
        self.answers: dict[str, tuple[int, bytes]] = {}
        """What a path answers instead, as a fault."""
        self.calls: list[str] = []

    def oidc(self, *, adds_users: bool = False) -> Oidc:
        """Return the client of this issuer."""
        settings = OidcSettings(ISSUER, CLIENT_ID, CLIENT_SECRET, adds_users)
        return Oidc(settings, httpx2.MockTransport(self._answer))

    def authorize(self, url: str) -> dict[str, str]:
        """Sign the user in, who was sent to this URL; return what the browser brings back."""
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query))
        assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{self.url}/authorize"
        assert query["response_type"] == "code" and query["client_id"] == CLIENT_ID
        assert "openid" in query["scope"].split() and query["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe()
        self._codes[code] = query
        return {"code": code, "state": query["state"], "iss": self.url}

    def respond(self, request: httpx2.Request) -> httpx2.Response:
        """Return the response to a request of the service or of a browser."""
        if request.url.path != "/authorize":
            return self._answer(request)
        brought = self.authorize(str(request.url))
        if self.refuses:
            brought = {"error": "access_denied", "state": brought["state"]}
        back = dict(request.url.params)["redirect_uri"]
        return httpx2.Response(302, headers={"location": f"{back}?{urlencode(brought)}"})

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path
        self.calls.append(path)
        if path in self.answers:
            status, content = self.answers[path]
            return httpx2.Response(status, content=content)
        if path == "/.well-known/openid-configuration":
            return httpx2.Response(200, json=self._discovery())
        if path == "/keys":
            return httpx2.Response(200, json={"keys": [self._public(), {"kty": "odd"}, 1]})
        assert path == "/token"
        return self._token(request)

    def _discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
        } | self.metadata

    def _public(self) -> dict[str, Any]:
        return dict(self.key.as_dict(private=False)) | {"use": "sig", "alg": self.algorithm}

    def _token(self, request: httpx2.Request) -> httpx2.Response:
        form = dict(parse_qsl(request.content.decode()))
        pair = f"{CLIENT_ID}:s3cret%2Fwith%2Bsigns".encode()
        expected = f"Basic {base64.b64encode(pair).decode()}"
        query = self._codes.pop(form["code"], None)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if (
            query is None
            or request.headers.get("authorization") != expected
            or challenge != query["code_challenge"]
            or form["redirect_uri"] != query["redirect_uri"]
        ):
            return httpx2.Response(400, json={"error": "invalid_grant"})
        now = int(self._now().timestamp())
        claims = {
            "iss": self.url,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": query["nonce"],
        } | self.claims
        claims = {name: value for name, value in claims.items() if value is not None}
        header = {"alg": self.algorithm, "kid": self.key.kid}
        token = jwt.encode(header, claims, self.key, [self.algorithm])
        return httpx2.Response(200, content=json.dumps({"id_token": token}).encode())


@contextlib.contextmanager
def listening() -> Iterator[Issuer]:
    """Let an issuer listen on 127.0.0.1 until the block ends."""
    issuer = Issuer(lambda: datetime.now(UTC))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._respond(b"")

        def do_POST(self) -> None:
            self._respond(self.rfile.read(int(self.headers["content-length"])))

        def _respond(self, body: bytes) -> None:
            request = httpx2.Request(
                self.command, f"{issuer.url}{self.path}", headers=dict(self.headers), content=body
            )
            answer = issuer.respond(request)
            self.send_response(answer.status_code)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if "content-length" not in answer.headers:
                self.send_header("content-length", "0")
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, format: str, *arguments: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        issuer.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield issuer
        finally:
            server.shutdown()
            thread.join()
