"""Choosing how to launch a kernel: `autotune`, `Config`, `heuristics`, and the clock behind them.

config       `Config`: values of the kernel's constants and launch options to try
autotuner    `autotune`: measure the configs once per key, then launch with the fastest
heuristics   `heuristics`: arguments computed from the others
measuring    the configs of one launch: compiled, timed, dropped; their failures
racing       several calls timed in turns, with early stopping
report       what was found, as data and as a table
progress     a bar on a terminal
model        what a device that is not here would take
saving       arrays that a kernel writes, kept as they were while it is measured
winners      what was measured, on disk
benchmark    `do_bench`: how long a call takes
clock        events and streams of a device that is the CPU
"""

from __future__ import annotations

from blocklang.tune.autotuner import Autotuner, autotune
from blocklang.tune.benchmark import do_bench
from blocklang.tune.config import Config
from blocklang.tune.heuristics import Heuristics, heuristics
from blocklang.tune.report import Report

__all__ = ["Autotuner", "Config", "Heuristics", "Report", "autotune", "do_bench", "heuristics"]
