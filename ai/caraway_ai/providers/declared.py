"""Declarations of the providers of models; imports nothing that a model needs."""

from collections.abc import Mapping

from caraway_core.loading.declarations import Declaration

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
_PROVIDERS = "caraway_ai.providers"
_HUB = "hf"
"""The prefix of params of Hugging Face, beside its name."""


def _provider(
    name: str, target: str, own: str, *, is_local: bool = False, prefix: str = ""
) -> Declaration:
    """Declare a provider with its own params and those that all have."""
    prefixes = {name, prefix} - {"", "openai"}
    return Declaration(
        target,
        frozenset(own.split()) | _GENERAL | {f"openai_{field}" for field in DEFAULTS},
        frozenset(f"{each}_{field}" for each in prefixes for field in DEFAULTS),
        is_local,
    )


ANTHROPIC = _provider(
    "anthropic", f"{_PROVIDERS}.anthropic_model:build", "anthropic_api_key anthropic_auth_token"
)
AZURE = _provider(
    "azure",
    f"{_PROVIDERS}.hosted:azure",
    "azure_api_key azure_api_version azure_deployment_name azure_entra_token responses_api",
)
BEDROCK = _provider(
    "bedrock",
    f"{_PROVIDERS}.bedrock_model:build",
    f"{_AWS} bedrock_guardrail_identifier bedrock_guardrail_version",
)
DATABRICKS = _provider(
    "databricks",
    f"{_PROVIDERS}.databricks:build",
    "databricks_endpoint databricks_token databricks_client_id databricks_client_secret",
)
GOOGLE = _provider("google", f"{_PROVIDERS}.hosted:google", "google_api_key responses_api")
GROQ = _provider("groq", f"{_PROVIDERS}.hosted:groq", "groq_api_key responses_api")
OPENAI = _provider(
    "openai",
    f"{_PROVIDERS}.hosted:openai",
    "openai_api_key openai_org_id openai_project_id responses_api",
)
PERPLEXITY = _provider(
    "perplexity",
    f"{_PROVIDERS}.hosted:perplexity",
    "perplexity_auth_token perplexity_api_key responses_api",
)
XAI = _provider("xai", f"{_PROVIDERS}.hosted:xai", "xai_api_key responses_api")
FILE = _provider("file", "caraway_ai.local.model:build", _LOCAL, is_local=True)
HUGGINGFACE = _provider(
    "huggingface",
    "caraway_ai.local.hub:build",
    f"hf_token {_LOCAL}",
    is_local=True,
    prefix=_HUB,
)


def default_of(provider: str, param: str) -> str | None:
    """Return the field of a request that a param gives a default for, if it does."""
    prefixes = ("openai_", f"{provider}_", *((f"{_HUB}_",) if provider == "huggingface" else ()))
    for prefix in prefixes:
        if param.startswith(prefix) and param.removeprefix(prefix) in DEFAULTS:
            return param.removeprefix(prefix)
    return None
