"""`triton.testing`: measuring kernels, comparing arrays, tables of measurements."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from blocklang.tune import do_bench

__all__ = ["Benchmark", "Mark", "assert_close", "do_bench", "do_bench_cudagraph", "perf_report"]


def do_bench_cudagraph(
    fn: Callable[[], object],
    rep: float = 20,
    grad_to_none: Iterable[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """`do_bench` without a warm-up of its own: on the CPU there is no graph to record."""
    return do_bench(fn, 1, rep, grad_to_none, quantiles, return_mode)


def _as_numpy(value: Any) -> Any:
    """An array as NumPy's, 16-bit and 8-bit floats as fp32."""
    if hasattr(value, "detach"):
        value = value.detach()
        is_small = value.is_floating_point() and value.element_size() <= 2
        value = (value.float() if is_small else value).cpu().numpy()
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype.name.startswith(("bfloat16", "float8")) else array


def assert_close(
    x: Any, y: Any, atol: float | None = None, rtol: float | None = None, err_msg: str = ""
) -> None:
    """Raise AssertionError unless two arrays are as close as tolerances say; NaN equals NaN.

    Args:
        x, y: arrays of PyTorch or NumPy, or numbers.
        atol: 0.01 by default.
        rtol: 0 by default.
        err_msg: what to say with it.
    """
    atol = 1e-2 if atol is None else atol
    rtol = 0.0 if rtol is None else rtol
    one, other = _as_numpy(x), _as_numpy(y)
    np.testing.assert_allclose(one, other, rtol=rtol, atol=atol, equal_nan=True, err_msg=err_msg)


class Benchmark:
    """What `perf_report` measures: a function of some arguments, over values of them, a line per variant.

    Args:
        x_names: arguments that vary along the table.
        x_vals: their values, each for all of them, or a tuple of one for each.
        line_arg: the argument that tells the lines apart.
        line_vals, line_names: its values, and what to call them.
        plot_name: name of the table, and of its files.
        args: values of the other arguments.
        xlabel, ylabel, x_log, y_log, styles: how a plot looks.
    """

    def __init__(
        self,
        x_names: Sequence[str],
        x_vals: Iterable[Any],
        line_arg: str,
        line_vals: Sequence[Any],
        line_names: Sequence[str],
        plot_name: str,
        args: Mapping[str, Any],
        xlabel: str = "",
        ylabel: str = "",
        x_log: bool = False,
        y_log: bool = False,
        styles: Sequence[tuple[str, str]] | None = None,
    ) -> None:
        self.x_names = list(x_names)
        self.x_vals = list(x_vals)
        self.line_arg = line_arg
        self.line_vals = list(line_vals)
        self.line_names = list(line_names)
        self.plot_name = plot_name
        self.args = dict(args)
        self.xlabel = xlabel
        self.ylabel = ylabel
        self.x_log = x_log
        self.y_log = y_log
        self.styles = styles


class Mark:
    """A function with the tables to measure; see `perf_report`."""

    def __init__(self, fn: Callable[..., Any], benchmarks: Benchmark | Sequence[Benchmark]) -> None:
        self.fn = fn
        self.benchmarks = benchmarks

    def run(
        self,
        show_plots: bool = False,
        print_data: bool = False,
        save_path: str = "",
        return_df: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Measure.

        Args:
            show_plots: show a plot of each table, if matplotlib is installed.
            print_data: print each table.
            save_path: a directory for each table as CSV, and for its plot.
            return_df: return the tables: as data frames if pandas is installed, else as lists of rows.
            kwargs: more arguments of the function.
        """
        single = isinstance(self.benchmarks, Benchmark)
        benchmarks = [self.benchmarks] if isinstance(self.benchmarks, Benchmark) else list(self.benchmarks)
        tables = []
        for benchmark in benchmarks:
            columns, rows = self._measure(benchmark, kwargs)
            if print_data:
                print(f"{benchmark.plot_name}:")
                print(_table(columns, rows))
            if save_path:
                os.makedirs(save_path, exist_ok=True)
                with open(os.path.join(save_path, f"{benchmark.plot_name}.csv"), "w", newline="") as file:
                    csv.writer(file).writerows([columns, *rows])
            if (show_plots or save_path) and find_spec("matplotlib") is not None:
                _plot(benchmark, rows, show_plots, save_path)
            tables.append(_frame(columns, rows))
        if not return_df:
            return None
        return tables[0] if single else tables

    def _measure(self, benchmark: Benchmark, more: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
        label = f" ({benchmark.ylabel})" if benchmark.ylabel else ""
        columns = [*benchmark.x_names, *[f"{name}{label}" for name in benchmark.line_names]]
        rows = []
        for x in benchmark.x_vals:
            values = list(x) if isinstance(x, (tuple, list)) else [x] * len(benchmark.x_names)
            if len(values) != len(benchmark.x_names):
                raise ValueError(f"Expected {len(benchmark.x_names)} values, got {x}")
            arguments = {**dict(zip(benchmark.x_names, values, strict=True)), **benchmark.args, **more}
            results = [self.fn(**arguments, **{benchmark.line_arg: v}) for v in benchmark.line_vals]
            rows.append([*values, *[r[0] if isinstance(r, (tuple, list)) else r for r in results]])
        return columns, rows


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    texts = [[str(c) for c in columns]]
    texts += [[f"{v:.6f}" if isinstance(v, float) else str(v) for v in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return "\n".join("  ".join(t.rjust(w) for t, w in zip(row, widths, strict=True)) for row in texts)


def _frame(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Any:
    if find_spec("pandas") is None:
        return [dict(zip(columns, row, strict=True)) for row in rows]
    return import_module("pandas").DataFrame(rows, columns=list(columns))


def _plot(benchmark: Benchmark, rows: Sequence[Sequence[Any]], show: bool, save_path: str) -> None:
    plots = import_module("matplotlib.pyplot")
    figure = plots.figure()
    axes = plots.subplot()
    first = len(benchmark.x_names)
    for index, name in enumerate(benchmark.line_names):
        colour, style = benchmark.styles[index] if benchmark.styles else (None, None)
        axes.plot(
            [row[0] for row in rows], [row[first + index] for row in rows], label=name, color=colour, ls=style
        )
    axes.legend()
    axes.set_xlabel(benchmark.xlabel or benchmark.x_names[0])
    axes.set_ylabel(benchmark.ylabel)
    axes.set_xscale("log" if benchmark.x_log else "linear")
    axes.set_yscale("log" if benchmark.y_log else "linear")
    if show:
        plots.show()
    if save_path:
        figure.savefig(os.path.join(save_path, f"{benchmark.plot_name}.png"))
    plots.close(figure)


def perf_report(benchmarks: Benchmark | Sequence[Benchmark]) -> Callable[[Callable[..., Any]], Mark]:
    """Make a function that measures one case into tables of many; used above it, then call its `run`."""
    return lambda fn: Mark(fn, benchmarks)


def get_dram_gbps(device: Any = None) -> float:
    """A nominal bandwidth of memory, in GB/s."""
    return 50.0


def get_max_tensorcore_tflops(dtype: Any, clock_rate: float, device: Any = None) -> float:
    """A nominal speed of matrix products, in TFLOP/s."""
    return 1.0


def get_max_simd_tflops(dtype: Any, clock_rate: float, device: Any = None) -> float:
    """A nominal speed of vectors, in TFLOP/s."""
    return 1.0
