"""Names of plug-ins and commands, which entry points hold."""

import ast
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

import caraway_core
from caraway_core.errors import NotInstalledError, UnknownPluginError
from caraway_core.loading import registry
from caraway_core.loading.declarations import Connector
from caraway_core.loading.registry import Plugins
from caraway_core.protocols.embedding import EmbedderSpec

GROUPS = [each for each in vars(registry).values() if isinstance(each, Plugins)]
NAMED = [(group, name) for group in GROUPS for name in group]
ABOVE = re.compile(r"caraway(?:_(?!core)\w+)?\.[a-z_]+[.:]|(?:from|import) caraway(?!_core)\b")


@pytest.mark.parametrize(
    ("group", "name"), [pytest.param(*each, id=f"{each[0].group}-{each[1]}") for each in NAMED]
)
def test_every_entry_point_can_be_imported(group: Plugins, name: str) -> None:
    assert callable(group.load(name))


def test_every_group_of_the_package_is_read() -> None:
    written = {each.group for each in metadata.distribution("caraway").entry_points}
    assert written - {"console_scripts", "sqlalchemy.dialects"} == {group.group for group in GROUPS}


def test_core_names_no_module_above_itself() -> None:
    found = [
        f"{file.name}: {line}"
        for file in Path(caraway_core.__file__).parent.rglob("*.py")
        for line in file.read_text().splitlines()
        if ABOVE.search(line)
    ]
    assert found == []


def test_core_names_no_connector() -> None:
    others = {"file", "http", "https", "memory", "s3", "gs", "abfss"}  # Also kinds of addresses.
    others.update(
        ("duckdb", "postgres", "sqlite")
    )  # Also engines of accelerations, in other manifests.
    others.update(("caraway", "iceberg"))  # Also this product, and a section of the manifest.
    others.add("elasticsearch")  # Also an engine of searches, in other manifests.
    connectors = set(registry.SOURCES) - others
    assert connectors
    found = {
        node.value
        for file in Path(caraway_core.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert found.isdisjoint(connectors)


def test_reader_of_several_dialects_is_named_with_one_of_them() -> None:
    assert registry.database_reader("adbc").dialect.exact == frozenset()
    assert "sum int" in registry.database_reader("adbc/postgresql").dialect.exact
    assert registry.database_reader("adbc/of-tomorrow").dialect.exact == frozenset()
    assert registry.load_reader("adbc/postgresql") is registry.load_reader("adbc")


def test_where_no_name_is_known_there_are_none() -> None:
    assert registry.unknown("model", "gpt", ()) == "no model 'gpt'; there are none"


def test_unknown_name_lists_the_known_and_the_nearest() -> None:
    with pytest.raises(UnknownPluginError) as refused:
        registry.STATE_STORES.load("sqlit")
    said = "no state store 'sqlit'; did you mean 'sqlite'? Known: redis, sqlite"
    assert refused.value.message == said


@pytest.mark.parametrize(
    ("name", "lacks", "extra"),
    [
        ("operator", "caraway_operator.command", "operator"),
        ("store", "caraway_cluster.store.command", "runtime"),
    ],
)
def test_plugin_that_lacks_a_package_names_the_extra(
    name: str, lacks: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [each for each in sys.modules if each.startswith(lacks)]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, lacks, None)
    with pytest.raises(NotInstalledError, match=rf"'caraway\[{extra}\]'") as refused:
        registry.COMMANDS.load(name)
    assert refused.value.message.startswith(f"command '{name}' needs the package '{lacks}'")


def test_plugin_that_lacks_a_package_only_when_it_is_called_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "caraway_plugins.embeddings.onnx_model", None)
    spec = EmbedderSpec("m", "builtin", "minilm", {})
    with pytest.raises(NotInstalledError, match=r"pip install 'caraway\[search\]'"):
        spec.build()


def test_an_extra_of_two_words_is_named_whole() -> None:
    assert registry.extra_of(registry.MODEL_PROVIDERS["file"]) == "local-models"
    assert registry.extra_of(registry.COMMANDS["run"]) == "runtime"


@pytest.fixture
def forgetful() -> Iterator[None]:
    """Entry points are read once in a process: have them read again."""
    for cached in (registry._own, registry._all):
        cached.cache_clear()
    yield
    for cached in (registry._own, registry._all):
        cached.cache_clear()


def test_another_package_can_bring_a_plugin_but_not_replace_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgetful: None
) -> None:
    folder = tmp_path / "fruits-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: fruits\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(
        "[caraway.sources]\nfruit = fruits:Fruit\nfile = fruits:Fruit\nother = fruits:Other\n"
        "broken = fruits:Nothing\n"
    )
    (tmp_path / "fruits.py").write_text(
        "from caraway_core.loading.declarations import Connector, Declaration\n"
        "class Fruit:\n    declaration = Connector(poll_s=5)\n"
        "class Other:\n    declaration = Declaration(params=frozenset())\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert registry.SOURCES.load("fruit").__name__ == "Fruit"
    assert registry.SOURCES.load("file").__name__ == "LocalFiles"
    assert {"fruit", "file", "s3"} <= set(registry.SOURCES)
    assert registry.connector("fruit").poll_s == 5
    assert registry.connector("file").params
    for name in ("other", "broken", "unknown"):
        assert registry.connector(name) == Connector(), name
    monkeypatch.delitem(sys.modules, "fruits")
