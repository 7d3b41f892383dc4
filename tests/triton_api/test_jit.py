"""`triton.jit`: what a kernel shows, how it is launched, what a launch returns, hooks."""

from __future__ import annotations

import ast
import inspect
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import blocklang as bl
import blocklang.triton as triton
import blocklang.triton.language as tl
from blocklang.jit.native import WARM_LAUNCHES
from tests.triton_api import kernels


@pytest.fixture
def fresh() -> Any:
    """A kernel that nothing was compiled for."""
    return triton.JITFunction(kernels.scale.fn)


def ones(n: int = 5) -> Any:
    return np.ones(n, np.float32)


# ---- what a kernel is ----


def test_one_class_under_every_name() -> None:
    assert isinstance(kernels.scale, triton.JITFunction)
    assert isinstance(kernels.scale, triton.runtime.JITFunction)
    assert isinstance(kernels.scale, triton.runtime.jit.JITFunction)
    assert isinstance(kernels.scale, triton.KernelInterface)
    assert isinstance(kernels.scale, bl.JITFunction)
    assert triton.runtime.autotuner.Autotuner is triton.runtime.Autotuner
    assert triton.__version__ == "3.7.1"


def test_public_attributes() -> None:
    kernel = kernels.scale
    assert kernel.__name__ == "scale"
    assert kernel.fn.__name__ == "scale"
    assert kernel.arg_names == ["x", "n", "factor", "BLOCK"]
    assert [p.is_constexpr for p in kernel.params] == [False, False, False, True]
    assert [p.num for p in kernel.params] == [0, 1, 2, 3]
    assert kernels.store_value.params[1].do_not_specialize
    assert not kernel.params[0].has_default
    assert kernels.store_wide.params[1].annotation
    assert kernel.constexprs == [3]
    assert kernel.module == kernels.__name__
    assert repr(kernel) == f"JITFunction({kernels.__name__}:scale)"
    assert inspect.getsource(kernel).startswith("@triton.jit")


def test_source() -> None:
    assert kernels.scale.src.startswith("def scale(x, n, factor, BLOCK: tl.constexpr):\n")
    tree = kernels.scale.parse()
    assert isinstance(tree, ast.Module)
    assert isinstance(tree.body[0], ast.FunctionDef)
    assert kernels.scale.raw_src[0] == "@triton.jit\n"
    with pytest.raises(AttributeError, match="_unsafe_update_src"):
        kernels.scale.src = "def scale(): pass"


def test_cache_key_depends_on_the_text_and_what_is_read() -> None:
    key = kernels.calls_helper.cache_key
    assert key == triton.JITFunction(kernels.calls_helper.fn).cache_key
    assert key != kernels.scale.cache_key
    changed = triton.JITFunction(kernels.scale.fn)
    before = changed.cache_key
    changed._unsafe_update_src(changed.src.replace("* factor", "+ factor"))
    assert changed.cache_key != before


def test_globals_that_are_read() -> None:
    used = kernels.helper.used_global_vals
    assert [name for name, _ in used] == ["FACTOR"]


def test_kernels_pickle_by_reference() -> None:
    assert pickle.loads(pickle.dumps(kernels.scale)) is kernels.scale


def test_annotations_of_users_subscript_the_classes() -> None:
    assert triton.KernelInterface[int]  # type: ignore[misc]
    assert triton.JITFunction[int]  # type: ignore[misc]


# ---- launching ----


def test_launch() -> None:
    x = ones()
    kernels.scale[(1,)](x, 5, 2.0, BLOCK=8)
    assert x.tolist() == [2.0] * 5
    kernels.scale[lambda meta: (triton.cdiv(5, meta["BLOCK"]),)](x, 5, 2.0, BLOCK=4)
    assert x.tolist() == [4.0] * 5
    kernels.scale.run(x, 5, 2.0, BLOCK=4, grid=(2,), warmup=False)
    assert x.tolist() == [8.0] * 5
    kernels.scale[(0,)](x, 5, 2.0, BLOCK=4)
    assert x.tolist() == [8.0] * 5


def test_parts_of_the_language_under_their_names() -> None:
    x = np.ones(4, np.float32)
    kernels.calls_helper[(1,)](x, BLOCK=4)
    assert x.tolist() == [4.0] * 4
    assert tl.float32 is bl.language.float32
    assert tl.core.constexpr is bl.constexpr
    assert tl.standard.cdiv is tl.cdiv
    assert tl.math.exp is bl.language.exp
    assert tl.extra.cuda.libdevice is tl.extra.libdevice
    with pytest.raises(AttributeError, match="no_such_name"):
        tl.no_such_name  # noqa: B018


