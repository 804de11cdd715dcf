import pytest

from caraway_core.manifest import model_params


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
    assert model_params.default_of(provider, param) == field


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
    assert model_params.fault(provider, param) == ""


def test_an_unknown_param_gets_the_nearest_name() -> None:
    fault = model_params.fault("anthropic", "anthropic_api_keys")
    assert "anthropic_api_keys" in fault and "anthropic_api_key" in fault
    assert model_params.fault("anthropic", "openai_api_key")
