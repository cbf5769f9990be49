"""Arrow columns over NumPy memory and Python texts.

`pa.array` looks for pandas and so imports it, which takes longer than reading most logs; these functions do not.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa


def numbers(values: np.ndarray, kind: pa.DataType, missing: np.ndarray | None = None) -> pa.Array:
    """Return a column of numbers over the memory of an array.

    Args:
        values: Of the type that `kind` stores, shape (n,).
        kind: The Arrow type.
        missing: Which are null, shape (n,).
    """
    values = np.ascontiguousarray(values)
    valid = None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(values)])


def texts(values: Sequence[str]) -> pa.Array:
    """Return a column of texts; what UTF-8 can't encode (half of a surrogate pair) becomes a question mark."""
    encoded = [value.encode("utf-8", "replace") for value in values]
    ends = np.zeros(len(encoded) + 1, dtype=np.int32)
    np.cumsum([len(part) for part in encoded], out=ends[1:])
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)))


def codes_of_texts(codes: np.ndarray, values: Sequence[str], missing: np.ndarray | None = None) -> pa.DictionaryArray:
    """Return a column of texts as codes and the distinct texts.

    Args:
        codes: Index into `values` of each entry, shape (n,).
        values: The distinct texts.
        missing: Which are null, shape (n,).
    """
    indices = numbers(codes.astype(np.int32, copy=False), pa.int32(), missing)
    return pa.DictionaryArray.from_arrays(indices, texts(values))