def test_constexpr_functions_and_aggregates() -> None:
    out = np.zeros(8, np.int32)
    kernels.fill_span[(1,)](out, N=6)
    assert out.tolist() == [0, 1, 1, 1, 1, 0, 0, 0]
    assert kernels.largest_power(100) == 64


def test_only_what_triton_accepts() -> None:
    @triton.jit
    def odd(x):  # type: ignore[no-untyped-def]
        tl.store(x + tl.arange(0, 3), 1.0)

    with pytest.raises(triton.CompilationError, match="power of"):
        odd[(1,)](ones())


def test_calling_a_kernel_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"Cannot call @triton\.jit'd outside of the scope of a kernel"):
        kernels.scale(ones(), 5, 2.0, BLOCK=8)


def test_unknown_keyword_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="wrap_size"):
        kernels.scale[(1,)](ones(), 5, 2.0, BLOCK=8, wrap_size=3)


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1])
def test_integer_beyond_64_bits_overflows(value: int) -> None:
    with pytest.raises(OverflowError, match="64-bit"):
        kernels.scale[(1,)](ones(), value, 2.0, BLOCK=8)


@pytest.mark.parametrize("value", [0, 1, -7, 2**31 - 1, 2**31, 2**63, 2**64 - 1])
def test_integers_by_value(value: int) -> None:
    out = np.zeros(1, np.uint64)
    kernels.store_value[(1,)](out, value)
    assert int(out[0]) == value % 2**64


def test_annotations_force_types() -> None:
    out = np.zeros(2, np.int64)
    kernels.store_wide[(1,)](out, 1, 1.000000001)
    assert out.tolist() == [1, 1000000001]


@pytest.mark.parametrize(
    "options",
    [
        {"num_warps": 8, "num_stages": 2, "num_ctas": 1, "maxnreg": None},
        {"num_warps": 1, "launch_pdl": False, "launch_cooperative_grid": False},
        {"waves_per_eu": 2, "matrix_instr_nonkdim": 16, "kpack": 2},
        {"enable_fp_fusion": False, "sanitize_overflow": False, "debug": False},
    ],
)
def test_options(options: dict[str, Any]) -> None:
    x = ones()
    kernel = kernels.scale[(1,)](x, 5, 2.0, BLOCK=8, **options)
    assert x.tolist() == [2.0] * 5
    assert all(getattr(kernel.metadata, name) == value for name, value in options.items())


def test_num_warps_is_a_power_of_two() -> None:
    with pytest.raises(bl.LaunchError, match="num_warps"):
        kernels.scale[(1,)](ones(), 5, 2.0, BLOCK=8, num_warps=3)


def test_launches_with_other_options_get_warm_too(fresh: Any) -> None:
    x = ones()
    for warps in (4, 8):
        for _ in range(WARM_LAUNCHES + 2):
            answer = fresh[(1,)](x, 5, 1.0, BLOCK=8, num_warps=warps)
        assert answer.metadata.num_warps == warps
    assert len(fresh._chain._tables) == 2
    assert fresh[(1,)](x, 5, 1.0, BLOCK=8, num_warps=4).metadata.num_warps == 4


# ---- what a launch returns ----


def test_compiled_kernel() -> None:
    x = ones()
    kernel = kernels.scale[(1,)](x, 5, 2.0, BLOCK=8)
    assert isinstance(kernel, triton.compiler.CompiledKernel)
    assert kernel.name == kernel.metadata.name == "scale"
    assert kernel.hash == kernels.scale[(1,)](x, 5, 2.0, BLOCK=8).hash
    assert kernel.hash != kernels.scale[(1,)](x, 5, 2.0, BLOCK=16).hash
    assert kernel.n_spills == 0
    assert kernel.n_regs > 0
    assert kernel.metadata.shared > 0
    assert "kernel @scale" in kernel.asm["ttir"]
    assert "placed @scale" in kernel.asm["ttgir"]
    assert "define" in kernel.asm["llir"]
    assert ".text" in kernel.asm["asm"]
    assert "ptx" not in kernel.asm
    with pytest.raises(KeyError, match="ttir"):
        kernel.asm["ptx"]


def test_compiled_kernel_can_be_launched() -> None:
    x = ones()
    kernel = kernels.scale.warmup(x, 5, 2.0, BLOCK=8, grid=(1,))
    assert x.tolist() == [1.0] * 5
    kernel[(1,)](x, 5, 2.0)
    kernel[(1,)](x, 5, 2.0, 8)
    assert x.tolist() == [4.0] * 5


