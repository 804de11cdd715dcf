"""Providers that speak the OpenAI wire: each function is an entry point of its group."""

from urllib.parse import urlsplit

from caraway_ai.protocols import ChatModel
from caraway_ai.providers.openai_compatible import OpenAICompatible, WireEndpoint
from caraway_ai.providers.openai_responses import ResponsesEndpoint
from caraway_ai.providers.params import ModelParams
from caraway_ai.specs import ModelSpec

_OPENAI = "https://api.openai.com/v1"
_AZURE_VERSION = "2024-10-21"
_GOOGLE = "https://generativelanguage.googleapis.com/v1beta/openai"


def openai(spec: ModelSpec) -> ChatModel:
    """Build a model of OpenAI, or of any server with its wire at the param `endpoint`."""
    params = ModelParams(spec)
    address = params.text("endpoint")
    base_url = params.address(address or _OPENAI)
    is_own = urlsplit(base_url).hostname == "api.openai.com"
    key = params.secret("openai_api_key") if is_own else params.text("openai_api_key")
    model = spec.model or "gpt-4o-mini"
    endpoint = WireEndpoint(
        base_url=base_url,
        model=model,
        api_key=key,
        key_param="openai_api_key",
        lists_all=is_own,
        responses=ResponsesEndpoint(model) if has_responses(params, is_own) else None,
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


def azure(spec: ModelSpec) -> ChatModel:
    """Build a deployment of Azure OpenAI; its name is the model, or a param."""
    params = ModelParams(spec)
    address = params.text("endpoint")
    if address is None:
        raise params.wrong(
            "it needs the param 'endpoint', for example 'https://NAME.openai.azure.com'"
        )
    address = params.address(address).rstrip("/")
    deployment = params.text("azure_deployment_name") or params.model()
    token = params.text("azure_entra_token")
    headers = {} if token else {"api-key": params.secret("azure_api_key")}
    version = params.text("azure_api_version") or _AZURE_VERSION
    root = address.removesuffix("/v1").removesuffix("/openai")
    is_versionless = address.endswith("/openai/v1")
    # Its versions of the past have no responses API, or a preview of it.
    responses = ResponsesEndpoint(deployment, f"{root}/openai/v1/responses", has_query=False)
    endpoint = WireEndpoint(
        base_url=address if is_versionless else f"{root}/openai/deployments/{deployment}",
        model=deployment,
        api_key=token,
        key_param="azure_entra_token" if token else "azure_api_key",
        headers=headers,
        query={} if is_versionless else {"api-version": version},
        check_url=f"{root}/openai/{'v1/' if is_versionless else ''}models",
        responses=responses if has_responses(params, default=True) else None,
    )
    return OpenAICompatible(spec, params, endpoint)


def _keyed(spec: ModelSpec, base_url: str, *key_params: str, has_listing: bool = True) -> ChatModel:
    params = ModelParams(spec)
    address = params.text("endpoint")
    model = params.model()
    endpoint = WireEndpoint(
        base_url=params.address(address or base_url),
        model=model,
        api_key=params.secret(*key_params),
        key_param=key_params[0],
        has_listing=has_listing,
        lists_all=address is None,
        responses=ResponsesEndpoint(model) if has_responses(params, default=False) else None,
    )
    return OpenAICompatible(spec, params, endpoint)


def has_responses(params: ModelParams, default: bool) -> bool:
    """Return whether the provider is asked by its responses API.

    Raises:
        ModelError: the param is neither enabled nor disabled.
    """
    wanted = params.text("responses_api") or ("enabled" if default else "disabled")
    if wanted not in ("enabled", "disabled"):
        raise params.wrong("the param 'responses_api' must be enabled or disabled")
    return wanted == "enabled"
