"""`triton.compiler.compiler`: `compile(ASTSource(...))`, and `CompiledKernel`, what a launch returns."""

from __future__ import annotations

import hashlib
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from blocklang.diagnostics import UsageError
from blocklang.jit.specialisation import Specialisation
from blocklang.lazy import cached_property
from blocklang.triton.backends.compiler import BaseBackend, GPUTarget
from blocklang.triton.runtime.cache import triton_key
from blocklang.triton.runtime.driver import driver

if TYPE_CHECKING:
    from blocklang.compiler import CompiledKernel as Compiled

__all__ = [
    "ASTSource",
    "CompiledKernel",
    "GPUTarget",
    "LazyDict",
    "compile",
    "make_backend",
    "max_shared_mem",
    "triton_key",
]


class _Texts(Mapping[str, Any]):
    """The forms of a compiled kernel, each made when it is read."""

    def __init__(self, compiled: Compiled) -> None:
        self._forms: dict[str, Callable[[], Any]] = {
            "source": lambda: compiled.stages["block"],
            "ttir": lambda: compiled.stages["block"],
            "tile": lambda: compiled.stages["tile"],
            "schedule": lambda: compiled.stages["schedule"],
            "ttgir": lambda: compiled.stages["placed"],
            "llir": lambda: compiled.llvm_ir,
            "asm": lambda: compiled.assembly,
            "obj": lambda: compiled.object_code,
        }

    def __getitem__(self, name: str) -> Any:
        if name not in self._forms:
            raise KeyError(f"{name}: a kernel for the CPU has {', '.join(self._forms)}")
        return self._forms[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._forms)

    def __len__(self) -> int:
        return len(self._forms)


class CompiledKernel:
    """A compiled kernel.

    Attributes:
        asm: its forms by name: `ttir` Block IR, `tile` abstract Tile IR, `schedule`, `ttgir` placed Tile IR,
            `llir` LLVM IR, `asm` assembly, `obj` object code.
        metadata: a named tuple: name, hash, target, shared (bytes of scratch memory), launch options.
        name: its name, as the kernel's `repr` gives it.
        hash: a digest of its IR, its target and its options.
        n_regs: vector registers of the target; n_spills: 0, spills are not counted.
        compiled: the compiler's own answer.
    """

    n_spills = 0
    n_max_threads = 1

    def __init__(
        self,
        function: Any,
        specialisation: Specialisation,
        compiled: Compiled,
        options: Mapping[str, Any],
    ) -> None:
        self.function = function
        self.specialisation = specialisation
        self.compiled = compiled
        self.options = dict(options)
        self.asm = _Texts(compiled)

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.metadata.name)

    @cached_property
    def hash(self) -> str:
        """A digest of its IR, its target and its options."""
        identity = (
            f"{self.compiled.source}\0{driver.active.get_current_target()}\0{sorted(self.options.items())}"
        )
        return hashlib.sha256(identity.encode()).hexdigest()

    @property
    def n_regs(self) -> int:
        """Vector registers of the target."""
        return 32

    @cached_property
    def metadata(self) -> Any:
        """What there is to know of it."""
        options = {"num_warps": 4, "num_ctas": 1, "num_stages": 3, **self.options}
        fields = {
            **options,
            "name": self.function.name_of(self.specialisation),
            "hash": self.hash,
            "target": driver.active.get_current_target(),
            "shared": max(self.compiled.abi.scratch_bytes, 1),
            "global_scratch_size": 0,
            "global_scratch_align": 1,
            "cluster_dims": (1, 1, 1),
            "warp_size": 1,
            "backend_name": "cpu",
        }
        return namedtuple("KernelMetadata", sorted(fields))(**fields)

    @property
    def metadata_group(self) -> dict[str, str]:
        """The files that it was loaded from: none."""
        return {}

    def _init_handles(self) -> None:
        """It is loaded already."""

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """Launch it: with all arguments in order, or with those that are not compiled in."""
        constants = self.specialisation.constants
        names = self.specialisation.names

        def launch(*args: Any, stream: object = None) -> Any:
            if len(args) == len(names) - len(constants):
                given = iter(args)
                args = tuple(constants[n] if n in constants else next(given) for n in names)
            return self.function.run(*args, grid=grid, warmup=False, **self.options)

        return launch

    def launch_metadata(self, grid: Any, stream: Any, *args: Any) -> LazyDict:
        """What launch hooks are given."""
        known = LazyDict({"name": self.name, "function": self.function, "stream": stream})
        more = self.function.launch_metadata
        if more is not None:
            named = dict(zip(self.specialisation.names, args, strict=False))
            known.add(more, (grid, self.metadata, named))
        return known


