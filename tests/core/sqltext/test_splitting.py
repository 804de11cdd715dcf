import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.sqltext import splitting


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select 1; select 2", ("select 1", "select 2")),
        ("select ';'; select \";\"", ("select ';'", 'select ";"')),
        ("select 'it''s;' ;", ("select 'it''s;'",)),
        ("select 1 -- not; here\n;", ("select 1 -- not; here",)),
        ("/* no; */ select 1", ("/* no; */ select 1",)),
        ("select $$a;b$$; select $t$c;$$;$t$", ("select $$a;b$$", "select $t$c;$$;$t$")),
        ("select $1; select $2", ("select $1", "select $2")),
        ("select /* /* ; */ ; */ 1; select 2", ("select /* /* ; */ ; */ 1", "select 2")),
        (r"select E'\';'; select 2", (r"select E'\';'", "select 2")),
        ("select a$b$; select c$b$", ("select a$b$", "select c$b$")),
        ("select $1$;$1$; select `;`", ("select $1$;$1$", "select `;`")),
        ("select q'[';]'; select 2", ("select q'[';]'", "select 2")),
        (";; -- nothing\n ; /* at all */", ()),
    ],
)
def test_statements_end_at_semicolons_outside_of_quotes_and_comments(
    text: str, expected: tuple[str, ...]
) -> None:
    assert splitting.split(text).all() == expected


@pytest.mark.parametrize("text", ["select 'a;", 'select "a;', "select $$a;", "select 1 /* ;"])
def test_what_is_still_open_is_the_rest(text: str) -> None:
    assert splitting.split(text) == splitting.Script((), text)


@given(st.lists(st.text(alphabet="ab'\"$-/*; \n", max_size=20), max_size=5))
def test_no_text_is_refused_and_none_gains_characters(parts: list[str]) -> None:
    text = ";".join(parts)

    script = splitting.split(text).all()

    assert all(statement in text for statement in script)
