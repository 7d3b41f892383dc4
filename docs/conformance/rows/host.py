"""Section 6: Triton's host API."""

from __future__ import annotations

import importlib
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import blocklang.triton as triton
from docs.conformance.kernels import Array
from docs.conformance.model import Host, MissingName, Row
from docs.conformance.sources import define

_SOURCE = """
@triton.jit{0}
def kernel(X, O, n, k, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(X + i, mask=i < n)
    tl.store(O + i, x * k, mask=i < n)
"""


def _kernel(options: str = "") -> Any:
    return define(_SOURCE.format(options))["kernel"]


def _launch(kernel: Any, grid: Any = (4,), **options: Any) -> Any:
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    result = kernel[grid](x, out, 64, 2, N=16, **options)
    assert (out == 2 * x).all()
    return result


def _options() -> dict[str, Callable[[], object]]:
    table: dict[str, Callable[[], object]] = {
        "jit": lambda: _launch(_kernel()),
        "jit(version)": lambda: _launch(_kernel("(version='1')")),
        "jit(repr)": lambda: _launch(_kernel("(repr=lambda s: 'named')")).name == "named",
        "jit(launch_metadata)": lambda: _launch(_kernel("(launch_metadata=lambda g, m, a: {})")),
        "jit(do_not_specialize)": lambda: _launch(_kernel("(do_not_specialize=['n'])")),
        "jit(do_not_specialize by index)": lambda: _launch(_kernel("(do_not_specialize=[2])")),
        "jit(do_not_specialize_on_alignment)": lambda: _launch(
            _kernel("(do_not_specialize_on_alignment=['X'])")
        ),
        "jit(debug)": lambda: _launch(_kernel("(debug=True)")),
        "jit(noinline)": lambda: _launch(_kernel("(noinline=False)")),
    }
    for name, value in (
        ("num_warps", 4),
        ("num_stages", 3),
        ("num_ctas", 1),
        ("maxnreg", 128),
        ("enable_fp_fusion", False),
        ("debug", True),
        ("sanitize_overflow", False),
        ("sanitize_overflow", True),
        ("launch_cooperative_grid", False),
        ("launch_cooperative_grid", True),
        ("launch_pdl", True),
    ):
        table[f"launch({name}={value})"] = lambda n=name, v=value: _launch(_kernel(), **{n: v})  # type: ignore[misc]
    return table


def _raises(function: Callable[[], object], *kinds: type[BaseException]) -> bool:
    try:
        function()
    except kinds:
        return True
    return False


def _value_of(argument: Any, annotation: str = "") -> Any:
    """What dtype an argument has in a kernel, as its name's first letters in a byte array."""
    module = define(
        f"""
        @triton.jit
        def kernel(O, a{annotation}):
            tl.store(O, find(a.dtype))

        NAMES = ("int1", "int32", "int64", "uint64", "fp32", "fp64", "uint32")
        @triton.constexpr_function
        def find(name):
            return NAMES.index(str(name))
        """
    )
    out = np.zeros(1, np.int32)
    module["kernel"][(1,)](out, argument)
    return module["NAMES"][int(out[0])]


