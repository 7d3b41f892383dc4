"""A report as a picture: the ratio to the best peer of every row, on a logarithmic axis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.peers import PEERS
from benchmarks.results import Report, count_threads
from blocklang.diagnostics import UsageError

_COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd")


def write_plot(report: Report, path: Path) -> None:
    """Draw the ratios as what the suffix of `path` says. Raises UsageError if that cannot be done."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise UsageError(
            "--plot needs matplotlib, which is not installed", help="pip install 'blocklang[bench]'"
        ) from None
    mpl.use("agg")
    from matplotlib import pyplot

    titles = list(dict.fromkeys(result.title for result in report.results if result.ratio))
    threads = sorted({result.threads for result in report.results})
    figure, axes = pyplot.subplots(figsize=(9, 1.5 + 0.22 * max(len(titles), 1) * max(len(threads), 1)))
    _draw(axes, report, titles, threads)
    figure.tight_layout()
    try:
        figure.savefig(path, dpi=130)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write {path}: {error}", help="name a .png, .svg or .pdf") from error
    finally:
        pyplot.close(figure)


def _draw(axes: Any, report: Report, titles: list[str], threads: list[int]) -> None:
    height = 0.8 / max(len(threads), 1)
    for number, count in enumerate(threads):
        rows = [result for result in report.results if result.threads == count and result.ratio]
        places = [titles.index(result.title) + (number + 0.5) * height - 0.4 for result in rows]
        ratios = [result.ratio for result in rows]
        lengths = [ratio - 1 for ratio in ratios if ratio]
        axes.barh(places, lengths, height * 0.9, left=1, label=count_threads(count),
                  color=_COLOURS[number % len(_COLOURS)])  # fmt: skip
        for place, result, ratio in zip(places, rows, ratios, strict=True):
            assert result.best_peer is not None
            axes.text(ratio, place, f" {ratio:.2f} {PEERS[result.best_peer]} ", fontsize=6, va="center",
                      ha="left" if ratio and ratio >= 1 else "right")  # fmt: skip
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.margins(x=0.15)
    axes.set_yticks(range(len(titles)), titles, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("best peer's time / blocklang's: to the right of 1, blocklang is faster")
    if threads:
        axes.legend(loc="lower right")
    axes.grid(axis="x", alpha=0.3)
