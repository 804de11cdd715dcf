import pytest

from caraway_ai.providers import declared
from caraway_core.loading import registry


@pytest.mark.parametrize(
    ("provider", "param", "field"),
    [
        ("openai", "openai_temperature", "temperature"),
        ("anthropic", "openai_top_p", "top_p"),
        ("anthropic", "anthropic_max_tokens", "max_tokens"),
        ("huggingface", "hf_seed", "seed"),
        ("openai", "hf_seed", None),
        ("openai", "temperature", None),
        ("xai", "openai_speed", None),
    ],
)
def test_defaults_of_fields_have_a_prefix(provider: str, param: str, field: str | None) -> None:
    assert declared.default_of(provider, param) == field


@pytest.mark.parametrize(
    ("provider", "param"),
    [
        ("openai", "openai_api_key"),
        ("openai", "system_prompt"),
        ("bedrock", "aws_region"),
        ("file", "context_length"),
        ("xai", "xai_temperature"),
        ("of_another_package", "anything"),
    ],
)
def test_params_that_a_provider_takes(provider: str, param: str) -> None:
    assert registry.MODEL_PROVIDERS.declared(provider).has_param(param)


def test_an_unknown_param_gets_the_nearest_name() -> None:
    provider = registry.MODEL_PROVIDERS.declared("anthropic")
    fault = registry.param_fault("anthropic", "anthropic_api_keys", provider)
    assert fault.startswith(
        "no anthropic param 'anthropic_api_keys'; did you mean 'anthropic_api_key'? Known: "
    )
    assert "openai_temperature" in fault and "anthropic_temperature" not in fault
    assert not provider.has_param("openai_api_key")
