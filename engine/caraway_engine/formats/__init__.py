"""Wire formats of an answer: each turns batches into bytes as they come, and holds no rows back.

Only two wait for a bounded number of rows: the bordered text table, to find its widths, and
Parquet, whose rows come in groups.
"""

from caraway_engine.formats.encoders import Encoder, Format, make

__all__ = ["Encoder", "Format", "make"]
