"""`autotune`: launch a kernel with the config that was the fastest for arguments like these.

The configs are measured when a *key* is new: the values of the arguments named in `key`, and the dtypes of
all arrays. Arrays that the kernel writes have their contents back after every config, and the launch that was
asked for runs on what the user passed.
"""

from __future__ import annotations

import functools
import operator
import os
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blocklang.diagnostics import AutotunerError
from blocklang.jit import JITFunction, KernelInterface
from blocklang.jit.options import HINTS
from blocklang.jit.recording import is_skipping
from blocklang.lazy import cached_property
from blocklang.runtime.arrays import describe_array
from blocklang.target import Device, find_device
from blocklang.tune import winners
from blocklang.tune.benchmark import do_bench
from blocklang.tune.config import Config
from blocklang.tune.measuring import Measurement
from blocklang.tune.report import Report, Row, is_forced, sorted_rows, tell
from blocklang.tune.saving import Saved

_NEVER = [float("inf")] * 3


# One kernel is tuned at a time: two would disturb each other's times, and arrays that both write.
_tuning = threading.RLock()


def _renew_lock() -> None:
    global _tuning
    _tuning = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def _is_on(name: str) -> bool:
    return os.environ.get(name, "").strip().lower() in ("1", "true", "yes", "on", "y")


@dataclass(frozen=True, slots=True)
class _Known:
    """A launch that `run` has done with the config of its key.

    Attributes:
        key, config: of the autotuner's cache; the launch is known as long as the cache holds them.
        chosen: what the config adds to the arguments.
        dtypes: of the arrays, with their places among the arguments.
        count: how many arguments there were, all given by their place.
    """

    key: tuple[Any, ...]
    config: Config
    chosen: dict[str, Any]
    dtypes: tuple[tuple[int, Any], ...]
    count: int


