"""Choosing how to launch a kernel: `autotune`, `Config`, `heuristics`, and the clock behind them.

config       `Config`: values of the kernel's constants and launch options to try
autotuner    `autotune`: measure the configs once per key, then launch with the fastest
heuristics   `heuristics`: arguments computed from the others
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

__all__ = ["Autotuner", "Config", "Heuristics", "autotune", "do_bench", "heuristics"]
