"""The files that a manifest and the files of components refer to."""

from pathlib import Path

from caraway_core.manifest.documents import document, file_references
from caraway_core.manifest.documents.document import Document
from caraway_core.manifest.documents.file_references import FileReference


def parsed(text: str) -> Document:
    return document.parse(text, Path("caraway.yaml"))


def test_a_manifest_refers_to_dependencies_components_and_texts() -> None:
    found = file_references.of_manifest(
        parsed(
            "dependencies: [a, 7]\n"
            "views: [{ref: v.yaml}, {name: w, sql_ref: w.sql}, text]\n"
            "functions: [{name: f, body_ref: f.sql, sql_ref: g.sql}]\n"
            "datasets: [{ref: null, name: d}]\n"
        )
    )
    assert sorted(found, key=lambda each: each.location) == [
        FileReference("dependency", ("dependencies", 0), "a"),
        FileReference("dependency", ("dependencies", 1), 7),
        FileReference("text", ("functions", 0, "body_ref"), "f.sql"),
        FileReference("text", ("functions", 0, "sql_ref"), "g.sql"),
        FileReference("component", ("views", 0, "ref"), "v.yaml", "views"),
        FileReference("text", ("views", 1, "sql_ref"), "w.sql"),
    ]


def test_sections_of_another_shape_refer_to_nothing() -> None:
    assert list(file_references.of_manifest(parsed("dependencies: a\nviews: {ref: x}\n"))) == []
    assert list(file_references.of_manifest(parsed("name: app\n"))) == []


def test_a_component_refers_to_texts_alone() -> None:
    found = list(file_references.of_component(parsed("ref: x\nsql_ref: a.sql\n")))
    assert found == [FileReference("text", ("sql_ref",), "a.sql")]