def test_warmup_takes_dtypes_for_arrays(fresh: Any) -> None:
    kernel = fresh.warmup(np.float32, 5, 2.0, BLOCK=8, grid=(1,))
    assert "*fp32:16" in kernel.specialisation.signature
    kernel = fresh.warmup(triton.MockTensor(np.dtype("int32"), [2, 3]), 5, 2.0, BLOCK=8, grid=(1,))
    assert kernel.specialisation.signature.startswith("*i32")
    assert triton.MockTensor(np.int8, [2, 3, 4]).stride() == (12, 4, 1)


def test_device_caches(fresh: Any) -> None:
    assert not fresh.device_caches[0][0]
    fresh[(1,)](ones(), 5, 2.0, BLOCK=8)
    fresh[(1,)](ones(7), 7, 2.0, BLOCK=8)
    assert len(fresh.device_caches[0][0]) == 1
    fresh[(1,)](ones(), 5, 2.0, BLOCK=16)
    assert len(fresh.device_caches[0][0]) == 2
    fresh.device_caches.clear()
    assert not fresh.device_caches[0][0]


def test_repr_names_versions() -> None:
    @triton.jit(repr=lambda specialisation: f"scaled_by_{specialisation.constants['BLOCK']}")
    def named(x, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        tl.store(x + tl.arange(0, BLOCK), 1.0)

    assert named[(1,)](ones(8), BLOCK=8).name == "scaled_by_8"


def test_compile_an_ast_source() -> None:
    source = triton.compiler.ASTSource(
        kernels.scale,
        signature={"x": "*fp32", "n": "i32", "factor": "fp32", "BLOCK": "constexpr"},
        constexprs={"BLOCK": 8},
        attrs={(0,): [["tt.divisibility", 16]]},
    )
    kernel = triton.compile(source)
    assert kernel.specialisation.signature == "*fp32:16,i32,fp32"
    x = ones()
    kernel[(1,)](x, 5, 2.0)
    assert x.tolist() == [2.0] * 5
    with pytest.raises(bl.UsageError, match="cuda"):
        triton.compile(source, target=triton.backends.compiler.GPUTarget("cuda", 90, 32))


# ---- hooks ----


def test_pre_run_hooks(fresh: Any) -> None:
    seen: list[tuple[Any, ...]] = []
    fresh.add_pre_run_hook(lambda *args, **kwargs: seen.append((args[1:], kwargs["BLOCK"])))
    x = ones()
    fresh[(1,)](x, 5, 2.0, BLOCK=8)
    assert seen == [((5, 2.0), 8)]
    assert x.tolist() == [2.0] * 5


def test_launch_hooks(fresh: Any) -> None:
    order: list[Any] = []

    def enter(metadata: Any) -> None:
        order.append(("enter", metadata.get()["name"]))

    def leave(metadata: Any) -> None:
        order.append("exit")

    triton.knobs.runtime.launch_enter_hook.add(enter)
    triton.knobs.runtime.launch_exit_hook.add(leave)
    try:
        fresh[(1,)](ones(), 5, 2.0, BLOCK=8)
    finally:
        triton.knobs.runtime.launch_enter_hook.remove(enter)
        triton.knobs.runtime.launch_exit_hook.remove(leave)
    fresh[(1,)](ones(), 5, 2.0, BLOCK=8)
    assert order == [("enter", "scale"), "exit"]


def test_launch_metadata_reaches_the_hooks() -> None:
    @triton.jit(launch_metadata=lambda grid, kernel, args: {"bytes": 4 * args["n"], "grid": grid})
    def described(x, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        tl.store(x + tl.arange(0, BLOCK), 1.0, mask=tl.arange(0, BLOCK) < n)

    seen: list[dict[str, Any]] = []
    hook = lambda metadata: seen.append(metadata.get())  # noqa: E731
    triton.knobs.runtime.launch_enter_hook.add(hook)
    try:
        described[(1,)](ones(), 5, BLOCK=8)
    finally:
        triton.knobs.runtime.launch_enter_hook.remove(hook)
    assert seen[0]["bytes"] == 20
    assert seen[0]["grid"] == (1,)


def test_compilation_hooks_and_preload(fresh: Any) -> None:
    told: list[str] = []

    def before(*, compile: dict[str, Any], **_: Any) -> bool:
        told.append(compile["specialization_data"])
        return True

    with triton.knobs.runtime.scope():
        triton.knobs.runtime.jit_cache_hook = before
        x = ones()
        assert fresh[(1,)](x, 5, 2.0, BLOCK=8) is None
        assert x.tolist() == [1.0] * 5
    assert len(told) == 1
    done: list[str] = []
    with triton.knobs.runtime.scope():
        triton.knobs.runtime.jit_post_compile_hook = lambda **known: done.append(known["fn"].name)
        kernel = fresh.preload(told[0])
        fresh[(1,)](x, 5, 2.0, BLOCK=8)
    assert done == ["scale"]
    assert kernel.specialisation.constants == {"BLOCK": 8}
    with pytest.raises(RuntimeError, match="trying to preload"):
        kernels.add.preload(told[0])


def test_async_compile_mode(fresh: Any) -> None:
    with ThreadPoolExecutor(2) as pool, triton.AsyncCompileMode(pool):
        kernel = fresh.warmup(np.float32, 5, 2.0, BLOCK=32, grid=(1,))
        assert isinstance(kernel, triton.FutureKernel)
        assert kernel.result().name == "scale"
    assert kernel.name == "scale"


# ---- wrappers and sources ----


def test_a_library_may_wrap_kernels() -> None:
    class Counting(triton.KernelInterface):
        def __init__(self, fn: Any) -> None:
            self.fn = fn
            self.launches = 0

        def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            self.launches += 1
            return self.fn.run(*args, grid=grid, warmup=warmup, **kwargs)

    wrapped = Counting(kernels.scale)
    x = ones()
    wrapped[(1,)](x, 5, 2.0, BLOCK=8)
    assert wrapped.launches == 1
    assert x.tolist() == [2.0] * 5
    assert wrapped.warmup(np.float32, 5, 2.0, BLOCK=8).name == "scale"


def test_a_subclass_may_override_run() -> None:
    class Loud(triton.JITFunction):
        launches = 0

        def run(self, *args: Any, **kwargs: Any) -> Any:
            self.launches += 1
            return super().run(*args, **kwargs)

    loud = Loud(kernels.scale.fn)
    x = ones()
    for _ in range(WARM_LAUNCHES + 3):
        loud[(1,)](x, 5, 1.0, BLOCK=8)
    assert loud.launches == WARM_LAUNCHES + 3


def test_the_source_can_be_replaced(fresh: Any) -> None:
    x = ones()
    fresh[(1,)](x, 5, 2.0, BLOCK=8)
    fresh._unsafe_update_src(fresh.src.replace("* factor", "+ 10 * factor"))
    fresh[(1,)](x, 5, 2.0, BLOCK=8)
    assert x.tolist() == [22.0] * 5
    assert "10 * factor" in fresh.src
    kernels.scale[(1,)](x, 5, 2.0, BLOCK=8)
    assert x.tolist() == [44.0] * 5


def test_a_mistake_in_a_replaced_source_is_located(fresh: Any) -> None:
    fresh._unsafe_update_src(fresh.src.replace("tl.program_id(0)", "tl.no_such(0)"))
    with pytest.raises(triton.CompilationError) as caught:
        fresh[(1,)](ones(), 5, 2.0, BLOCK=8)
    assert "no_such" in caught.value.error_message
    assert "tl.no_such(0) * BLOCK" in str(caught.value)


def test_errors_under_their_names() -> None:
    assert issubclass(triton.CompilationError, triton.TritonError)
    assert issubclass(triton.OutOfResources, triton.TritonError)
    assert issubclass(triton.InterpreterError, triton.errors.TritonError)
    assert triton.compiler.errors.UnsupportedLanguageConstruct is bl.UnsupportedLanguageConstruct
    error = triton.OutOfResources(300, 200, "shared memory")
    assert "out of resource: shared memory, Required: 300, Hardware limit: 200" in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (again.required, again.limit, again.name) == (300, 200, "shared memory")


def test_interpreter_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    interpreted = triton.jit(kernels.scale.fn)
    assert interpreted.interpret
    x = ones()
    interpreted[(1,)](x, 5, 2.0, BLOCK=8)
    assert x.tolist() == [2.0] * 5


def test_jit_refuses_what_is_no_function() -> None:
    with pytest.raises(bl.LaunchError, match="Python function"):
        triton.jit(kernels.scale)
    with pytest.raises(bl.LaunchError, match="Python function"):
        triton.jit(3)  # type: ignore[call-overload]


def test_host_functions() -> None:
    assert triton.cdiv(5, 2) == 3
    assert triton.next_power_of_2(100) == 128
    assert triton.must_use_result(len) is len
    assert triton.must_use_result("say why")(len) is len
    triton.set_allocator(lambda size, alignment, stream: None)
