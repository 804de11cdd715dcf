"""Wire formats of an answer: each turns batches into bytes as they come, and holds no rows back.

Only the bordered text table looks ahead, by a bounded number of rows, to find its widths.
"""

from caraway_engine.formats.encoders import Encoder, Format, make

__all__ = ["Encoder", "Format", "make"]
