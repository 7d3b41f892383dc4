"""Kernels on which the forms once disagreed, found by `python -m tests.fuzz` and made small."""

from __future__ import annotations

import textwrap

import pytest

from blocklang.passes.schedule import choose_schedule
from tests.fuzz.cases import Argument, Case, Memory, Pointer
from tests.fuzz.execution import Check, Chooser, host_supports
from tests.fuzz.schedules import PerturbedSchedule


def assert_agrees(
    kernel: str,
    *,
    arguments: tuple[Argument, ...],
    memories: tuple[Memory, ...],
    grid: tuple[int, ...] = (1,),
    cpu: str = "host",
    schedule: Chooser = choose_schedule,
    source: str = "",
    constants: tuple[tuple[str, int], ...] = (),
    debug: bool = False,
) -> None:
    """All forms of the kernel leave the same bits, after every pass."""
    check = Check(cpu if host_supports(cpu) else "host", schedule, every_pass=True, debug=debug)
    failure = check(Case(textwrap.dedent(kernel), arguments, memories, grid, source, constants))
    assert failure is None, str(failure)


def test_mask_of_an_index_that_wraps() -> None:
    # plan_memory: 127 - i in i8 is negative from i = 128 on, but from i = 256 on it is not.
    assert_agrees(
        """
        kernel @fuzzed(%p0: ptr<f32>, %p1: ptr<f32>) alias="disjoint" {
          %v0 = constant value=1 : block<257xi32>
          %v1 = offset %p0, %v0 : block<257xptr<f32>>
          %v2 = arange start=0, end=257 : block<257xi32>
          %v3 = cast %v2 : block<257xi8>
          %v4 = constant value=127 : i8
          %v5 = sub %v4, %v3 : block<257xi8>
          %v6 = constant value=0 : i8
          %v7 = cmp %v5, %v6, predicate="lt" : block<257xi1>
          %v8 = load %v1, mask=%v7 : block<257xf32>
          %v9 = constant value=1 : block<257xi32>
          %v10 = offset %p1, %v9 : block<257xptr<f32>>
          store %v10, %v8
          return
        }
        """,
        arguments=(Pointer(0), Pointer(1)),
        memories=(Memory("f32", 257, "small"), Memory("f32", 257, "small")),
    )


def test_chain_of_casts_around_a_modulus() -> None:
    # guard_accesses read bounds of a value that it had just made inside of the loop.
    assert_agrees(
        """
        kernel @fuzzed(%p1: ptr<i64>) alias="disjoint" {
          %v0 = arange start=2147483646, end=2147483648 : block<2xi32>
          %v1 = cast %v0 : block<2xi64>
          %v2 = constant value=1 : block<2xi64>
          %v3 = add %v1, %v2 : block<2xi64>
          %v4 = cast %v3 : block<2xu32>
          %v5 = constant value=64 : u32
          %v6 = rem %v4, %v5 : block<2xu32>
          %v7 = offset %p1, %v6 : block<2xptr<i64>>
          %v8 = constant value=1 : block<2xi64>
          store %v7, %v8
          return
        }
        """,
        arguments=(Pointer(0),),
        memories=(Memory("i64", 64, "small"),),
    )


def test_offset_of_narrow_integers_that_wrap() -> None:
    # The offset is the i8, not the loaded i32 that was cut to it.
    assert_agrees(
        """
        kernel @fuzzed(%p0: ptr<f32>, %p1: ptr<i32>, %p2: ptr<f32>) alias="disjoint" {
          %v0 = arange start=0, end=64 : block<64xi32>
          %v1 = offset %p1, %v0 : block<64xptr<i32>>
          %v2 = load %v1 : block<64xi32>
          %v3 = cast %v2 : block<64xi8>
          %v4 = offset %p0, %v3 : block<64xptr<f32>>
          %v5 = load %v4 : block<64xf32>
          %v6 = offset %p2, %v0 : block<64xptr<f32>>
          store %v6, %v5
          return
        }
        """,
        arguments=(Pointer(0, 128), Pointer(1), Pointer(2)),
        memories=(Memory("f32", 256, "small"), Memory("i32", 64, "special"), Memory("f32", 64, "small")),
    )


