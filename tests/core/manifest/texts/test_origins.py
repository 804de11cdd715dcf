"""The plug-in that the `from` of a component names has to exist."""

from collections.abc import Callable

import pytest

from caraway_core.manifest.texts import origins


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (origins.check_connector, "file:a.csv"),
        (origins.check_connector, "postgres:public.t"),
        (origins.check_catalog_connector, "iceberg:https://a/v1/namespaces"),
        (origins.check_provider, "openai:gpt"),
        (origins.check_provider, "openai"),
    ],
)
def test_a_text_that_names_a_plug_in_is_kept(check: Callable[[str], str], text: str) -> None:
    assert check(text) == text


@pytest.mark.parametrize(
    ("check", "text", "message"),
    [
        (origins.check_connector, "postgre:t", "no connector 'postgre'; did you mean 'postgres'"),
        (origins.check_catalog_connector, "file:a", "no connector of catalogs 'file'"),
        (origins.check_provider, "opena:gpt", "no model provider 'opena'; did you mean 'openai'"),
    ],
)
def test_other_texts_are_refused_with_the_nearest(
    check: Callable[[str], str], text: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        check(text)
