import pytest

from caraway.terminal import parameters


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n=1", ("n", 1)),
        ("ok=true", ("ok", True)),
        ("none=null", ("none", None)),
        ("s=abc", ("s", "abc")),
        ('s="1"', ("s", "1")),
        ("s=a=b", ("s", "a=b")),
        ("empty=", ("empty", "")),
        ("list=[1, 2]", ("list", [1, 2])),
        ("x=NaN", ("x", "NaN")),
    ],
)
def test_values_are_json_or_else_strings(text: str, expected: tuple[str, object]) -> None:
    assert parameters.parse_parameter(text) == expected


@pytest.mark.parametrize("text", ["", "n", "=1", " =1"])
def test_a_parameter_without_a_name_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="NAME=VALUE"):
        parameters.parse_parameter(text)