def _grids() -> dict[str, Callable[[], object]]:
    def zero() -> bool:
        x, out = np.ones(16, np.float32), np.zeros(16, np.float32)
        _kernel()[(0,)](x, out, 16, 2, N=16)
        return not out.any()

    return {
        "a grid of 1": lambda: _launch(_kernel(), (4,)),
        "a grid of 2": lambda: _launch(_kernel(), (4, 1)),
        "a grid of 3": lambda: _launch(_kernel(), (4, 1, 1)),
        "a grid function": lambda: _launch(_kernel(), lambda meta: (triton.cdiv(meta["n"], meta["N"]),)),
        "a zero in the grid": zero,
        "an int is int32": lambda: _value_of(7) == "int32",
        "a wide int is int64": lambda: _value_of(2**40) == "int64",
        "a wider int is uint64": lambda: _value_of(2**63) == "uint64",
        "an int beyond is an OverflowError": lambda: _raises(lambda: _value_of(2**65), OverflowError),
        "a float is fp32": lambda: _value_of(1.5) == "fp32",
        "a float annotated fp64": lambda: _value_of(1.5, ": tl.float64") == "fp64",
        "an annotation by name": lambda: _value_of(7, ": 'i64'") == "int64",
        "an annotation tl.int64": lambda: _value_of(7, ": tl.int64") == "int64",
        "a bool is int1": lambda: _value_of(True) == "int1",
        "an unknown keyword is a KeyError": lambda: _raises(
            lambda: _launch(_kernel(), no_such_option=1), KeyError
        ),
        "num_warps=3 is refused": lambda: _raises(lambda: _launch(_kernel(), num_warps=3), Exception),
        "calling a kernel is an error": lambda: _raises(lambda: _kernel()(1), RuntimeError),
        "a global changed after the first launch": _changed_global,
    }


def _changed_global() -> bool:
    module = define(
        """
        K = tl.constexpr(2)
        @triton.jit
        def kernel(O):
            tl.store(O, K)
        """
    )
    out = np.zeros(1, np.int32)
    module["kernel"][(1,)](out)
    module["K"] = module["tl"].constexpr(3)
    return _raises(lambda: module["kernel"][(1,)](out), RuntimeError)


def _function() -> dict[str, Callable[[], object]]:
    def attribute(name: str) -> Callable[[], object]:
        def probe() -> None:
            kernel = _kernel()
            _launch(kernel)
            getattr(kernel, name)

        return probe

    def run() -> bool:
        x, out = np.ones(16, np.float32), np.zeros(16, np.float32)
        _kernel().run(x, out, 16, 2, N=16, grid=(1,), warmup=False)
        return bool((out == 2).all())

    def warmup() -> bool:
        x, out = np.ones(16, np.float32), np.zeros(16, np.float32)
        _kernel().warmup(x, out, 16, 2, N=16, grid=(1,))
        return not out.any()

    def hook() -> bool:
        called: list[object] = []
        kernel = _kernel()
        kernel.add_pre_run_hook(lambda *a, **k: called.append(1))
        _launch(kernel)
        return bool(called)

    def source() -> None:
        kernel = _kernel()
        kernel._unsafe_update_src(kernel.src.replace("x * k", "x * k + 0"))
        _launch(kernel)

    def parameter(name: str) -> Callable[[], object]:
        return lambda: [getattr(p, name) for p in _kernel().params]

    table: dict[str, Callable[[], object]] = {
        "[grid](...)": lambda: _launch(_kernel()),
        "run(..., grid, warmup)": run,
        "warmup(..., grid)": warmup,
        "warmup of dtypes": lambda: _kernel().warmup(
            triton.language.float32, triton.language.float32, 16, 2, N=16, grid=(1,)
        ),
        "add_pre_run_hook": hook,
        "_unsafe_update_src": source,
        "arg_names": lambda: list(_kernel().arg_names) == ["X", "O", "n", "k", "N"],
        "parse": lambda: _kernel().parse(),
        "__name__": lambda: _kernel().__name__ == "kernel",
    }
    for name in (
        "fn",
        "params",
        "signature",
        "src",
        "cache_key",
        "used_global_vals",
        "device_caches",
        "preload",
        "repr",
        "type",
        "is_gluon",
    ):
        table[name] = attribute(name)
    for name in (
        "name",
        "is_constexpr",
        "do_not_specialize",
        "default",
        "num",
        "annotation",
        "has_default",
        "do_not_specialize_on_alignment",
    ):
        table[f"params[k].{name}"] = parameter(name)
    for name in (
        "asm",
        "metadata",
        "name",
        "n_regs",
        "n_spills",
        "hash",
        "metadata.num_warps",
        "metadata.shared",
    ):

        def probe(name: str = name) -> None:
            value: Any = _launch(_kernel())
            for part in name.split("."):
                value = getattr(value, part)

        table[f"CompiledKernel.{name}"] = probe
    table["CompiledKernel[grid]"] = _relaunch
    return table


