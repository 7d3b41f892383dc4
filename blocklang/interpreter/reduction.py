"""The meaning of reductions and `dot`; the orders themselves are in `folds`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from blocklang.interpreter.dtypes import F16, F32, Array, convert_float, round_to_tf32, widen
from blocklang.interpreter.evaluation import Machine, evaluates
from blocklang.interpreter.folds import arg_fold, fold, matrix_chain, tree_fold
from blocklang.ir.core import Region
from blocklang.ops import reduction as ops


def is_interleaved(shape: Sequence[int], axis: int) -> bool:
    """True if a float sum along `axis` keeps 32 partial results: no axis after it has lanes."""
    return math.prod(shape[axis + 1 :]) == 1


@evaluates(ops.Reduce)
def reduce(op: ops.Reduce, machine: Machine) -> Array:
    lanes = machine[op.source]
    interleaved = is_interleaved(lanes.shape, op.axis)
    return fold(op.combine, np.moveaxis(lanes, op.axis, 0), interleaved=interleaved)


@evaluates(ops.ArgReduce)
def arg_reduce(op: ops.ArgReduce, machine: Machine) -> tuple[Array, Array]:
    lanes = np.moveaxis(machine[op.source], op.axis, 0)
    return arg_fold(op.combine, lanes, lane_indices(lanes.shape))


def lane_indices(shape: Sequence[int]) -> Array:
    """The int32 index along axis 0 of every lane."""
    index = np.arange(shape[0], dtype=np.int32).reshape(-1, *[1] * (len(shape) - 1))
    return np.broadcast_to(index, shape)


@evaluates(ops.ReduceWith)
def reduce_with(op: ops.ReduceWith, machine: Machine) -> list[Array]:
    return fold_with(machine, op.combiner, [np.moveaxis(machine[v], op.axis, 0) for v in op.inputs])


def fold_with(machine: Machine, combiner: Region, lanes: Sequence[Array]) -> list[Array]:
    """Fold axis 0 of several arrays with a region, all pairs of a round at once."""

    def combine(left: list[Array], right: list[Array]) -> list[Array]:
        with machine.under(None):
            return machine.yields(combiner, [*left, *right])

    return tree_fold(combine, lanes)


@evaluates(ops.Dot)
def dot(op: ops.Dot, machine: Machine) -> Array:
    return contract(machine[op.a], machine[op.b], machine[op.acc], op.input_precision, op.start)


def contract(a: Array, b: Array, acc: Array, input_precision: str, start: str) -> Array:
    """`acc + a @ b` as `dot` defines it."""
    if input_precision == "tf32" and a.dtype == F32:
        a, b = round_to_tf32(a), round_to_tf32(b)
    total = accumulate(a, b, widen(acc), start)
    return convert_float(total, F16) if acc.dtype == F16 else total


def accumulate(a: Array, b: Array, acc: Array, start: str) -> Array:
    """`acc + a @ b`, the chains starting from the accumulator ("acc") or from 0, the accumulator added last
    ("add")."""
    if start == "acc":
        return matrix_chain(a, b, acc)
    return np.asarray(acc + matrix_chain(a, b, np.zeros_like(acc)))
