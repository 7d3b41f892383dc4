"""`JITFunction`: a kernel with its compiled versions, and the way from `kernel[grid](...)` to running code.

A launch binds its arguments to the parameters, describes each (`specialisation`), finds the version compiled
for these descriptions, or compiles it, and runs it. Versions are kept per specialisation and, within one, per
values of the globals and closure variables that the kernel read: a changed global gives a new version.

Threads that launch at once compile a version once; launches of compiled versions take no lock.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import threading
import types
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

from blocklang.depth import deep_recursion
from blocklang.diagnostics import (
    BlocklangError,
    ChangedGlobalError,
    CompilationError,
    LaunchError,
    Location,
    VerifyError,
    as_interpreter_error,
)
from blocklang.jit.aliasing import CLASSES, alias_class
from blocklang.jit.capture import Captured
from blocklang.jit.environment import usual_environment
from blocklang.jit.interface import KernelInterface
from blocklang.jit.native import WARM_LAUNCHES, Chain, WarmLaunch
from blocklang.jit.options import LaunchOptions, take_options
from blocklang.jit.parameters import Parameter, Signature
from blocklang.jit.recompiles import Compilation, follow_environment, log_compilation
from blocklang.jit.recording import Launch, is_recording, is_skipping, note_launch, replaced_by
from blocklang.jit.residence import require_one_device
from blocklang.jit.shelf import KeptVersion, Shelf, is_covered, open_shelf
from blocklang.jit.specialisation import (
    Described,
    Leaf,
    Spec,
    Specialisation,
    TupleSpec,
    constants_in,
    describe,
    describe_or_imagine,
    leaves_of,
    slots_of,
    specs_from_text,
)
from blocklang.jit.switches import Switches, debug_setting, is_on
from blocklang.lazy import cached_property
from blocklang.ops.faults import LOW_OF
from blocklang.runtime.arrays import Array
from blocklang.runtime.grids import Grid, normalise_grid
from blocklang.runtime.launch import LoadedKernel
from blocklang.runtime.leases import Lease
from blocklang.runtime.threads import get_num_threads

if TYPE_CHECKING:
    from blocklang.abi import KernelAbi
    from blocklang.compiler import CompiledKernel
    from blocklang.frontend import KernelSource
    from blocklang.ir import Kernel

_MAXIMUM_COMPILATIONS = 100  # that a new one is compared with
_MAXIMUM_VERSIONS = 16  # per specialisation: one for each set of values of the globals


class SlotSource(NamedTuple):
    """What fills a slot: the argument at a path, or an end of the array there (`LOW_OF`, `HIGH_OF`)."""

    path: tuple[int, ...]
    end: str = ""


@dataclass(frozen=True)
class Executable:
    """A version in memory: the compiled kernel, its loaded code, and which arguments fill its slots."""

    specialisation: Specialisation
    compiled: CompiledKernel
    loaded: LoadedKernel
    slot_sources: tuple[SlotSource, ...]
    launches: itertools.count[int] = field(default_factory=itertools.count)


class PlannedLaunch(NamedTuple):
    """A launch that somebody else makes, with arrays that are not there yet.

    Attributes:
        executable: what runs, compiled and loaded.
        grid: three extents.
        slots: per slot its bits, or the name of the array whose address belongs there.
        written: names of the arrays that are stored to.
    """

    executable: Executable
    grid: Grid
    slots: tuple[int | str, ...]
    written: frozenset[str]


@dataclass(eq=False)
class Version:
    """One specialisation under one set of values of the globals that the kernel reads.

    Attributes:
        written: the arguments that it stores to.
        captured: the values of the globals.
        build: gives its Block IR.
        shelf: where its compiled forms are kept on disk, if they can be.
        executables: by alias class.
    """

    written: frozenset[str]
    captured: Captured
    build: Callable[[], Kernel]
    shelf: Shelf | None
    executables: dict[str, Executable] = field(default_factory=dict)

    @cached_property
    def kernel(self) -> Kernel:
        """Its Block IR; built when it is asked for, if the version came from disk."""
        return self.build()


class Uncompiled(NamedTuple):
    """A version that is not compiled yet, for an alias class of its arrays."""

    function: JITFunction
    version: Version
    specialisation: Specialisation

    def block_ir(self) -> Kernel:
        """The Block IR that is to be compiled."""
        from blocklang.jit.building import with_alias

        return with_alias(self.version.kernel, self.specialisation.alias)

    def compile(self, made: MadeCode | None = None) -> None:
        """Compile it here, or take what another process made of its Block IR."""
        self.function._find_executable(self.version, self.specialisation, made)


class MadeCode(NamedTuple):
    """Machine code that another process made, and its interface."""

    abi: KernelAbi
    object_code: bytes


@dataclass(slots=True)
class _Call:
    """The arguments of one launch, bound and described, and the code for them."""

    options: LaunchOptions
    values: list[Any]
    described: list[Described]
    specs: tuple[Spec, ...]
    version: Version
    executable: Executable


MethodT = TypeVar("MethodT", bound=Callable[..., Any])


def _answers_plainly(method: MethodT) -> MethodT:
    """Let a user's mistake end in its message: without the frames between the launch and where it was found.

    BLOCKLANG_TRACEBACK=1 keeps them, for those who look for a fault in blocklang.
    """

    @functools.wraps(method)
    def answer(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except BlocklangError as error:
            if isinstance(error, VerifyError) or is_on(os.environ.get("BLOCKLANG_TRACEBACK", "")):
                raise
            raise error.with_traceback(None) from None

    return answer  # type: ignore[return-value]


class JITFunction(KernelInterface):
    """A kernel: launch it as `kernel[grid](arguments...)`.

    Attributes:
        fn: the Python function.
        signature: its parameters.
        params: the parameters, in order.
        arg_names: their names.
    """

    __name__: str
    __qualname__: str

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        interpret: bool = False,
        strict: bool = False,
        do_not_specialize: Sequence[str | int] = (),
        do_not_specialize_on_alignment: Sequence[str | int] = (),
        debug: bool | str = False,
        enable_fp_fusion: bool = False,
        noinline: bool = False,
        repr: Callable[..., str] | None = None,
        launch_metadata: Callable[..., Any] | None = None,
        version: object = None,
    ) -> None:
        functools.update_wrapper(self, fn)
        self.fn = fn
        self.signature = Signature(fn, do_not_specialize, do_not_specialize_on_alignment)
        self.params: tuple[Parameter, ...] = self.signature.parameters
        self.arg_names = [p.name for p in self.params]
        self.interpret = interpret or is_on(os.environ.get("BLOCKLANG_INTERPRET", ""))
        self.strict = strict
        self.enable_fp_fusion = enable_fp_fusion
        self._switches = self._default_switches(debug)
        self.debug = self._switches.debug
        self._default_options = LaunchOptions(self._switches, None, False, {})
        self.noinline = noinline
        self._repr = repr
        self._launch_metadata = launch_metadata
        self._version = version
        self._lock = threading.Lock()
        follow_environment()
        self._forget()
        _functions.add(self)

    def _default_switches(self, debug: bool | str) -> Switches:
        """The switches of a launch that names none."""
        try:
            asked = Switches(enable_fp_fusion=self.enable_fp_fusion).debugging(debug)
        except ValueError as reason:
            raise self.signature.error(f"debug is {debug!r}", str(reason)) from None
        around = Switches().debugging(debug_setting())
        return asked._replace(
            debug=asked.debug or around.debug,
            nan=asked.nan or around.nan,
            poison=asked.poison or around.poison,
        )

    def _forget(self) -> None:
        """Drop every compiled version."""
        self._first_captured: Captured | None = None
        self._compilations: list[Compilation] = []
        self._compiled_count = 0
        start = JITFunction._interpret if self.interpret else JITFunction._start
        self._versions: dict[tuple[Spec | Switches, ...], tuple[Version, ...]] = {}
        self._chain = Chain(start, JITFunction._launch)

    # ---- what it is ----

    @cached_property
    def source(self) -> KernelSource:
        """The kernel's source, read on first use. Raises CompilationError if it cannot be found."""
        from blocklang.frontend import KernelSource

        return KernelSource.from_function(self.fn)

    @property
    def source_is_replaced(self) -> bool:
        """True if another text than that of the function's file is compiled."""
        return False

    @property
    def _function(self) -> Callable[..., Any]:
        """The function that is compiled."""
        return self.source.function if self.source_is_replaced else self.fn

    @property
    def location(self) -> Location:
        """Where the kernel is defined."""
        return self.signature.location

    @property
    def cache_key(self) -> str:
        """A digest of the kernel's text, and of the functions and values that it reads from outside."""
        digest = hashlib.sha256(self.source.text.encode())
        for watched in Captured([self.source.function]).watched:
            value = watched.value
            digest.update(f"\0{watched.name}\0".encode())
            called = value if isinstance(value, JITFunction) else None
            digest.update((called.source.text if called is not None else _in_words(value)).encode())
        return digest.hexdigest()

    def __repr__(self) -> str:
        return f"JITFunction({self.__module__}:{self.__qualname__})"

    def __reduce__(self) -> str:
        return self.__qualname__  # by reference, as functions are pickled

    def __call__(self, *args: object, **kwargs: object) -> Any:
        raise self.signature.error(
            f"{self.signature.name} is a kernel and cannot be called like a function",
            f"launch it on a grid, `{self.signature.name}[grid](...)`, or call it from another kernel",
        )

    # ---- launching ----

    def __getitem__(self, grid: object) -> Callable[..., Any]:
        return functools.partial(self._chain.first, self, grid)

    def run(self, *args: Any, grid: object, warmup: bool = False, **kwargs: Any) -> Any:
        """`kernel[grid](*args, **kwargs)`; with `warmup`, compile only."""
        return self.warmup(*args, grid=grid, **kwargs) if warmup else self[grid](*args, **kwargs)

    @_answers_plainly
    def warmup(self, *args: Any, grid: object = (1,), **kwargs: Any) -> Any:
        """Compile for these arguments without launching. A dtype stands for an aligned array of it."""
        call = self._prepare(args, kwargs, describe_or_imagine)
        return self._answer(call.executable, call.options)

    @_answers_plainly
    def written_arrays(self, *args: Any, **kwargs: Any) -> dict[str, Array]:
        """The arrays among the arguments of a launch that the kernel stores to, by parameter.

        Those in tuples and in descriptors are named as the parameter with a position: `pair.0`.
        """
        options, own = self._take_options(kwargs)
        values = self.signature.bind(args, own)
        described = [describe(p, v, self.signature) for p, v in zip(self.params, values, strict=True)]
        written = self._find_version((*[spec for spec, _ in described], options.switches)).written
        return {
            leaf.name: leaf.value
            for leaf in leaves_of(self.arg_names, described)
            if leaf.name in written and isinstance(leaf.value, Array)
        }

    @_answers_plainly
    def uncompiled(self, *args: Any, **kwargs: Any) -> Uncompiled | None:
        """What a launch with these arguments would have to compile; None if it is in memory or on disk."""
        options, own = self._take_options(kwargs)
        values = self.signature.bind(args, own)
        described = [describe(p, v, self.signature) for p, v in zip(self.params, values, strict=True)]
        specs = tuple([spec for spec, _ in described])
        version = self._find_version((*specs, options.switches))
        alias = alias_class(self._arrays(version, described))
        if self.interpret or alias in version.executables:
            return None
        if version.shelf is not None and version.shelf.find(alias) is not None:
            return None
        return Uncompiled(
            self, version, Specialisation(tuple(self.arg_names), specs, alias, options.switches)
        )

    @_answers_plainly
    def plan(self, grid: object, /, *args: Any, **kwargs: Any) -> PlannedLaunch:
        """Compile a launch and say what its slots hold; arrays may be mocks, whose addresses are not used.

        Raises:
            LaunchError: as a launch does.
        """
        call = self._prepare(args, kwargs, describe)
        extents = self._extents(grid, call.values, call.options)
        slots = tuple(
            self.arg_names[source.path[0]]
            if isinstance(call.described[source.path[0]][1], Array)
            else _slot(call.described, source)
            for source in call.executable.slot_sources
        )
        return PlannedLaunch(call.executable, extents, slots, call.version.written)

    def _answer(self, executable: Executable, options: LaunchOptions) -> Any:
        """What a launch returns."""
        return executable.compiled

    def _take_options(self, kwargs: Mapping[str, Any]) -> tuple[LaunchOptions, Mapping[str, Any]]:
        return take_options(kwargs, self.signature, self._default_options)

    def _start(self, grid: object, /, *args: Any, **kwargs: Any) -> Any:
        """The launch before any table exists; a `kernel[grid]` kept from then finds later ones through it."""
        launch = self._chain.first if self._chain.is_warm else JITFunction._launch
        return launch(self, grid, *args, **kwargs)

    @_answers_plainly
    def _launch(self, grid: object, /, *args: Any, **kwargs: Any) -> Any:
        """The launch in Python: every check, and compilation where it is needed."""
        if is_skipping():
            return None
        call = self._prepare(args, kwargs, describe)
        extents = self._extents(grid, call.values, call.options)
        executable = call.executable
        slots = slots_of([_slot(call.described, source) for source in executable.slot_sources])
        if is_recording():
            options = call.options.values
            launch = Launch(self, executable.specialisation, executable.compiled, extents, slots, options)
            note_launch(launch)
            if (run := replaced_by()) is not None:
                run(launch._replace(arrays=self._named_arrays(call), threads=call.options.threads))
                return self._answer(executable, call.options)
        try:
            executable.loaded.launch(
                slots,
                extents,
                call.options.threads or get_num_threads(),
                self._named_arrays(call) if executable.compiled.abi.bounds else None,
            )
        except LaunchError as error:
            raise self.signature.error(error.message, error.help) from None
        if next(executable.launches) >= WARM_LAUNCHES and not any(
            isinstance(spec, TupleSpec) for spec in call.specs
        ):
            self._chain.add(call.version, self._warm_launch(args, kwargs, call))
        return self._answer(executable, call.options)

    @_answers_plainly
    def _interpret(self, grid: object, /, *args: Any, **kwargs: Any) -> None:
        """The launch in interpreter mode."""
        if is_skipping():
            return
        from blocklang.jit.interpreting import (
            fused,
            interpret_arguments,
            interpret_fused,
        )  # only who interprets loads the interpreter

        options, own = self._take_options(kwargs)
        values = self.signature.bind(args, own)
        described = [describe(p, v, self.signature) for p, v in zip(self.params, values, strict=True)]
        extents = self._extents(grid, values, options)
        version = self._checked((*(spec for spec, _ in described), options.switches))
        self._arrays(version, described)
        with usual_environment():
            if options.switches.enable_fp_fusion and (kernel := fused(version.kernel)) is not None:
                interpret_fused(kernel, self.arg_names, described, extents, options.switches)
                return
            interpret_arguments(
                self.source, self.params, values, described, extents, _source_of, switches=options.switches
            )

    def _checked(self, key: tuple[Spec | Switches, ...]) -> Version:
        """Compile the kernel as far as the frontend goes: what is refused there is not interpreted either."""
        try:
            return self._find_version(key)
        except CompilationError as error:
            raise as_interpreter_error(error) from None

    def _prepare(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], describe: Callable[..., Described]
    ) -> _Call:
        """Bind and describe the arguments, and find or compile the code for them."""
        options, own = self._take_options(kwargs)
        values = self.signature.bind(args, own)
        described = [describe(p, v, self.signature) for p, v in zip(self.params, values, strict=True)]
        specs = tuple([spec for spec, _ in described])
        version = self._find_version((*specs, options.switches))
        executable = self._executable(version, specs, described, options)
        return _Call(options, values, described, specs, version, executable)

    def _warm_launch(self, args: Sequence[Any], kwargs: Mapping[str, Any], call: _Call) -> WarmLaunch:
        return WarmLaunch(
            args=args,
            kwargs=kwargs,
            parameters=self.params,
            values=call.values,
            specs=call.specs,
            options=call.options.values,
            written=call.version.written,
            alias=call.executable.specialisation.alias,
            slot_positions=tuple(source.path[0] for source in call.executable.slot_sources),
            captured=call.version.captured,
            loaded=call.executable.loaded,
            result=self._answer(call.executable, call.options),
        )

    def _extents(self, grid: object, values: Sequence[Any], options: LaunchOptions) -> Grid:
        if callable(grid):
            grid = grid({**dict(zip(self.arg_names, values, strict=True)), **options.values})
        try:
            return normalise_grid(grid)
        except LaunchError as error:
            raise self.signature.error(error.message, error.help) from None

    # ---- compiling ----

    def specialise(
        self, signature: str | Sequence[str] = "", constants: Mapping[str, Any] | None = None
    ) -> Specialisation:
        """A specialisation from text, as the command line gives it.

        Args:
            signature: types of the run-time arguments in order, `"*fp32,*fp32,i32"`; `:16` after one says
                that its value or address is divisible by 16.
            constants: values of all other parameters by name; those with a default may be left out.
        """
        specs = specs_from_text(self.signature, signature, constants or {})
        return Specialisation(tuple(self.arg_names), specs, CLASSES[0], self._switches)

    def block_ir(self, specialisation: Specialisation, *, hints: bool = False) -> Kernel:
        """The kernel's Block IR, built anew; with `hints`, what `tl.multiple_of` and its kin promise is
        checked.
        """
        from blocklang.jit.building import build_version, with_alias

        specs, switches = specialisation.specs, specialisation.switches
        with usual_environment(), deep_recursion():
            built = build_version(
                self.source, self.params, specs, strict=self.strict, switches=switches, hints=hints
            )
        return with_alias(built.kernel, specialisation.alias)

    def compiled(
        self, signature: str | Sequence[str] = "", constants: Mapping[str, Any] | None = None
    ) -> CompiledKernel:
        """Compile without launching; see `specialise` for the arguments."""
        return self.compile(self.specialise(signature, constants))

    def compile(self, specialisation: Specialisation) -> CompiledKernel:
        """The compiled kernel of a specialisation, from memory if it was compiled before."""
        version = self._find_version((*specialisation.specs, specialisation.switches))
        return self._find_executable(version, specialisation).compiled

    def _executable(
        self,
        version: Version,
        specs: tuple[Spec, ...],
        described: Sequence[Described],
        options: LaunchOptions,
    ) -> Executable:
        alias = alias_class(self._arrays(version, described))
        executable = version.executables.get(alias)
        if executable is None:
            specialisation = Specialisation(tuple(self.arg_names), specs, alias, options.switches)
            executable = self._find_executable(version, specialisation)
        return executable

    def _arrays(self, version: Version, described: Sequence[Described]) -> list[tuple[Array, bool]]:
        """The arrays of a launch, and whether the kernel writes each; a read-only one must not be written."""
        arrays: list[tuple[Array, bool]] = []
        leases: list[tuple[str, Lease]] = []
        for leaf in leaves_of(self.arg_names, described):
            if isinstance(leaf.value, Array):
                is_written = leaf.name in version.written
                if is_written and not leaf.value.writable:
                    raise self._read_only(leaf.name)
                arrays.append((leaf.value, is_written))
                if type(leaf.value.owner) is Lease:
                    leases.append((leaf.name, leaf.value.owner))
        if leases:
            require_one_device(self.signature, leases)
        return arrays

    def _named_arrays(self, call: _Call) -> dict[str, Array]:
        """The arrays of a launch by the names of their arguments."""
        leaves = leaves_of(self.arg_names, call.described)
        return {leaf.name: leaf.value for leaf in leaves if isinstance(leaf.value, Array)}

    def _read_only(self, name: str) -> LaunchError:
        return self.signature.error(
            f"argument {name!r} is a read-only array, and the kernel stores to it",
            f"pass a copy, or make the array writable: `{name}.flags.writeable = True`",
        )

    def _find_version(self, key: tuple[Spec | Switches, ...]) -> Version:
        version = self._known_version(key)
        if version is None:
            if self.strict:
                self._refuse_changed_globals()
            with self._lock:
                version = self._known_version(key) or self._build_version(key)
        return version

    def _refuse_changed_globals(self) -> None:
        """In strict mode a global must keep the value that it had when the kernel was first compiled."""
        names = [] if self._first_captured is None else self._first_captured.changed_constants()
        if names:
            raise ChangedGlobalError(
                f"global variable {names[0]} has changed since {self.signature.name} was compiled, and a "
                "strict kernel keeps the value of its first compilation",
                location=self.location,
                help="pass it as a `tl.constexpr` argument",
            )

    def _known_version(self, key: tuple[Spec | Switches, ...]) -> Version | None:
        for version in self._versions.get(key, ()):
            if version.captured.hold():
                return version
        return None

    def _build_version(self, key: tuple[Spec | Switches, ...]) -> Version:
        specs = [spec for spec in key if isinstance(spec, Spec)]
        switches = key[-1]
        assert isinstance(switches, Switches)
        captured = Captured(
            [self._function, *constants_in(specs)]
        )  # before the kernel is built: a change meanwhile is seen later
        shelf = None if self.interpret else open_shelf(self, captured, specs, (self.strict, *switches))
        kept = None if shelf is None else shelf.find_any()
        if kept is None:
            version = self._built_version(specs, switches, captured, shelf)
        else:
            rebuild = functools.partial(self._rebuild, specs, switches, captured)
            version = Version(kept.stored_through, captured, rebuild, shelf)
        self._first_captured = self._first_captured or captured
        # Another thread may be reading the old tuple.
        self._versions[key] = (version, *self._versions.get(key, ())[: _MAXIMUM_VERSIONS - 1])
        return version

    @usual_environment()
    @deep_recursion()
    def _built_version(
        self, specs: list[Spec], switches: Switches, captured: Captured, shelf: Shelf | None
    ) -> Version:
        from blocklang.jit.building import build_version, check_version
        from blocklang.jit.writing import written_arguments

        if self.interpret:
            kernel = check_version(self.source, self.params, specs, strict=self.strict, switches=switches)
            return Version(written_arguments(kernel), captured, lambda: kernel, None)
        built = build_version(self.source, self.params, specs, strict=self.strict, switches=switches)
        if shelf is not None and not is_covered(captured, built.dependencies):
            shelf = None
        return Version(written_arguments(built.kernel), captured, lambda: built.kernel, shelf)

    @usual_environment()
    @deep_recursion()
    def _rebuild(self, specs: list[Spec], switches: Switches, captured: Captured) -> Kernel:
        """The Block IR of a version that came from disk."""
        from blocklang.jit.building import build_version

        if not captured.hold():
            raise CompilationError(
                f"what kernel `{self.__name__}` reads from outside has changed since it was compiled",
                location=self.location,
                help="launch it again, and look at what that launch returns",
            )
        built = build_version(self.source, self.params, specs, strict=self.strict, switches=switches)
        return built.kernel

    def _find_executable(
        self, version: Version, specialisation: Specialisation, made: MadeCode | None = None
    ) -> Executable:
        with self._lock:
            executable = version.executables.get(specialisation.alias)
            if executable is None:
                compilation = Compilation(specialisation, version.captured)
                self._compiled_count += 1
                log_compilation(self.signature.name, compilation, self._compilations, self._compiled_count)
                self._compilations = [*self._compilations[-_MAXIMUM_COMPILATIONS:], compilation]
                executable = self._compile(version, specialisation, made)
                version.executables[specialisation.alias] = executable
            return executable

    def _compile(self, version: Version, specialisation: Specialisation, made: MadeCode | None) -> Executable:
        compiled = None if made else self._compiled_on_disk(version, specialisation)
        if compiled is None:
            compiled = self._compiled_from_source(version, specialisation, made)
        paths = {leaf.name: leaf.path for leaf in _typed_leaves(specialisation)}
        bounds = compiled.abi.bounds
        slots = tuple(
            SlotSource(paths[bounds[name][1]], bounds[name][0]) if name in bounds else SlotSource(paths[name])
            for name in compiled.abi.argument_names
        )
        return Executable(specialisation, compiled, LoadedKernel(compiled.abi, compiled.object_code), slots)

    def _compiled_on_disk(self, version: Version, specialisation: Specialisation) -> CompiledKernel | None:
        from blocklang.compiler.compiled import CompiledKernel

        kept = None if version.shelf is None else version.shelf.find(specialisation.alias)
        if kept is None:
            return None

        def source() -> Kernel:
            from blocklang.jit.building import with_alias

            return with_alias(version.kernel, specialisation.alias)

        options = specialisation.switches.compile_options()
        return CompiledKernel(kept.abi, kept.object_code, source, options)

    @usual_environment()
    @deep_recursion()
    def _compiled_from_source(
        self, version: Version, specialisation: Specialisation, made: MadeCode | None
    ) -> CompiledKernel:
        from blocklang.jit.building import compile_version, compiled_elsewhere

        if made is None:
            compiled = compile_version(version.kernel, specialisation)
        else:
            compiled = compiled_elsewhere(version.kernel, specialisation, *made)
        if version.shelf is not None:
            kept = KeptVersion(version.written, compiled.abi, compiled.object_code)
            version.shelf.keep(specialisation.alias, kept)
        return compiled