class Autotuner(KernelInterface):
    """A kernel with configs to choose from; see `autotune` for the arguments.

    Attributes:
        fn: the kernel, or what wraps it; `base_fn` is the Python function.
        arg_names: names of its parameters.
        configs: what to choose from.
        keys: names of the arguments whose values make a key.
        cache: the chosen config, by key.
        best_config: the config of the latest launch.
        configs_timings: the times of the latest measurement, in milliseconds, by config.
        bench_time: how long it took, in seconds.
        report: what it found, or what was on disk; `print` it for a table.
    """

    def __init__(
        self,
        fn: Any,
        arg_names: Sequence[str],
        configs: Sequence[Config],
        key: Sequence[str],
        reset_to_zero: Sequence[str] | None = None,
        restore_value: Sequence[str] | None = None,
        pre_hook: Callable[..., object] | None = None,
        post_hook: Callable[..., object] | None = None,
        prune_configs_by: Mapping[str, Any] | None = None,
        warmup: float | None = None,
        rep: float | None = None,
        use_cuda_graph: bool = False,
        do_bench: Callable[..., Any] | None = None,
        cache_results: bool | None = None,
        model_device: str | None = None,
    ) -> None:
        self.fn = fn
        self.base_fn = fn
        while hasattr(self.base_fn, "fn"):
            self.base_fn = self.base_fn.fn
        self.__name__ = getattr(self.base_fn, "__name__", "kernel")
        self.arg_names = list(arg_names)
        self.configs = list(configs) or [Config({})]
        self.keys = list(key)
        self.cache: dict[tuple[Any, ...], Config] = {}
        self.best_config: Config | None = None
        self.configs_timings: dict[Config, Any] = {}
        self.bench_time = 0.0
        self.nargs: dict[str, Any] | None = None
        self.reset_to_zero = list(reset_to_zero or ())
        self.restore_value = list(restore_value or ())
        self.user_defined_pre_hook = pre_hook is not None
        self.user_defined_post_hook = post_hook is not None
        self.pre_hook = pre_hook or self._reset
        self.post_hook = post_hook or self._restore
        self.report: Report | None = None
        self.model_device: Device | None = None if model_device is None else find_device(model_device)
        prune = prune_configs_by or {}
        self.perf_model: Callable[..., float] | None = prune.get("perf_model")
        self.configs_top_k: float | int | None = prune.get("top_k")
        self.early_config_prune: Callable[..., list[Config]] | None = prune.get("early_config_prune")
        self.num_warmups = warmup
        self.num_reps = rep
        self.use_cuda_graph = use_cuda_graph
        self._do_bench = do_bench
        self._cache_results = cache_results
        self._kept: dict[str, Saved] = {}
        self._known: dict[Any, _Known] = {}  # by the values of the keys
        self._values_of: Callable[[tuple[Any, ...]], Any] = len
        if warmup is not None or rep is not None or use_cuda_graph:
            warnings.warn(
                "warmup, rep and use_cuda_graph of autotune are deprecated; pass do_bench=",
                DeprecationWarning,
                stacklevel=3,
            )

    @property
    def cache_results(self) -> bool:
        """True if measurements are looked up and kept on disk."""
        asked = True if _is_on("TRITON_CACHE_AUTOTUNING") else self._cache_results
        return winners.may_keep(asked, not self.has_own_clock)

    @property
    def has_own_clock(self) -> bool:
        """True if `do_bench` was given."""
        return self._do_bench is not None

    @property
    def has_own_hooks(self) -> bool:
        """True if `pre_hook` or `post_hook` was given: they may write any array."""
        return self.user_defined_pre_hook or self.user_defined_post_hook

    @property
    def milliseconds(self) -> float:
        """About how long each config that is not dropped is measured."""
        return 100.0 if self.num_reps is None else float(self.num_reps)

    @cached_property
    def do_bench(self) -> Callable[..., Any]:
        """What measures a call."""
        if self._do_bench is not None:
            return self._do_bench
        warmup = 25 if self.num_warmups is None else self.num_warmups
        rep = 100 if self.num_reps is None else self.num_reps
        return lambda call, quantiles: do_bench(call, warmup, rep, quantiles=quantiles)

    # ---- what runs around every measured call ----

    def _reset(self, arguments: Mapping[str, Any], reset_only: bool = False) -> None:
        for name in self.reset_to_zero:
            _fill_with_zero(arguments[name])
        if not reset_only:
            self._kept = {name: _saved(arguments[name]) for name in self.restore_value}

    def _restore(self, arguments: Mapping[str, Any], exception: BaseException | None = None) -> None:
        for saved in self._kept.values():
            saved.restore()
        self._kept = {}

    # ---- launching ----

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return functools.partial(self._launch, grid)

    def _launch(self, grid: Any, *args: Any, **kwargs: Any) -> Any:
        """`run`, or where arguments of this form have been launched: the same launch without asking again."""
        if not kwargs:
            try:
                known = self._known[self._values_of(args)]
                # The form is the same if the place of each array holds one of its dtype; `break` if not.
                for place, dtype in known.dtypes:
                    if args[place].dtype is not dtype:
                        break
                else:
                    if len(args) == known.count and self.cache[known.key] is known.config:
                        self.best_config = known.config
                        kwargs = known.chosen
            except (KeyError, IndexError, TypeError, AttributeError):
                pass
            if kwargs:
                return self.fn[grid](*args, **kwargs)
            result = self.run(*args, grid=grid, warmup=False)
            self._remember(args)
            return result
        return self.run(*args, grid=grid, warmup=False, **kwargs)

    def _remember(self, args: tuple[Any, ...]) -> None:
        """Let launches of this form find the config that `run` has just used, where nothing else is to do."""
        config = self.best_config
        plain = isinstance(self.fn, JITFunction) and type(self).run is Autotuner.run
        if config is None or config.pre_hook is not None or not plain or len(args) > len(self.arg_names):
            return
        key = self._key(dict(zip(self.arg_names, args, strict=False)), {})
        places = [self.arg_names.index(name) for name in self.keys if name in self.arg_names]
        if self.cache.get(key) is not config or max(places, default=0) >= len(args):
            return
        dtypes = tuple((place, value.dtype) for place, value in enumerate(args) if hasattr(value, "dtype"))
        if places:
            self._values_of = operator.itemgetter(*places)
        # Hints have been checked by now, and do nothing else.
        chosen = {name: value for name, value in config.all_kwargs().items() if name not in HINTS}
        self._known[self._values_of(args)] = _Known(key, config, chosen, dtypes, len(args))

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Launch with the best config; measure first if the key is new."""
        if is_skipping():  # there is nothing to measure
            return None
        named = dict(zip(self.arg_names, args, strict=False))
        if len(self.configs) > 1:
            key = self._key(named, kwargs)
            config = self.cache.get(key)
            if config is None:
                with _tuning:  # another thread may have chosen meanwhile
                    config = self.cache.get(key) or self._choose(key, named, args, kwargs)
        else:
            config = self.configs[0]
        self.best_config = config
        chosen = config.all_kwargs()
        if config.pre_hook is not None:
            config.pre_hook({**named, **kwargs, **chosen})
        return self.fn.run(*args, **kwargs, **chosen)

    def warmup(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Compile every config for these arguments, without launching."""
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        answers = [self.fn.warmup(*args, **kwargs, **c.all_kwargs()) for c in self.prune_configs(kwargs)]
        self.nargs = None
        return answers

    def written_arrays(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The arrays among the arguments of a launch that the kernel stores to, by parameter."""
        config = self.best_config or self.configs[0]
        arrays: dict[str, Any] = self.fn.written_arrays(*args, **kwargs, **config.all_kwargs())
        return arrays

    def _key(self, named: Mapping[str, Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        given = {n: v for n, v in {**named, **kwargs}.items() if n in self.arg_names}
        values = [given[name] for name in self.keys if name in given]
        return (*values, *[str(v.dtype) for v in given.values() if hasattr(v, "dtype")])

    def _choose(
        self, key: tuple[Any, ...], named: dict[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Config:
        """The best config for a key, measured or from disk; `_tuning` is held."""
        self.nargs = named
        try:
            return self._chosen(key, named, args, kwargs)
        finally:
            self.nargs = None

    def _chosen(
        self, key: tuple[Any, ...], named: Mapping[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Config:
        started = time.perf_counter()
        measurement = Measurement(self, args, kwargs)
        configs = self.prune_configs(kwargs)
        name = self._name_on_disk(key, configs)
        kept = winners.read(name, configs) if name and not is_forced() else None
        if kept is None:
            tried = configs
            if self.model_device is not None:
                tried = self._prune_by_model(measurement, configs)
            measurement.measure(tried)
            rows = list(measurement.rows.values())
            self.bench_time = time.perf_counter() - started
        else:
            rows = kept
        # A config that was dropped on the way is not chosen, were its few calls ever so lucky.
        measured = [row for row in rows if row.milliseconds and not row.dropped]
        best = min(measured, key=lambda row: row.milliseconds).config
        if name and kept is None:
            winners.write(name, rows, configs)
        pruned = [Row(c, (), "pruned") for c in self.configs if c not in {row.config for row in rows}]
        self.report = Report(
            kernel=self.__name__,
            key=key,
            rows=sorted_rows([*rows, *pruned]),
            best=best,
            seconds=time.perf_counter() - started,
            from_disk=kept is not None,
            parallel=measurement.parallel,
        )
        tell(self.report)
        if _is_on("TRITON_PRINT_AUTOTUNING") or _is_on("BLOCKLANG_PRINT_AUTOTUNING"):
            print(self.report, end="")
        self.configs_timings = {row.config: list(row.milliseconds) or _NEVER for row in rows}
        self.pre_hook({**named, **kwargs, **best.all_kwargs()}, reset_only=True)
        self.cache[key] = best
        return best

    def _name_on_disk(self, key: tuple[Any, ...], configs: Sequence[Config]) -> str | None:
        """Under which name the result is kept; None if it is not."""
        if not self.cache_results or any(config.pre_hook for config in configs):
            return None
        device = "" if self.model_device is None else repr((self.model_device, self.configs_top_k))
        return winners.key_of(self.fn, device, key, *[config.all_kwargs() for config in configs])

    def _prune_by_model(self, measurement: Measurement, configs: list[Config]) -> list[Config]:
        """The configs that the model of `model_device` takes for the fastest."""
        assert self.model_device is not None
        top_k = self._top_k(len(configs), default=0.5)
        if len(configs) < 2:
            return configs
        return measurement.model(configs, self.model_device, top_k)

    def prune_configs(self, kwargs: Mapping[str, Any]) -> list[Config]:
        """The configs that are worth measuring for a launch."""
        named = self.nargs or {}
        configs = list(self.configs)
        if self.early_config_prune is not None:
            configs = list(self.early_config_prune(self.configs, named, **kwargs))
            if not configs:
                raise AutotunerError(
                    f"No valid autotuner configs after pruning those of {self.__name__}: "
                    "early_config_prune must leave at least one config"
                )
        model = self.perf_model
        if model is None:
            return configs
        top_k = self._top_k(len(self.configs), default=1.0)
        if len(configs) <= top_k:
            return configs
        estimates = {config: model(**named, **kwargs, **config.all_kwargs()) for config in configs}
        return sorted(estimates, key=lambda config: estimates[config])[:top_k]

    def _top_k(self, count: int, default: float) -> int:
        """How many of `count` configs are measured."""
        top_k = default if self.configs_top_k is None else self.configs_top_k
        if isinstance(top_k, float) and top_k <= 1.0:
            return max(int(count * top_k), 1)
        if not isinstance(top_k, int):
            raise TypeError("top_k of prune_configs_by must be a float of at most 1.0, or an int")
        return top_k


def _saved(value: Any) -> Saved:
    saved = Saved()
    saved.add([describe_array(value)])
    return saved


def _fill_with_zero(value: Any) -> None:
    if hasattr(value, "zero_"):
        value.zero_()
    else:
        value[...] = 0


def autotune(
    configs: Sequence[Config],
    key: Sequence[str],
    prune_configs_by: Mapping[str, Any] | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Callable[..., object] | None = None,
    post_hook: Callable[..., object] | None = None,
    warmup: float | None = None,
    rep: float | None = None,
    use_cuda_graph: bool = False,
    do_bench: Callable[..., Any] | None = None,
    cache_results: bool | None = None,
    model_device: str | None = None,
) -> Callable[[Any], Autotuner]:
    """Launch a kernel with the fastest of several configs; used above `@jit`.

    The configs are measured when a key is new. Arrays that the kernel writes are given their contents back
    after each config, whether `restore_value` names them or not. With TRITON_PRINT_AUTOTUNING=1 each
    measurement is printed. With one config nothing is measured.

    Args:
        configs: what to choose from.
        key: names of arguments; new values of these, or new dtypes of arrays, are measured anew.
        prune_configs_by: `early_config_prune(configs, named_args, **kwargs)` leaves out configs, and
            `perf_model(**arguments)` estimates a time of which the `top_k` best (a number, or a share) are
            measured.
        reset_to_zero: arrays that are zeroed before every measured call, and before the launch after them.
        restore_value: arrays whose contents are restored after every measured call.
        pre_hook, post_hook: called before and after every measured call, with the arguments by name, and
            `reset_only=` and `exception=`; they replace what the two lists above do.
        warmup, rep, use_cuda_graph: deprecated.
        do_bench: measures a call: `do_bench(call, quantiles=...)`, in milliseconds.
        cache_results: keep what was measured on disk, for other processes. By default it is kept if the
            disk cache is on, neither `do_bench` nor a config's `pre_hook` is given, and the kernel's content
            can be told.
        model_device: name of a device, or its description's path: each config is launched once and counted,
            and only the `top_k` of `prune_configs_by` (by default half) that the device's model takes for the
            fastest are measured. Those that do not fit the device are left out.

    Example:
        >>> import numpy as np
        >>> import blocklang as bl
        >>> import blocklang.language as tl
        >>> @bl.autotune([bl.Config({"BLOCK": 64}), bl.Config({"BLOCK": 256})], key=["n"])
        ... @bl.jit
        ... def increment(x, n, BLOCK: bl.constexpr):
        ...     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        ...     tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)
        >>> x = np.zeros(1000, np.float32)
        >>> _ = increment[lambda meta: (bl.cdiv(1000, meta["BLOCK"]),)](x, 1000)
        >>> x.max()
        np.float32(1.0)
    """

    def decorate(fn: Any) -> Autotuner:
        return Autotuner(
            fn,
            fn.arg_names,
            configs,
            key,
            reset_to_zero,
            restore_value,
            pre_hook,
            post_hook,
            prune_configs_by,
            warmup,
            rep,
            use_cuda_graph,
            do_bench,
            cache_results,
            model_device,
        )

    return decorate
