"""A small library as its authors ship it: plain `import triton`. `test_library.py` writes it to files.

It picks code by Triton's version, wraps kernels in a launcher of its own (a `KernelInterface` that keeps
compiled kernels by key), reads kernels' parameters, and writes the source of pointwise kernels at run time.
"""

# ruff: noqa: E501
from __future__ import annotations

LIBENTRY = '''
import importlib.metadata
import inspect

import triton
import triton.language as tl
from triton.runtime import JITFunction
from triton.runtime.autotuner import Autotuner, Heuristics

TRITON_VERSION = tuple(int(part) for part in triton.__version__.split(".")[:2])
assert importlib.metadata.version("triton") == triton.__version__

if TRITON_VERSION >= (3, 0):
    try:
        from triton.language.extra.libdevice import rsqrt
    except ImportError:
        rsqrt = tl.rsqrt
    HAS_LIBDEVICE = True
else:
    from triton.language.math import rsqrt
    HAS_LIBDEVICE = False

if hasattr(tl, "make_tensor_descriptor"):
    make_tensor_descriptor = tl.make_tensor_descriptor
elif hasattr(tl, "_experimental_make_tensor_descriptor"):
    make_tensor_descriptor = tl._experimental_make_tensor_descriptor
else:
    @triton.jit
    def make_tensor_descriptor(base, shape, strides, block_shape):
        return None


class LibEntry(triton.KernelInterface):
    """Launches a kernel, whatever decorators it wears, and keeps what was compiled by the arguments' kinds."""

    def __init__(self, fn):
        self.fn = fn
        self.arg_names = fn.arg_names
        while not isinstance(fn, triton.runtime.JITFunction):
            fn = fn.fn
        self.jit_function = fn
        self.specialize_indices = [
            p.num for p in fn.params if not p.is_constexpr and not p.do_not_specialize
        ]
        self.constexpr_names = [p.name for p in fn.params if p.is_constexpr]
        self.signature = fn.signature
        self.kernel_cache = {}
        self.hits = 0

    def key(self, args, kwargs):
        bound = {**dict(zip(self.arg_names, args)), **kwargs}
        parts = []
        for index, name in enumerate(self.arg_names):
            if name not in bound:
                continue
            value = bound[name]
            if hasattr(value, "dtype") and hasattr(value, "ctypes"):
                parts.append((name, str(value.dtype), value.ctypes.data % 16 == 0))
            elif index in self.specialize_indices and isinstance(value, int):
                parts.append((name, "i64" if abs(value) > 2**31 else "i32", value % 16 == 0, value == 1))
            else:
                parts.append((name, value if name in self.constexpr_names else type(value)))
        return tuple(parts)

    def run(self, *args, **kwargs):
        grid = kwargs.pop("grid")
        warmup = kwargs.pop("warmup", False)
        key = self.key(args, kwargs)
        if key in self.kernel_cache:
            self.hits += 1
        kernel = self.fn.run(*args, grid=grid, warmup=warmup, **kwargs)
        self.kernel_cache[key] = kernel
        return kernel


def libentry():
    """Decorator for triton library entries."""
    def decorator(fn):
        return LibEntry(fn)
    return decorator
'''

KERNELS = """
import triton
import triton.language as tl

from {package}.libentry import libentry, rsqrt


def heur_block_n(args):
    return triton.next_power_of_2(args["N"])


@libentry()
@triton.autotune(
    configs=[triton.Config({{"BLOCK_M": m}}, num_warps=w) for m, w in ((1, 2), (4, 4))],
    key=["M", "N"],
)
@triton.heuristics({{"BLOCK_N": heur_block_n, "EVEN_N": lambda args: args["N"] == args["BLOCK_N"]}})
@triton.jit(do_not_specialize=["eps"])
def normalise_kernel(x, out, M, N, eps, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, EVEN_N: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    n = tl.arange(0, BLOCK_N)[None, :]
    mask = m < M
    if not EVEN_N:
        mask = mask & (n < N)
    value = tl.load(x + m * N + n, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(value, axis=1)[:, None] / N
    centred = tl.where(mask, value - mean, 0.0)
    var = tl.sum(centred * centred, axis=1)[:, None] / N
    tl.store(out + m * N + n, centred * rsqrt(var + eps), mask=mask)


@libentry()
@triton.jit
def scale_kernel(x, out, n, factor: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)
"""

