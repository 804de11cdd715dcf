import pickle

from caraway_core.tables import Keys, LookupColumns


def test_keys_are_sent_under_the_name_that_other_releases_know() -> None:
    keys = Keys(("a", "b"), "last", (LookupColumns(("c",), is_unique=True),))
    sent = pickle.dumps(keys)
    assert b"caraway_core.tables.keys" not in sent
    assert pickle.loads(sent) == keys
