from pathlib import Path

import pytest

from caraway_core.errors import ManifestError
from caraway_core.manifest import DeclaredColumn, load, loading
from caraway_core.manifest.documents import document
from tests.core.manifest.conftest import Loads, Refuses, Write

DATASET = "datasets:\n  - from: file:a.csv\n    name: a\n"


def test_smallest_manifest_has_every_default(loads: Loads, tmp_path: Path) -> None:
    manifest = loads("")
    assert (manifest.version, manifest.kind, manifest.name) == ("v2", "Caraway", "app")
    assert manifest.path == tmp_path / "caraway.yaml"
    assert manifest.files == (tmp_path / "caraway.yaml",)
    assert [(store.name, store.kind) for store in manifest.secrets] == [("env", "env")]
    assert not manifest.datasets and not manifest.views
    assert not manifest.dependencies and not manifest.notices


def test_dataset_keeps_params_as_written(loads: Loads, tmp_path: Path) -> None:
    manifest = loads(
        """
datasets:
  - from: s3://bucket/folder/
    name: Sales."Big Orders"
    description: All of them
    metadata: {owner: {team: 7}, day: 2024-01-01}
    access: read_write
    params: {id: 007, rate: 1.10, on: true, off: False, no: no, key: "${secrets:k}", none: null}
    columns: [{name: id, type: bigint}, {name: note, description: free text}]
    time_column: at
    ready_state: on_registration
    unsupported_type_action: string
    check_availability: disabled
    replication: {enabled: false}
    acceleration: {enabled: false, engine: duckdb, partition_by: [id, {day: "date(at)"}]}
"""
    )
    (dataset,) = manifest.datasets
    assert dataset.name == "sales.Big Orders"
    assert (dataset.source, dataset.connector, dataset.path) == (
        "s3://bucket/folder/",
        "s3",
        "bucket/folder/",
    )
    assert dataset.params == {
        "id": "007",
        "rate": "1.10",
        "on": "true",
        "off": "false",
        "no": "no",
        "key": "${secrets:k}",
    }
    assert dataset.metadata == {"owner": {"team": 7}, "day": "2024-01-01"}
    assert dataset.columns == (
        DeclaredColumn("id", "bigint"),
        DeclaredColumn("note", None, "free text"),
    )
    assert (dataset.access, dataset.time_column) == ("read_write", "at")
    assert dataset.ready_state == "on_registration"
    assert dataset.unsupported_type_action == "string"
    assert dataset.check_availability == "disabled"
    assert dataset.base_dir == tmp_path
    assert not dataset.replication_enabled
    assert not dataset.acceleration_enabled


def test_folder_stands_for_the_manifest_in_it(write: Write, tmp_path: Path) -> None:
    write("name: old", "spicepod.yml")
    assert load(tmp_path).name == "old"
    write("name: new", "caraway.yaml")
    assert load(tmp_path).name == "new"


def test_missing_files_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"there is no '.*nope'; give the path of a manifest"):
        load(tmp_path / "nope")
    with pytest.raises(ManifestError, match=r"holds none of caraway\.yaml, .*give the path"):
        load(tmp_path)


def test_every_problem_is_reported_at_once_with_its_line(refuses: Refuses) -> None:
    problems = refuses(
        """
version: v3
nane: app
runtime:
  query:
    timeout: soon
    memory_limit: 120%
    spill_compression: zst
  flight: {max_message_size: 3}
datasets:
  - from: file:a.csv
    name: a
    acess: read
    columns:
      - name: x
        type: bigit
      - nam: y
  - from: s3://b/k
    name: runtime.b
    access: 7
    params: [1]
  - 12
views: {}
"""
    )
    assert problems == [
        "caraway.yaml:2: version: 'v3' is not one of: v1, v1beta1, v2; did you mean 'v2'?",
        "caraway.yaml:2: name: the key 'name' is missing",
        "caraway.yaml:3: nane: unknown key 'nane'; did you mean 'name'?",
        "caraway.yaml:6: runtime.query.timeout: 'soon' is not a duration; write for example "
        "30s, 5m or 1h30m",
        "caraway.yaml:7: runtime.query.memory_limit: '120%' is not a share of the memory; "
        "write 1% to 100%",
        "caraway.yaml:8: runtime.query.spill_compression: 'zst' is not one of: zstd, "
        "lz4_frame, uncompressed; did you mean 'zstd'?",
        "caraway.yaml:9: runtime.flight.max_message_size: must be at least 1024",
        "caraway.yaml:13: datasets[0].acess: unknown key 'acess'; did you mean 'access'?",
        "caraway.yaml:16: datasets[0].columns[0].type: 'bigit' is not a column type; known: "
        "boolean, tinyint, smallint, int, bigint (each also unsigned), real, double, "
        "decimal(p,s), text, binary, uuid, date, time, timestamp(p), timestamptz, and T[] or "
        "list<T> of them",
        "caraway.yaml:17: datasets[0].columns[1].name: the key 'name' is missing",
        "caraway.yaml:17: datasets[0].columns[1].nam: unknown key 'nam'; did you mean 'name'?",
        "caraway.yaml:19: datasets[1].name: the schema 'runtime' belongs to the runtime; "
        "choose another",
        "caraway.yaml:20: datasets[1].access: must be one of: read, read_write",
        "caraway.yaml:21: datasets[1].params: must be a mapping of keys to values",
        "caraway.yaml:22: datasets[2]: must be a mapping of keys to values",
        "caraway.yaml:23: views: must be a list",
    ]