def _relaunch() -> bool:
    x, out = np.ones(16, np.float32), np.zeros(16, np.float32)
    compiled = _kernel().warmup(x, out, 16, 2, N=16, grid=(1,))
    compiled[(1, 1, 1)](x, out, 16, 2, 16)
    return bool((out == 2).all())


def _tuned(
    key: tuple[str, ...] = ("n",), configs: int = 2, config: dict[str, Any] | None = None, **options: Any
) -> Any:
    chosen = [triton.Config({"N": 16 << k}, **(config or {})) for k in range(configs)]
    options.setdefault("do_bench", lambda call, quantiles: (call(), [1.0, 1.0, 1.0])[1])
    return triton.autotune(configs=chosen, key=list(key), **options)(_kernel())


def _launch_tuned(kernel: Any) -> Any:
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    kernel[lambda meta: (triton.cdiv(64, meta["N"]),)](x, out, 64, 2)
    assert (out == 2 * x).all()
    return kernel


def _autotune() -> dict[str, Callable[[], object]]:
    def prune(**how: Any) -> Callable[[], object]:
        return lambda: _launch_tuned(_tuned(prune_configs_by=how))

    table: dict[str, Callable[[], object]] = {
        "autotune(configs, key)": lambda: _launch_tuned(_tuned()).best_config.kwargs["N"] in (16, 32),
        "autotune of one config": lambda: _launch_tuned(_tuned(configs=1)),
        "autotune(prune_configs_by early_config_prune)": prune(
            early_config_prune=lambda configs, args, **k: configs[:1]
        ),
        "autotune(prune_configs_by perf_model, top_k)": prune(perf_model=lambda **k: k["N"], top_k=1),
        "autotune(reset_to_zero)": lambda: _launch_tuned(_tuned(reset_to_zero=["O"])),
        "autotune(restore_value)": lambda: _launch_tuned(_tuned(restore_value=["O"])),
        "autotune(pre_hook)": lambda: _launch_tuned(_tuned(pre_hook=lambda args, reset_only=False: None)),
        "autotune(post_hook)": lambda: _launch_tuned(_tuned(post_hook=lambda args, exception=None: None)),
        "autotune(warmup, rep)": _tuned_with_deprecated_times,
        "autotune(use_cuda_graph)": lambda: _launch_tuned(_tuned(use_cuda_graph=False)),
        "autotune(do_bench)": lambda: _launch_tuned(_tuned()),
        "autotune(cache_results)": lambda: _launch_tuned(_tuned(cache_results=False)),
        "heuristics": _heuristics,
        "heuristics over autotune": _heuristics_over_autotune,
        "Config.all_kwargs": lambda: triton.Config({"N": 1}).all_kwargs()["num_warps"] == 4,
    }
    for name, value in (
        ("num_warps", 2),
        ("num_stages", 2),
        ("num_ctas", 1),
        ("maxnreg", 64),
        ("pre_hook", lambda args: None),
        ("ir_override", None),
    ):
        table[f"Config({name})"] = lambda n=name, v=value: _launch_tuned(_tuned(config={n: v}))  # type: ignore[misc]
    for name in ("best_config", "cache", "configs", "fn", "base_fn", "arg_names", "keys"):
        table[f"Autotuner.{name}"] = lambda n=name: getattr(_launch_tuned(_tuned()), n)  # type: ignore[misc]
    return table


def _tuned_with_deprecated_times() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return _launch_tuned(_tuned(warmup=1, rep=1, do_bench=None))


def _heuristics() -> None:
    kernel = triton.heuristics({"N": lambda args: 16 if args["n"] > 1 else 1})(_kernel())
    _launch_tuned(kernel)


