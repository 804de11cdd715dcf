import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_management.domain import project_rules, repositories
from caraway_management.domain.refusals import RefusedError

BRANCHES = ["main", "feature/a", "v1.2", "a-b_c", "dépôt"]
NO_BRANCHES = [
    "", "-a", "a..b", "a b", "a\n", "/a", "a/", "a//b", "a.lock", "a.lock/b", "a~1", "a^", "a:b",
    "a?", "a*", "a[", "a\\b", "a@{1}", ".a", "a/.b", "a.", "x" * 256, "\x00", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("name", BRANCHES)
def test_branches(name: str) -> None:
    assert project_rules.check_branch(name) == name


@pytest.mark.parametrize("name", NO_BRANCHES)
def test_what_git_has_no_branches_of(name: str) -> None:
    with pytest.raises(RefusedError):
        project_rules.check_branch(name)


def test_tags_are_bounded() -> None:
    tags = {f"key-{number}": "v" for number in range(project_rules.MOST_TAGS)}
    assert project_rules.check_tags(tags) == tags
    for wrong in ({**tags, "one": "more"}, {"": "a"}, {"a b": "a"}, {"a": "x" * 256}, {"a": "\n"}):
        with pytest.raises(RefusedError) as caught:
            project_rules.check_tags(wrong)
        assert next(iter(caught.value.fields)).startswith("tags")


def test_descriptions_have_lines_and_no_control_characters() -> None:
    assert project_rules.check_description(" a\nb\t \n") == "a\nb"
    assert project_rules.check_description("") == ""
    for wrong in ("a\x00", "a\x1b[31m", "x" * 1_001, "a\ud800"):
        with pytest.raises(RefusedError):
            project_rules.check_description(wrong)


@given(st.text(max_size=60))
def test_no_text_leaves_the_places_that_are_allowed(text: str) -> None:
    allowed = ("https://git.example.com/team/",)
    for url in (text, f"https://git.example.com/team/{text}", f"https://git.example.com/{text}"):
        try:
            found = repositories.check_url(url, allowed)
        except RefusedError:
            continue
        assert found.startswith(allowed[0])
        assert not {"..", "."} & set(found.split("/"))
        assert "@" not in found.split("/")[2]


@given(st.text(max_size=40))
def test_no_folder_leaves_its_repository(text: str) -> None:
    try:
        root = repositories.check_root(text)
    except RefusedError:
        return
    assert not root.startswith(("/", "-"))
    assert not {"..", "."} & set(root.split("/"))
