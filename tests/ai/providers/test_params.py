from typing import Any

import pytest

from caraway_ai.providers.params import ModelParams, scrubbed
from caraway_ai.specs import ModelSpec
from caraway_core.errors import ModelError


def params(provider: str = "openai", **given: str) -> ModelParams:
    return ModelParams(ModelSpec("m", provider, "x", given))


@pytest.mark.parametrize(
    ("provider", "name", "text", "field", "value"),
    [
        ("openai", "openai_temperature", "0.5", "temperature", 0.5),
        ("xai", "xai_seed", "7", "seed", 7),
        ("xai", "openai_logprobs", "True", "logprobs", True),
        ("openai", "openai_stop", '["a", "b"]', "stop", ["a", "b"]),
        ("openai", "openai_stop", "END", "stop", "END"),
        ("huggingface", "hf_top_p", "1", "top_p", 1.0),
        ("openai", "openai_response_format", '{"type": "json_object"}', "response_format",
         {"type": "json_object"}),
    ],
)  # fmt: skip
def test_a_default_has_the_type_of_its_field(
    provider: str, name: str, text: str, field: str, value: Any
) -> None:
    assert params(provider, **{name: text}).defaults() == {field: value}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [("openai_temperature", "hot", "number"), ("openai_seed", "1.5", "whole number"),
     ("openai_logprobs", "yes", "true or false"), ("openai_logit_bias", "{", "JSON"),
     ("openai_temperature", "nan", "number"), ("openai_seed", "1" * 25, "whole number"),
     ("openai_seed", "1_0", "whole number"), ("openai_seed", "\u0661", "whole number"),
     ("openai_logit_bias", '{"a": NaN}', "JSON: NaN"), ("openai_logit_bias", "[" * 9999, "JSON")],
)  # fmt: skip
def test_a_wrong_default_is_named(name: str, text: str, words: str) -> None:
    with pytest.raises(ModelError, match=f"'{name}' must be .*{words}"):
        params(**{name: text}).defaults()


def test_a_missing_key_is_asked_for() -> None:
    with pytest.raises(ModelError, match=r"openai_api_key.*\$\{secrets:OPENAI_API_KEY\}") as caught:
        params().secret("openai_api_key")
    assert caught.value.code == "model.auth"


def test_secrets_are_scrubbed_from_words_of_providers() -> None:
    found = params(openai_api_key="sk-123456", openai_user="somebody").secrets()
    assert found == ("sk-123456",)
    assert scrubbed("key sk-123456\nof somebody", found) == "key *** of somebody"


@pytest.mark.parametrize(
    "value", ["sk-s3cr\u2026t", "s3cret\n", "s3cret\x00", "\ufeffs3cret", "s3\tc"]
)
@pytest.mark.parametrize(
    ("provider", "name"),
    [("openai", "openai_api_key"), ("azure", "azure_entra_token"),
     ("anthropic", "anthropic_auth_token"), ("bedrock", "aws_session_token")],
)  # fmt: skip
def test_a_key_that_no_header_can_have_is_refused_without_showing_it(
    provider: str, name: str, value: str
) -> None:
    with pytest.raises(ModelError, match=f"model 'm': the param '{name}' may only have") as caught:
        params(provider, **{name: value})
    assert "s3" not in caught.value.message
    assert params(provider, **{name: "sk-1 !~"}).text(name) == "sk-1 !~"
