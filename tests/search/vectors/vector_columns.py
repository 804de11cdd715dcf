"""Arrays of vectors as columns."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def column(vectors: Floats) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
