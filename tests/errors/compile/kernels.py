"""Kernels that cannot be compiled. All take the same arguments: `x` points at fp32, `p` at int32; `n` is an int32
and `s` a float32 scalar; BLOCK is 64."""

# mypy: ignore-errors
# ruff: noqa
from __future__ import annotations

import numpy as np

import blocklang.language as tl
from blocklang.jit import jit

TABLE = np.arange(4)
LIMIT = [1, 2, 3]


def plain(a):
    return a + 1


@jit
def helper(a, b, KIND: tl.constexpr):
    if KIND == 1:
        return a + b
    return a.undefined_method()


@jit
def endless(n):
    return endless(n - 1)


@jit
def branches_disagree(n):
    if n > 0:
        return 1.0
    return 1


@jit
def falls_off_the_end(n):
    if n > 0:
        return n


# ---- syntax ----


def try_statement(x, p, n, s, BLOCK: tl.constexpr):
    try:
        tl.store(x, s)
    except ValueError:
        pass


def with_statement(x, p, n, s, BLOCK: tl.constexpr):
    with open("file") as f:
        pass


def dictionary(x, p, n, s, BLOCK: tl.constexpr):
    sizes = {"a": 1}


def walrus(x, p, n, s, BLOCK: tl.constexpr):
    if (m := n + 1) > 2:
        tl.store(p, m)


def set_comprehension(x, p, n, s, BLOCK: tl.constexpr):
    t = tuple({i for i in (1, 2)})


def delete(x, p, n, s, BLOCK: tl.constexpr):
    m = n
    del m


def raise_statement(x, p, n, s, BLOCK: tl.constexpr):
    if BLOCK > 1:
        raise ValueError("too large")


def import_inside(x, p, n, s, BLOCK: tl.constexpr):
    import math


def matrix_operator(x, p, n, s, BLOCK: tl.constexpr):
    a = tl.zeros((BLOCK, BLOCK), tl.float32)
    b = a @ a


def starred_assignment(x, p, n, s, BLOCK: tl.constexpr):
    first, *rest = (1, 2, 3)


def item_assignment(x, p, n, s, BLOCK: tl.constexpr):
    v = tl.zeros((BLOCK,), tl.float32)
    v[0] = 1.0


def global_statement(x, p, n, s, BLOCK: tl.constexpr):
    global LIMIT
    LIMIT = 1


def print_of_two_strings(x, p, n, s, BLOCK: tl.constexpr):
    print("n is", n, "of", BLOCK)


def run_time_f_string(x, p, n, s, BLOCK: tl.constexpr):
    tl.static_print(f"n is {n}")


def run_time_assert_message(x, p, n, s, BLOCK: tl.constexpr):
    assert n > 0, n


def bytes_literal(x, p, n, s, BLOCK: tl.constexpr):
    name = b"abc"


def keyword_spread(x, p, n, s, BLOCK: tl.constexpr):
    tl.store(x, s, **LIMIT)


# ---- names ----


def unknown_name(x, p, n, s, BLOCK: tl.constexpr):
    tl.store(x, scale * s)


def misspelt_function(x, p, n, s, BLOCK: tl.constexpr):
    offs = tl.arrange(0, BLOCK)


def not_built_yet(x, p, n, s, BLOCK: tl.constexpr):
    tl.extern_elementwise(p, n)


def used_before_assignment(x, p, n, s, BLOCK: tl.constexpr):
    tl.store(p, total)
    total = n


def assigned_in_one_branch(x, p, n, s, BLOCK: tl.constexpr):
    if n > 0:
        y = s
    tl.store(x, y)


def assigned_only_in_loop(x, p, n, s, BLOCK: tl.constexpr):
    for i in range(n):
        y = s
    tl.store(x, y)


def global_array(x, p, n, s, BLOCK: tl.constexpr):
    tl.store(p, TABLE[0])


def plain_function(x, p, n, s, BLOCK: tl.constexpr):
    tl.store(p, plain(n))


def python_builtin(x, p, n, s, BLOCK: tl.constexpr):
    tl.store(p, sorted((n, 1)))


# ---- types and shapes ----


