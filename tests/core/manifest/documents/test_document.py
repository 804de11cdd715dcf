from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from caraway_core.errors import ManifestError
from caraway_core.manifest import Manifest, load
from caraway_core.manifest.documents import document
from tests.core.manifest.conftest import Refuses


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "caraway.yaml: is empty; it needs at least a 'name'"),
        ("# nothing", "caraway.yaml: is empty; it needs at least a 'name'"),
        ("- a\n", "caraway.yaml:1: must be a mapping of keys to values"),
        (
            "name: a\nname: b\n",
            "caraway.yaml:2: name: the key 'name' is given twice, first on line 1",
        ),
        (
            "name: a\n---\nname: b\n",
            "caraway.yaml:2: a second document starts here ('---'); a file holds one",
        ),
        (
            "name: *x\n",
            "caraway.yaml:1: name: the alias '*x' stands for nothing yet, or for itself",
        ),
        (
            "metadata: &x [*x]",
            "caraway.yaml:1: metadata[0]: the alias '*x' stands for nothing yet, or for itself",
        ),
        ("[a]: b", "caraway.yaml:1: a key must be a plain text"),
        ("name: !!python/name:os.system x", "not supported"),
        ("name: [", "caraway.yaml:2: is not valid YAML: "),
        ("name: \x07", "is not valid YAML: control characters are not allowed"),
        ("metadata: " + "[" * 5000, "is nested more than 64 levels deep"),
    ],
)
def test_broken_yaml_is_a_problem_with_its_line(refuses: Refuses, text: str, problem: str) -> None:
    assert problem in refuses(text)[0]


def test_alias_bomb_is_refused(refuses: Refuses) -> None:
    levels = [f"  l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 30)]
    text = "metadata:\n  l0: &l0 [x, x]\n" + "\n".join(levels)
    assert "holds more than 200000 values once its aliases are written out" in refuses(text)[0]


def test_syntax_problem_quotes_nothing_of_the_file(refuses: Refuses) -> None:
    assert "hunter2" not in refuses('name: a\nparams: "hunter2\\q"\n')[0]


def test_large_and_undecodable_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"#" * (document.MAX_FILE_BYTES + 1))
    with pytest.raises(ManifestError, match="is larger than 4 MiB; split it"):
        load(path)
    path.write_bytes(b"name: a\nx: \xff\n")
    with pytest.raises(ManifestError, match=r"a\.yaml:2: is not UTF-8 text; save it as UTF-8"):
        load(path)


def test_aliases_share_what_they_stand_for(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("\ufeffa: &x {k: [1, 2.50]}\nb: *x\nc: !!str 1\nd: '2'\n")
    read = document.read(path)
    assert read.value == {"a": {"k": [1, 2.5]}, "b": {"k": [1, 2.5]}, "c": "1", "d": "2"}
    assert [read.line((key,)) for key in "abcd"] == [1, 2, 3, 4]
    assert read.line(("b", "k")) == 1


YAMLISH = st.lists(
    st.sampled_from(
        [
            "name",
            "datasets",
            "from",
            "runtime",
            "auth",
            "ref",
            "metadata",
            ": ",
            "\n",
            "- ",
            "  ",
            "&a ",
            "*a",
            "[",
            "]",
            "{",
            "}",
            ", ",
            "'",
            '"',
            "|\n",
            "!!int ",
            "? ",
            "---\n",
            "file:",
            "null",
            "true",
            "1",
            "1e9999",
            "0x",
            ".",
            "..",
            "\x00",
            "\u2028",
            "<<",
            "views",
        ]
    ),
    max_size=40,
).map("".join)


@settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.one_of(st.text(), YAMLISH, st.text().map(lambda text: f"name: a\n{text}")))
def test_any_text_loads_or_is_a_manifest_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "any.yaml"
    path.write_bytes(text.encode("utf-8", "replace"))
    try:
        assert isinstance(load(path), Manifest)
    except ManifestError as exc:
        assert exc.problems
        assert all(problem.message for problem in exc.problems)


@settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.binary())
def test_any_bytes_load_or_are_a_manifest_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "any.yaml"
    path.write_bytes(content)
    try:
        assert isinstance(load(path), Manifest)
    except ManifestError as exc:
        assert exc.problems


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "from", "enabled", "keys", "ref", "params", "x"]), inner
        )
    ),
    max_leaves=8,
)
KEYS = "name runtime management snapshots extensions secrets metadata datasets views models"


@settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.dictionaries(st.sampled_from([*KEYS.split(), "dependencies", "workers"]), VALUES))
def test_any_value_under_a_known_key_loads_or_is_a_manifest_error(
    tmp_path: Path, content: dict[str, object]
) -> None:
    path = tmp_path / "any.yaml"
    path.write_text(yaml.safe_dump(content))
    try:
        assert isinstance(load(path), Manifest)
    except ManifestError as exc:
        assert exc.problems
