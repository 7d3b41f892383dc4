"""Section 4, memory: loads, stores, block pointers, descriptors and atomics, an argument a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from docs.conformance.kernels import DTYPES, Kernel, Refuses
from docs.conformance.model import Row

INPUT = (np.arange(64, dtype=np.float32),)
_PTR = "tl.make_block_ptr(X, {}, [1], [{}], [N], [0])"
_OUT = "tl.make_block_ptr(O, [40], [1], [0], [N], [0])"


def _loads() -> list[Row]:
    group = "load and store"
    guarded = f"p = {_PTR.format('[40]', 0)}\n"
    table: dict[str, tuple[str, Callable[..., Any] | None]] = {
        "load(pointer)": ("r = tl.load(X + i)", lambda x: x),
        "load(scalar pointer)": ("r = tl.load(X + 3) + x * 0", lambda x: x * 0 + x[0, 3]),
        "load(mask)": ("r = tl.load(X + i, mask=i < 5)", lambda x: np.where(_index(x) < 5, x, 0)),
        "load(mask broadcast)": (
            "r = tl.load(X + i, mask=tl.program_id(0) < 1)",
            lambda x: np.where(_index(x) < x.shape[1], x, 0),
        ),
        "load(other)": ("r = tl.load(X + i, mask=i < 5, other=7.0)", lambda x: np.where(_index(x) < 5, x, 7)),
        "load(other block)": (
            "r = tl.load(X + i, mask=i < 5, other=i)",
            lambda x: np.where(_index(x) < 5, x, _index(x)),
        ),
        **{
            f"load(cache_modifier={m!r})": (f"r = tl.load(X + i, cache_modifier={m!r})", lambda x: x)
            for m in ("", ".ca", ".cg", ".cv")
        },
        **{
            f"load(eviction_policy={m!r})": (f"r = tl.load(X + i, eviction_policy={m!r})", lambda x: x)
            for m in ("", "evict_first", "evict_last")
        },
        "load(volatile)": ("r = tl.load(X + i, volatile=True)", lambda x: x),
    }
    rows = [
        Row(group, n, Kernel(code, wanted=w, numpy=(lambda x: x.copy()) if n == "load(pointer)" else False))
        for n, (code, w) in table.items()
    ]
    padded: dict[str, tuple[str, Callable[..., Any]]] = {
        "load(boundary_check)": (
            f"{guarded}r = tl.load(p, boundary_check=(0,))",
            lambda x: np.where(x < 40, x, 0),
        ),
        "load(padding_option='')": (
            f"{guarded}r = tl.load(p, boundary_check=(0,), padding_option='')",
            lambda x: np.where(x < 40, x, 0),
        ),
        "load(padding_option='zero')": (
            f"{guarded}r = tl.load(p, boundary_check=(0,), padding_option='zero')",
            lambda x: np.where(x < 40, x, 0),
        ),
        "load(padding_option='nan')": (
            f"{guarded}r = tl.load(p, boundary_check=(0,), padding_option='nan')",
            lambda x: np.where(x < 40, x, np.nan),
        ),
    }
    rows += [Row(group, n, Kernel(code, INPUT, shape=(64,), wanted=w)) for n, (code, w) in padded.items()]
    stores: dict[str, tuple[str, Callable[..., Any]]] = {
        "store(pointer, value)": ("tl.store(O + i, x)", lambda x: x),
        "store(scalar value)": ("tl.store(O + i, 3)", lambda x: x * 0 + 3),
        "store(scalar pointer)": ("tl.store(O + 5, 3.0)", lambda x: np.where(_index(x) == 5, 3, 0)),
        "store(mask)": ("tl.store(O + i, x, mask=i < 5)", lambda x: np.where(_index(x) < 5, x, 0)),
        **{
            f"store(cache_modifier={m!r})": (f"tl.store(O + i, x, cache_modifier={m!r})", lambda x: x)
            for m in ("", ".wb", ".cg", ".cs", ".wt")
        },
        **{
            f"store(eviction_policy={m!r})": (f"tl.store(O + i, x, eviction_policy={m!r})", lambda x: x)
            for m in ("", "evict_first", "evict_last")
        },
    }
    rows += [Row(group, n, Kernel(code, wanted=w, stores=True)) for n, (code, w) in stores.items()]
    rows.append(
        Row(
            group,
            "store(boundary_check)",
            Kernel(
                f"tl.store({_OUT}, x, boundary_check=(0,))",
                INPUT,
                stores=True,
                shape=(64,),
                wanted=lambda x: np.where(x < 40, x, 0),
            ),
        )
    )
    for dtype in DTYPES:
        rows.append(
            Row(
                group,
                f"load and store {dtype}",
                Kernel("r = x", (dtype,), dtype, wanted=lambda x: x, numpy=lambda x: x.copy()),
            )
        )
    rows.append(
        Row(
            group,
            "a store casts to the element type",
            Kernel(
                "tl.store(O + i, x * 3.7)",
                out="int32",
                stores=True,
                wanted=lambda x: (x * np.float32(3.7)).astype(np.int32),
            ),
        )
    )
    refused = {
        "other without mask is refused": ("r = tl.load(X + i, other=1.0)", "other.*mask|mask.*other"),
        "an unknown cache_modifier is refused": ("r = tl.load(X + i, cache_modifier='.xx')", "(?i)cache"),
        "an unknown eviction_policy is refused": (
            "r = tl.load(X + i, eviction_policy='xx')",
            "(?i)eviction|policy",
        ),
        "an unknown padding_option is refused": (
            f"r = tl.load({_PTR.format('[40]', 0)}, boundary_check=(0,), padding_option='xx')",
            "(?i)padding",
        ),
        "mask with a block pointer is refused": (
            f"r = tl.load({_PTR.format('[40]', 0)}, mask=i < 3)",
            "(?i)mask",
        ),
        "storing a block through one pointer is refused": (
            "tl.store(O, x)\nr = x",
            "(?i)block|shape|pointer|broadcast",
        ),
        "load of a number is refused": ("r = tl.load(i)", "(?i)pointer|unsupported ptr"),
    }
    return rows + [Row(group, n, Refuses(Kernel(code), m)) for n, (code, m) in refused.items()]


def _index(x: Any) -> Any:
    return np.arange(x.size).reshape(x.shape)


def _windows() -> list[Row]:
    group = "Block pointers and descriptors"
    same = lambda x: x  # noqa: E731
    shape = (64,)
    pointer = (
        "p = tl.make_block_ptr(base=X, shape=[64], strides=[1], offsets=[0], block_shape=[N], order=[0])\n"
    )
    desc = "d = tl.make_tensor_descriptor(X, [64], [1], [N])\n"
    out = "o = tl.make_tensor_descriptor(O, [64], [1], [N])\n"
    grid = "d = tl.make_tensor_descriptor(X, [8, 8], [8, 1], [8, 8])\n"
    table: dict[str, tuple[str, tuple[int, ...], Callable[..., Any], bool]] = {
        "make_block_ptr(base, shape, strides, offsets, block_shape, order)": (
            f"{pointer}r = tl.load(p)",
            shape,
            same,
            False,
        ),
        "make_block_ptr(strides)": (
            "r = tl.load(tl.make_block_ptr(X, [32], [2], [0], [32], [0]))",
            (32,),
            lambda x: x[::2],
            False,
        ),
        "make_block_ptr(offsets)": (
            "r = tl.load(tl.make_block_ptr(X, [64], [1], [16], [32], [0]))",
            (32,),
            lambda x: x[16:48],
            False,
        ),
        "make_block_ptr(negative offsets)": (
            "r = tl.load(tl.make_block_ptr(X, [64], [1], [-4], [N], [0]), boundary_check=(0,))",
            shape,
            lambda x: np.concatenate([x[:4] * 0, x[:-4]]),
            False,
        ),
        "make_block_ptr(order)": (
            "r = tl.load(tl.make_block_ptr(X, [8, 8], [8, 1], [0, 0], [8, 8], [1, 0]))",
            (8, 8),
            lambda x: x.reshape(8, 8),
            False,
        ),
        "advance(base, offsets)": (
            "p = tl.make_block_ptr(X, [64], [1], [0], [32], [0])\np = tl.advance(p, [32])\nr = tl.load(p)",
            (32,),
            lambda x: x[32:],
            False,
        ),
        "make_tensor_descriptor(base, shape, strides, block_shape)": (
            f"{desc}r = d.load([0])",
            shape,
            same,
            False,
        ),
        "make_tensor_descriptor(padding_option='zero')": (
            "d = tl.make_tensor_descriptor(X, [40], [1], [N], padding_option='zero')\nr = d.load([0])",
            shape,
            lambda x: np.where(x < 40, x, 0),
            False,
        ),
        "make_tensor_descriptor(padding_option='nan')": (
            "d = tl.make_tensor_descriptor(X, [40], [1], [N], padding_option='nan')\nr = d.load([0])",
            shape,
            lambda x: np.where(x < 40, x, np.nan),
            False,
        ),
        "descriptor.load": (f"{grid}r = d.load([0, 0])", (8, 8), lambda x: x.reshape(8, 8), False),
        "descriptor.store": (f"{out}o.store([0], x)", shape, same, True),
        "descriptor.store drops what is outside": (
            "o = tl.make_tensor_descriptor(O, [40], [1], [N])\no.store([0], x)",
            shape,
            lambda x: np.where(x < 40, x, 0),
            True,
        ),
        "descriptor.gather": (
            "d = tl.make_tensor_descriptor(X, [8, 8], [8, 1], [1, 8])\nr = d.gather(7 - tl.arange(0, 8), 0)",
            (8, 8),
            lambda x: x.reshape(8, 8)[::-1],
            False,
        ),
        "descriptor.scatter": (
            "o = tl.make_tensor_descriptor(O, [8, 8], [8, 1], [1, 8])\n"
            "o.scatter(x.reshape(8, 8), 7 - tl.arange(0, 8), 0)",
            (8, 8),
            lambda x: x.reshape(8, 8)[::-1],
            True,
        ),
        "descriptor.dtype": (f"{desc}tl.static_assert(d.dtype == tl.float32)\nr = x", shape, same, False),
        "descriptor.block_shape": (
            f"{desc}tl.static_assert(d.block_shape[0] == N)\nr = x",
            shape,
            same,
            False,
        ),
        "descriptor.block_type": (
            f"{desc}tl.static_assert(d.block_type == x.type)\nr = x",
            shape,
            same,
            False,
        ),
        "load_tensor_descriptor(desc, offsets)": (
            f"{desc}r = tl.load_tensor_descriptor(d, [0])",
            shape,
            same,
            False,
        ),
        "store_tensor_descriptor(desc, offsets, value)": (
            f"{out}tl.store_tensor_descriptor(o, [0], x)",
            shape,
            same,
            True,
        ),
    }
    rows = [
        Row(group, n, Kernel(code, INPUT, shape=s, wanted=w, stores=st))
        for n, (code, s, w, st) in table.items()
    ]
    operations: dict[str, Callable[[Any], Any]] = {
        "add": lambda x: 9 + x,
        "min": lambda x: np.minimum(9, x),
        "max": lambda x: np.maximum(9, x),
        "and": lambda x: 9 & x,
        "or": lambda x: 9 | x,
        "xor": lambda x: 9 ^ x,
    }
    for name, w in operations.items():
        code = f"tl.store(O + i, x * 0 + 9)\n{out}o.atomic_{name}([0], x)"
        rows.append(
            Row(
                group,
                f"descriptor.atomic_{name}",
                Kernel(code, (np.arange(64, dtype=np.int32),), "int32", shape, wanted=w, stores=True),
            )
        )
    refused = {
        "int64 offsets of a block pointer are refused": (
            "p = tl.make_block_ptr(X, [64], [1], [tl.program_id(0).to(tl.int64)], [N], [0])\nr = tl.load(p)",
            "(?i)int64|32",
        ),
        "an unused result of advance is refused": (
            f"{pointer}tl.advance(p, [1])\nr = x",
            "(?i)advance|result|use",
        ),
        "padding 'nan' of integers is refused": (
            "p = tl.make_block_ptr(O, [64], [1], [0], [N], [0])\n"
            "r = tl.load(p, boundary_check=(0,), padding_option='nan')",
            "(?i)nan|padding",
        ),
        "a last stride that is not 1 is refused": (
            "d = tl.make_tensor_descriptor(X, [32], [2], [32])\nr = x",
            "(?i)stride",
        ),
        "a last block extent under 16 bytes is refused": (
            "d = tl.make_tensor_descriptor(X, [64], [1], [2])\nr = x",
            "(?i)16 bytes",
        ),
        "six dimensions of a descriptor are refused": (
            "d = tl.make_tensor_descriptor(X, [1,1,1,1,1,64], [1,1,1,1,1,1], [1,1,1,1,1,64])\nr = x",
            "(?i)rank|dim|1 to 5|5",
        ),
    }
    rows += [
        Row(group, n, Refuses(Kernel(code, out="int32" if "integers" in n else "fp32"), m))
        for n, (code, m) in refused.items()
    ]
    return rows


def _atomics() -> list[Row]:
    group = "Atomics"
    ints = ("int32", "uint32", "int64", "uint64")
    operations: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
        "add": ((*ints, "fp16", "bf16", "fp32", "fp64"), lambda x, y: x + y),
        "max": ((*ints, "fp32", "fp64"), np.maximum),
        "min": ((*ints, "fp32", "fp64"), np.minimum),
        "and": (ints, np.bitwise_and),
        "or": (ints, np.bitwise_or),
        "xor": (ints, np.bitwise_xor),
        "xchg": ((*ints, "fp32", "fp64"), lambda x, y: y),
    }
    rows = []
    for name, (dtypes, w) in operations.items():
        function = f"atomic_{name}"
        for dtype in dtypes:
            code = f"tl.store(O + i, x)\ntl.{function}(O + i, y)"
            rows.append(
                Row(
                    group,
                    f"{function}(pointer, val) {dtype}",
                    Kernel(code, (dtype, dtype), dtype, stores=True, wanted=w),
                )
            )
        code = f"tl.store(O + i, x)\ntl.{function}(O + i, y, mask=i < 5)"
        rows.append(
            Row(
                group,
                f"{function}(mask)",
                Kernel(
                    code,
                    ("int32", "int32"),
                    "int32",
                    stores=True,
                    wanted=lambda x, y, w=w: np.where(_index(x) < 5, w(x, y), x),
                ),
            )
        )
        code = f"tl.store(O + i, x)\nold = tl.{function}(O + i, y)\ntl.store(O + i, old)"
        rows.append(
            Row(
                group,
                f"{function} returns the old value",
                Kernel(code, ("int32", "int32"), "int32", stores=True, wanted=lambda x, y: x),
            )
        )
        code = "tl.store(O + i, x)\n{}"
        for argument, choices in (
            ("sem", ("acquire", "release", "acq_rel", "relaxed")),
            ("scope", ("gpu", "cta", "sys")),
        ):
            calls = "\n".join(f"tl.{function}(O + i, y, {argument}='{choice}')" for choice in choices)
            rows.append(
                Row(
                    group,
                    f"{function}({argument})",
                    Kernel(code.format(calls), ("int32", "int32"), "int32", stores=True),
                )
            )
            code_bad = f"tl.{function}(O + i, y, {argument}='nonsense')"
            rows.append(
                Row(
                    group,
                    f"{function}({argument}='nonsense') is refused",
                    Refuses(
                        Kernel(code_bad, ("int32", "int32"), "int32", stores=True),
                        argument if argument == "scope" else "(?i)sem",
                    ),
                )
            )
    rows.append(
        Row(
            group,
            "several lanes at one address",
            Kernel(
                "tl.atomic_add(O + i * 0, x)",
                (np.arange(64, dtype=np.int32),),
                "int32",
                (1,),
                wanted=lambda x: x.sum(keepdims=True),
                stores=True,
            ),
        )
    )
    rows.append(
        Row(
            group,
            "atomic_max: -0.0 below +0.0",
            Kernel(
                "tl.store(O + i, x * 0 - 0.0)\ntl.atomic_max(O + i, x * 0)",
                stores=True,
                wanted=lambda x: x * 0,
            ),
        )
    )
    for dtype in ("int16", "int32", "int64", "fp16", "bf16", "fp32", "fp64"):
        code = "tl.store(O + i, x)\ntl.atomic_cas(O + i, x, y)"
        rows.append(
            Row(
                group,
                f"atomic_cas(pointer, cmp, val) {dtype}",
                Kernel(code, (dtype, dtype), dtype, stores=True, wanted=lambda x, y: y),
            )
        )
    for argument, choices in (
        ("sem", ("acquire", "release", "acq_rel", "relaxed")),
        ("scope", ("gpu", "cta", "sys")),
    ):
        calls = "\n".join(f"tl.atomic_cas(O + i, x, y, {argument}='{choice}')" for choice in choices)
        rows.append(
            Row(group, f"atomic_cas({argument})", Kernel(calls, ("int32", "int32"), "int32", stores=True))
        )
    refused = {
        "atomic_add of int8 is refused": ("tl.atomic_add(O + i, x)", "int8", "(?i)int8|8-bit|8 bit"),
        "atomic_add of int16 is refused": ("tl.atomic_add(O + i, x)", "int16", "(?i)int16|16"),
        "atomic_max of fp16 is refused": ("tl.atomic_max(O + i, x)", "fp16", "(?i)fp16|16"),
        "atomic_xchg of bf16 is refused": ("tl.atomic_xchg(O + i, x)", "bf16", "(?i)bf16|16"),
        "atomic_and of fp32 is refused": ("tl.atomic_and(O + i, x)", "fp32", "(?i)fp32|integer|float"),
        "atomic_cas of int8 is refused": ("tl.atomic_cas(O + i, x, x)", "int8", "(?i)int8|width|8"),
    }
    rows += [Row(group, n, Refuses(Kernel(c, (d,), d, stores=True), m)) for n, (c, d, m) in refused.items()]
    return rows


ROWS = [*_loads(), *_windows(), *_atomics()]