def _heuristics_over_autotune() -> None:
    inner = triton.heuristics({"k": lambda args: 2})(_kernel())
    kernel = triton.autotune([triton.Config({"N": 16})], key=["n"])(inner)
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    kernel[(4,)](x, out, 64)
    assert (out == 2 * x).all()


def _compile() -> bool:
    from blocklang.triton.compiler import ASTSource

    signature = {"X": "*fp32", "O": "*fp32", "n": "i32", "k": "i32", "N": "constexpr"}
    compiled = triton.compile(ASTSource(_kernel(), signature, constexprs={"N": 16}, attrs={}))
    return bool(compiled.asm)


def _descriptor() -> bool:
    from blocklang.triton.tools.tensor_descriptor import TensorDescriptor

    module = define(
        """
        @triton.jit
        def kernel(D, O):
            tl.store(O + tl.arange(0, 16), D.load([0]))
        """
    )
    x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    module["kernel"][(1,)](TensorDescriptor(x, [16], [1], [16]), out)
    return bool((out == x).all())


def _from_tensor() -> bool:
    from blocklang.triton.tools.tensor_descriptor import TensorDescriptor

    return list(TensorDescriptor.from_tensor(np.zeros((4, 8), np.float32), [4, 8]).block_shape) == [4, 8]


