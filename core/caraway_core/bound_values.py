"""Values bound to placeholders that are of a type which JSON cannot say."""

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class ArrowValue:
    """One value of any Arrow type, as an IPC stream: two that are the same compare equal."""

    ipc: bytes

    @classmethod
    def from_array(cls, values: pa.Array) -> "ArrowValue":
        """Take the one value of an array."""
        batch = pa.RecordBatch.from_arrays([values], names=["value"])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return cls(sink.getvalue().to_pybytes())

    @property
    def array(self) -> pa.Array:
        """The value with its type, as an array of one."""
        with pa.ipc.open_stream(pa.py_buffer(self.ipc)) as reader:
            return reader.read_next_batch().column(0)

    @property
    def scalar(self) -> pa.Scalar:
        """The value with its type."""
        return self.array[0]
