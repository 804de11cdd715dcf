import jsonschema
import pytest

from caraway_core.manifest import schema
from caraway_core.manifest.documents import document
from caraway_core.manifest.shape.top import COMPONENTS
from tests.core.manifest.unsupported_keys import EVERYTHING


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    found = schema.json_schema()
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(found)


def problems(validator: jsonschema.Draft202012Validator, text: str) -> list[str]:
    value = document.parse(text, EVERYTHING).value
    return [f"{each.json_path}: {each.message}" for each in validator.iter_errors(value)]


def test_what_the_checks_allow_is_allowed(validator: jsonschema.Draft202012Validator) -> None:
    assert problems(validator, EVERYTHING.read_text()) == []


def test_keys_and_words_that_do_not_exist_are_found(
    validator: jsonschema.Draft202012Validator,
) -> None:
    text = "name: shop\ndatasets: [{from: 'file:a', name: a, access: both, acess: read}]"
    found = " ".join(problems(validator, text))
    assert "'acess' was unexpected" in found
    assert "'both' is not one of" in found


def test_every_list_of_components_says_what_is_in_it() -> None:
    found = schema.json_schema()
    for key in COMPONENTS:
        assert found["properties"][key]["items"]["$ref"].startswith("#/$defs/")
