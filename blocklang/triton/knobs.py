"""`triton.knobs`: settings, read from the environment until they are set, and hooks of the launch.

Each group is an object: `knobs.runtime.interpret`. Setting a knob sets it for this process; deleting it
(`del knobs.runtime.interpret`, or `reset()`) goes back to the environment. What only concerns a GPU's
compiler is kept and read back, and has no effect.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

_ON = ("1", "true", "yes", "on", "y")


class _Knob:
    """A setting with an environment variable behind it."""

    def __init__(self, variable: str | None, default: Any, read: Callable[[str], Any]) -> None:
        self.variable = variable
        self.default = default
        self.read = read

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, holder: Any, owner: type | None = None) -> Any:
        if holder is None:
            return self
        if self.name in holder.__dict__:
            return holder.__dict__[self.name]
        text = os.environ.get(self.variable) if self.variable else None
        if text is not None:
            return self.read(text)
        computed = callable(self.default) and not isinstance(self.default, HookChain)
        return self.default() if computed else self.default

    def __set__(self, holder: Any, value: Any) -> None:
        holder.__dict__[self.name] = value

    def __delete__(self, holder: Any) -> None:
        holder.__dict__.pop(self.name, None)


def _switch(variable: str, default: bool = False) -> Any:
    return _Knob(variable, default, lambda text: text.strip().lower() in _ON)


def _text(variable: str, default: Any = None) -> Any:
    return _Knob(variable, default, str)


def _number(variable: str, default: int) -> Any:
    return _Knob(variable, default, int)


def _plain(default: Any = None) -> Any:
    return _Knob(None, default, str)


class base_knobs:
    """A group of settings."""

    @property
    def knob_descriptors(self) -> dict[str, _Knob]:
        """The settings of the group, by name."""
        return {n: k for n, k in vars(type(self)).items() if isinstance(k, _Knob)}

    @property
    def knobs(self) -> dict[str, Any]:
        """The values of the group, by name."""
        return {name: getattr(self, name) for name in self.knob_descriptors}

    def copy(self) -> Self:
        """A group of its own, with the same values."""
        copied = type(self)()
        copied.__dict__.update(self.__dict__)
        return copied

    def reset(self) -> Self:
        """Go back to the environment."""
        for name in self.knob_descriptors:
            delattr(self, name)
        return self

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Undo at the end of the context what was set in it, the group's environment variables included."""
        variables = [k.variable for k in self.knob_descriptors.values() if k.variable]
        environment = {name: os.environ.get(name) for name in variables}
        before = dict(self.__dict__)
        try:
            yield
        finally:
            self.__dict__.clear()
            self.__dict__.update(before)
            for name, value in environment.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


class HookChain:
    """Functions that are called in order, or in reverse, with the same arguments."""

    def __init__(self, reversed: bool = False) -> None:
        self.calls: list[Callable[..., Any]] = []
        self.reversed = reversed

    def add(self, func: Callable[..., Any]) -> None:
        """Call a function too."""
        if func not in self.calls:
            self.calls.append(func)

    def remove(self, func: Callable[..., Any]) -> None:
        """Call a function no more."""
        if func in self.calls:
            self.calls.remove(func)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        for call in self.calls[::-1] if self.reversed else list(self.calls):
            call(*args, **kwargs)


def _directory(name: str) -> Callable[[], str]:
    return lambda: os.path.join(cache.home_dir, ".triton", name)


class build_knobs(base_knobs):
    """How a native compiler is called; nothing here calls one."""

    cc = _text("CC")
    cudacrt_path = _text("TRITON_CUDACRT_PATH")
    cudart_path = _text("TRITON_CUDART_PATH")
    impl = _plain()


class cache_knobs(base_knobs):
    """Where files are kept."""

    home_dir = _text("TRITON_HOME", lambda: os.path.expanduser("~/"))
    dump_dir = _text("TRITON_DUMP_DIR", _directory("dump"))
    override_dir = _text("TRITON_OVERRIDE_DIR", _directory("override"))
    dir = _text("TRITON_CACHE_DIR", _directory("cache"))
    manager_class = _plain()
    remote_manager_class = _plain()

    def get_triton_dir(self, dirname: str) -> str:
        """A directory below `home_dir`."""
        return _directory(dirname)()