def test_loop_with_a_large_unsigned_bound() -> None:
    # The bound was read as -1; the index after the last round would wrap.
    assert_agrees(
        """
        kernel @fuzzed(%s0: u32, %s1: u32, %p2: ptr<i32>) alias="disjoint" {
          %v0 = constant value=4294967295 : u32
          %v1 = constant value=1 : i32
          %v2 = for %s0, %v0, %s1, %v1 : i32 {
            (%i: u32, %c0: i32):
            %v3 = add %c0, %v1 : i32
            yield %v3
          }
          store %p2, %v2
          return
        }
        """,
        arguments=(4294967292, 2, Pointer(0)),
        memories=(Memory("i32", 1),),
    )


def test_loop_with_a_large_unsigned_step() -> None:
    assert_agrees(
        """
        kernel @fuzzed(%s0: u64, %p2: ptr<i32>) alias="disjoint" {
          %v0 = constant value=18446744073709551615 : u64
          %v1 = constant value=1 : i32
          %v4 = constant value=9223372036854775809 : u64
          %v2 = for %s0, %v0, %v4, %v1 : i32 {
            (%i: u64, %c0: i32):
            %v3 = add %c0, %v1 : i32
            yield %v3
          }
          %v5 = for %s0, %v0, %v0, %v2 : i32 {
            (%j: u64, %c1: i32):
            %v6 = add %c1, %v1 : i32
            yield %v6
          }
          store %p2, %v5
          return
        }
        """,
        arguments=(3, Pointer(0)),
        memories=(Memory("i32", 1),),
    )


def test_mask_of_an_index_times_a_constant() -> None:
    # The constant became a cast, and the product's step was no longer known.
    assert_agrees(
        """
        kernel @fuzzed(%p0: ptr<u16>, %p1: ptr<u16>) alias="disjoint" {
          %v0 = constant value=1 : block<1x2xi32>
          %v1 = offset %p0, %v0 : block<1x2xptr<u16>>
          %v2 = arange start=0, end=2 : block<2xi32>
          %v3 = cast %v2 : block<2xi8>
          %v4 = constant value=-1 : i8
          %v5 = mul %v3, %v4 : block<2xi8>
          %v6 = expand_dims %v5, axis=0 : block<1x2xi8>
          %v7 = constant value=1 : i8
          %v8 = cmp %v6, %v7, predicate="lt" : block<1x2xi1>
          %v9 = load %v1, mask=%v8 : block<1x2xu16>
          %v10 = constant value=1 : block<1x2xi32>
          %v11 = offset %p1, %v10 : block<1x2xptr<u16>>
          store %v11, %v9
          return
        }
        """,
        arguments=(Pointer(0), Pointer(1)),
        memories=(Memory("u16", 64, "small"), Memory("u16", 64, "small")),
    )


def test_columns_of_a_buffer_are_read_only_where_there_are_rows() -> None:
    # machine code: a step along a short column of a wide buffer read lanes far behind the scratch arena.
    assert_agrees(
        """
        kernel @fuzzed(%p0: ptr<f64>, %p1: ptr<f64>, %n: i32) alias="disjoint" {
          %i = arange start=0, end=5 : block<5xi32>
          %j = arange start=0, end=1025 : block<1025xi32>
          %i1 = expand_dims %i, axis=1 : block<5x1xi32>
          %i2 = broadcast %i1, shape=[5, 1025] : block<5x1025xi32>
          %j1 = expand_dims %j, axis=0 : block<1x1025xi32>
          %j2 = broadcast %j1, shape=[5, 1025] : block<5x1025xi32>
          %row = constant value=1025 : i32
          %r = mul %i2, %row : block<5x1025xi32>
          %o = add %r, %j2 : block<5x1025xi32>
          %p = offset %p0, %o : block<5x1025xptr<f64>>
          %v = load %p : block<5x1025xf64>
          %zero = constant value=0 : i32
          %one = constant value=1 : i32
          %w = for %zero, %n, %one, %v : block<5x1025xf64> {
            (%k: i32, %a: block<5x1025xf64>):
            %b = add %a, %a : block<5x1025xf64>
            yield %b
          }
          %t = trans %w, order=[1, 0] : block<1025x5xf64>
          %five = constant value=5 : i32
          %c = mul %j, %five : block<1025xi32>
          %c1 = expand_dims %c, axis=1 : block<1025x1xi32>
          %c2 = broadcast %c1, shape=[1025, 5] : block<1025x5xi32>
          %d1 = expand_dims %i, axis=0 : block<1x5xi32>
          %d2 = broadcast %d1, shape=[1025, 5] : block<1025x5xi32>
          %e = add %c2, %d2 : block<1025x5xi32>
          %q = offset %p1, %e : block<1025x5xptr<f64>>
          store %q, %t
          return
        }
        """,
        arguments=(Pointer(0), Pointer(1), 3),
        memories=(Memory("f64", 5125, "small"), Memory("f64", 5125, "small")),
    )


