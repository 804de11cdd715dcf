"""Params of models: each wrong one is an error that names the model and the param."""

import pytest

from caraway_core.errors import ModelError
from caraway_core.loading.declarations import Declaration
from caraway_plugins.embeddings.params import ParamReader

DECLARED = Declaration(params=frozenset({"key", "count", "wait", "url", "kind"}))


def read(**params: str) -> ParamReader:
    return ParamReader("embedding model 'm'", "p", params, DECLARED)


def test_values_are_read_without_the_spaces_around_them() -> None:
    params = read(key=" k ", count="12", wait="3s", url="https://h/v1/", kind="b")
    assert (params.text("key"), params.needed("key")) == ("k", "k")
    assert params.count("count", 5, 100) == 12
    assert params.seconds("wait", 1) == 3
    assert params.url("url") == "https://h/v1"
    assert params.one_of("kind", ("a", "b")) == "b"


def test_a_param_that_is_empty_is_not_there() -> None:
    params = read(key=" ", count="", wait="", kind="")
    assert params.text("key", "default") == "default"
    assert params.count("count", 5, 100) == 5
    assert params.seconds("wait", 1.5) == 1.5
    assert params.url("url", "http://h") == "http://h"
    assert params.one_of("kind", ("a", "b")) == "a"
    with pytest.raises(ModelError, match="embedding model 'm': the param 'key' is missing"):
        params.needed("key")
    with pytest.raises(ModelError, match="the param 'url' is missing"):
        params.url("url")


def test_an_unknown_param_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ModelError, match="no p param 'cout'; did you mean 'count'"):
        read(cout="1")


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "101", "x", "٣", "9" * 30])
def test_counts_are_whole_numbers_within_bounds(text: str) -> None:
    with pytest.raises(ModelError, match="'count' must be a whole number from 1 to 100"):
        read(count=text).count("count", 5, 100)


@pytest.mark.parametrize(("text", "said"), [("0s", "must be more than 0"), ("soon", "'wait'")])
def test_durations_are_more_than_nothing(text: str, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        read(wait=text).seconds("wait", 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("h/v1", "must be http://HOST"),
        ("ftp://h", "must be http://HOST"),
        ("http://", "must be http://HOST"),
        ("http://[h", "must be http://HOST"),
        ("http://u:secret@h", "must not contain credentials"),
    ],
)
def test_urls_are_of_http_and_hold_no_secrets(text: str, said: str) -> None:
    with pytest.raises(ModelError, match=said) as caught:
        read(url=text).url("url")
    assert "secret" not in str(caught.value)


def test_words_are_those_that_are_listed() -> None:
    with pytest.raises(ModelError, match="'kind' must be one of: a, b"):
        read(kind="c").one_of("kind", ("a", "b"))
