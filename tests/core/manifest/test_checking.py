"""Problems of a document name the place and the words of its file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import pytest

from caraway_core.manifest import checking
from caraway_core.manifest.documents import document
from caraway_core.manifest.sections import After, Count, Items, Limits, Section, Text, key


def _even(value: int) -> int:
    if value % 2:
        raise ValueError(f"{value} is odd; a cart has pairs of wheels")
    return value


@dataclass(frozen=True, slots=True)
class Basket(Section):
    litres: Annotated[float, Limits(gt=0, le=90)] = 10.0
    lid: bool = True


@dataclass(frozen=True, slots=True)
class Cart(Section):
    KEYS: ClassVar[Mapping[str, object]] = {"brakes": Basket | Text}

    name: Text
    colour: Literal["red", "green", "blue"] = "red"
    wheels: Annotated[Count, After(_even)] = 2
    basket: Basket | None = None
    baskets: Items[Basket] = ()
    by_name: dict[str, Basket] = field(default_factory=dict)
    driver: Text | None = key("driven_by", default=None)

    @classmethod
    def from_keys(cls, keys: dict[str, object], folder: Path) -> "Cart":
        return cls.of_kept(keys)


def problems(text: str) -> list[str]:
    checked = checking.check(Cart, document.parse(text, Path("/carts/cart.yaml")))
    assert (checked.shape is None) is bool(checked.problems)
    return [str(each).removeprefix("/carts/cart.yaml:") for each in checked.problems]


def test_right_document_is_its_value() -> None:
    text = "{name: a, wheels: 4, basket: {litres: 5}, by_name: {x: {}}, driven_by: b}"
    checked = checking.check(Cart, document.parse(text, Path("/carts/cart.yaml")))
    assert checked.problems == ()
    shape = checked.shape
    assert shape is not None and (shape.wheels, shape.driver) == (4, "b")
    assert shape.basket == Basket(litres=5.0) and shape.by_name["x"] == Basket()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("colour: red", "name: the key 'name' is missing"),
        ("{name: a, color: red}", "color: unknown key 'color'; did you mean 'colour'?"),
        ("{name: a, driver: b}", "driver: unknown key 'driver'; did you mean 'driven_by'?"),
        (
            "{name: a, basket: {qqq: 1}}",
            "basket.qqq: unknown key 'qqq'; known: litres, lid",
        ),
        ("{name: a, baskets: [{}, {lit: 1}]}", "baskets[1].lit: unknown key 'lit'; did you mean"),
        ("{name: a, by_name: {lid: {lids: 1}}}", "by_name.lid.lids: unknown key 'lids'; did you"),
        ("{name: a, colour: geen}", "'geen' is not one of: red, green, blue; did you mean 'green'"),
        ("{name: a, colour: 7}", "colour: must be one of: red, green, blue"),
        ("{name: a, wheels: 3}", "wheels: 3 is odd; a cart has pairs of wheels"),
        ("{name: a, wheels: 0}", "wheels: must be at least 1"),
        ("{name: a, wheels: 1000001}", "wheels: must be at most 1000000"),
        ("{name: a, wheels: 1.5}", "wheels: must be a whole number"),
        ("{name: a, wheels: true}", "wheels: must be a whole number"),
        ("{name: a, basket: {litres: 0}}", "basket.litres: must be more than 0"),
        ("{name: a, basket: {litres: x}}", "basket.litres: must be a number"),
        ("{name: a, basket: {lid: 1}}", "basket.lid: must be true or false"),
        ("{name: a, basket: [1]}", "basket: must be a mapping of keys to values"),
        ("{name: a, baskets: {}}", "baskets: must be a list"),
        ("{name: 1}", "name: must be a text; put it in quotes"),
        ("{name: ''}", "name: must not be empty"),
    ],
)
def test_problem_names_the_key_as_the_file_has_it(text: str, words: str) -> None:
    (problem,) = problems(text)
    assert words in problem


def test_all_problems_are_found_at_once_each_with_its_line() -> None:
    text = "wheels: 3\nbasket:\n  lid: 1\n  qqq: 2\ncolour: x\n"
    found = problems(text)
    assert sorted(int(each.split(":")[0]) for each in found) == [1, 1, 3, 4, 5]


def test_key_of_two_kinds_has_one_problem() -> None:
    """Pydantic complains once for each kind."""
    (problem,) = problems("{name: a, brakes: 7}")
    assert problem.startswith("1: brakes")


def test_hundreds_of_unknown_keys_are_each_reported_once() -> None:
    text = "name: a\n" + "".join(f"k{number}: 1\n" for number in range(500))
    found = problems(text)
    assert len(found) == 500 and len(set(found)) == 500


@pytest.mark.parametrize("key", ["name ", "\uff4eame", "__class__", "0", "a.b", "{", "'", "\\0"])
def test_hostile_keys_are_unknown(key: str) -> None:
    quoted = key.replace("'", "''")
    (problem,) = problems(f"{{name: a, '{quoted}': 1}}")
    assert f"unknown key '{key}'" in problem


@pytest.mark.parametrize(
    ("word", "known", "hint"),
    [
        ("nme", ["name", "colour"], "; did you mean 'name'?"),
        ("zzz", ["name"], ""),
        ("", ["name"], ""),
        ("name", [], ""),
        ("x" * 100_000, ["name"], ""),
    ],
)
def test_nearest_word_is_suggested(word: str, known: list[str], hint: str) -> None:
    assert checking.suggest(word, iter(known)) == hint
