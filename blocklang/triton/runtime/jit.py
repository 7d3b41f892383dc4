"""`triton.runtime.jit`: `jit` and `JITFunction` as Triton has them, over blocklang's one implementation.

What differs from `blocklang.jit`: the defaults (only what Triton's frontend accepts; `a * b + c` is fused),
the kernel's source may be replaced, hooks run around launches and compilations, and a launch returns a
`CompiledKernel` with Triton's attributes.

Launches without hooks take blocklang's own path, tables of the native launcher included.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
import re
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from blocklang.diagnostics import LaunchError
from blocklang.jit import JITFunction as Function
from blocklang.jit import KernelInterface, MockTensor, Specialisation
from blocklang.jit.function import Executable, MadeCode, Version
from blocklang.jit.options import LaunchOptions
from blocklang.jit.specialisation import TypedSpec, short_name
from blocklang.triton import knobs
from blocklang.triton.runtime import _async_compile
from blocklang.triton.runtime.driver import driver

if TYPE_CHECKING:
    from blocklang.frontend import KernelSource

__all__ = [
    "ConstexprFunction",
    "JITCallable",
    "JITFunction",
    "KernelInterface",
    "MockTensor",
    "TensorWrapper",
    "constexpr_function",
    "get_jit_fn_file_line",
    "jit",
    "must_use_result",
    "reinterpret",
]

_DEF = re.compile(r"^def\s+\w+\s*\(", re.MULTILINE)
# What kernels can be made with; what the compiler does not have yet is not asked for.
_SWITCHES = frozenset(inspect.signature(Function.__init__).parameters)


class DirectCallError(LaunchError, RuntimeError):
    """A kernel was called like a function."""


class _Refused(Exception):
    """A `jit_cache_hook` wants no compilation."""


class JITCallable:
    """What a kernel may call: kernels, and functions that run when it is compiled."""


class JITFunction(Function, JITCallable):
    """A kernel: launch it as `kernel[grid](arguments...)`; see `jit` for the arguments.

    Attributes:
        fn: the Python function; module, __name__ and __qualname__ are its own.
        arg_names, params, signature: its parameters.
        constexprs: positions of the constants among them.
        src: its source from `def` on, without indentation and decorators.
        cache_key: a digest of its source and of what it reads from outside.
        used_global_vals: the plain values that it reads from outside, by (name, id of the namespace).
        device_caches: by device, a tuple of which the first is a dict of the kernels compiled so far.
        pre_run_hooks: what `add_pre_run_hook` added.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        version: object = None,
        do_not_specialize: Sequence[str | int] | None = None,
        do_not_specialize_on_alignment: Sequence[str | int] | None = None,
        debug: bool | str | None = None,
        noinline: bool | None = None,
        repr: Callable[..., str] | None = None,
        launch_metadata: Callable[..., Any] | None = None,
        interpret: bool | None = None,
    ) -> None:
        wanted = {"strict": True, "enable_fp_fusion": knobs.language.default_fp_fusion}
        extra: dict[str, Any] = {name: value for name, value in wanted.items() if name in _SWITCHES}
        self.pre_run_hooks: list[Callable[..., Any]] = []
        self._kernels: dict[str, Any] = {}
        super().__init__(
            fn,
            interpret=bool(knobs.runtime.interpret if interpret is None else interpret),
            do_not_specialize=do_not_specialize or (),
            do_not_specialize_on_alignment=do_not_specialize_on_alignment or (),
            debug=debug if isinstance(debug, str) else bool(debug or knobs.runtime.debug),
            noinline=bool(noinline),
            repr=repr,
            launch_metadata=launch_metadata,
            version=version,
            **extra,
        )
        self.module = fn.__module__
        self.version = version
        self.do_not_specialize = list(do_not_specialize or ())
        self.do_not_specialize_on_alignment = list(do_not_specialize_on_alignment or ())
        self.launch_metadata = launch_metadata
        self.constexprs = [p.position for p in self.params if p.is_constexpr]
        self.kernel = None
        self.hash: str | None = None
        self.device_caches = _DeviceCaches(self)
        self._src: str | None = None
        self._source_is_replaced = False
        self._has_own_run = type(self).run is not JITFunction.run
        _by_name[f"{fn.__module__}:{fn.__qualname__}"] = self

    # ---- what it is ----

    @property
    def raw_src(self) -> list[str]:
        """The lines of its source as they stand in the file, decorators included."""
        return self.source.text.splitlines(keepends=True)

    @property
    def starting_line_number(self) -> int:
        """The line of the first decorator, or of `def`."""
        return int(self.fn.__code__.co_firstlineno)

    @property
    def src(self) -> str:
        """Its source from `def` on, without indentation and decorators."""
        if self._src is None:
            text = textwrap.dedent(self.source.text)
            found = _DEF.search(text)
            self._src = text[found.start() :] if found else text
        return self._src

    @src.setter
    def src(self, text: str) -> None:
        raise AttributeError(
            "Cannot set attribute 'src' directly: call `_unsafe_update_src(text)`, which also drops what was "
            "compiled from the old source"
        )

    def _unsafe_update_src(self, new_src: str) -> None:
        """Replace the source. Kernels that call this one are compiled anew only if they are told to."""
        self._src = new_src
        self._source_is_replaced = True
        self.hash = None
        self.__dict__["source"] = _replaced_source(self.fn, new_src)
        self._forget()
        self._kernels.clear()

    def parse(self) -> ast.Module:
        """The syntax tree of `src`."""
        tree = ast.parse(self.src)
        assert len(tree.body) == 1
        assert isinstance(tree.body[0], ast.FunctionDef)
        return tree

    @property
    def source_is_replaced(self) -> bool:
        """True after `_unsafe_update_src`."""
        return self._source_is_replaced

    @property
    def cache_key(self) -> str:
        """A digest of its source and of what it reads from outside."""
        if self.hash is None:
            self.hash = super().cache_key
        return self.hash

    @property
    def used_global_vals(self) -> dict[tuple[str, int], tuple[Any, Any]]:
        """The plain values that it reads from outside, by (name, id of the namespace)."""
        return dict(_plain_globals(self.source.function))

    @property
    def type(self) -> Any:
        """The kernel as a compile-time value's type."""
        return types.FunctionType

    def repr(self, specialisation: Any) -> str:
        """The name of a version of it."""
        return self._repr(specialisation) if self._repr is not None else self.__name__

    def name_of(self, specialisation: Specialisation) -> str:
        """The name of a version of it, as `repr=` gives it."""
        known = types.SimpleNamespace(
            fn=self,
            constants=specialisation.constants,
            signature=_signature(specialisation),
            attrs={},
            name=self.__name__,
        )
        return self.repr(known)

    def is_gluon(self) -> bool:
        """False."""
        return False

    def __call__(self, *args: object, **kwargs: object) -> Any:
        raise self.signature.error(
            "Cannot call @triton.jit'd outside of the scope of a kernel",
            f"launch it on a grid: `{self.__name__}[grid](...)`",
            DirectCallError,
        )

    def __hash__(self) -> int:
        return id(self) >> 4

    def __eq__(self, other: object) -> bool:
        return self is other

    # ---- launching ----

    def __getitem__(self, grid: object) -> Callable[..., Any]:
        if self.pre_run_hooks or self._has_own_run or _hooks_are_set():
            return functools.partial(self.run, grid=grid, warmup=False)
        return functools.partial(self._chain.first, self, grid)

    def add_pre_run_hook(self, hook: Callable[..., Any]) -> None:
        """Call a function with the arguments of every launch, before it."""
        if not callable(hook):
            raise LaunchError(f"a hook must be callable, got {hook!r}")
        self.pre_run_hooks.append(hook)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Launch on `grid`; with `warmup`, compile only. A `CompiledKernel`; None if a hook refused it."""
        if self.pre_run_hooks:
            for hook in self.pre_run_hooks:
                hook(*args, **{"debug": self.debug, **kwargs})
        if warmup:
            return self.warmup(*args, grid=grid, **kwargs)
        launch = functools.partial(self._chain.first, self, grid)
        if not _hooks_are_set():
            return launch(*args, **kwargs)
        if knobs.runtime.debug:
            kwargs = {"debug": True, **kwargs}
        try:
            return self._launch_with_hooks(launch, grid, args, kwargs)
        except _Refused:
            return None

    def warmup(self, *args: Any, grid: Any = (1,), **kwargs: Any) -> Any:
        """Compile for these arguments without launching. A dtype stands for an aligned array of it."""
        if self.interpret:
            return None
        given = [*map(MockTensor.wrap_dtype, args)]
        named = {name: MockTensor.wrap_dtype(value) for name, value in kwargs.items()}
        compile_it = functools.partial(super().warmup, *given, grid=grid, **named)
        mode = _async_compile.active_mode.get()
        if mode is not None:
            return mode.submit(compile_it)
        try:
            return compile_it()
        except _Refused:
            return None

    def _launch_with_hooks(
        self, launch: Callable[..., Any], grid: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        enter, leave = knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook
        if self.interpret:
            return launch(*args, **kwargs)
        kernel = super().warmup(*args, **kwargs)
        metadata = kernel.launch_metadata(grid, 0, *args)
        if enter is not None:
            enter(metadata)
        answer = launch(*args, **kwargs)
        if leave is not None:
            leave(metadata)
        return answer

    # ---- compiling ----

    def _take_options(self, kwargs: Mapping[str, Any]) -> tuple[LaunchOptions, Mapping[str, Any]]:
        if "enable_fp_fusion" not in _SWITCHES and kwargs.get("enable_fp_fusion"):
            kwargs = {n: v for n, v in kwargs.items() if n != "enable_fp_fusion"}
        return super()._take_options(kwargs)

    def _answer(self, executable: Executable, options: LaunchOptions) -> Any:
        from blocklang.triton.compiler.compiler import CompiledKernel

        key = f"{executable.specialisation} {sorted(options.values.items(), key=lambda item: item[0])}"
        kernel = self._kernels.get(key)
        if kernel is None or kernel.compiled is not executable.compiled:
            kernel = CompiledKernel(self, executable.specialisation, executable.compiled, options.values)
            self._kernels[key] = kernel
        return kernel

    def _find_executable(
        self, version: Version, specialisation: Specialisation, made: MadeCode | None = None
    ) -> Executable:
        if version.executables:
            return super()._find_executable(version, specialisation, made)
        self._call_hook(knobs.runtime.jit_cache_hook, specialisation)
        executable = super()._find_executable(version, specialisation, made)
        self._call_hook(knobs.runtime.jit_post_compile_hook, specialisation, may_refuse=False)
        return executable

    def _call_hook(
        self, hook: Callable[..., Any] | None, specialisation: Specialisation, may_refuse: bool = True
    ) -> None:
        if hook is None:
            return
        key = str(specialisation)
        info = types.SimpleNamespace(module=self.module, name=self.__qualname__, jit_function=self)
        compile_info = {
            "key": key,
            "signature": _signature(specialisation),
            "device": driver.active.get_current_device(),
            "constants": {
                (i,): specialisation.constants[n]
                for i, n in enumerate(specialisation.names)
                if n in specialisation.constants
            },
            "num_warps": 4,
            "num_ctas": 1,
            "num_stages": 3,
            "enable_fp_fusion": bool(getattr(self, "enable_fp_fusion", False)),
            "launch_cooperative_grid": False,
            "extern_libs": (),
            "configs": [{}],
            "specialization_data": self._serialise(specialisation),
            "is_warmup": False,
        }
        refuses = hook(
            key=key,
            repr=f"{self.__qualname__}[{key}]",
            fn=info,
            compile=compile_info,
            is_manual_warmup=False,
            already_compiled=False,
        )
        if refuses and may_refuse:
            raise _Refused

    def _serialise(self, specialisation: Specialisation) -> str:
        """A specialisation as text for `preload`."""
        return json.dumps(
            {
                "name": f"{self.module}.{self.__qualname__}",
                "signature": specialisation.signature,
                "constants": {n: _encoded(v) for n, v in specialisation.constants.items()},
            }
        )

    def preload(self, specialization_data: str) -> Any:
        """Compile what a `jit_cache_hook` was told in `compile["specialization_data"]`.

        Raises:
            RuntimeError: it was told of another kernel.
        """
        from blocklang.triton.compiler.compiler import CompiledKernel

        data = json.loads(specialization_data)
        own = f"{self.module}.{self.__qualname__}"
        if data["name"] != own:
            raise RuntimeError(f"Specialization data is for {data['name']} but trying to preload for {own}")
        constants = {n: _decoded(v) for n, v in data["constants"].items()}
        specialisation = self.specialise(data["signature"], constants)
        try:
            return CompiledKernel(self, specialisation, self.compile(specialisation), {})
        except _Refused:
            return None


_by_name: dict[str, JITFunction] = {}


class _DeviceCaches(dict[Any, Any]):
    """`kernel.device_caches[0][0]`: the kernels compiled so far, by what they were compiled for."""

    def __init__(self, function: JITFunction) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, device: Any) -> Any:
        target = driver.active.get_current_target()
        self[device] = (self._function._kernels, {}, target, None, None)
        return self[device]

    def clear(self) -> None:
        """Forget every compiled kernel."""
        super().clear()
        self._function._forget()
        self._function._kernels.clear()


def _hooks_are_set() -> bool:
    runtime = knobs.runtime
    enter, leave = runtime.launch_enter_hook, runtime.launch_exit_hook
    return bool(
        getattr(enter, "calls", enter)
        or getattr(leave, "calls", leave)
        or runtime.jit_cache_hook
        or runtime.jit_post_compile_hook
        or "debug" in runtime.__dict__
    )


def _signature(specialisation: Specialisation) -> dict[str, str]:
    return {
        name: short_name(spec.type) if isinstance(spec, TypedSpec) else "constexpr"
        for name, spec in zip(specialisation.names, specialisation.specs, strict=True)
    }


def _encoded(value: Any) -> Any:
    from blocklang.language import dtype

    if isinstance(value, dtype):
        return {"dtype": value.name}
    if isinstance(value, Function):
        return {"jit_function": f"{value.__module__}:{value.__qualname__}"}
    if isinstance(value, tuple):
        return {"tuple": [_encoded(item) for item in value]}
    return {"value": value}


def _decoded(value: Mapping[str, Any]) -> Any:
    from blocklang.language import dtype

    if "dtype" in value:
        return dtype(value["dtype"])
    if "jit_function" in value:
        name = value["jit_function"]
        if name not in _by_name:
            raise RuntimeError(f"Unable to resolve JITFunction {name} for preload")
        return _by_name[name]
    if "tuple" in value:
        return tuple(_decoded(item) for item in value["tuple"])
    return value["value"]


def _plain_globals(function: Callable[..., Any]) -> Iterator[tuple[tuple[str, int], tuple[Any, Any]]]:
    from blocklang.jit.capture import Captured

    for watched in Captured([function]).watched:
        value = watched.value
        if isinstance(watched.container, dict) and watched.name in watched.container:
            plain = getattr(value, "value", value)
            if isinstance(plain, (bool, int, float, str, tuple)) and "__name__" in watched.container:
                yield (str(watched.name), id(watched.container)), (value, watched.container)


def _replaced_source(fn: Callable[..., Any], text: str) -> KernelSource:
    """The source of a function as if this text stood in the place of its own."""
    from blocklang.frontend import KernelSource

    code = fn.__code__
    original = KernelSource.from_function(fn)
    # Lines of messages: the text starts where `def` does in the file.
    first = original.node.lineno
    tree = ast.parse("\n" * (first - 1) + text, filename=code.co_filename)
    node = next(n for n in tree.body if isinstance(n, ast.FunctionDef))
    function = fn
    if not code.co_freevars:
        bare = ast.Module([node], [])
        body = compile(bare, code.co_filename, "exec", dont_inherit=True)
        own = next(c for c in body.co_consts if isinstance(c, types.CodeType) and c.co_name == node.name)
        function = types.FunctionType(own, fn.__globals__, fn.__name__, fn.__defaults__)
        function.__kwdefaults__ = fn.__kwdefaults__
        function.__annotations__ = fn.__annotations__
        function.__module__ = fn.__module__
        function.__qualname__ = fn.__qualname__
    return KernelSource(function, node.name, code.co_filename, first, text, node, original.parameters)


@overload
def jit(fn: Callable[..., Any]) -> JITFunction: ...
@overload
def jit(
    fn: None = None,
    *,
    version: object = None,
    repr: Callable[..., str] | None = None,
    launch_metadata: Callable[..., Any] | None = None,
    do_not_specialize: Sequence[str | int] | None = None,
    do_not_specialize_on_alignment: Sequence[str | int] | None = None,
    debug: bool | str | None = None,
    noinline: bool | None = None,
) -> Callable[[Callable[..., Any]], JITFunction]: ...
def jit(
    fn: Callable[..., Any] | None = None,
    *,
    version: object = None,
    repr: Callable[..., str] | None = None,
    launch_metadata: Callable[..., Any] | None = None,
    do_not_specialize: Sequence[str | int] | None = None,
    do_not_specialize_on_alignment: Sequence[str | int] | None = None,
    debug: bool | str | None = None,
    noinline: bool | None = None,
) -> Any:
    """Make a kernel of a Python function; used as `@triton.jit` or `@triton.jit(...)`.

    Args:
        repr: gives a version its name, from its constants and signature.
        launch_metadata: tells launch hooks more: `launch_metadata(grid, kernel, args)` returns a dict.
        do_not_specialize: parameters (names or positions) of which every value shares one version.
        do_not_specialize_on_alignment: parameters whose divisibility by 16 is not looked at.
        debug: compile with checks; words ask for more, as for `blocklang.jit`.
        version, noinline: accepted as Triton does.
    """

    def decorate(decorated: Callable[..., Any]) -> JITFunction:
        if isinstance(decorated, Function) or not hasattr(decorated, "__code__"):
            raise LaunchError(
                f"@triton.jit makes a kernel of a Python function, not of a {type(decorated).__name__}",
                help="put `@triton.jit` once, directly above `def`",
            )
        return JITFunction(
            decorated,
            version=version,
            do_not_specialize=do_not_specialize,
            do_not_specialize_on_alignment=do_not_specialize_on_alignment,
            debug=debug,
            noinline=noinline,
            repr=repr,
            launch_metadata=launch_metadata,
        )

    return decorate if fn is None else decorate(fn)


class TensorWrapper:
    """An array whose elements are read as another type of the same size; made by `reinterpret`.

    Attributes:
        base: the array.
        dtype: what its elements are read as.
    """

    def __init__(self, base: Any, dtype: Any) -> None:
        self.base = base
        self.dtype = dtype
        self.data = base.data
        self.device = getattr(base, "device", "cpu")
        self.shape = base.shape

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self.base.data_ptr())

    def stride(self, *args: Any) -> Any:
        """Strides in elements."""
        return self.base.stride(*args)

    def element_size(self) -> int:
        """Bytes of an element."""
        return int(self.base.element_size())

    def __str__(self) -> str:
        return f"TensorWrapper[{self.dtype}]({self.base})"

    def cpu(self) -> TensorWrapper:
        """The same on the CPU."""
        return TensorWrapper(self.base.cpu(), self.dtype)

    def copy_(self, other: TensorWrapper) -> None:
        """Take over the elements of another."""
        self.base.copy_(other.base)

    def clone(self) -> TensorWrapper:
        """A copy."""
        return TensorWrapper(self.base.clone(), self.dtype)

    def to(self, device: Any) -> TensorWrapper:
        """The same on a device."""
        return TensorWrapper(self.base.to(device), self.dtype)

    def new_empty(self, sizes: Any) -> TensorWrapper:
        """An array of the same kind, of another shape."""
        return TensorWrapper(self.base.new_empty(sizes), self.dtype)


def reinterpret(tensor: Any, dtype: Any) -> Any:
    """A tensor whose elements a kernel reads as another type of the same size, without a copy.

    Raises:
        TypeError: `tensor` is none.
    """
    if isinstance(tensor, TensorWrapper):
        return tensor.base if dtype == tensor.base.dtype else TensorWrapper(tensor.base, dtype)
    if hasattr(tensor, "data_ptr"):
        return TensorWrapper(tensor, dtype)
    raise TypeError(f"Cannot reinterpret a {type(tensor)}.")


def get_jit_fn_file_line(fn: Any) -> tuple[str, int]:
    """The file of a kernel, and the line of its `def`."""
    while not isinstance(fn, Function):
        fn = fn.fn
    return fn.fn.__code__.co_filename, fn.source.node.lineno


class ConstexprFunction(JITCallable):
    """A Python function that a kernel may call with compile-time values; see `constexpr_function`."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        functools.update_wrapper(self, fn)
        self.fn = fn

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from blocklang.language.constexpr import unwrap

        return self.fn(*map(unwrap, args), **{name: unwrap(value) for name, value in kwargs.items()})


def constexpr_function(fn: Callable[..., Any]) -> Any:
    """Let kernels call a Python function with compile-time values; it runs while they are compiled."""
    import blocklang.language as language

    own = vars(language).get("constexpr_function")
    return ConstexprFunction(fn) if own is None else own(fn)


def must_use_result(value: Any, reason: str | None = None) -> Any:
    """Mark a function whose result a kernel must use; used as `@must_use_result` or with a reason.

    Nothing is checked: an unused result has no effect.
    """
    return value if callable(value) else lambda fn: fn