def test_mask_against_the_largest_i64() -> None:
    # largest - (0 - 3) overflows.
    assert_agrees(
        """
        kernel @fuzzed(%p5: ptr<f32>, %s9: i64) alias="disjoint" {
          %v9 = constant value=1.0 : block<65x32xf32>
          %v10 = constant value=1 : block<65x32xu32>
          %v11 = offset %p5, %v10 : block<65x32xptr<f32>>
          %v12 = arange start=0, end=65 : block<65xi32>
          %v13 = cast %v12 : block<65xi64>
          %v14 = sub %v13, %s9 : block<65xi64>
          %v15 = expand_dims %v14, axis=1 : block<65x1xi64>
          %v16 = broadcast %v15, shape=[65, 32] : block<65x32xi64>
          %v17 = constant value=9223372036854775807 : i64
          %v18 = cmp %v16, %v17, predicate="lt" : block<65x32xi1>
          store %v11, %v9, mask=%v18
          return
        }
        """,
        arguments=(Pointer(0), 3),
        memories=(Memory("f32", 32),),
    )


def test_largest_of_converted_integers() -> None:
    # LLVM's scalar AVX-512 maximumnum(NaN, number) gives NaN if it knows that the second is a number.
    assert_agrees(
        """
        kernel @fuzzed(%p0: ptr<f32>) {
          %v0 = splat %p0 : block<1x31xptr<f32>>
          %v1 = arange start=2147483644, end=2147483648 : block<4xi32>
          %v2 = expand_dims %v1, axis=1 : block<4x1xi32>
          %v3 = expand_dims %v2, axis=2 : block<4x1x1xi32>
          %v4 = broadcast %v3, shape=[4, 1, 31] : block<4x1x31xi32>
          %v5 = cast %v4 : block<4x1x31xf32>
          %v6 = reduce %v5, combine="max", axis=0 : block<1x31xf32>
          store %v0, %v6
          return
        }
        """,
        arguments=(Pointer(0),),
        memories=(Memory("f32", 64, "small"),),
    )


def test_scattered_lanes_keep_their_order() -> None:
    # The indices are loaded column by column, but of lanes at one address the last in row-major order wins.
    assert_agrees(
        """
        kernel @fuzzed(%p0: ptr<i32>, %p1: ptr<u8>) alias="disjoint" {
          %v0 = arange start=0, end=26 : block<26xi32>
          %v1 = expand_dims %v0, axis=1 : block<26x1xi32>
          %v2 = broadcast %v1, shape=[26, 33] : block<26x33xi32>
          %v3 = arange start=0, end=33 : block<33xi32>
          %v4 = constant value=26 : i32
          %v5 = mul %v3, %v4 : block<33xi32>
          %v6 = expand_dims %v5, axis=0 : block<1x33xi32>
          %v7 = broadcast %v6, shape=[26, 33] : block<26x33xi32>
          %v8 = add %v2, %v7 : block<26x33xi32>
          %v9 = offset %p1, %v8 : block<26x33xptr<u8>>
          %v10 = load %v9 : block<26x33xu8>
          %v11 = offset %p0, %v10 : block<26x33xptr<i32>>
          store %v11, %v8
          return
        }
        """,
        arguments=(Pointer(0), Pointer(1)),
        memories=(Memory("i32", 256, "small"), Memory("u8", 858, "special")),
    )