def _in_words(value: object) -> str:
    """A captured value for a digest: the same words in every process."""
    if isinstance(value, (type, types.ModuleType, types.FunctionType)):
        return f"{type(value).__name__} {value.__name__}"
    words = repr(value)
    return type(value).__name__ if " at 0x" in words else words


def _source_of(value: object) -> KernelSource | None:
    return value.source if isinstance(value, JITFunction) else None


def _typed_leaves(specialisation: Specialisation) -> Iterator[Leaf]:
    described = [(spec, _no_values(spec)) for spec in specialisation.specs]
    return leaves_of(specialisation.names, described)


def _no_values(spec: Spec) -> Any:
    return tuple(map(_no_values, spec.items)) if isinstance(spec, TupleSpec) else None


def _slot(described: Sequence[Described], source: SlotSource) -> int:
    value = described[source.path[0]][1]
    for index in source.path[1:]:
        value = value[index]
    assert value is not None, "a constant fills no slot"
    if source.end:
        low, high = value.byte_range()
        return int(low if source.end == LOW_OF else high)
    return value if isinstance(value, int) else int(value.address)


_functions: weakref.WeakSet[JITFunction] = weakref.WeakSet()


def _renew_after_fork() -> None:
    """In a forked child: another thread of the parent may have held a lock or an arena."""
    for function in _functions:
        function._lock = threading.Lock()
        function._chain.renew_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_after_fork)


