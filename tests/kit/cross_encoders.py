"""A cross-encoder in a folder: its ONNX model counts the tokens that a text shares with a query."""

import shutil
import struct
from collections.abc import Sequence
from pathlib import Path

from caraway_plugins.embeddings import builtin

_FLOAT, _INT64 = 1, 7


def write(folder: Path, labels: int = 1) -> Path:
    """Write the model and its tokenizer; with other labels, that many equal ones."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(_model(labels))
    shutil.copy(builtin.TOKENIZER, folder / "tokenizer.json")
    return folder


def _model(labels: int) -> bytes:
    nodes = [
        _node("Unsqueeze", ["input_ids", "axis2"], "rows"),
        _node("Unsqueeze", ["input_ids", "axis1"], "columns"),
        _node("Equal", ["rows", "columns"], "same"),
        _node("Cast", ["same"], "shared", _attribute("to", _FLOAT)),
        _node("Cast", ["token_type_ids"], "text", _attribute("to", _FLOAT)),
        _node("Sub", ["one", "text"], "query"),
        _node("Unsqueeze", ["query", "axis2"], "of_query"),
        _node("Unsqueeze", ["text", "axis1"], "of_text"),
        _node("Mul", ["of_query", "of_text"], "pairs"),
        _node("Mul", ["shared", "pairs"], "found"),
        _node("ReduceSum", ["found", "axes12"], "sum", _attribute("keepdims", 0)),
        _node("Unsqueeze", ["sum", "axis1"], "one_label"),
        _node("Concat", ["one_label"] * labels, "logits", _attribute("axis", 1)),
    ]
    constants = [
        _tensor("axis1", _INT64, struct.pack("<q", 1), 1),
        _tensor("axis2", _INT64, struct.pack("<q", 2), 1),
        _tensor("axes12", _INT64, struct.pack("<2q", 1, 2), 2),
        _tensor("one", _FLOAT, struct.pack("<f", 1.0), 1),
    ]
    inputs = [_value(name, _INT64, 2) for name in ("input_ids", "token_type_ids")]
    graph = [*_each(1, nodes), _bytes(2, b"g"), *_each(5, constants), *_each(11, inputs)]
    graph.append(_bytes(12, _value("logits", _FLOAT, 2)))
    return _number(1, 8) + _bytes(7, b"".join(graph)) + _bytes(8, _number(2, 13))


def _node(kind: str, inputs: Sequence[str], output: str, attribute: bytes = b"") -> bytes:
    parts = [*(_bytes(1, name.encode()) for name in inputs), _bytes(2, output.encode())]
    parts.append(_bytes(4, kind.encode()))
    return b"".join(parts) + (_bytes(5, attribute) if attribute else b"")


def _attribute(name: str, value: int) -> bytes:
    return _bytes(1, name.encode()) + _number(3, value) + _number(20, 2)


def _tensor(name: str, kind: int, raw: bytes, length: int) -> bytes:
    return _number(1, length) + _number(2, kind) + _bytes(8, name.encode()) + _bytes(9, raw)


def _value(name: str, kind: int, rank: int) -> bytes:
    shape = b"".join(_bytes(1, _bytes(2, f"{name}{axis}".encode())) for axis in range(rank))
    tensor = _number(1, kind) + _bytes(2, shape)
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, tensor))


def _each(field: int, parts: Sequence[bytes]) -> list[bytes]:
    return [_bytes(field, part) for part in parts]


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
