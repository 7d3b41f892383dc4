"""Measuring an autotuner's configs for one launch: arrays saved and restored, configs compiled and timed.

Each call that is timed stands between the hooks, which are not timed. Arrays that the kernel writes have
their contents back after every turn of a config, whatever happened in it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from blocklang.diagnostics import (
    AutotunerError,
    BlocklangError,
    CompileTimeAssertionFailure,
    OutOfResources,
    VerifyError,
)
from blocklang.jit import JITFunction
from blocklang.jit.recording import measured_launches
from blocklang.runtime.arrays import Array, describe_array, is_array
from blocklang.runtime.descriptors import TensorDescriptor
from blocklang.target import Device
from blocklang.tune.config import Config
from blocklang.tune.model import modelled_seconds
from blocklang.tune.progress import Advance, progress_bar
from blocklang.tune.racing import QUANTILES, race
from blocklang.tune.report import Row, format_milliseconds
from blocklang.tune.saving import Saved

if TYPE_CHECKING:
    from blocklang.jit.function import Uncompiled
    from blocklang.tune.autotuner import Autotuner

_RESERVED = ("grid", "warmup")
# How a config says that it does not suit; anything else is worth a warning.
_UNSUITABLE = (OutOfResources, CompileTimeAssertionFailure)


class Measurement:
    """The configs of an autotuner, for the arguments of one launch.

    Attributes:
        rows: what became of each config so far.
        parallel: how many configs other processes compiled.
    """

    def __init__(self, tuner: Autotuner, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self.rows: dict[Config, Row] = {}
        self.parallel = 0
        self._tuner = tuner
        self._args = args
        self._kwargs = kwargs
        self._saved = Saved()
        self._errors: dict[Config, BlocklangError] = {}

    def measure(self, configs: Sequence[Config]) -> None:
        """Time the configs.

        Raises:
            AutotunerError: none of them can be used.
            BlocklangError: what all of them failed with, where it is the same.
        """
        for config in configs:
            self._refuse_what_is_given_twice(config)
        with progress_bar(f"tuning {self._tuner.__name__}") as advance:
            self._compile(configs, advance)
            with measured_launches():  # an emulation is of the program, not of the tuning
                if self._tuner.has_own_clock:
                    self._time_one_by_one(configs, advance)
                else:
                    self._time_in_turns(configs, advance)
        self._report_failures(configs)

    def _refuse_what_is_given_twice(self, config: Config) -> None:
        twice = self._kwargs.keys() & config.kwargs.keys()
        if twice:
            raise ValueError(
                f"Conflicting meta-parameters: {', '.join(sorted(twice))}. The launch gives what the configs "
                f"of {self._tuner.__name__} are to choose: leave it out"
            )

    # ---- compiling ----

    def _compile(self, configs: Sequence[Config], advance: Advance) -> None:
        """Compile all configs, together if that is faster. One that cannot be says so when it is timed."""
        tuner = self._tuner
        if not hasattr(tuner.fn, "uncompiled") or any(config.pre_hook for config in configs):
            return  # a hook may change the arguments, and with them what is compiled
        wanted: list[Uncompiled] = []
        for config in configs:
            try:
                found = tuner.fn.uncompiled(*self._args, **_without_reserved(self._current(config)))
            except BlocklangError:
                continue
            if found is not None:
                wanted.append(found)
        if len(wanted) > 1:
            from blocklang.jit.apart import compile_all

            count = len(wanted)
            self.parallel = compile_all(
                wanted, lambda done: advance(f"compiled {done} of {count}", done / count)
            )

    # ---- timing ----

    def _time_in_turns(self, configs: Sequence[Config], advance: Advance) -> None:
        def turn(config: Config, measure: Callable[[Callable[[], float]], None]) -> str:
            call = self._call(config)
            error = self._guarded(config, lambda: measure(call))
            return "" if error is None else describe_failure(error)

        results = race(configs, turn, self._tuner.milliseconds, advance)
        for config, result in results.items():
            self.rows[config] = Row(config, result.quantiles, result.left)

    def _time_one_by_one(self, configs: Sequence[Config], advance: Advance) -> None:
        for number, config in enumerate(configs):
            advance(config.in_words(), number / len(configs))
            call = self._call(config)
            times: list[float] = []

            def measure(call: Callable[[], float] = call, times: list[float] = times) -> None:
                found = self._tuner.do_bench(call, quantiles=QUANTILES)
                times.extend(found if isinstance(found, (list, tuple)) else [found])

            error = self._guarded(config, measure)
            self.rows[config] = Row(config, tuple(times), "" if error is None else describe_failure(error))

    def _guarded(self, config: Config, work: Callable[[], object]) -> BlocklangError | None:
        """Do work that launches with a config, and give arrays their contents back; why the config cannot
        be used, if so.
        """
        tuner = self._tuner
        current = self._current(config)
        try:
            has_hook = config.pre_hook is not None or tuner.has_own_hooks
            self._saved.add(self._given(current) if has_hook else self._written(current))
            work()
        except VerifyError:
            raise
        except BlocklangError as error:
            self._errors[config] = error
            return error
        finally:
            self._saved.restore()
        return None

    def _call(self, config: Config) -> Callable[[], float]:
        """A launch with a config, between the hooks; it returns its own milliseconds."""
        tuner, args = self._tuner, self._args
        current = self._current(config)
        arguments = {**(tuner.nargs or {}), **current}

        def call() -> float:
            if config.pre_hook is not None:
                config.pre_hook(arguments)
            tuner.pre_hook(arguments)
            try:
                start = time.perf_counter_ns()
                tuner.fn.run(*args, **current)
                took = (time.perf_counter_ns() - start) / 1e6
            except Exception as error:
                tuner.post_hook(arguments, exception=error)
                raise
            tuner.post_hook(arguments, exception=None)
            return took

        return call

    def _current(self, config: Config) -> dict[str, Any]:
        return {**self._kwargs, **config.all_kwargs()}

    # ---- the model of a device ----

    def model(self, configs: Sequence[Config], device: Device, top_k: int) -> list[Config]:
        """The configs that a device's model takes for the fastest; rows say what it holds against the others.

        Configs of which it knows nothing are kept.
        """
        estimates: dict[Config, float] = {}
        unknown: list[Config] = []
        for config in configs:
            self._refuse_what_is_given_twice(config)
            call, seconds = self._call(config), list[float | None]()

            def count(call: Callable[[], float] = call, seconds: list[float | None] = seconds) -> None:
                seconds.append(modelled_seconds(call, device))

            error = self._guarded(config, count)
            if error is not None:
                self.rows[config] = Row(config, (), f"{device.name}: {describe_failure(error)}")
            elif seconds[0] is None:
                unknown.append(config)
            else:
                estimates[config] = seconds[0]
        self._report_failures(configs)
        ranked = sorted(estimates, key=lambda config: estimates[config])
        for config in ranked[top_k:]:
            taken = format_milliseconds(estimates[config] * 1e3)
            best = format_milliseconds(estimates[ranked[0]] * 1e3)
            self.rows[config] = Row(config, (), f"{device.name}: {taken} modelled, the best {best}")
        return [*ranked[:top_k], *unknown]

    # ---- failures ----

    def _report_failures(self, configs: Sequence[Config]) -> None:
        errors = self._errors
        name = self._tuner.__name__
        if len(errors) < len(configs):
            failed = [
                f"{config.in_words()}: {describe_failure(error)}"
                for config, error in errors.items()
                if not isinstance(error, _UNSUITABLE)
            ]
            if failed:
                message = f"configs of {name} that failed are left out: {'; '.join(failed)}"
                warnings.warn(message, RuntimeWarning, stacklevel=2)
            self._errors = {}
            return
        first = errors[configs[0]]
        if not isinstance(first, _UNSUITABLE) and len({str(error) for error in errors.values()}) == 1:
            # It is the kernel or the launch that is at fault, not a config.
            first.notes.append(f"all {len(configs)} configs of {name} fail so")
            raise first
        failure = AutotunerError(
            f"none of the {len(configs)} configs of {name} can be used",
            location=getattr(_kernel_of(self._tuner.fn), "location", None),
            help="add a config that suits these arguments, or leave out those that do not "
            "(early_config_prune of prune_configs_by)",
        )
        failure.notes = [f"{config.in_words()}: {describe_failure(errors[config])}" for config in configs]
        raise failure from None

    # ---- arrays ----

    def _written(self, current: Mapping[str, Any]) -> list[Any]:
        """The arrays that a launch writes; all of them, if what is wrapped cannot tell."""
        own = _without_reserved(current)
        if hasattr(self._tuner.fn, "written_arrays"):
            return list(self._tuner.fn.written_arrays(*self._args, **own).values())
        return self._given(own)

    def _given(self, current: Mapping[str, Any]) -> list[Any]:
        """All arrays of a launch: a hook may write them too, and only after it a descriptor is whole."""
        named = {n: v for n, v in current.items() if n in self._tuner.arg_names}
        return list(_arrays_in((*self._args, *named.values())))


def describe_failure(error: BlocklangError) -> str:
    """An error in one line."""
    known = error.location is not None and error.location.line > 0
    place = f"{error.location}: " if known else ""
    return f"{type(error).__name__}: {place}{error.message}".splitlines()[0]


def _without_reserved(current: Mapping[str, Any]) -> dict[str, Any]:
    return {n: v for n, v in current.items() if n not in _RESERVED}


def _kernel_of(fn: Any) -> Any:
    while not isinstance(fn, JITFunction) and hasattr(fn, "fn"):
        fn = fn.fn
    return fn


def _arrays_in(value: Any) -> Iterator[Array]:
    """The arrays that an argument is or holds."""
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _arrays_in(item)
    elif isinstance(value, TensorDescriptor):
        yield describe_array(value.base)
    elif is_array(value):
        yield describe_array(value)
