"""Params of each provider of models: one table for providers and for the checks of a manifest."""

from collections.abc import Mapping

from caraway_core.loading import registry

DEFAULTS: Mapping[str, str] = {
    "temperature": "number",
    "top_p": "number",
    "top_k": "integer",
    "max_tokens": "integer",
    "max_completion_tokens": "integer",
    "frequency_penalty": "number",
    "presence_penalty": "number",
    "seed": "integer",
    "stop": "text or JSON",
    "n": "integer",
    "logprobs": "boolean",
    "top_logprobs": "integer",
    "logit_bias": "JSON",
    "parallel_tool_calls": "boolean",
    "tool_choice": "text or JSON",
    "response_format": "JSON",
    "reasoning_effort": "text",
    "verbosity": "text",
    "service_tier": "text",
    "prompt_cache_key": "text",
    "metadata": "JSON",
    "user": "text",
}
"""Fields of a request that a manifest may fill, as `openai_<field>` or `<provider>_<field>`; each
with the kind of its value."""

_GENERAL = frozenset(
    "endpoint system_prompt tools tool_recursion_limit request_timeout silence_timeout "
    "connect_timeout max_retries max_concurrent_requests max_queued_requests "
    "requests_per_minute tokens_per_minute tokens_per_day health_check_interval "
    "requests_per_minute_per_key tokens_per_minute_per_key tokens_per_day_per_key "
    "tls_root_certificate".split()
)
_AWS = "aws_region aws_access_key_id aws_secret_access_key aws_session_token aws_profile"
_LOCAL = "context_length threads gpu_layers parallel"
OF_PROVIDER: Mapping[str, frozenset[str]] = {
    "openai": frozenset({"openai_api_key", "openai_org_id", "openai_project_id", "responses_api"}),
    "azure": frozenset(
        "azure_api_key azure_api_version azure_deployment_name azure_entra_token "
        "responses_api".split()
    ),
    "anthropic": frozenset({"anthropic_api_key", "anthropic_auth_token"}),
    "bedrock": frozenset(f"{_AWS} bedrock_guardrail_identifier bedrock_guardrail_version".split()),
    "google": frozenset({"google_api_key", "responses_api"}),
    "xai": frozenset({"xai_api_key", "responses_api"}),
    "groq": frozenset({"groq_api_key", "responses_api"}),
    "perplexity": frozenset({"perplexity_auth_token", "perplexity_api_key", "responses_api"}),
    "databricks": frozenset(
        "databricks_endpoint databricks_token databricks_client_id databricks_client_secret".split()
    ),
    "huggingface": frozenset(f"hf_token {_LOCAL}".split()),
    "file": frozenset(_LOCAL.split()),
}


def default_of(provider: str, param: str) -> str | None:
    """Return the field of a request that a param gives a default for, if it does."""
    prefixes = ("openai_", f"{provider}_", *(("hf_",) if provider == "huggingface" else ()))
    for prefix in prefixes:
        if param.startswith(prefix) and param.removeprefix(prefix) in DEFAULTS:
            return param.removeprefix(prefix)
    return None


def fault(provider: str, param: str) -> str:
    """Return the problem of the name of a param; empty if the provider takes it.

    Providers of other packages know theirs themselves.
    """
    own = OF_PROVIDER.get(provider)
    if own is None or param in own or param in _GENERAL or default_of(provider, param):
        return ""
    known = own | _GENERAL | {f"openai_{field}" for field in DEFAULTS}
    return registry.unknown(f"{provider} param", param, known)
