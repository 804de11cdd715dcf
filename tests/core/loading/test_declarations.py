"""What a declaration says of a plug-in, and how the plug-in is imported."""

import pytest

from caraway_core.loading.declarations import Connector, Declaration


@pytest.mark.parametrize(
    ("declaration", "taken", "refused"),
    [
        (Declaration(), ["anything"], []),
        (Declaration(params=frozenset()), [], ["a"]),
        (Declaration(params=frozenset({"a"})), ["a"], ["A", "b", ""]),
        (Declaration(params=frozenset({"a"}), hidden_params=frozenset({"h"})), ["a", "h"], ["b"]),
    ],
)
def test_params(declaration: Declaration, taken: list[str], refused: list[str]) -> None:
    assert all(map(declaration.has_param, taken))
    assert not any(map(declaration.has_param, refused))


def test_a_plug_in_is_imported_by_its_target() -> None:
    assert Declaration("collections.abc:Mapping").load().__name__ == "Mapping"
    with pytest.raises(ModuleNotFoundError):
        Declaration("caraway_core.none:x").load()
    with pytest.raises(AttributeError):
        Declaration("caraway_core.ids:none").load()


@pytest.mark.parametrize(
    ("connector", "has_changes", "is_only_followed"),
    [
        (Connector(), False, False),
        (Connector(modes=("full", "changes")), True, False),
        (Connector(modes=("changes",)), True, True),
        (Connector(modes=("changes", "disabled")), True, True),
    ],
)
def test_connectors_whose_changes_are_followed(
    connector: Connector, has_changes: bool, is_only_followed: bool
) -> None:
    assert (connector.has_changes, connector.is_only_followed) == (has_changes, is_only_followed)
