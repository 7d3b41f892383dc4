"""Columns of pandas and Arrow as NumPy's views of their memory, without a copy.

What is not one contiguous run of plain numbers (missing values, several chunks, packed bits, categories) is
refused with what to do. Neither package is imported: whoever passes a column has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from blocklang.diagnostics import LaunchError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TABLES = ("DataFrame", "Table", "RecordBatch")


def is_column(value: object) -> bool:
    """True for a column or a table of pandas or Arrow."""
    package = type(value).__module__.partition(".")[0]
    if package == "pandas":
        return hasattr(value, "to_numpy")
    return package == "pyarrow" and (hasattr(value, "null_count") or type(value).__name__ in _TABLES)


def column_values(column: Any) -> NDArray[Any]:
    """A view of the memory of a column; read-only if a write would be lost or hit what others share.

    Raises:
        LaunchError: it is no single run of numbers in memory.
    """
    if type(column).__name__ in _TABLES:
        raise LaunchError(
            f"a {type(column).__name__} is no argument: each of its columns has memory of its own",
            help="pass the columns, for instance `table['name']`",
        )
    package = type(column).__module__.partition(".")[0]
    values = _of_pandas(column) if package == "pandas" else _of_arrow(column)
    if len(values) > 1 and values.strides != (values.itemsize,):
        raise LaunchError(
            f"the values of this column are {values.strides[0]} bytes apart: others lie between them",
            help="pass `column.to_numpy()` and its stride, `bl.strides(...)`, "
            "or `numpy.ascontiguousarray(column)`",
        )
    return values


def _of_pandas(column: Any) -> NDArray[Any]:
    dtype = column.dtype
    if isinstance(dtype, np.dtype):
        values = column.to_numpy(copy=False)
        # An index does not change, and one that is a range makes its values anew.
        return _read_only(values) if "Index" in type(column).__name__ else values
    inner = getattr(column, "array", column)
    if hasattr(inner, "__arrow_array__") and hasattr(dtype, "pyarrow_dtype"):
        return _of_arrow(inner.__arrow_array__())
    if not hasattr(dtype, "numpy_dtype"):
        raise LaunchError(
            f"a column of {dtype} has no plain numbers in memory",
            help="convert it: `column.to_numpy()`, or `column.cat.codes` for categories",
        )
    missing = int(column.isna().sum())
    if missing:
        raise LaunchError(
            f"this column of {dtype} misses {missing} of {len(column)} values, and a kernel sees no mask",
            help="fill them, `column.fillna(0)`, or pass `column.isna()` as an argument of its own",
        )
    return _read_only(column.to_numpy(dtype=dtype.numpy_dtype, copy=False))


def _of_arrow(column: Any) -> NDArray[Any]:
    chunks = getattr(column, "num_chunks", None)
    if chunks is not None:
        if chunks > 1:
            raise LaunchError(
                f"this column lies in {chunks} chunks of memory",
                help="join them first, `column.combine_chunks()`, or launch for each of `column.chunks`",
            )
        column = column.chunk(0) if chunks else column.combine_chunks()
    if column.null_count:
        raise LaunchError(
            f"this column of {column.type} misses {column.null_count} of {len(column)} values, "
            "and a kernel sees no mask",
            help="fill them, `column.fill_null(0)`, or pass `column.is_null()` as an argument of its own",
        )
    try:
        values: NDArray[Any] = column.to_numpy(zero_copy_only=True)
    except (ValueError, NotImplementedError, TypeError):
        raise LaunchError(
            f"a column of {column.type} has no plain numbers in memory",
            help="convert it: `column.cast('int8')` for booleans, which Arrow packs into bits, "
            "or `numpy.asarray(column)`, a copy",
        ) from None
    return values


def _read_only(values: NDArray[Any]) -> NDArray[Any]:
    view = values.view()
    view.flags.writeable = False
    return view