@overload
def jit(fn: Callable[..., Any], /) -> JITFunction: ...
@overload
def jit(
    fn: None = None,
    /,
    *,
    interpret: bool = False,
    strict: bool = False,
    do_not_specialize: Sequence[str | int] = (),
    do_not_specialize_on_alignment: Sequence[str | int] = (),
    debug: bool | str = False,
    enable_fp_fusion: bool = False,
    noinline: bool = False,
    repr: Callable[..., str] | None = None,
    launch_metadata: Callable[..., Any] | None = None,
    version: object = None,
) -> Callable[[Callable[..., Any]], JITFunction]: ...
def jit(fn: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a kernel of a Python function; used as `@jit` or `@jit(...)`.

    Args:
        interpret: run the Python lines themselves, with NumPy; also for every kernel with
            BLOCKLANG_INTERPRET=1.
        strict: accept only what Triton's frontend accepts, in the kernel and in all that it calls.
        do_not_specialize: parameters (names or positions) of which every value shares one version.
        do_not_specialize_on_alignment: parameters whose divisibility by 16 is not looked at.
        debug: check `assert` and `tl.device_assert`, and that every access stays in its array and every
            address is what it is without int32 overflow: see docs/semantics.md. Also for every kernel with
            BLOCKLANG_DEBUG=1 or TRITON_DEBUG=1. Words ask for more: "nan", "poison", "nan,poison".
        enable_fp_fusion: launches round `a * b + c` of floats once, as `fma`; a launch may say otherwise. In
            interpreter mode a launch that fuses runs the kernel's IR instead of its Python lines.
        noinline, repr, launch_metadata, version: accepted as Triton does.

    Example:
        >>> import numpy as np
        >>> import blocklang as bl
        >>> import blocklang.language as tl
        >>> @bl.jit
        ... def double(x, n, BLOCK: bl.constexpr):
        ...     offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        ...     tl.store(x + offs, 2 * tl.load(x + offs, mask=offs < n), mask=offs < n)
        >>> x = np.arange(5, dtype=np.float32)
        >>> _ = double[(bl.cdiv(5, 4),)](x, 5, BLOCK=4)
        >>> x
        array([0., 2., 4., 6., 8.], dtype=float32)
    """
    if fn is None:
        return lambda decorated: _make(decorated, options)
    return _make(fn, options)


def _make(fn: Any, options: Mapping[str, Any]) -> JITFunction:
    if isinstance(fn, JITFunction):
        raise LaunchError(f"{fn.__name__} is already a kernel", help="write `@jit` once")
    if not callable(fn) or not hasattr(fn, "__code__"):
        raise LaunchError(
            f"@jit makes a kernel of a Python function, not of {type(fn).__name__}",
            help="put `@jit` directly above `def`",
        )
    return JITFunction(fn, **options)