class LazyDict:
    """A dictionary of which some is computed when it is read.

    Args:
        data: what is known already.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.extras: list[tuple[Callable[..., dict[str, Any]], Sequence[Any]]] = []

    def get(self) -> dict[str, Any]:
        """All of it."""
        for function, args in self.extras:
            self.data = {**self.data, **function(*args)}
        self.extras.clear()
        return self.data

    def add(self, func: Callable[..., dict[str, Any]], args: Sequence[Any]) -> None:
        """Let a function of some arguments give more."""
        self.extras.append((func, args))


class ASTSource:
    """A kernel and what to compile it for.

    Args:
        fn: the kernel.
        signature: the type of each parameter by name: `"*fp32"`, `"i32"`, `"constexpr"`.
        constexprs: values of the constants, by name, or by path: `(2,)` is the third parameter.
        attrs: known facts by path: `{(0,): [["tt.divisibility", 16]]}`.
    """

    def __init__(
        self,
        fn: Any,
        signature: Mapping[str, str],
        constexprs: Mapping[Any, Any] | None = None,
        attrs: Mapping[Any, Any] | None = None,
    ) -> None:
        self.fn = fn
        self.ext = "ttir"
        self.name = fn.__name__
        self.signature = dict(signature)
        self.constants = {self._position(k): v for k, v in (constexprs or {}).items()}
        self.attrs = {self._position(k): v for k, v in (attrs or {}).items()}

    def _position(self, key: Any) -> int:
        if isinstance(key, str):
            return int(self.fn.arg_names.index(key))
        if isinstance(key, int):
            return key
        if len(key) == 1:
            return int(key[0])
        raise UsageError(f"path {key} leads into a tuple: only whole parameters can be given")

    def hash(self) -> str:
        """A digest of it."""
        identity = (self.fn.cache_key, sorted(self.signature.items()), sorted(map(str, self.attrs.items())))
        constants = sorted((k, repr(v)) for k, v in self.constants.items())
        return hashlib.sha256(f"{identity}{constants}".encode()).hexdigest()

    def parse_options(self) -> dict[str, Any]:
        """Options that the source itself gives: none."""
        return {}

    def specialisation(self) -> Specialisation:
        """What the kernel is compiled for."""
        names = self.fn.arg_names
        constants = {names[k]: v for k, v in self.constants.items()}
        texts = []
        for position, name in enumerate(names):
            type_ = self.signature.get(name, self.signature.get(str(position), "constexpr"))
            if name in constants or type_ == "constexpr":
                continue
            facts = dict(map(tuple, self.attrs.get(position, ())))
            texts.append(type_ + (":16" if facts.get("tt.divisibility") == 16 else ""))
        answer: Specialisation = self.fn.specialise(texts, constants)
        return answer


def compile(
    src: ASTSource, target: GPUTarget | None = None, options: Mapping[str, Any] | None = None
) -> CompiledKernel:
    """Compile a kernel without launching it.

    Args:
        src: what to compile.
        target: the CPU, whose name is "cpu"; another is refused.
        options: launch options.
    """
    if target is not None and target.backend != "cpu":
        raise UsageError(
            f"cannot compile for {target.backend!r}: kernels are compiled for the CPU",
            help="leave out target=",
        )
    if not isinstance(src, ASTSource):
        raise UsageError(f"expected an ASTSource, got {type(src).__name__}")
    specialisation = src.specialisation()
    compiled = src.fn.compile(specialisation)
    return CompiledKernel(src.fn, specialisation, compiled, options or {})


def make_backend(target: GPUTarget) -> BaseBackend:
    """The backend of a target."""
    return BaseBackend(target)


def max_shared_mem(device: int) -> int:
    """Bytes of shared memory that sources may plan with."""
    return int(driver.active.utils.get_device_properties(device)["max_shared_mem"])
