"""Providers that speak the OpenAI wire: each function is an entry point of its group."""

from urllib.parse import urlsplit

from caraway_ai.protocols import ChatModel
from caraway_ai.providers.openai_compatible import OpenAICompatible, WireEndpoint
from caraway_ai.providers.params import ModelParams
from caraway_ai.specs import ModelSpec

_OPENAI = "https://api.openai.com/v1"
_GOOGLE = "https://generativelanguage.googleapis.com/v1beta/openai"


def openai(spec: ModelSpec) -> ChatModel:
    """Build a model of OpenAI, or of any server with its wire at the param `endpoint`."""
    params = ModelParams(spec)
    address = params.text("endpoint")
    is_own = address is None or urlsplit(address).hostname == "api.openai.com"
    key = params.secret("openai_api_key") if is_own else params.text("openai_api_key")
    endpoint = WireEndpoint(
        base_url=_checked(params, address or _OPENAI),
        model=spec.model or "gpt-4o-mini",
        api_key=key,
        key_param="openai_api_key",
        lists_all=is_own,
    )
    return OpenAICompatible(spec, params, endpoint)


def xai(spec: ModelSpec) -> ChatModel:
    """Build a model of xAI."""
    return _keyed(spec, "https://api.x.ai/v1", "xai_api_key")


def groq(spec: ModelSpec) -> ChatModel:
    """Build a model of Groq."""
    return _keyed(spec, "https://api.groq.com/openai/v1", "groq_api_key")


def google(spec: ModelSpec) -> ChatModel:
    """Build a Gemini model, over the OpenAI wire of Google."""
    return _keyed(spec, _GOOGLE, "google_api_key")


def perplexity(spec: ModelSpec) -> ChatModel:
    """Build a model of Perplexity, which has no listing of models."""
    names = ("perplexity_auth_token", "perplexity_api_key")
    return _keyed(spec, "https://api.perplexity.ai", *names, has_listing=False)


def _keyed(spec: ModelSpec, base_url: str, *key_params: str, has_listing: bool = True) -> ChatModel:
    params = ModelParams(spec)
    address = params.text("endpoint")
    endpoint = WireEndpoint(
        base_url=_checked(params, address or base_url),
        model=named(spec, params),
        api_key=params.secret(*key_params),
        key_param=key_params[0],
        has_listing=has_listing,
        lists_all=address is None,
    )
    return OpenAICompatible(spec, params, endpoint)


def named(spec: ModelSpec, params: ModelParams) -> str:
    """Return the model that `from` names.

    Raises:
        ModelError: it names none.
    """
    if not spec.model:
        raise params.wrong(
            f"'from: {spec.provider}' names no model; write '{spec.provider}:<model>'"
        )
    return spec.model


def _checked(params: ModelParams, address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise params.wrong(
            "the param 'endpoint' is no address; write for example 'http://localhost:8000/v1'"
        )
    return address
