"""Columns of pandas and Arrow as arguments, without a copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import blocklang as bl
from blocklang.runtime.arrays import describe_array
from tests.frameworks import kernels

REASON = "pandas and pyarrow are an extra: pip install 'blocklang[columns]'"
pd = pytest.importorskip("pandas", reason=REASON)
pa = pytest.importorskip("pyarrow", reason=REASON)

N = 37


def doubled(column: Any) -> Any:
    array = describe_array(column)
    out = np.zeros(N, np.asarray(column).dtype)
    kernels.add[(1,)](column, column, out, N, BLOCK=64)
    assert array.shape == (N,)
    return out


def numbers() -> Any:
    return np.arange(N, dtype=np.float32)


@pytest.mark.parametrize(
    "make",
    [
        pd.Series,
        pd.Index,
        lambda x: pd.DataFrame({"a": x, "b": x + 1})["a"],
        lambda x: pd.Series(x).astype("Float32"),
        lambda x: pd.Series(x).astype("float[pyarrow]"),
        lambda x: pd.Series(x).array,
        pa.array,
        lambda x: pa.array(np.concatenate([x, x]))[:N],
        lambda x: pa.array(np.concatenate([x, x]))[N:],
        lambda x: pa.chunked_array([pa.array(x)]),
        lambda x: pa.table({"a": x})["a"],
    ],
)
def test_columns(make: Callable[[Any], Any]) -> None:
    assert np.array_equal(doubled(make(numbers())), 2 * numbers())


def test_memory_is_the_column_s() -> None:
    frame = pd.DataFrame({"a": numbers(), "b": numbers()})
    values = frame["b"].to_numpy(copy=False)
    assert describe_array(frame["b"]).address == values.__array_interface__["data"][0]
    column = pa.array(numbers())
    assert describe_array(column).address == column.buffers()[1].address
    assert describe_array(column[5:]).address == column.buffers()[1].address + 20
    assert describe_array(pa.chunked_array([], pa.float32())).shape == (0,)


def test_a_range_index_and_integers() -> None:
    out = np.zeros(N, np.int64)
    index = pd.RangeIndex(N)
    kernels.add[(1,)](index, index, out, N, BLOCK=64)
    assert np.array_equal(out, 2 * np.arange(N))


@pytest.mark.parametrize("make", [pd.Index, pa.array, lambda x: pd.Series(x).astype("Float32")])
def test_what_must_not_change_is_read_only(make: Callable[[Any], Any]) -> None:
    with pytest.raises(bl.LaunchError, match="read-only"):
        kernels.increment[(1,)](make(numbers()), N, 1.0, BLOCK=64)


@pytest.mark.parametrize(
    ("make", "words", "remedy"),
    [
        (lambda: pa.array([1.0, None, 3.0]), "misses 1 of 3 values", "fill_null"),
        (lambda: pa.chunked_array([[1.0], [2.0]]), "in 2 chunks", "combine_chunks"),
        (lambda: pa.array([True, False]), "column of bool", "cast"),
        (lambda: pa.array(["a", "b"]), "column of string", "asarray"),
        (lambda: pa.table({"a": [1.0]}), "Table is no argument", "pass the columns"),
        (lambda: pd.DataFrame({"a": [1.0]}), "DataFrame is no argument", "pass the columns"),
        (lambda: pd.Series([1, None], dtype="Int64"), "misses 1 of 2", "fillna"),
        (lambda: pd.Series([1, None], dtype="int64[pyarrow]"), "misses 1 of 2", "fill_null"),
        (lambda: pd.Series(["a", "b"], dtype="category"), "column of category", "cat.codes"),
        (lambda: pd.Series(pd.date_range("2020", periods=2)), "dates", "bool"),
        (lambda: pd.Series(np.zeros(8))[::2], "16 bytes apart", "ascontiguousarray"),
        (lambda: pd.Series([object()]), "Python objects", "bool"),
    ],
)
def test_what_is_no_run_of_numbers_is_refused(make: Callable[[], Any], words: str, remedy: str) -> None:
    with pytest.raises(bl.LaunchError, match=words) as info:
        kernels.increment[(1,)](make(), 1, 1.0, BLOCK=2)
    assert remedy in str(info.value)
    assert "argument 'x'" in str(info.value)
