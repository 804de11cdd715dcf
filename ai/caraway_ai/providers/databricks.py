"""Models that Databricks serves, with a token or the credentials of a service principal."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable

import httpx2

from caraway_ai.protocols import ChatModel
from caraway_ai.providers.failures import FailureReader
from caraway_ai.providers.openai_compatible import OpenAICompatible, WireEndpoint
from caraway_ai.providers.params import ModelParams
from caraway_ai.specs import ModelSpec

_EARLY_S = 60.0
_TIMEOUT_S = 30.0


def build(spec: ModelSpec) -> ChatModel:
    """Build a model of a serving endpoint; its name is the model."""
    params = ModelParams(spec)
    host = params.text("databricks_endpoint", "endpoint")
    if host is None:
        raise params.wrong(
            "it needs the param 'databricks_endpoint', for example 'dbc-1.cloud.databricks.com'"
        )
    address = params.address(host if "://" in host else f"https://{host}").rstrip("/")
    address = address.removesuffix("/serving-endpoints")
    model = params.model()
    key: str | Callable[[], Awaitable[str]]
    if params.text("databricks_client_id") is not None:
        key = ServicePrincipal(spec, params, address).token
        key_param = "databricks_client_secret"
    else:
        key, key_param = params.secret("databricks_token"), "databricks_token"
    endpoint = WireEndpoint(
        base_url=f"{address}/serving-endpoints",
        model=model,
        api_key=key,
        key_param=key_param,
        check_url=f"{address}/api/2.0/serving-endpoints/{model}",
        lists_all=True,
    )
    return OpenAICompatible(spec, params, endpoint)


class ServicePrincipal:
    """Gets tokens for the credentials of a service principal, and keeps them while they last."""

    def __init__(self, spec: ModelSpec, params: ModelParams, address: str) -> None:
        self._url = f"{address}/oidc/v1/token"
        self._auth = (params.secret("databricks_client_id"),
                      params.secret("databricks_client_secret"))  # fmt: skip
        self._failures = FailureReader(spec.name, "databricks_client_secret", params.secrets())
        self._verify = params.tls_context()
        self._lock = asyncio.Lock()
        self._token = ""
        self._until_s = 0.0

    async def token(self) -> str:
        """Return a token that is good for a while.

        Raises:
            ModelError: there is none to be had.
        """
        async with self._lock:
            if time.monotonic() > self._until_s - _EARLY_S:
                await self._fetch()
            return self._token

    async def _fetch(self) -> None:
        form = {"grant_type": "client_credentials", "scope": "all-apis"}
        verify = True if self._verify is None else self._verify
        try:
            async with httpx2.AsyncClient(verify=verify, timeout=_TIMEOUT_S) as client:
                answer = await client.post(self._url, data=form, auth=self._auth)
        except httpx2.HTTPError as exc:
            is_timeout = isinstance(exc, httpx2.TimeoutException)
            raise self._failures.of_transport(exc, is_timeout=is_timeout) from exc
        if answer.status_code != 200:
            status = 401 if answer.status_code == 400 else answer.status_code
            raise self._failures.of_status(status, answer.headers, answer.content)
        try:
            found = answer.json()
            token, lasts_s = found["access_token"], float(found.get("expires_in") or 3600)
            if not isinstance(token, str) or not token or not math.isfinite(lasts_s):
                raise ValueError("no token")
            self._token, self._until_s = token, time.monotonic() + lasts_s
        except (ValueError, KeyError, TypeError) as exc:
            raise self._failures.damaged("its token service sent no token") from exc