def _report() -> None:
    mark = triton.testing.perf_report(
        triton.testing.Benchmark(
            x_names=["n"],
            x_vals=[1],
            line_arg="p",
            line_vals=["a"],
            line_names=["A"],
            plot_name="plot",
            args={},
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        mark(lambda n, p: (1.0, 1.0, 1.0)).run(print_data=False, save_path=folder)


def _reinterpret() -> bool:
    x = np.zeros(4, np.int32)
    wrapped = triton.reinterpret(_Tensor(x), triton.language.float32)
    return bool(wrapped.dtype == triton.language.float32)


class _Tensor:
    """What `reinterpret` wants to see of a tensor."""

    def __init__(self, array: Array) -> None:
        self.data, self.dtype, self.shape, self.device = array, array.dtype, array.shape, "cpu"

    def data_ptr(self) -> int:
        return int(self.data.ctypes.data)


def _names() -> dict[str, Callable[[], object]]:
    active = "blocklang.triton.runtime:driver.active."
    bench = triton.testing.do_bench

    table: dict[str, Callable[[], object]] = {
        "cdiv": lambda: triton.cdiv(7, 2) == 4,
        "next_power_of_2": lambda: triton.next_power_of_2(5) == 8,
        "reinterpret": _reinterpret,
        "set_allocator": lambda: triton.set_allocator(lambda size, align, stream: np.zeros(size, np.uint8)),
        "compile(ASTSource(fn, signature, constexprs, attrs))": _compile,
        "tools.tensor_descriptor.TensorDescriptor": _descriptor,
        "tools.tensor_descriptor.TensorDescriptor.from_tensor": _from_tensor,
        "testing.do_bench": lambda: bench(lambda: None, warmup=0, rep=1) >= 0,
        "testing.do_bench(grad_to_none)": lambda: bench(lambda: None, warmup=0, rep=1, grad_to_none=[]) >= 0,
        "testing.do_bench(quantiles)": lambda: (
            len(bench(lambda: None, warmup=0, rep=1, quantiles=[0.1, 0.9])) == 2
        ),
        "testing.do_bench(return_mode)": lambda: (
            bench(lambda: None, warmup=0, rep=1, return_mode="median") >= 0
        ),
        "testing.do_bench_cudagraph": lambda: triton.testing.do_bench_cudagraph(lambda: None, rep=1) >= 0,
        "testing.assert_close": lambda: triton.testing.assert_close(
            np.ones(2), np.ones(2), atol=0, rtol=0, err_msg=""
        ),
        "testing.perf_report, testing.Benchmark": _report,
        "knobs.scope": lambda: triton.knobs.runtime.scope().__enter__(),
        "constexpr_function": lambda: triton.constexpr_function(lambda n: n + 1)(2) == 3,
        "must_use_result": lambda: callable(triton.must_use_result(lambda: 1)),
        "__version__": lambda: triton.__version__ == "3.7.1",
        "MockTensor": lambda: triton.MockTensor(triton.language.float32).dtype == triton.language.float32,
    }
    for name in ("CompilationError", "InterpreterError", "OutOfResources", "TritonError"):
        table[name] = lambda n=name: issubclass(getattr(triton, n), Exception)  # type: ignore[misc]
    for path in (
        "JITFunction",
        "KernelInterface",
        "TensorWrapper",
        "FutureKernel",
        "AsyncCompileMode",
        "Config",
        "autotune",
        "heuristics",
        "jit",
        "backends",
        "compiler",
        "errors",
        "language",
        "runtime",
        "testing",
        "tools",
        "knobs",
        "knobs.amd",
        "knobs.autotuning",
        "knobs.build",
        "knobs.cache",
        "knobs.compilation",
        "knobs.language",
        "knobs.nvidia",
        "knobs.proton",
        "knobs.redis",
        "knobs.runtime",
        "testing.Mark",
        "testing.get_dram_gbps",
        "testing.get_max_simd_tflops",
        "testing.get_max_tensorcore_tflops",
        "testing.cuda_memcheck",
        "testing.set_gpu_clock",
        "testing.nvsmi",
        "runtime.Autotuner",
        "runtime.Heuristics",
        "runtime.JITFunction",
        "runtime.KernelInterface",
        "runtime.MockTensor",
        "runtime.OutOfResources",
        "runtime.InterpreterError",
        "runtime.TensorWrapper",
        "runtime.RedisRemoteCacheBackend",
        "runtime.RemoteCacheBackend",
        "runtime.autotuner",
        "runtime.build",
        "runtime.cache",
        "runtime.driver",
        "runtime.errors",
        "runtime.jit",
        "runtime.reinterpret",
        "runtime.Config",
        "runtime.autotune",
        "runtime.heuristics",
        "compiler.CompiledKernel",
        "compiler.ASTSource",
        "compiler.compile",
        "compiler.errors.CompilationError",
        "compiler.errors.UnsupportedLanguageConstruct",
        "compiler.errors.CompileTimeAssertionFailure",
        "compiler.code_generator",
    ):
        table.setdefault(path, lambda p=path: _look_up(p))  # type: ignore[misc]
    for name in (
        "get_current_target",
        "get_active_torch_device",
        "get_device_interface",
        "get_benchmarker",
        "get_current_device",
        "get_current_stream",
        "get_empty_cache_for_benchmark",
    ):
        table[f"runtime.driver.active.{name}"] = lambda n=name: getattr(triton.runtime.driver.active, n)  # type: ignore[misc]
    table["runtime.driver.active.utils.get_device_properties"] = lambda: (
        triton.runtime.driver.active.utils.get_device_properties(0)["multiprocessor_count"] > 0
    )
    assert active
    return table


def _look_up(path: str) -> object:
    value: Any = triton
    for position, part in enumerate(path.split(".")):
        if not hasattr(value, part):
            try:
                importlib.import_module("blocklang.triton." + ".".join(path.split(".")[: position + 1]))
            except ImportError:
                raise MissingName(f"there is no `triton.{path}`") from None
        value = getattr(value, part)
    return value


ROWS = [
    Row(group, name, Host(probe))
    for group, table in (
        ("Host: jit and launch options", _options()),
        ("Host: grids and arguments", _grids()),
        ("Host: JITFunction and CompiledKernel", _function()),
        ("Host: autotune, Config, heuristics", _autotune()),
        ("Host: other names", _names()),
    )
    for name, probe in table.items()
]