class compilation_knobs(base_knobs):
    """What a compiler does besides compiling."""

    override = _switch("TRITON_KERNEL_OVERRIDE")
    dump_ir = _switch("TRITON_KERNEL_DUMP")
    dump_ir_extract_di_local_variables = _switch("LLVM_EXTRACT_DI_LOCAL_VARIABLES")
    store_binary_only = _switch("TRITON_STORE_BINARY_ONLY")
    always_compile = _switch("TRITON_ALWAYS_COMPILE")
    use_ir_loc = _text("USE_IR_LOC")
    enable_asan = _switch("TRITON_ENABLE_ASAN")
    disable_line_info = _switch("TRITON_DISABLE_LINE_INFO")
    front_end_debugging = _switch("TRITON_FRONT_END_DEBUGGING")
    allow_non_constexpr_globals = _switch("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS")
    instrumentation_mode = _text("TRITON_INSTRUMENTATION_MODE", "")
    listener = _plain()


class autotuning_knobs(base_knobs):
    """The autotuner's."""

    cache = _switch("TRITON_CACHE_AUTOTUNING")
    print = _switch("TRITON_PRINT_AUTOTUNING")


class runtime_knobs(base_knobs):
    """The launch's: `interpret` and `debug`, and hooks.

    Hooks of every launch: `launch_enter_hook` and `launch_exit_hook`, chains of functions of one argument
    whose `get()` tells the kernel's name. Of every compilation: `jit_cache_hook`, which may refuse it by
    returning True, and `jit_post_compile_hook`.
    """

    interpret = _switch("TRITON_INTERPRET")
    debug = _switch("TRITON_DEBUG")
    override_arch = _text("TRITON_OVERRIDE_ARCH")
    launch_enter_hook = _plain(HookChain())
    launch_exit_hook = _plain(HookChain(reversed=True))
    kernel_load_start_hook = _plain(HookChain())
    kernel_load_end_hook = _plain(HookChain(reversed=True))
    jit_cache_hook = _plain()
    jit_post_compile_hook = _plain()
    add_stages_inspection_hook = _plain()


class language_knobs(base_knobs):
    """Defaults of the language."""

    fp32_default = _text("TRITON_F32_DEFAULT")
    default_fp_fusion = _switch("TRITON_DEFAULT_FP_FUSION", True)


class nvidia_knobs(base_knobs):
    """Tools of one GPU's compiler; without effect."""

    cuobjdump = _plain()
    nvdisasm = _plain()
    ptxas = _plain()
    ptxas_blackwell = _plain()
    dump_nvptx = _switch("NVPTX_ENABLE_DUMP")
    disable_ptxas_opt = _switch("DISABLE_PTXAS_OPT")
    ptxas_options = _text("PTXAS_OPTIONS")
    mock_ptx_version = _text("TRITON_MOCK_PTX_VERSION")
    dump_ptxas_log = _switch("TRITON_DUMP_PTXAS_LOG")
    libdevice_path = _text("TRITON_LIBDEVICE_PATH")
    libcuda_path = _text("TRITON_LIBCUDA_PATH")


class amd_knobs(base_knobs):
    """Tools of another GPU's compiler; without effect."""

    use_buffer_ops = _switch("AMDGCN_USE_BUFFER_OPS", True)
    use_buffer_atomics = _switch("AMDGCN_USE_BUFFER_ATOMICS", True)
    buffer_ops_analyze_small_tensor_range = _switch("AMDGCN_ANALYZE_SMALL_TENSOR_RANGE")
    dump_amdgcn = _switch("AMDGCN_ENABLE_DUMP")
    libhip_path = _text("TRITON_LIBHIP_PATH")
    use_block_pingpong = _plain()
    use_in_thread_transpose = _plain()
    use_async_copy = _plain()
    scalarize_packed_fops = _switch("AMDGCN_SCALARIZE_PACKED_FOPS")
    dump_mir = _text("TRITON_DUMP_MIR")
    swap_mir = _text("TRITON_SWAP_MIR")


class redis_knobs(base_knobs):
    """A remote cache; without effect."""

    key_format = _text("TRITON_REDIS_KEY_FORMAT", "triton:{key}:{filename}")
    host = _text("TRITON_REDIS_HOST", "localhost")
    port = _number("TRITON_REDIS_PORT", 6379)


class proton_knobs(base_knobs):
    """A profiler of GPUs; without effect."""

    disable = _switch("TRITON_PROTON_DISABLE")
    enable_nvtx = _switch("TRITON_ENABLE_NVTX", True)


build = build_knobs()
redis = redis_knobs()
cache = cache_knobs()
compilation = compilation_knobs()
autotuning = autotuning_knobs()
runtime = runtime_knobs()
language = language_knobs()
nvidia = nvidia_knobs()
amd = amd_knobs()
proton = proton_knobs()


def refresh_knobs() -> None:
    """Read the environment again: it is read whenever a knob is asked for."""
