"""Sign-in by an OIDC issuer: authorization code with PKCE, state and nonce."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode, urlsplit

import httpx2
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import JWKRegistry, KeySet

from caraway_core.errors import CarawayError
from caraway_core.json_texts import strict_json
from caraway_management.credentials.settings import OidcSettings
from caraway_management.domain import names
from caraway_management.domain.refusals import RefusedError

_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
_SIGNERS = ("RSA", "EC")
_MOST_BYTES = 1024 * 1024
_MOST_KEYS = 50
_LONGEST_CLAIM = 255
_TIMEOUT_S = 10.0
_SKEW_S = 60
_FRESH = timedelta(minutes=10)
_SCOPE = "openid email profile"


@dataclass(frozen=True, slots=True)
class Begun:
    """A sign-in that begins: where the browser goes, and what must come back."""

    url: str
    state: str
    nonce: str
    verifier: str


@dataclass(frozen=True, slots=True)
class VerifiedIdentity:
    """A user, as the issuer vouches for."""

    issuer: str
    subject: str
    email: str | None
    """Only if the issuer has verified it."""
    name: str


class Oidc:
    """A client of one issuer."""

    def __init__(
        self, settings: OidcSettings, transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        """Check the settings.

        Raises:
            CarawayError: the issuer is reached without TLS.
        """
        _check_secure(settings.issuer, "the OIDC issuer")
        self.settings = settings
        self._transport = transport
        self._metadata: tuple[datetime, Mapping[str, object]] | None = None

    async def begin_sign_in(self, redirect_uri: str, now: datetime) -> Begun:
        """Begin a sign-in.

        Raises:
            RefusedError: 502, the issuer does not respond as it should.
        """
        endpoint = _text(await self._discovered(now), "authorization_endpoint")
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        digest = hashlib.sha256(verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": redirect_uri,
            "scope": _SCOPE,
            "state": state,
            "nonce": nonce,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        mark = "&" if urlsplit(endpoint).query else "?"
        return Begun(f"{endpoint}{mark}{urlencode(query)}", state, nonce, verifier)

    async def finish(
        self, code: str, nonce: str, verifier: str, redirect_uri: str, now: datetime
    ) -> VerifiedIdentity:
        """Return the identity for a code that came back.

        Raises:
            RefusedError: 502, the issuer does not respond as it should; or 403, it refuses.
        """
        metadata = await self._discovered(now)
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "client_id": self.settings.client_id,
            "code_verifier": verifier,
        }
        auth: httpx2.BasicAuth | None = None
        secret = self.settings.client_secret
        known = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if secret is not None and isinstance(known, list) and "client_secret_basic" in known:
            auth = httpx2.BasicAuth(_quoted(self.settings.client_id), _quoted(secret))
        elif secret is not None:
            form["client_secret"] = secret
        answer = await self._call("POST", _text(metadata, "token_endpoint"), form, auth)
        token = _text(answer, "id_token")
        keys = _read_keys(await self._call("GET", _text(metadata, "jwks_uri")))
        return self._verified(token, keys, nonce, now)

    def _verified(self, token: str, keys: KeySet, nonce: str, now: datetime) -> VerifiedIdentity:
        registry = jwt.JWTClaimsRegistry(
            int(now.timestamp()),
            _SKEW_S,
            iss={"essential": True, "value": self.settings.issuer},
            aud={"essential": True, "value": self.settings.client_id},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True},
        )
        try:
            claims = jwt.decode(token, keys, _ALGORITHMS).claims
            registry.validate(claims)
        except (JoseError, ValueError, RecursionError) as exc:
            raise _refused("its ID token is not valid") from exc
        audience = claims["aud"]
        has_others = isinstance(audience, list) and len(audience) > 1
        if has_others and claims.get("azp") != self.settings.client_id:
            raise _refused("its ID token is for another client")
        if not hmac.compare_digest(str(claims["nonce"]).encode(), nonce.encode()):
            raise _refused("its ID token is for another sign-in")
        subject = claims["sub"]
        if not 0 < len(subject) <= _LONGEST_CLAIM:
            raise _refused("its ID token names no usable subject")
        email = claims.get("email")
        is_verified = claims.get("email_verified") is True and isinstance(email, str)
        name = claims.get("preferred_username") or (email if is_verified else None) or "user"
        return VerifiedIdentity(
            self.settings.issuer,
            subject,
            names.key(str(email)[:_LONGEST_CLAIM]) if is_verified else None,
            str(name),
        )

    async def _discovered(self, now: datetime) -> Mapping[str, object]:
        if self._metadata is not None and now - self._metadata[0] < _FRESH:
            return self._metadata[1]
        base = self.settings.issuer.rstrip("/")
        metadata = await self._call("GET", f"{base}/.well-known/openid-configuration")
        if metadata.get("issuer") != self.settings.issuer:
            raise _failed("its discovery document names another issuer")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            try:
                _check_secure(_text(metadata, name), name)
            except CarawayError as exc:
                raise _failed(exc.message) from exc
        self._metadata = now, metadata
        return metadata

    async def _call(
        self,
        method: str,
        url: str,
        form: Mapping[str, str] | None = None,
        auth: httpx2.BasicAuth | None = None,
    ) -> Mapping[str, object]:
        """Return the JSON object of a response, which has a bounded size; redirects are errors."""
        body = bytearray()
        try:
            async with (
                httpx2.AsyncClient(transport=self._transport, timeout=_TIMEOUT_S) as client,
                client.stream(
                    method, url, data=form, auth=auth, headers={"accept": "application/json"}
                ) as response,
            ):
                async for part in response.aiter_bytes():
                    body += part
                    if len(body) > _MOST_BYTES:
                        raise _failed("its answer is too large")
        except (httpx2.HTTPError, httpx2.InvalidURL) as exc:
            raise _failed("it does not respond") from exc
        if form is not None and response.status_code in (400, 401, 403):
            raise _refused("it refuses the code")
        if response.status_code != 200:
            raise _failed(f"it answers {response.status_code}")
        try:
            answer = strict_json.parse(bytes(body))
        except ValueError as exc:
            raise _failed("its answer is not JSON") from exc
        if not isinstance(answer, dict):
            raise _failed("its answer is not an object")
        return answer


def _read_keys(answer: Mapping[str, object]) -> KeySet:
    """Return the keys that can have signed; others of the issuer are left out."""
    keys = []
    found = answer.get("keys")
    for each in found[:_MOST_KEYS] if isinstance(found, list) else ():
        if not isinstance(each, dict) or each.get("kty") not in _SIGNERS:
            continue
        try:
            keys.append(JWKRegistry.import_key(each))
        except (JoseError, ValueError, TypeError):
            continue
    if not keys:
        raise _failed("it publishes no usable keys")
    return KeySet(keys)


def _check_secure(url: str, what: str) -> None:
    parts = urlsplit(url)
    is_local = parts.hostname in ("127.0.0.1", "::1", "localhost")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_local):
        raise CarawayError(f"{what} must be an https URL")


def _text(answer: Mapping[str, object], name: str) -> str:
    value = answer.get(name)
    if not isinstance(value, str):
        raise _failed(f"its answer has no {name}")
    return value


def _quoted(text: str) -> str:
    """Return a part of Basic credentials: RFC 6749 wants it form-encoded first."""
    return urlencode({"": text})[1:]


def _failed(reason: str) -> RefusedError:
    return RefusedError(502, f"the identity provider cannot be used: {reason}")


def _refused(reason: str) -> RefusedError:
    return RefusedError(403, f"the identity provider did not sign you in: {reason}", "forbidden")
