"""What arrays are in memory: address, type, byte range; who is refused."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from blocklang.diagnostics import LaunchError
from blocklang.ir.types import F8E4B15, SCALARS
from blocklang.runtime.arrays import describe_array, element_type_of, is_array, numpy_dtype, strides


def test_every_element_type_has_a_dtype() -> None:
    for type_ in set(SCALARS.values()) - {F8E4B15}:  # which no library has
        dtype = numpy_dtype(type_)
        assert dtype.itemsize == type_.bytes
        assert describe_array(np.zeros(3, dtype)).element == type_


@pytest.mark.parametrize("code", "bhilqBHILQ")
def test_c_names_of_integers(code: str) -> None:
    element = element_type_of(np.dtype(code))
    assert element is not None
    assert element.bytes == np.dtype(code).itemsize


def views() -> list[NDArray[np.float32]]:
    whole = np.zeros((6, 8), np.float32)
    unaligned = np.zeros(41, np.uint8)[1:].view(np.float32)
    return [
        whole,
        whole[::-1],
        whole[:, ::-2],
        whole[1:5, 2],
        whole.T,
        whole[2:2],
        np.broadcast_to(whole[0], (4, 8)),
        np.zeros((), np.float32),
        unaligned,
        np.asfortranarray(whole),
    ]


@pytest.mark.parametrize("number", range(10))
def test_address_and_byte_range(number: int) -> None:
    view = views()[number]
    array = describe_array(view)
    assert array.address == view.__array_interface__["data"][0]
    low, high = array.byte_range()
    if view.size == 0:
        assert low == high
    else:
        assert (low, high) == np.lib.array_utils.byte_bounds(view)


class Interface:
    def __init__(self, array: NDArray[Any]) -> None:
        self.__array_interface__ = array.__array_interface__
        self.owner = array


class Exchange:
    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


class Tensor:
    """What PyTorch's tensors offer."""

    def __init__(self, array: NDArray[Any], device: str = "cpu") -> None:
        self._array = array
        self.dtype = f"torch.{array.dtype.name}"
        self.shape = array.shape
        self.device = device

    def data_ptr(self) -> int:
        return int(self._array.ctypes.data)

    def stride(self) -> tuple[int, ...]:
        return strides(self._array)


@pytest.mark.parametrize("kind", [Interface, Exchange, Tensor])
def test_other_arrays_are_used_in_place(kind: type) -> None:
    source = np.arange(12, dtype=np.int32).reshape(3, 4)[:, ::2]
    value = kind(source)
    assert is_array(value)
    array = describe_array(value)
    assert (array.address, array.shape, array.strides) == (source.ctypes.data, source.shape, source.strides)


def test_a_tensor_of_bfloat16() -> None:
    assert describe_array(Tensor(np.zeros(2, ml_dtypes.bfloat16))).element == SCALARS["bf16"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.zeros(2, ">f4"), "byte order"),
        (np.zeros(2, object), "Python objects"),
        (np.zeros(2, [("a", "f4"), ("b", "i4")]), "records"),
        (np.zeros(2, complex), "complex"),
        (np.zeros(2, "U3"), "strings"),
        (np.zeros(2, "M8[s]"), "dates"),
        (np.ma.zeros(2), "mask"),
        (Tensor(np.zeros(2), "cuda:0"), "cuda:0"),
        (Tensor(np.zeros(2, complex)), "complex"),
    ],
)
def test_refused(value: Any, words: str) -> None:
    assert is_array(value)
    with pytest.raises(LaunchError, match=words):
        describe_array(value)


@pytest.mark.parametrize("value", [1, 1.5, None, "x", np.float32(1), np.float32, [1], (1,)])
def test_not_arrays(value: Any) -> None:
    assert not is_array(value)


def test_strides_count_elements() -> None:
    whole = np.zeros((4, 6), np.float16)
    assert strides(whole) == (6, 1)
    assert strides(whole[::-1, ::2]) == (-6, 2)
    assert strides(np.broadcast_to(whole[0], (3, 6))) == (0, 1)
    assert strides(np.zeros(())) == ()


def test_strides_of_a_field_are_refused() -> None:
    with pytest.raises(LaunchError, match="whole elements"):
        strides(np.zeros(3, [("a", "f4"), ("b", "i2")])["a"])
    with pytest.raises(LaunchError, match="takes an array"):
        strides(3)
