"""Servers that hold secrets, as far as stores ask them: of Vault, of Kubernetes, and of Azure."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

from tests.kit import azure_vault

TOKEN = "hunter2-token"
ROLE = {"role_id": "reader", "secret_id": "hunter2-id"}


@dataclass
class SecretServer:
    """A server. `secrets` are those of each path, and `lease_s` is the life of dynamic ones."""

    secrets: dict[str, dict[str, Any]] = field(default_factory=dict)
    url: str = ""
    lease_s: int = 0
    status: int | None = None
    """The status of all answers, in place of the usual ones."""
    azure_token: str = TOKEN
    reads: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def get(self, path: str, headers: Any) -> tuple[int, Any]:
        """Return the answer to a GET."""
        if self.status is not None:
            return self.status, {"errors": ["hunter2 is broken"]}
        if azure_vault.is_of_azure(path):
            held = self.secrets.get("azure", {})
            return azure_vault.get(path, headers, held, self.azure_token, self.lease_s or 3600)
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        if TOKEN not in (headers.get("x-vault-token"), bearer):
            return 403, {"errors": ["permission denied for hunter2"]}
        if path.startswith("/api/v1/namespaces/"):
            return self._of_kubernetes(path)
        kind, _, place = path.removeprefix("/v1/").partition("/")
        place, is_kv2 = place.removeprefix("data/"), place.startswith("data/")
        found = self.secrets.get(place if is_kv2 else f"{kind}/{place}")
        if found is None:
            return 404, {"errors": []}
        return 200, {"data": {"data": found} if is_kv2 else found, "lease_duration": self.lease_s}

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        """Return the answer to a login."""
        if azure_vault.is_of_azure(path):
            return azure_vault.post(path, body, self.azure_token, self.lease_s or 3600)
        if path == "/v1/auth/approle/login" and body == ROLE:
            return 200, {"auth": {"client_token": TOKEN, "lease_duration": 60}}
        if path == "/v1/auth/kubernetes/login" and body == {"role": "app", "jwt": "pod-jwt"}:
            return 200, {"auth": {"client_token": TOKEN, "lease_duration": 60}}
        return 400, {"errors": ["invalid login of hunter2"]}

    def _of_kubernetes(self, path: str) -> tuple[int, Any]:
        namespace, _, name = path.removeprefix("/api/v1/namespaces/").partition("/secrets/")
        found = self.secrets.get(f"{namespace}/{name}")
        if found is None:
            return 404, {"kind": "Status", "code": 404}
        data = {key: base64.b64encode(value.encode()).decode() for key, value in found.items()}
        return 200, {"kind": "Secret", "data": data}


@contextmanager
def serving() -> Iterator[SecretServer]:
    """Serve on a free port of this machine."""
    secrets = SecretServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply(*secrets.get(self.path, self.headers))
            secrets.reads.release()

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            is_form = "form" in self.headers.get("content-type", "")
            body = dict(parse_qsl(content.decode())) if is_form else json.loads(content)
            self._reply(*secrets.post(self.path, body))

        def _reply(self, status: int, document: Any) -> None:
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    secrets.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield secrets
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
