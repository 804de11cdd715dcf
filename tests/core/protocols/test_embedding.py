"""Models that make vectors: their marks, and their specs without secrets."""

import pickle

from caraway_core.protocols import embedding
from caraway_core.protocols.embedding import EmbedderSpec


def test_marks_tell_identities_apart_and_are_short() -> None:
    marks = {embedding.mark_of(each) for each in ("", "a", "b", "a" * 10_000)}
    assert len(marks) == 4
    assert all(len(each) == len("embedding-") + 16 for each in marks)
    # Versions name it, so it stays.
    assert embedding.mark_of("a") == "embedding-ca978112ca1bbdca"


def test_a_spec_crosses_to_executors_and_shows_no_secret() -> None:
    spec = EmbedderSpec("m", "openai", "e", {"openai_api_key": "hunter2"})
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert "hunter2" not in repr(spec)
