"""Finds the address and the credentials of the API server: in the pod or in a kubeconfig file."""

import base64
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from caraway_core.errors import CarawayError

_MOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ApiAccessError(CarawayError):
    """No configuration for the API server was found, or it cannot be used."""


@dataclass(frozen=True, slots=True)
class ApiAccess:
    """The address of the API server and the credentials. Secrets are left out of its repr."""

    server: str
    namespace: str = "default"
    ca_file: Path | None = None
    ca_text: str | None = None
    is_unverified: bool = False
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    certificate: tuple[str, str] | None = field(default=None, repr=False)
    """The client's certificate and its key, as PEM."""

    def read_token(self) -> str | None:
        """Return the current token. The kubelet rotates the one in a file."""
        if self.token_file is not None:
            try:
                return self.token_file.read_text().strip()
            except OSError as exc:
                raise ApiAccessError(f"cannot read the token: {exc}") from exc
        return self.token

    def verification(self) -> ssl.SSLContext | bool:
        """Return the TLS settings: trusted CAs and the client's certificate."""
        if not self.server.startswith("https:"):
            return True
        context = ssl.create_default_context(
            cafile=str(self.ca_file) if self.ca_file else None, cadata=self.ca_text
        )
        if self.is_unverified:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.certificate:
            # The ssl module reads certificates only from files.
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
                file.write("\n".join(self.certificate))
                file.flush()
                context.load_cert_chain(file.name)
        return context


def find_access(environ: Mapping[str, str], mount: Path = _MOUNT) -> ApiAccess:
    """Return the access from KUBECONFIG, from the pod, or from `~/.kube/config`, in this order.

    Raises:
        ApiAccessError: none of these exists.
    """
    if named := environ.get("KUBECONFIG"):
        return from_file(Path(named.split(":")[0]).expanduser())
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if host and (mount / "token").exists():
        host = f"[{host}]" if ":" in host else host
        return ApiAccess(
            server=f"https://{host}:{port or 443}",
            namespace=(mount / "namespace").read_text().strip(),
            ca_file=mount / "ca.crt",
            token_file=mount / "token",
        )
    usual = Path(environ.get("HOME", "/")) / ".kube" / "config"
    if usual.exists():
        return from_file(usual)
    raise ApiAccessError(
        "this is not a pod with a service account, and there is no kubeconfig; set KUBECONFIG"
    )


def from_file(path: Path) -> ApiAccess:
    """Read the current context of a kubeconfig file.

    Raises:
        ApiAccessError: the file cannot be read, or needs a feature that is not supported.
    """
    try:
        config = yaml.safe_load(path.read_text())
        chosen = _named(config, "contexts", config["current-context"])["context"]
        cluster = _named(config, "clusters", chosen["cluster"])["cluster"]
        user = _named(config, "users", chosen["user"]).get("user") or {}
        return _access(chosen, cluster, user, path.parent)
    except (OSError, yaml.YAMLError, KeyError, TypeError, StopIteration, ValueError) as exc:
        # Only the type of the error: its text could contain secrets from the file.
        raise ApiAccessError(f"cannot use the kubeconfig {path}: {type(exc).__name__}") from exc


def _access(
    context: Mapping[str, Any], cluster: Mapping[str, Any], user: Mapping[str, Any], folder: Path
) -> ApiAccess:
    if "exec" in user or "auth-provider" in user:
        raise ApiAccessError(
            "the kubeconfig gets its token from a plugin, which is not supported; "
            "use one with a token or a certificate"
        )
    certificate = _text(user, "client-certificate", folder), _text(user, "client-key", folder)
    file = user.get("tokenFile")
    return ApiAccess(
        server=cluster["server"].rstrip("/"),
        namespace=context.get("namespace") or "default",
        ca_text=_text(cluster, "certificate-authority", folder),
        is_unverified=bool(cluster.get("insecure-skip-tls-verify")),
        token=user.get("token"),
        token_file=folder / file if file else None,
        certificate=(certificate[0], certificate[1]) if certificate[0] and certificate[1] else None,
    )


# Any: the file is not checked.
def _named(config: Any, list_: str, name: str) -> Any:
    return next(entry for entry in config[list_] if entry["name"] == name)


def _text(section: Mapping[str, Any], key: str, folder: Path) -> str | None:
    if data := section.get(f"{key}-data"):
        return base64.b64decode(data).decode()
    return (folder / section[key]).read_text() if section.get(key) else None
