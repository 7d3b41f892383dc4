"""The pipeline: every pass in the order it runs, on one page.

`run_pipeline` takes a kernel of level block through all of them, verifies between passes if asked to, times
each, and hands every intermediate form to an observer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from blocklang.abi import AccessCounts
from blocklang.diagnostics import UsageError
from blocklang.ir.core import Kernel
from blocklang.ir.verifier import verify
from blocklang.passes.assign_spaces import assign_spaces
from blocklang.passes.canonicalise import canonicalise
from blocklang.passes.check_alignment import check_alignment
from blocklang.passes.check_nan import check_nan
from blocklang.passes.check_races import check_races
from blocklang.passes.check_unwritten import check_unwritten
from blocklang.passes.continue_after_faults import continue_after_faults
from blocklang.passes.count_accesses import count_accesses
from blocklang.passes.cut_loops import cut_loops
from blocklang.passes.eliminate_common_subexpressions import eliminate_common_subexpressions
from blocklang.passes.eliminate_dead_code import eliminate_dead_code
from blocklang.passes.expand_maths import expand_maths
from blocklang.passes.fuse_accumulators import fuse_accumulators
from blocklang.passes.fuse_loops import fuse_loops
from blocklang.passes.fuse_multiply_adds import fuse_multiply_adds
from blocklang.passes.guard_accesses import guard_accesses
from blocklang.passes.hoist_loop_invariants import hoist_loop_invariants
from blocklang.passes.hoist_reads import hoist_reads
from blocklang.passes.insert_checks import insert_checks
from blocklang.passes.lower_to_tile import lower_to_tile
from blocklang.passes.memoise_packing import memoise_packing
from blocklang.passes.narrow_loops import narrow_loops
from blocklang.passes.note_stored_nan import note_stored_nan
from blocklang.passes.part_lanes import part_lanes
from blocklang.passes.place import place
from blocklang.passes.plan_memory import plan_memory
from blocklang.passes.poison_masked_lanes import poison_masked_lanes
from blocklang.passes.prefetch_rounds import prefetch_rounds
from blocklang.passes.schedule import Schedule, choose_schedule
from blocklang.passes.split_folds import split_folds
from blocklang.passes.split_pointers import split_pointers
from blocklang.passes.unswitch_masks import unswitch_masks
from blocklang.passes.version_strides import version_strides
from blocklang.target import Device, Target

FP_FUSION, CHECKS, NAN, POISON, AUDIT = "fp_fusion", "checks", "nan", "poison", "audit"
EMULATED = "emulated"


@dataclass(frozen=True)
class Pass:
    """A pass in its place: its name, what it does to a kernel, and why it stands here.

    Attributes:
        switch: it runs only where the launch has this switch on; always if empty.
        unless: it does not run where the launch has one of these switches on.
        is_sharing: it runs only where programs may share what they compute.
    """

    name: str
    run: Callable[[Kernel], None]
    why: str
    switch: str = ""
    unless: tuple[str, ...] = ()
    is_sharing: bool = False

    def is_on(self, switches: Collection[str]) -> bool:
        """True if it runs where these switches are on."""
        return (not self.switch or self.switch in switches) and not any(u in switches for u in self.unless)


BLOCK_PASSES: tuple[Pass, ...] = (
    Pass(
        "fuse_multiply_adds",
        fuse_multiply_adds,
        "if the launch enables it; what is fused depends on the program as written",
        switch=FP_FUSION,
    ),
    Pass(
        "poison_masked_lanes",
        poison_masked_lanes,
        "if the launch asks for it; before anything reads the 0 that such lanes hold",
        switch=POISON,
    ),
    Pass("canonicalise", canonicalise, "what is constant is folded, so that all below sees fewer forms"),
    Pass(
        "eliminate_common_subexpressions", eliminate_common_subexpressions, "equal offsets become one value"
    ),
    Pass("hoist_loop_invariants", hoist_loop_invariants, "what a loop repeats is computed once"),
    Pass("split_pointers", split_pointers, "loops carry a scalar instead of a block of pointers"),
    Pass(
        "part_lanes",
        part_lanes,
        "loops until no lane is alive become loops of lanes, without blocks; checks, devices are for blocks",
        unless=(CHECKS, EMULATED),
    ),
    Pass("canonicalise_again", canonicalise, "the split leaves additions of zero"),
    Pass("eliminate_common_subexpressions_again", eliminate_common_subexpressions, "and equal sums"),
    Pass(
        "insert_checks",
        insert_checks,
        "if the launch debugs; addresses in loops are scalars and blocks that do not change",
        switch=CHECKS,
    ),
    Pass("check_alignment", check_alignment, "under `blocklang check`; addresses are final", switch=AUDIT),
    Pass(
        "check_races",
        check_races,
        "under `blocklang check`; what lies outside of its array has no word, and has ended its program",
        switch=AUDIT,
    ),
    Pass("check_unwritten", check_unwritten, "under `blocklang check`; for the same reason", switch=AUDIT),
    Pass("check_nan", check_nan, "if the launch asks for it; what is fused is one operation", switch=NAN),
    Pass(
        "note_stored_nan",
        note_stored_nan,
        "under `blocklang check`; NaN that go nowhere are not said",
        switch=AUDIT,
    ),
    Pass(
        "continue_after_faults",
        continue_after_faults,
        "under `blocklang check`; no check is inserted behind it",
        switch=AUDIT,
    ),
    Pass("fuse_accumulators", fuse_accumulators, "acc += dot(a, b) becomes one product"),
    Pass("eliminate_dead_code", eliminate_dead_code, "the last pass that sees whole blocks"),
)

TILE_PASSES: tuple[Pass, ...] = (
    Pass("lower_to_tile", lower_to_tile, "blocks become iterations over lanes"),
    Pass("split_folds", split_folds, "what a function folds stays in the nearest cache"),
)

PLACED_PASSES: tuple[Pass, ...] = (
    Pass("cut_loops", cut_loops, "what is behind each other is computed without asking which of both"),
    Pass(
        "hoist_uniform",
        hoist_loop_invariants,
        "what lanes share leaves their loops, and can be reasoned about",
    ),
    Pass("hoist_reads", hoist_reads, "and so does what they read from one place"),
    Pass("hoist_what_is_read", hoist_loop_invariants, "with what is computed from it alone"),
    Pass("merge_uniform", eliminate_common_subexpressions, "loops compute the same addresses and bounds"),
    Pass(
        "guard_accesses",
        guard_accesses,
        "offsets become 64-bit affine forms where a test proves it; masks become bounds",
    ),
    Pass("version_strides", version_strides, "strides of the launch are known to be affine only now"),
    Pass("fold_affine", canonicalise, "affine forms leave products with one"),
    Pass("hoist_bounds", hoist_loop_invariants, "bounds and bases leave the loops"),
    Pass(
        "merge_bounds", eliminate_common_subexpressions, "equal masks must be equal values for the next pass"
    ),
    Pass("narrow_loops", narrow_loops, "loops end where their masks do"),
    Pass("unswitch_masks", unswitch_masks, "what is left of the masks of a row is asked before it"),
    Pass("expand_maths", expand_maths, "functions become arithmetic"),
    Pass("fold_placed", canonicalise, "recipes and narrowed masks fold"),
    Pass("merge_placed", eliminate_common_subexpressions, "recipes share constants and reductions"),
    Pass("hoist_placed", hoist_loop_invariants, "constants and uniform parts leave the loops"),
    Pass(
        "fuse_loops",
        fuse_loops,
        "what several loops read is read once; equal bounds are one value now",
    ),
    Pass("clean_up", eliminate_dead_code, "masks and offsets that nobody reads any more"),
    Pass("prefetch_rounds", prefetch_rounds, "which loop reads a row again is settled"),
    Pass(
        "memoise_packing",
        memoise_packing,
        "programs of a launch share what they pack; keys are fewest where all is hoisted",
        is_sharing=True,
    ),
    Pass("plan_memory", plan_memory, "buffers get their places; nothing may add one below"),
)

LEVELS = ("block", "tile", "placed")


@dataclass
class PipelineRun:
    """What a run of the pipeline leaves behind.

    Attributes:
        kernel: the placed kernel.
        schedule: the schedule that was applied.
        seconds: per pass name, the time it took.
    """

    kernel: Kernel
    schedule: Schedule
    seconds: dict[str, float] = field(default_factory=dict)


Observer = Callable[[str, Kernel], None]


def run_pipeline(
    kernel: Kernel,
    target: Target,
    *,
    schedule: Callable[[Kernel, Target], Schedule] = choose_schedule,
    verify_each: bool = False,
    observer: Observer | None = None,
    switches: Collection[str] = (),
    share: bool = True,
) -> PipelineRun:
    """Take `kernel` from level block to placed; it is changed on the way.

    Args:
        schedule: makes the schedule from the abstract form.
        verify_each: check the rules of the IR after every pass.
        observer: called with a pass's name and the kernel after it.
        switches: FP_FUSION: products and sums of floats become fused multiply-adds. CHECKS: accesses are
            checked. NAN: a NaN that is made of numbers is reported. POISON: masked lanes that no `other`
            fills hold a value that shows. AUDIT: races, unwritten elements and alignment are checked, and
            programs go on. EMULATED: it runs for a device that is not here.
        share: programs share what they pack.
    """
    seconds: dict[str, float] = {}

    def finish(name: str, started: float, current: Kernel) -> None:
        seconds[name] = time.perf_counter() - started
        if verify_each:
            verify(current)
        if observer is not None:
            observer(name, current)

    for one in BLOCK_PASSES + TILE_PASSES:
        started = time.perf_counter()
        if one.is_on(switches):
            one.run(kernel)
        finish(one.name, started, kernel)
    started = time.perf_counter()
    chosen = schedule(kernel, target)
    seconds["schedule"] = time.perf_counter() - started
    started = time.perf_counter()
    placed = place(kernel, chosen)
    finish("place", started, placed)
    for one in PLACED_PASSES:
        started = time.perf_counter()
        if share or not one.is_sharing:
            one.run(placed)
        finish(one.name, started, placed)
    return PipelineRun(placed, chosen, seconds)


def run_block_passes(kernel: Kernel, switches: Collection[str] = ()) -> None:
    """Take `kernel` through the passes for whole blocks alone; it is changed on the way."""
    for one in BLOCK_PASSES:
        if one.is_on(switches):
            one.run(kernel)


def run_device_passes(kernel: Kernel, device: Device) -> AccessCounts:
    """Take a placed kernel, its memory planned, to one that counts for a device. It is changed on the way.

    Returns:
        What the counters mean.
    """
    if "accumulator" in device.memory:
        assign_spaces(kernel)
    return count_accesses(kernel)  # last: nothing may move or fold code around counters


def pass_names() -> tuple[str, ...]:
    """The names that `--after` takes, in order."""
    before = [p.name for p in BLOCK_PASSES + TILE_PASSES]
    return (*before, "place", *(p.name for p in PLACED_PASSES))


def check_pass_name(name: str) -> str:
    """Return `name` if a pass has it.

    Raises:
        UsageError: no pass has that name; the help lists all.
    """
    if name not in pass_names():
        raise UsageError(
            f"there is no pass called {name!r}", help=f"the passes are {', '.join(pass_names())}"
        )
    return name
