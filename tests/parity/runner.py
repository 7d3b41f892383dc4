"""Run the kernels of a module in a process of its own: `python runner.py SIDE MODULE CASES OUT [DTYPES]`.

SIDE is "triton" (the original, in its interpreter mode, on PyTorch tensors) or "blocklang". CASES holds the
names of the cases to run. OUT gets, per case, the dtype and bytes of the result, or the error. Which dtype
a result has is known from OUT of the other side, given as DTYPES; else a first launch, which stores to
float64, tells.
"""

from __future__ import annotations

import importlib.util
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.parity.cases import ALL, DTYPE_CODES, Case
from tests.parity.values import make, numpy_dtype

TORCH_NAMES = {"float8_e5m2": "float8_e5m2", "float8_e4m3fn": "float8_e4m3fn"}


def _numpy_side() -> tuple[Callable[[Any], Any], Callable[[Any], bytes]]:
    return (lambda array: array.copy()), (lambda array: array.tobytes())


def _torch_side() -> tuple[Callable[[Any], Any], Callable[[Any], bytes]]:
    import torch

    def to_tensor(array: Any) -> Any:
        dtype = getattr(torch, array.dtype.name)
        raw = torch.from_numpy(array.reshape(-1).view(np.uint8).copy())
        return raw.view(dtype).reshape(array.shape)

    def to_bytes(tensor: Any) -> bytes:
        return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())

    return to_tensor, to_bytes


def run(
    case: Case, kernel: Any, load: Callable[[Any], Any], dump: Callable[[Any], bytes], expected: str | None
) -> Any:
    """(dtype name, bytes) of the result, or the name of the error's class."""
    shape = case.inputs[0].shape if case.shape is None else case.shape
    inputs = [load(make(case.name, k, one)) for k, one in enumerate(case.inputs)]
    code = np.full(1, -1, np.int32)

    def launch(dtype: str) -> tuple[int, bytes]:
        result, found = load(np.zeros(shape or (1,), numpy_dtype(dtype))), load(code)
        kernel[(1,)](result, found, *inputs)
        return int(np.frombuffer(dump(found), np.int32)[0]), dump(result)

    try:
        position, result = launch(expected or "float64")
        dtype = DTYPE_CODES[position]
        return dtype, result if dtype == expected else launch(dtype)[1]
    except Exception as error:  # noqa: BLE001 - which error it is, is the result
        return f"{type(error).__name__}: {str(error)[-300:]}"


def main(side: str, module: str, names: str, output: str, known: str = "") -> None:
    spec = importlib.util.spec_from_file_location("parity_kernels", module)
    assert spec is not None
    assert spec.loader is not None
    kernels = importlib.util.module_from_spec(spec)
    sys.modules["parity_kernels"] = kernels
    spec.loader.exec_module(kernels)
    wanted = set(Path(names).read_text().split())
    load, dump = _torch_side() if side == "triton" else _numpy_side()
    other = pickle.loads(Path(known).read_bytes()) if known else {}
    results = {}
    for case in ALL:
        if case.name in wanted:
            expected = other[case.name][0] if isinstance(other.get(case.name), tuple) else None
            results[case.name] = run(case, getattr(kernels, f"case_{case.name}"), load, dump, expected)
    Path(output).write_bytes(pickle.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