def test_in_place_at_offsets_that_wrap() -> None:
    # 300 lanes at 256 addresses: every lane reads what was there before the first wrote.
    assert_agrees(
        """
        kernel @fuzzed(%p0: ptr<i32>) alias="disjoint" {
          %v0 = arange start=0, end=300 : block<300xi32>
          %v1 = cast %v0 : block<300xi8>
          %v2 = offset %p0, %v1 : block<300xptr<i32>>
          %v3 = load %v2 : block<300xi32>
          %v4 = constant value=1 : i32
          %v5 = add %v3, %v4 : block<300xi32>
          store %v2, %v5
          return
        }
        """,
        arguments=(Pointer(0, 128),),
        memories=(Memory("i32", 256),),
    )


@pytest.mark.parametrize("cpu", ["host", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(("rows", "element"), [(8, "f32"), (100, "f32"), (40, "f64"), (5, "f16")])
def test_float_sum_of_columns_that_lie_in_rows(rows: int, element: str, cpu: str) -> None:
    # choose_schedule: the summed axis, the only one with a step of 1, was walked by lanes; so few were lost.
    assert_agrees(
        f"""
        kernel @fuzzed(%p0: ptr<{element}>, %p1: ptr<{element}>) alias="disjoint" {{
          %v0 = arange start=0, end=8 : block<8xi32>
          %v1 = constant value={rows} : i32
          %v2 = mul %v0, %v1 : block<8xi32>
          %v3 = expand_dims %v2, axis=0 : block<1x8xi32>
          %v4 = broadcast %v3, shape=[{rows}, 8] : block<{rows}x8xi32>
          %v5 = arange start=0, end={rows} : block<{rows}xi32>
          %v6 = expand_dims %v5, axis=1 : block<{rows}x1xi32>
          %v7 = broadcast %v6, shape=[{rows}, 8] : block<{rows}x8xi32>
          %v8 = add %v4, %v7 : block<{rows}x8xi32>
          %v9 = offset %p0, %v8 : block<{rows}x8xptr<{element}>>
          %v10 = load %v9 : block<{rows}x8x{element}>
          %v11 = reduce %v10, combine="sum", axis=0 : block<8x{element}>
          %v12 = offset %p1, %v0 : block<8xptr<{element}>>
          store %v12, %v11
          return
        }}
        """,
        arguments=(Pointer(0), Pointer(1)),
        memories=(Memory(element, rows * 8, "small"), Memory(element, 8, "small")),
        cpu=cpu,
    )


def test_remainder_by_a_reduction() -> None:
    # The compiler failed: a modulus that an earlier loop computes has no step that it could see.
    assert_agrees(
        """
        kernel @fuzzed(%p: ptr<i16>) alias="disjoint" {
          %pid = program_id axis=1 : i32
          %v0 = constant value=33 : i32
          %v1 = mul %pid, %v0 : i32
          %v2 = arange start=0, end=33 : block<33xi32>
          %rows = add %v1, %v2 : block<33xi32>
          %v3 = constant value=7 : block<64xi32>
          %v4 = reduce %v3, combine="max", axis=0 : i32
          %v5 = rem %rows, %v4 : block<33xi32>
          %v6 = cast %v5 : block<33xi64>
          %v7 = offset %p, %rows : block<33xptr<i16>>
          %v8 = constant value=5 : block<33xi64>
          %v9 = minimum %v6, %v8 : block<33xi64>
          %v10 = cast %v9 : block<33xi16>
          store %v7, %v10
          return
        }
        """,
        arguments=(Pointer(memory=0, offset=0),),
        memories=(Memory(element="i16", count=40, fill="small", seed=0, misaligned=0),),
    )


def test_the_sign_of_a_half_from_a_double() -> None:
    # It could not be loaded: the sign of `copysign` was rounded from f64 to f16 with a call.
    assert_agrees(
        """
        kernel @fuzzed(%p0: ptr<f16>, %s1: f16) alias="disjoint" {
          %v0 = constant value=1 : block<2x2xi32>
          %v1 = offset %p0, %v0 : block<2x2xptr<f16>>
          %v2 = constant value=1.0 : f16
          %v3 = constant value=-65504.0 : f16
          %v4 = fma_rd %s1, %v2, %v3 : f16
          %v5 = atanh %v4 : f16
          store %v1, %v5
          return
        }
        """,
        arguments=(Pointer(memory=0, offset=0), 1.0),
        memories=(Memory(element="f16", count=64, fill="small", seed=0, misaligned=0),),
        cpu="x86-64-v3",
    )


def test_one_byte_of_a_wider_value() -> None:
    # The last lane was stored as four bytes: LLVM forgot that a masked store truncates what it stores.
    assert_agrees(
        """
        kernel @kernel(%p13: ptr<i8>, %p14: ptr<bf16>, %stride: i32) alias="disjoint" {
          %cols = arange start=0, end=33 : block<33xi32>
          %v0 = offset %p13, %cols : block<33xptr<i8>>
          %v1 = offset %v0, %stride : block<33xptr<i8>>
          %v2 = offset %p14, %cols : block<33xptr<bf16>>
          %v3 = load %v2 : block<33xbf16>
          %v4 = cast %v3 : block<33xi8>
          store %v1, %v4
          return
        }
        """,
        arguments=(Pointer(memory=0, offset=0), Pointer(memory=1, offset=0), 66),
        memories=(Memory("i8", 99, "small"), Memory("bf16", 64, "small")),
    )


def test_one_lane_of_a_constant_mask() -> None:
    # As above, with a mask of the user's.
    for element, wide in (("i8", "i32"), ("i16", "i32"), ("i32", "i64")):
        assert_agrees(
            f"""
            kernel @kernel(%p: ptr<{element}>, %q: ptr<{wide}>) alias="disjoint" {{
              %cols = arange start=0, end=16 : block<16xi32>
              %three = constant value=15 : block<16xi32>
              %mask = cmp %cols, %three, predicate="eq" : block<16xi1>
              %to = offset %p, %cols : block<16xptr<{element}>>
              %from = offset %q, %cols : block<16xptr<{wide}>>
              %wide = load %from : block<16x{wide}>
              %narrow = cast %wide : block<16x{element}>
              store %to, %narrow, mask=%mask
              return
            }}
            """,
            arguments=(Pointer(memory=0, offset=0), Pointer(memory=1, offset=0)),
            memories=(Memory(element, 16, "small"), Memory(wide, 16, "small")),
        )


def test_a_masked_load_that_reads_what_was_just_written() -> None:
    """Code generation ended the process over the size of the masked load, which is unknown."""
    assert_agrees(
        """
        kernel @fuzzed(
          %p5: ptr<i8>, %s6: f8e5b16, %p7: ptr<i1>, %s8: i32, %p9: ptr<i16>, %p10: ptr<i16>, %s11: i8,
          %p13: ptr<f32>, %p14: ptr<i64>, %p17: ptr<f32>, %s20: i32, %p21: ptr<f32>
        ) {
          %v0 = arange start=0, end=8 : block<8xi32>
          %v1 = cast %v0 : block<8xi1>
          %v2 = reduce %v1, combine="sum", axis=0 : i1
          %v3 = constant value=1 : i32
          %v4 = constant value=0 : i32
          %v5 = constant value=1 : i32
          %v6 = constant value=1 : block<100xi32>
          %v7 = splat %s6 : block<100xf8e5b16>
          %v8, %v9 = reduce_with %v6, %v7, axis=0 : i32, f8e5b16 {
            (%a0: i32, %a1: f8e5b16, %a2: i32, %a3: f8e5b16):
            %v10 = constant value=1 : i32
            %v11 = umulhi %a0, %a0 : i32
            %v12 = umulhi %v10, %v11 : i32
            %v13 = constant value=1.0 : f8e4b15
            %v14 = cast %v13 : f8e5b16
            %v15 = mul %a1, %v14 : f8e5b16
            yield %v12, %v15
          }
          %v16 = cast %v8 : u32
          %v17 = constant value=64 : u32
          %v18 = rem %v16, %v17 : u32
          %v19 = offset %p5, %v18 : ptr<i8>
          %v20 = program_id axis=0 : i32
          %v21 = offset %p7, %s8 : ptr<i1>
          %v22 = offset %v21, %v20 : ptr<i1>
          %v23 = load %v22 : i1
          %v24 = constant value=2 : i8
          %v25 = load %v19, mask=%v23, other=%v24 : i8
          %v26, %v27 = for %v4, %v3, %v5, %p5, %v25 : ptr<i8>, i8 {
            (%i: i32, %q: ptr<i8>, %acc: i8):
            %v28 = arange start=0, end=2 : block<2xi32>
            %v29 = cast %v28 : block<2xi16>
            %v30 = offset %p9, %v29 : block<2xptr<i16>>
            %v31 = arange start=0, end=2 : block<2xi32>
            %v32 = constant value=-1 : i32
            %v33 = add %v31, %v32 : block<2xi32>
            %v34 = offset %p10, %v33 : block<2xptr<i16>>
            %v35 = arange start=0, end=2 : block<2xi32>
            %v36 = cast %v35 : block<2xi8>
            %v37 = cmp %s11, %v36, predicate="lt" : block<2xi1>
            %v38 = arange start=1, end=3 : block<2xi32>
            %v39 = cast %v38 : block<2xi1>
            %v40 = map_elementwise %v39 : block<2xi1> {
              (%x0: i1):
              %v41 = constant value=false : i1
              yield %v41
            }
            %v42 = xor %v37, %v40 : block<2xi1>
            %v43 = load %v34, mask=%v42 : block<2xi16>
            %v44 = constant value=1 : i16
            %v45 = atomic_cas %v30, %v43, %v44 : block<2xi16>
            %v46 = load %q, mask=%v2 : i8
            %v47 = maximum %acc, %v46 : i8
            store %q, %v47
            yield %q, %v47
          }
          %v48 = constant value=1 : block<2xi32>
          %v49 = constant value=1 : i32
          %v50 = rem %v48, %v49 : block<2xi32>
          %v51 = offset %p14, %v50 : block<2xptr<i64>>
          %v52 = arange start=0, end=2 : block<2xi32>
          %v53 = cast %v52 : block<2xi1>
          %v54 = constant value=1 : i64
          %v55 = load %v51, mask=%v53, other=%v54 : block<2xi64>
          %v56 = constant value=64 : i64
          %v57 = cmp %v55, %v56, predicate="lt" : block<2xi1>
          %v58 = constant value=0 : i64
          %v59 = cmp %v55, %v58, predicate="ge" : block<2xi1>
          %v60 = offset %p13, %v55 : block<2xptr<f32>>
          %v61 = and %v57, %v59 : block<2xi1>
          %v62 = load %v60, mask=%v61 : block<2xf32>
          %v63 = reduce %v62, combine="max", axis=0 : f32
          %v64 = sub %v62, %v63 : block<2xf32>
          %v65 = exp %v64 : block<2xf32>
          %v66 = constant value=1 : block<2xu32>
          %v67 = offset %p17, %v66 : block<2xptr<f32>>
          %v68 = arange start=0, end=2 : block<2xi32>
          %v69 = constant value=1 : i32
          %v70 = add %v68, %v69 : block<2xi32>
          %v71 = cmp %v70, %s20, predicate="le" : block<2xi1>
          store %v67, %v65, mask=%v71
          %v72 = cast %v55 : block<2xu64>
          %v73 = constant value=64 : u64
          %v74 = rem %v72, %v73 : block<2xu64>
          %v75 = offset %p17, %v74 : block<2xptr<f32>>
          %v76 = arange start=0, end=2 : block<2xi32>
          %v77 = offset %p21, %v76 : block<2xptr<f32>>
          %v78 = arange start=1000, end=1065 : block<65xi32>
          %v79 = cast %v78 : block<65xf32>
          %v80, %v81 = arg_reduce %v79, combine="min", axis=0 : f32, i32
          %v82 = load %v77, mask=%v71, other=%v80 : block<2xf32>
          store %v75, %v82
          return
        }
        """,
        arguments=(
            Pointer(memory=0, offset=0),
            3.0,
            Pointer(memory=1, offset=0),
            2,
            Pointer(memory=2, offset=0),
            Pointer(memory=3, offset=1),
            1,
            Pointer(memory=4, offset=0),
            Pointer(memory=5, offset=0),
            Pointer(memory=6, offset=0),
            1,
            Pointer(memory=7, offset=0),
        ),
        memories=(
            Memory(element="i8", count=64, fill="special", seed=0, misaligned=0),
            Memory(element="i1", count=64, fill="ramp", seed=991, misaligned=2),
            Memory(element="i16", count=300, fill="ramp", seed=968, misaligned=0),
            Memory(element="i16", count=65, fill="ramp", seed=913, misaligned=4),
            Memory(element="f32", count=64, fill="special", seed=70, misaligned=0),
            Memory(element="i64", count=300, fill="small", seed=706, misaligned=0),
            Memory(element="f32", count=64, fill="special", seed=861, misaligned=0),
            Memory(element="f32", count=64, fill="small", seed=0, misaligned=0),
        ),
        grid=(1,),
        cpu="x86-64-v3",
        schedule=PerturbedSchedule(seed=10742),
    )


def test_a_masked_load_whose_last_register_is_past_the_end() -> None:
    # Of four registers LLVM read the last one whole: the row ends in the first.
    assert_agrees(
        """
        kernel @fuzzed(%p9: ptr<f32>, %s10: i32, %p16: ptr<u64>, %s19: i8) alias="disjoint" {
          %v0 = arange start=0, end=513 : block<513xi32>
          %v1 = add %v0, %s10 : block<513xi32>
          %v2 = offset %p9, %v1 : block<513xptr<f32>>
          %v3 = constant value=3 : i32
          %v4 = constant value=0 : i32
          %v5 = constant value=1 : i32
          %v6 = constant value=1.0 : block<513xf32>
          %v7, %v8 = for %v4, %v3, %v5, %v2, %v6 : block<513xptr<f32>>, block<513xf32> {
            (%i_0: i32, %q_0: block<513xptr<f32>>, %acc_0: block<513xf32>):
            %v9 = constant value=1 : u64
            %v10 = atomic_cas %p16, %v9, %v9, scope="sys" : u64
            %v11 = arange start=0, end=513 : block<513xi32>
            %v12 = cast %v11 : block<513xi8>
            %v13 = cmp %v12, %s19, predicate="le" : block<513xi1>
            %v14 = load %q_0, mask=%v13 : block<513xf32>
            %v15 = mul %acc_0, %v14 : block<513xf32>
            store %q_0, %v15
            yield %q_0, %v15
          }
          return
        }
        """,
        arguments=(Pointer(memory=0, offset=0), 0, Pointer(memory=1, offset=0), 0),
        memories=(
            Memory(element="f32", count=515, fill="special", seed=133, misaligned=0),
            Memory(element="u64", count=7, fill="small", seed=275, misaligned=0),
        ),
        grid=(1,),
        cpu="x86-64-v3",
    )


def test_a_float_sum_where_only_checks_are_left() -> None:
    # Code that looks for a fault is short; a sum in it needs its partials all the same.
    assert_agrees(
        """
        kernel @kernel(%p: ptr<f32>, %q: ptr<f32>, %n: i32) alias="disjoint" {
          %cols = arange start=0, end=4 : block<4xi32>
          %from = offset %q, %cols : block<4xptr<f32>>
          %row = load %from : block<4xf32>
          %one = constant value=1 : i32
          %some = cmp %n, %one, predicate="gt" : i1
          if %some {
            %down = expand_dims %row, axis=1 : block<4x1xf32>
            %across = expand_dims %row, axis=0 : block<1x4xf32>
            %left = broadcast %down, shape=[4, 4] : block<4x4xf32>
            %right = broadcast %across, shape=[4, 4] : block<4x4xf32>
            %all = mul %left, %right : block<4x4xf32>
            %sums = reduce %all, combine="sum", axis=1 : block<4xf32>
            %mask = cmp %sums, %row, predicate="ge" : block<4xi1>
            %v = load %from, mask=%mask : block<4xf32>
            yield
          }
          %to = offset %p, %cols : block<4xptr<f32>>
          store %to, %row
          return
        }
        """,
        arguments=(Pointer(memory=0, offset=0), Pointer(memory=1, offset=0), 4),
        memories=(Memory("f32", 4, "small"), Memory("f32", 4, "small")),
        cpu="x86-64",
        debug=True,
    )


def test_what_a_loop_of_lanes_shares_comes_from_what_is_kept() -> None:
    # %d is kept for each lane, so %low differs between lanes, and what the next round carries as %c.
    assert_agrees(
        """
        kernel @kernel(%p: ptr<i32>, %q: ptr<i32>) alias="disjoint" {
          %cols = arange start=0, end=8 : block<8xi32>
          %from = offset %q, %cols : block<8xptr<i32>>
          %v = load %from : block<8xi32>
          %w = map_elementwise %v : block<8xi32> {
            (%x: i32):
            %three = constant value=3 : i32
            %many = constant value=35 : i32
            %rounds = and %x, %three : i32
            %n_last, %low_last, %d_last, %c_last = while %rounds, %three, %many : i32, i32, i32, i32 {
              (%n: i32, %c: i32, %d: i32):
              %zero = constant value=0 : i32
              %two = constant value=2 : i32
              %go = cmp %n, %zero, predicate="gt" : i1
              %low = minimum %d, %two : i32
              condition %go, %n, %low, %d, %c
            } {
              (%m: i32, %e: i32, %f: i32, %h: i32):
              %one = constant value=1 : i32
              %next = sub %m, %one : i32
              %g = sub %f, %h : i32
              yield %next, %e, %g
            }
            yield %d_last
          }
          %to = offset %p, %cols : block<8xptr<i32>>
          store %to, %w
          return
        }
        """,
        arguments=(Pointer(memory=0, offset=0), Pointer(memory=1, offset=0)),
        memories=(Memory("i32", 8, "small"), Memory("i32", 8, "ramp")),
    )


def test_a_panel_that_is_written_by_wider_steps_than_it_has_columns() -> None:
    # One loop packs both operands, 32 lanes a step; a panel has 16.
    assert_agrees(
        """
        kernel @kernel(%p: ptr<f32>, %q: ptr<i32>) alias="disjoint" {
          %rows = arange start=0, end=64 : block<64xi32>
          %from = offset %q, %rows : block<64xptr<i32>>
          %x = load %from : block<64xi32>
          %down = cast %x : block<64xf16>
          %column = expand_dims %down, axis=1 : block<64x1xf16>
          %across = trans %column, order=[1, 0] : block<1x64xf16>
          %zero = constant value=0.0 : block<64x64xf32>
          %all = dot %column, %across, %zero : block<64x64xf32>
          %sums = reduce %all, combine="sum", axis=1 : block<64xf32>
          %to = offset %p, %rows : block<64xptr<f32>>
          store %to, %sums
          return
        }
        """,
        arguments=(Pointer(memory=0, offset=0), Pointer(memory=1, offset=0)),
        memories=(Memory("f32", 64, "small"), Memory("i32", 64, "ramp")),
        cpu="x86-64-v3",
    )


def test_a_packed_operand_that_is_made_of_two_parts() -> None:
    # The second part starts at column 47: vectors from there on cross the panels.
    assert_agrees(
        """
        kernel @kernel(%p: ptr<f64>) alias="disjoint" {
          %i = arange start=0, end=8 : block<8xi32>
          %across = expand_dims %i, axis=0 : block<1x8xi32>
          %down = expand_dims %i, axis=1 : block<8x1xi32>
          %a = cast %across : block<1x8xf64>
          %left = broadcast %down, shape=[8, 47] : block<8x47xi32>
          %right = broadcast %down, shape=[8, 17] : block<8x17xi32>
          %x = cast %left : block<8x47xf64>
          %y = cast %right : block<8x17xf64>
          %b = cat %x, %y, axis=1 : block<8x64xf64>
          %zero = constant value=0.0 : block<1x64xf64>
          %product = dot %a, %b, %zero : block<1x64xf64>
          %columns = arange start=0, end=64 : block<64xi32>
          %row = expand_dims %columns, axis=0 : block<1x64xi32>
          %to = offset %p, %row : block<1x64xptr<f64>>
          store %to, %product
          return
        }
        """,
        arguments=(Pointer(memory=0, offset=0),),
        memories=(Memory("f64", 64, "small"),),
    )