def test_unknown_key_without_a_neighbour_lists_the_known(refuses: Refuses) -> None:
    assert refuses("name: a\nruntime:\n  cors:\n    xyzzy: 1") == [
        "caraway.yaml:4: runtime.cors.xyzzy: unknown key 'xyzzy'; known: enabled, allowed_origins"
    ]


def test_names_taken_twice_name_both_places(refuses: Refuses) -> None:
    text = f"name: a\n{DATASET}  - from: file:b.csv\n    name: A\nviews:\n  - name: public.a\n"
    assert refuses(text + "    sql: select 1\n") == [
        "caraway.yaml:6: datasets[1].name: the name 'a' is taken: it is declared at caraway.yaml:4",
        "caraway.yaml:8: views[0].name: the name 'public.a' is taken: "
        "it is declared at caraway.yaml:4",
    ]


def test_quoted_names_that_differ_in_case_are_two(loads: Loads) -> None:
    manifest = loads(DATASET + "  - {from: 'file:b', name: '\"A\"'}\n")
    assert [dataset.name for dataset in manifest.datasets] == ["a", "A"]


def test_ref_to_a_file_or_a_folder(write: Write, loads: Loads, tmp_path: Path) -> None:
    write("from: file:data/a.csv\nname: a", "parts/a/dataset.yaml")
    write("name: v\nsql_ref: v.sql", "parts/v.yaml")
    write("select 1", "parts/v.sql")
    manifest = loads("datasets: [{ref: parts/a, dependsOn: [b]}]\nviews: [{ref: parts/v.yaml}]")
    assert manifest.datasets[0].base_dir == tmp_path / "parts/a"
    assert (manifest.views[0].sql, manifest.views[0].base_dir) == ("select 1", tmp_path / "parts")
    assert {path.name for path in manifest.files} == {
        "caraway.yaml",
        "dataset.yaml",
        "v.yaml",
        "v.sql",
    }


def test_problems_behind_a_ref_name_that_file(write: Write, refuses: Refuses) -> None:
    write("from: file:a\nname: a\nacess: read", "a/dataset.yaml")
    write("- 1", "list.yaml")
    refs = "[{ref: a}, {ref: list.yaml}, {ref: gone}, {ref: a, name: b}, {ref: 3}]"
    assert refuses(f"name: x\ndatasets: {refs}") == [
        "caraway.yaml:2: datasets[2].ref: there is no 'gone'; a 'ref' is a YAML file, or a folder "
        "that holds dataset.yaml",
        "caraway.yaml:2: datasets[3].name: 'name' is not allowed together with 'ref'; "
        "move it into that file",
        "caraway.yaml:2: datasets[4].ref: must be the path of a file or a folder",
        "a/dataset.yaml:3: acess: unknown key 'acess'; did you mean 'access'?",
        "a/dataset.yaml:3: acess: unknown key 'acess'; did you mean 'access'?",
        "list.yaml:1: must be a mapping of keys to values",
    ]


def test_view_needs_exactly_one_query(write: Write, refuses: Refuses) -> None:
    write(" ", "empty.sql")
    views = "[{name: a}, {name: b, sql: x, sql_ref: y}, {name: c, sql_ref: empty.sql}]"
    assert refuses(f"name: x\nviews: {views}") == [
        "caraway.yaml:2: views[0]: one of 'sql' and 'sql_ref' is needed",
        "caraway.yaml:2: views[1].sql_ref: 'sql' and 'sql_ref' exclude each other; keep one",
        "caraway.yaml:2: views[1].sql_ref: the file 'y' cannot be read: No such file or directory; "
        "check the path",
        "caraway.yaml:2: views[2].sql_ref: the file 'empty.sql' is empty",
    ]


