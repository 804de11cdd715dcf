"""Names and files of embedding models and rerankers, as they are written and as they are kept."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from caraway_core.manifest import checking
from caraway_core.manifest.documents import document
from caraway_core.manifest.sections import Section
from caraway_core.manifest.values.model_files import ModelFiles, ModelName


@dataclass(frozen=True, slots=True)
class Named(Section):
    name: ModelName
    files: ModelFiles = ()


def check(text: str) -> checking.CheckedDocument[Named]:
    return checking.check(Named, document.parse(text, Path("m.yaml")))


@pytest.mark.parametrize(
    "name", ["a", "_", "größe", "builtin:minilm", "org/model-1.5@main", "two words", "x" * 128]
)
def test_names_of_models_are_taken_as_they_are(name: str) -> None:
    found = check(f"name: '{name}'").shape
    assert found is not None and found.name == name


@pytest.mark.parametrize(
    "name",
    ["x" * 129, " a", "-a", "/etc", "a;b", "a\\n", "a\\0", "a'b", "../a", "a\\u200b", "a\\n/"],
)
def test_other_names_are_refused(name: str) -> None:
    (problem,) = check(f'name: "{name}"').problems
    assert "is not a model name" in problem.message or "not valid YAML" in problem.message


def test_only_the_paths_of_files_are_kept() -> None:
    found = check("{name: a, files: [{path: b, name: c, type: d, params: {e: 1}}, {path: f}]}")
    assert found.shape is not None and found.shape.files == ("b", "f")


@pytest.mark.parametrize(
    ("files", "where"),
    [
        ("[{}]", "files[0].path"),
        ("[{path: ''}]", "files[0].path"),
        ("[{path: a, pth: b}]", "files[0].pth"),
        ("{path: a}", "files"),
        ("[a]", "files[0]"),
    ],
)
def test_files_of_another_shape_are_refused(files: str, where: str) -> None:
    (problem,) = check(f"{{name: a, files: {files}}}").problems
    assert problem.path == where