POINTWISE = '''
import importlib.util
import textwrap

import triton
from triton.runtime import JITFunction


class IndentedBuffer:
    def __init__(self):
        self.lines, self.level = [], 0

    def writeline(self, line=""):
        self.lines.append("    " * self.level + line if line else "")

    def indent(self):
        buffer = self

        class Indent:
            def __enter__(self):
                buffer.level += 1

            def __exit__(self, *_):
                buffer.level -= 1

        return Indent()

    def getvalue(self):
        return "\\n".join(self.lines) + "\\n"


class PointwiseDynamicFunction:
    """Applies a scalar @triton.jit function to strided arrays of any rank: a kernel is written for each rank."""

    def __init__(self, fn, directory):
        assert isinstance(fn, JITFunction)
        self.fn, self.directory, self.overloads = fn, directory, {}
        self.num_inputs = len([p for p in fn.params if not p.is_constexpr])

    def generate(self, ndim):
        code = IndentedBuffer()
        name = self.fn.fn.__name__
        code.writeline("import triton")
        code.writeline("from triton import language as tl")
        code.writeline(f"from {self.fn.fn.__module__} import {name}")
        code.writeline()
        code.writeline()
        code.writeline("@triton.jit(do_not_specialize=['num_tasks'])")
        code.writeline("def pointwise_kernel(")
        with code.indent():
            for i in range(self.num_inputs):
                code.writeline(f"in{i}_ptr: tl.tensor,")
            code.writeline("out0_ptr: tl.tensor,")
            for who in [*(f"in{i}" for i in range(self.num_inputs)), "out0"]:
                code.writeline(" ".join(f"{who}_stride{d}: int," for d in range(ndim)) + f" # strides of {who}")
            code.writeline(" ".join(f"s{d}: int," for d in range(ndim)) + " # task space")
            code.writeline("num_tasks: int,")
            code.writeline("tile_size: tl.constexpr,")
            code.writeline("one_tile_per_cta: tl.constexpr,")
        code.writeline("):")
        with code.indent():
            code.writeline("pid = tl.program_id(0)")
            code.writeline("num_ctas = tl.num_programs(0)")
            code.writeline("for j in range(0, 1 if one_tile_per_cta else tl.cdiv(num_tasks, num_ctas * tile_size)):")
            with code.indent():
                code.writeline("tid = (pid + j * num_ctas) * tile_size + tl.arange(0, tile_size)")
                code.writeline("mask = tid < num_tasks")
                code.writeline("# multi index reconstruction")
                code.writeline("rest = tid")
                for d in reversed(range(ndim)):
                    code.writeline(f"i{d} = rest % s{d}")
                    if d:
                        code.writeline(f"rest = rest // s{d}")
                names = []
                for i in range(self.num_inputs):
                    offset = " + ".join(f"i{d} * in{i}_stride{d}" for d in range(ndim)) or "0 * tid"
                    code.writeline(f"in{i} = tl.load(in{i}_ptr + ({offset}), mask=mask).to(in{i}_ptr.type.element_ty)")
                    names.append(f"in{i}")
                code.writeline(f"out0 = {name}({', '.join(names)})")
                offset = " + ".join(f"i{d} * out0_stride{d}" for d in range(ndim)) or "0 * tid"
                code.writeline(f"tl.store(out0_ptr + ({offset}), out0.to(out0_ptr.type.element_ty), mask=mask)")
        return code.getvalue()

    def instantiate(self, ndim):
        if ndim not in self.overloads:
            path = self.directory / f"pointwise_{self.fn.fn.__name__}_rank_{ndim}.py"
            path.write_text(self.generate(ndim))
            spec = importlib.util.spec_from_file_location(f"_gen_{self.fn.fn.__name__}_{ndim}", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            self.overloads[ndim] = module.pointwise_kernel
        return self.overloads[ndim]

    def __call__(self, out, *inputs, tile=64, ctas=None):
        kernel = self.instantiate(out.ndim)
        strides = [s // x.itemsize for x in (*inputs, out) for s in x.strides]
        tiles = triton.cdiv(out.size, tile)
        grid = (min(tiles, ctas or tiles), 1, 1)
        kernel[grid](
            *inputs, out, *strides, *out.shape, out.size, tile_size=tile, one_tile_per_cta=grid[0] == tiles
        )
        return out


def pointwise_dynamic(directory):
    return lambda fn: PointwiseDynamicFunction(fn, directory)
'''

FUNCTIONS = """
import triton
import triton.language as tl


@triton.jit
def gelu_and_mul(x, y):
    x = x.to(tl.float32)
    return 0.5 * x * (1 + tl.math.erf(x * 0.7071067811865476)) * y


@triton.jit
def where_positive(c, x, y):
    return tl.where(c > 0, x, y)
"""
