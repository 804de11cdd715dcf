"""Result formats: each encodes batches as they arrive, without holding rows back.

Two formats buffer a bounded number of rows: the bordered text table, to compute its widths, and
Parquet, whose rows are written in groups.
"""

from caraway_serving.formats.encoders import Encoder, Format, make

__all__ = ["Encoder", "Format", "make"]