def test_dependencies_bring_their_tables(write: Write, loads: Loads, tmp_path: Path) -> None:
    write(f"name: base\n{DATASET}", "base/spicepod.yaml")
    write("name: left\ndependencies: [../base]\nruntime: {cors: {enabled: true}}", "left/a.yaml")
    manifest = loads("dependencies: [left/a.yaml, base]")
    assert [(table.name, table.base_dir) for table in manifest.datasets] == [
        ("a", tmp_path / "base")
    ]
    assert manifest.dependencies == ("left/a.yaml", "base")
    assert manifest.notices == (f"{tmp_path}/left/a.yaml:3: runtime: is ignored in a dependency",)
    assert not manifest.runtime.cors.enabled


def test_broken_dependencies_are_told(write: Write, refuses: Refuses) -> None:
    write("name: one\ndependencies: [../two]", "one/caraway.yaml")
    write(f"name: two\ndependencies: [../one]\n{DATASET}", "two/caraway.yaml")
    assert refuses(f"name: x\ndependencies: [one, gone]\n{DATASET}") == [
        "caraway.yaml:2: dependencies[1]: there is no 'gone'; give the path of a manifest file or "
        "of its folder",
        "caraway.yaml:5: datasets[0].name: the name 'a' is taken: "
        "it is declared at two/caraway.yaml:5",
        "two/caraway.yaml:2: dependencies[0]: the dependencies form a circle: "
        "one/caraway.yaml -> two/caraway.yaml -> one/caraway.yaml",
    ]


def test_dependency_on_oneself_is_a_circle(refuses: Refuses) -> None:
    assert refuses("name: x\ndependencies: [.]") == [
        "caraway.yaml:2: dependencies[0]: the dependencies form a circle: "
        "caraway.yaml -> caraway.yaml"
    ]


def test_keys_without_effect_give_a_notice(loads: Loads, tmp_path: Path) -> None:
    manifest = loads(DATASET + "    on_schema_change: widen\nruntime: {params: {a: 1}}\n")
    assert [notice.replace(f"{tmp_path}/", "") for notice in manifest.notices] == [
        "caraway.yaml:6: runtime.params: has no effect",
        "caraway.yaml:5: datasets[0].on_schema_change: has no effect",
    ]


def test_notices_of_datasets_have_the_reason(loads: Loads) -> None:
    keys = "    unsupported_type_action: ignore\n    time_partition_column: day\n"
    found = [each.partition(": has no effect: ")[2] for each in loads(DATASET + keys).notices]
    assert found == [
        "databases give types without an Arrow form as text, and other sources refuse them",
        "filters on a partition column skip files",
    ]


def test_known_keys_without_a_value_count_as_absent(loads: Loads, refuses: Refuses) -> None:
    assert loads("datasets:\nruntime:\n  query:\nsecrets:\n").datasets == ()
    assert refuses("name: a\ndatsets:\n") == [
        "caraway.yaml:2: datsets: unknown key 'datsets'; did you mean 'datasets'?"
    ]


def test_a_manifest_that_stands_alone_is_checked_without_reading_any_file() -> None:
    content = document.parse("name: app\n" + DATASET, Path("/nowhere/caraway.yaml"))
    manifest = loading.load_alone(content)
    assert [dataset.name for dataset in manifest.datasets] == ["a"]


def test_a_manifest_that_must_stand_alone_may_refer_to_no_file(tmp_path: Path) -> None:
    (tmp_path / "dataset.yaml").write_text("secret: content")
    text = f"""name: app
dependencies: [{tmp_path}]
datasets:
  - ref: {tmp_path}
views:
  - name: v
    sql_ref: {tmp_path}/dataset.yaml
functions:
  - {{name: f, body_ref: {tmp_path}/dataset.yaml}}
"""
    with pytest.raises(ManifestError) as caught:
        loading.load_alone(document.parse(text, Path("caraway.yaml")))
    assert [(problem.line, problem.path) for problem in caught.value.problems] == [
        (2, "dependencies"),
        (4, "datasets[0].ref"),
        (7, "views[0].sql_ref"),
        (9, "functions[0].body_ref"),
    ]
    assert "content" not in caught.value.message
