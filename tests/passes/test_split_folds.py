"""Folds in stretches: golden forms are in the pass's docstring; here short stretches keep the answer."""

from __future__ import annotations

import numpy as np
import pytest

from blocklang.interpreter import run_kernel
from blocklang.ir.core import Kernel
from blocklang.ir.parser import parse_kernel
from blocklang.ir.verifier import verify
from blocklang.ops.tile import Iterate
from blocklang.passes import split_folds as module
from blocklang.passes.lower_to_tile import lower_to_tile

FOLD = """
kernel @fold(%out: ptr<i32>, %x: ptr<i32>) {
  %i = arange start=0, end=TOTAL : block<TOTALxi32>
  %p = offset %x, %i : block<TOTALxptr<i32>>
  %a = load %p : block<TOTALxi32>
  %s = reshape %a, shape=[ROWS, COLUMNS] : block<ROWSxCOLUMNSxi32>
  %r, %t = reduce_with %s, %s, axis=AXIS : block<KEPTxi32>, block<KEPTxi32> {
    (%la: i32, %lb: i32, %ra: i32, %rb: i32):
    %k = constant value=31 : i32
    %m = mul %la, %k : i32
    %u = add %m, %ra : i32
    %v = sub %lb, %ra : i32
    yield %u, %v
  }
  %y = add %r, %t : block<KEPTxi32>
  %j = arange start=0, end=KEPT : block<KEPTxi32>
  %q = offset %out, %j : block<KEPTxptr<i32>>
  store %q, %y
  return
}
"""


def answer(kernel: Kernel, x: np.ndarray, kept: int) -> list[int]:
    verify(kernel)
    out = np.zeros(kept, np.int32)
    run_kernel(kernel, [out, x], [1])
    numbers: list[int] = out.tolist()
    return numbers


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(3, 40), (40, 3), (64, 64), (9, 8), (1, 17)])
def test_short_stretches_keep_the_answer(
    shape: tuple[int, int], axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STRETCH_BYTES", 64)  # eight pairs
    rows, columns = shape
    kept = shape[1 - axis]
    text = FOLD.replace("TOTAL", str(rows * columns)).replace("ROWS", str(rows))
    text = text.replace("COLUMNS", str(columns)).replace("AXIS", str(axis)).replace("KEPT", str(kept))
    x = np.random.default_rng(axis).integers(-1000, 1000, rows * columns).astype(np.int32)
    kernel = parse_kernel(text)
    expected = answer(kernel, x, kept)
    lower_to_tile(kernel)
    module.split_folds(kernel)
    folds = [op for op in kernel.walk() if isinstance(op, Iterate) and op.combine]
    assert all(op.space[op.reduced] <= 8 for op in folds)
    assert answer(kernel, x, kept) == expected


def test_a_fold_that_is_no_users_is_not_split() -> None:
    text = """
    kernel @fold(%out: ptr<f32>, %x: f32) {
      %a = splat %x : block<100000xf32>
      %s = reduce %a, combine="sum", axis=0 : f32
      store %out, %s
      return
    }
    """
    kernel = parse_kernel(text)
    lower_to_tile(kernel)
    before = len(list(kernel.walk()))
    module.split_folds(kernel)
    assert len(list(kernel.walk())) == before