def store_shape(x, p, n, s, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    y = tl.load(x + tl.arange(0, 2 * BLOCK))
    tl.store(x + offs, y)


def broadcast_mismatch(x, p, n, s, BLOCK: tl.constexpr):
    a = tl.arange(0, BLOCK) + tl.arange(0, 32)


def run_time_extent(x, p, n, s, BLOCK: tl.constexpr):
    offs = tl.arange(0, n)


def empty_range(x, p, n, s, BLOCK: tl.constexpr):
    offs = tl.arange(BLOCK, 0)


def float_floor_division(x, p, n, s, BLOCK: tl.constexpr):
    y = s // 2.0


def mixed_signedness(x, p, n, s, BLOCK: tl.constexpr):
    y = n / n.to(tl.uint32)


def constant_out_of_range(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.arange(0, BLOCK).to(tl.int8) + 300


def negative_beside_unsigned(x, p, n, s, BLOCK: tl.constexpr):
    y = n.to(tl.uint32) + -1


def pointer_plus_float(x, p, n, s, BLOCK: tl.constexpr):
    tl.store(x + s, 1.0)


def pointer_plus_pointer(x, p, n, s, BLOCK: tl.constexpr):
    y = x + p


def load_from_number(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.load(n)


def mask_of_integers(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.load(x + tl.arange(0, BLOCK), mask=tl.arange(0, BLOCK))


def other_without_mask(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.load(x, other=0.0)


def unknown_cache_modifier(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.load(x, cache_modifier=".xx")


def bitcast_width(x, p, n, s, BLOCK: tl.constexpr):
    y = s.to(tl.int64, bitcast=True)


def dot_shapes(x, p, n, s, BLOCK: tl.constexpr):
    a = tl.zeros((16, 32), tl.float32)
    b = tl.zeros((16, 32), tl.float32)
    c = tl.dot(a, b)


def dot_accumulator(x, p, n, s, BLOCK: tl.constexpr):
    a = tl.zeros((16, 16), tl.float16)
    c = tl.dot(a, a, acc=tl.zeros((16, 16), tl.float16))


def reshape_count(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.reshape(tl.arange(0, BLOCK), (4, 4))


def reduce_axis(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.sum(tl.arange(0, BLOCK), axis=1)


def block_index(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.arange(0, BLOCK)[0]


def exp_of_integers(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.exp(n)


def missing_argument(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.where(n > 0, 1.0)


def unknown_keyword(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.load(x, masked=True)


def power(x, p, n, s, BLOCK: tl.constexpr):
    y = s**2.0


def combine_count(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.reduce(tl.arange(0, BLOCK), 0, lambda a, b: (a, b))


def invalid_axis(x, p, n, s, BLOCK: tl.constexpr):
    pid = tl.program_id(3)


# ---- control flow ----


def block_condition(x, p, n, s, BLOCK: tl.constexpr):
    if tl.arange(0, BLOCK) > n:
        tl.store(x, s)


def carried_type(x, p, n, s, BLOCK: tl.constexpr):
    total = 0
    for i in range(n):
        total += s
    tl.store(x, total)


def branch_types(x, p, n, s, BLOCK: tl.constexpr):
    if n > 0:
        y = 1
    else:
        y = 1.0
    tl.store(x, y)


def constexpr_in_loop(x, p, n, s, BLOCK: tl.constexpr):
    for i in range(n):
        BLOCK = BLOCK * 2


def zero_step(x, p, n, s, BLOCK: tl.constexpr):
    for i in range(0, n, 0):
        tl.store(x, s)


def float_bound(x, p, n, s, BLOCK: tl.constexpr):
    for i in range(s):
        tl.store(x, s)


def run_time_static_range(x, p, n, s, BLOCK: tl.constexpr):
    for i in tl.static_range(n):
        tl.store(x, s)


def loop_over_block(x, p, n, s, BLOCK: tl.constexpr):
    for v in tl.arange(0, BLOCK):
        tl.store(x, s)


def endless_loop(x, p, n, s, BLOCK: tl.constexpr):
    while True:
        n += 1


def conditional_types(x, p, n, s, BLOCK: tl.constexpr):
    y = n if n > 0 else s


def returns_a_value(x, p, n, s, BLOCK: tl.constexpr):
    return n


# ---- compile-time checks, calls ----


def failed_static_assert(x, p, n, s, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK % 128 == 0, "BLOCK must be a multiple of 128")


def failed_assert(x, p, n, s, BLOCK: tl.constexpr):
    assert BLOCK == 128, f"BLOCK is {BLOCK}"


def static_assert_of_run_time_value(x, p, n, s, BLOCK: tl.constexpr):
    tl.static_assert(n > 0)


def run_time_constexpr(x, p, n, s, BLOCK: tl.constexpr):
    WIDTH: tl.constexpr = n * 2


def error_in_called_function(x, p, n, s, BLOCK: tl.constexpr):
    y = helper(n, 1, 2)


def constexpr_parameter_of_helper(x, p, n, s, BLOCK: tl.constexpr):
    y = helper(n, 1, n)


def missing_argument_of_helper(x, p, n, s, BLOCK: tl.constexpr):
    y = helper(n)


def recursion(x, p, n, s, BLOCK: tl.constexpr):
    tl.store(p, endless(n))


def returns_disagree(x, p, n, s, BLOCK: tl.constexpr):
    tl.store(x, branches_disagree(n))


def missing_return(x, p, n, s, BLOCK: tl.constexpr):
    tl.store(p, falls_off_the_end(n))


def division_by_constexpr_zero(x, p, n, s, BLOCK: tl.constexpr):
    y = BLOCK // 0


def decorated_inner_function(x, p, n, s, BLOCK: tl.constexpr):
    @jit
    def inner(a):
        return a


def private_attribute(x, p, n, s, BLOCK: tl.constexpr):
    y = n._value


def unpack_count(x, p, n, s, BLOCK: tl.constexpr):
    a, b = (1, 2, 3)


# ---- scans and mapped functions ----


def scan_without_axis(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.cumsum(tl.arange(0, BLOCK), None)


def scan_axis(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.associative_scan(tl.arange(0, BLOCK), 1, lambda a, b: a + b)


def scan_of_a_scalar(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.cumprod(n)


def scan_shapes(x, p, n, s, BLOCK: tl.constexpr):
    pair = (tl.arange(0, BLOCK), tl.arange(0, 2 * BLOCK))
    y = tl.associative_scan(pair, 0, lambda a, b, c, d: (a + c, b + d))


def scan_returns_a_block(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.associative_scan(tl.arange(0, BLOCK), 0, lambda a, b: a + tl.arange(0, 4))


def map_of_scalars(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.map_elementwise(lambda a: a + 1, n)


def map_pack(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.map_elementwise(lambda a, b: (b, a), tl.arange(0, 15), pack=2)


def map_pack_results(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.map_elementwise(lambda a, b: a + b, tl.arange(0, 16), pack=2)


def map_stores(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.map_elementwise(lambda i: tl.store(p + i, 1), tl.arange(0, BLOCK))


def map_returns_nothing(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.map_elementwise(lambda i: None, tl.arange(0, BLOCK))


def scan_with_a_block(x, p, n, s, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    y = tl.associative_scan(i, 0, lambda a, b: a + b + tl.sum(i, 0))


def map_with_a_block(x, p, n, s, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    y = tl.map_elementwise(lambda a: tl.max(i + a, 0), i)


# ---- order ----


def sort_of_a_scalar(x, p, n, s, BLOCK: tl.constexpr):
    tl.store(x, tl.sort(s))


def sort_along_the_first_dim(x, p, n, s, BLOCK: tl.constexpr):
    i = tl.arange(0, 4)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(x + i, tl.sort(tl.load(x + i), dim=0))


def topk_of_too_many(x, p, n, s, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.topk(tl.load(x + i), BLOCK + 1))


def gather_by_floats(x, p, n, s, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.gather(tl.load(x + i), tl.load(x + i), 0))


def gather_of_other_rank(x, p, n, s, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.gather(tl.load(x + i), i[None, :], 0))


def gather_of_other_rows(x, p, n, s, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    rows = tl.load(x + tl.arange(0, 4)[:, None] * BLOCK + i[None, :])
    tl.store(x + i[None, :], rows.gather(i[None, :], 1))


def histogram_of_floats(x, p, n, s, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(p + tl.arange(0, 8), tl.histogram(tl.load(x + i), 8))


def histogram_of_rows(x, p, n, s, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(p + tl.arange(0, 8), tl.histogram(i[None, :], 8))


def histogram_without_bins(x, p, n, s, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(p + i, tl.histogram(i, n))


def dot_batches(x, p, n, s, BLOCK: tl.constexpr):
    a = tl.zeros((4, 16, 16), tl.float32)
    c = tl.dot(a, tl.zeros((2, 16, 16), tl.float32))


def dot_of_bytes(x, p, n, s, BLOCK: tl.constexpr):
    a = tl.zeros((16, 16), tl.uint8)
    c = tl.dot(a, a)


def dot_precision_twice(x, p, n, s, BLOCK: tl.constexpr):
    a = tl.zeros((16, 16), tl.float32)
    c = tl.dot(a, a, input_precision="tf32", allow_tf32=True)


def dot_scaled_scale(x, p, n, s, BLOCK: tl.constexpr):
    a = tl.zeros((16, 64), tl.float8e5)
    c = tl.dot_scaled(a, tl.zeros((16, 64), tl.uint8), "e5m2", a.T, None, "e5m2")


def float8_and_integer(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.zeros((BLOCK,), tl.float8e5) + n
