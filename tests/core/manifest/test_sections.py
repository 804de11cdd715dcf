import pickle
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

import pytest

from caraway_core.manifest import checking
from caraway_core.manifest.checking import CheckedDocument
from caraway_core.manifest.documents import document
from caraway_core.manifest.sections import (
    Count,
    Duration,
    FilePath,
    Items,
    Section,
    Text,
    Texts,
    key,
    known_keys,
    unwritten,
    written,
)
from caraway_core.manifest.values import caching, runtime


@dataclass(frozen=True, slots=True)
class Wheel(Section):
    size: Count = 26


@dataclass(frozen=True, slots=True)
class Bicycle(Section):
    KEYS: ClassVar[Mapping[str, Any]] = {"colour": Text}
    FIRST: ClassVar[tuple[str, ...]] = ("from",)

    name: Text
    maker: Text = key("from")
    folder: Path = unwritten()
    manual: FilePath | None = None
    lasts_s: Duration = key("lasts", default=60.0)
    wheels: Items[Wheel] = ()
    params: Texts = field(default_factory=dict)

    @classmethod
    def from_keys(cls, keys: dict[str, Any], folder: Path) -> "Bicycle":
        return cls.of_kept(keys, folder=folder)


def check(text: str) -> CheckedDocument[Bicycle]:
    return checking.check(Bicycle, document.parse(text, Path("/bikes/caraway.yaml")))


def test_section_is_the_value() -> None:
    text = (
        "{from: a, name: b, manual: m.pdf, lasts: 2m, wheels: [{size: 28}, {}], params: {x: 1.10}}"
    )
    assert check(text).shape == Bicycle(
        "b", "a", Path("/bikes"), Path("/bikes/m.pdf"), 120.0, (Wheel(28), Wheel()), {"x": "1.10"}
    )


def test_keys_without_a_value_count_as_absent() -> None:
    text = "{from: a, name: b, colour: , lasts: , wheels: , manual: }"
    assert check(text).shape == Bicycle("b", "a", Path("/bikes"))


def test_keys_are_those_of_files_in_their_order() -> None:
    expected = ("from", "name", "manual", "lasts", "wheels", "params", "colour")
    assert known_keys(Bicycle) == expected


@pytest.mark.parametrize("name", ["maker", "folder", "lasts_s"])
def test_names_of_fields_are_no_keys(name: str) -> None:
    (problem,) = check(f"{{from: a, name: b, {name}: c}}").problems
    assert problem.message.startswith(f"unknown key '{name}'; ")


def test_every_problem_is_found_at_its_place() -> None:
    text = "colour: 3\nwheels:\n  - {size: 0}\n  - {sise: 1}\nlasts: long\nparams: [a]\nname: b"
    assert [(each.line, each.path, each.message) for each in check(text).problems] == [
        (1, "from", "the key 'from' is missing"),
        (5, "lasts", "'long' is not a duration; write for example 30s, 5m or 1h30m"),
        (3, "wheels[0].size", "must be at least 1"),
        (4, "wheels[1].sise", "unknown key 'sise'; did you mean 'size'?"),
        (6, "params", "must be a mapping of keys to values"),
        (1, "colour", "must be a text; put it in quotes"),
    ]


def test_written_keys_are_those_that_are_no_defaults() -> None:
    bicycle = Bicycle("b", "a", Path("/bikes"), wheels=(Wheel(28),), params={})
    assert written(bicycle) == {"from": "a", "name": "b", "wheels": [Wheel(28)]}


def test_values_of_sections_can_be_sent() -> None:
    settings = runtime.RuntimeSettings(cpu=runtime.CpuSettings(2))
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_empty_sections_are_the_defaults() -> None:
    """A default that the check refuses, or would read otherwise, shows here."""
    for section in {**vars(caching), **vars(runtime)}.values():
        if not (isinstance(section, type) and issubclass(section, Section)) or section is Section:
            continue
        checked = checking.check(section, document.parse("{}", Path("/bikes/caraway.yaml")))
        default = section()
        if section is caching.OldResultsCache:
            default = caching.SqlResultsCacheSettings()
        assert checked.shape == default, fields(section)


def test_values_are_imported_without_what_checks_files() -> None:
    script = "import sys, caraway_core.manifest; print({'pydantic', 'yaml'} & sys.modules.keys())"
    command = [sys.executable, "-c", script]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "set()\n"
