"""A report from a run of the pipeline."""

from __future__ import annotations

import linecache
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from blocklang.analysis.memory_hazards import base_pointer
from blocklang.explain.access import LaneForms, way_of
from blocklang.explain.conditions import conditions_of
from blocklang.explain.report import Access, Guard, Kept, Line, Loop, Product, Report
from blocklang.explain.words import axis_of, words
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.rewriting import clone_kernel
from blocklang.ir.types import PointerType
from blocklang.ops.atomics import Atomic
from blocklang.ops.control import If
from blocklang.ops.creation import Constant
from blocklang.ops.memory import Load, Store
from blocklang.ops.tile import BufferOp, ContractBuffers, Group, InBounds, Lanes, Memoise, Memory
from blocklang.passes.narrow_loops import conjuncts
from blocklang.passes.pipeline import run_pipeline
from blocklang.passes.plan_memory import scratch_bytes
from blocklang.passes.schedule import Schedule
from blocklang.target import Target

_ACCESSES = (Load, Store, Atomic)


def explain_kernel(kernel: Kernel, target: Target) -> Report:
    """Place a kernel of level block, which is not changed, and say what became of its lines."""
    run = run_pipeline(clone_kernel(kernel), target)
    placed = run.kernel
    lines = _Lines(placed).collect()
    file = kernel.location.file or next((op.location.file for op in placed.walk()), "")
    return Report(
        kernel.name,
        file,
        target.name if target.name != "host" else target.cpu,
        str(placed.attributes.get("alias", "unknown")),
        tuple(lines),
        tuple(_kept(placed, run.schedule)),
        scratch_bytes(placed),
    )


@dataclass(frozen=True)
class _Copy:
    """One version of an access: what it would say, and where it stands."""

    op: Operation
    access: Access
    loop: Lanes | None
    is_general: bool


class _Lines:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.forms: dict[Lanes, LaneForms] = {}
        self.by_line: dict[tuple[str, int], list[Operation]] = defaultdict(list)
        for op in kernel.walk():
            if isinstance(op, (*_ACCESSES, Lanes, ContractBuffers)):
                self.by_line[op.location.file, op.location.line].append(op)

    def collect(self) -> Iterator[Line]:
        for file, number in sorted(self.by_line):
            ops = self.by_line[file, number]
            accesses = tuple(self._accesses([op for op in ops if isinstance(op, _ACCESSES)]))
            loops = [_loop(op) for op in ops if isinstance(op, Lanes) and not op.general]
            products = [_product(op) for op in ops if isinstance(op, ContractBuffers)]
            text = linecache.getline(file, number).strip()
            if accesses or loops or products:
                yield Line(
                    number, text, accesses, tuple(dict.fromkeys(loops)), tuple(dict.fromkeys(products))
                )

    # ---- accesses ----

    def _accesses(self, ops: list[Operation]) -> Iterator[Access]:
        """The fastest versions of a line's accesses; equal ones once."""
        counts: dict[Access, set[Operation | None]] = {}
        for op in ops:
            if self._is_slower_version(op):
                continue
            counts.setdefault(self._access(op), set()).add(_lanes_around(op))
        for access, loops in counts.items():
            yield Access(**{**access.__dict__, "loops": len(loops)})

    def _access(self, op: Operation) -> Access:
        loop = _lanes_around(op)
        if loop is not None and loop not in self.forms:
            self.forms[loop] = LaneForms(loop)
        forms = self.forms[loop] if loop is not None else None
        way = way_of(op, loop, forms)
        pointer = op.segment("pointer")[0]
        assert isinstance(pointer.type, PointerType)
        base = base_pointer(pointer)
        return Access(
            "load" if isinstance(op, Load) else "store" if isinstance(op, Store) else "atomic",
            base.name if base is not None else "memory",
            str(pointer.type.element),
            way.form,
            loop.width if loop is not None else 1,
            way.step,
            _mask(op, loop, forms),
            self._why(way.why, op, loop),
            0,
            tuple(self._guards(op, way.form)),
        )

    def _why(self, why: str, op: Operation, loop: Lanes | None) -> str:
        """Add why lanes run along the axis that they do."""
        if not why or loop is None or why.startswith("the address") or len(_axes(loop)) == 1:
            return why
        others = [o for o in loop.body.walk() if isinstance(o, _ACCESSES) and o is not op]
        better = [o for o in others if way_of(o, loop, self.forms[loop]).form == "consecutive"]
        axis = axis_of(loop.body.args[0])
        if better:
            what = "stores" if isinstance(better[0], Store) else "loads"
            return f"{why}; lanes run along {axis}, where line {better[0].location.line} {what} consecutively"
        return f"{why}; lanes run along {axis}: no other is known to have consecutive elements"

    def _guards(self, op: Operation, form: str) -> Iterator[Guard]:
        """The tests before the versions that hold `op`, which runs as `form`; outermost first."""
        found: list[Guard] = []
        for branch, arm in _branches_around(op):
            if arm is not branch.then_region:
                continue
            slower = self._copies_in(branch.else_region, op)
            otherwise = self._otherwise(slower) if slower else form
            if otherwise != form:  # else it is there for another access of the loop
                found.append(Guard(conditions_of(branch.condition), otherwise))
        yield from reversed(found)

    def _copies_in(self, region: Region | None, op: Operation) -> list[Operation]:
        if region is None:
            return []
        same_line = self.by_line[op.location.file, op.location.line]
        return [
            o for o in same_line if type(o) is type(op) and o.location == op.location and region.encloses(o)
        ]

    def _is_slower_version(self, op: Operation) -> bool:
        """True if `op` stands where a faster version of the same access could not run."""
        return any(
            arm is branch.else_region and self._copies_in(branch.then_region, op)
            for branch, arm in _branches_around(op)
        )

    def _otherwise(self, copies: list[Operation]) -> str:
        loops = [_lanes_around(op) for op in copies]
        if all(loop is not None and loop.general for loop in loops):
            return "the general loop, one lane a step"
        ways = [way_of(op, loop, LaneForms(loop)) for op, loop in zip(copies, loops, strict=True) if loop]
        forms = dict.fromkeys(way.form for way in ways)
        return " or ".join(forms) or "one element"


def _lanes_around(op: Operation) -> Lanes | None:
    parent = op.parent_op
    while parent is not None and not isinstance(parent, Lanes):
        parent = parent.parent_op
    return parent


def _branches_around(op: Operation) -> Iterator[tuple[If, Region]]:
    """The `if`s that hold `op`, innermost first, each with the arm."""
    region = op.parent
    while region is not None:
        parent = region.parent_op
        if isinstance(parent, If):
            yield parent, region
        region = parent.parent if parent is not None else None


def _mask(op: Operation, loop: Lanes | None, forms: LaneForms | None) -> str:
    masks = op.segment("mask") if "mask" in op.segments else []
    if not masks or isinstance(masks[0].defining_op, Constant):
        return ""
    if loop is None or forms is None:
        return f"asked: {words(masks[0])}"
    said: list[str] = []
    ends: list[str] = []
    for part in conjuncts(masks[0]):
        test = part.defining_op
        if isinstance(test, Constant):
            continue  # it holds
        if forms.of(part).is_uniform:
            said.append(f"asked once for all lanes: {words(part)}")
        elif _is_range(part, loop, forms):
            assert isinstance(test, InBounds)
            ends.append(f"{words(test.low)} to {words(test.high)}")
        else:
            said.append(f"asked lane by lane: {words(part)}")
    if ends:
        said.append(f"none in the main loop, over {' and '.join(dict.fromkeys(ends))}")
    return "; ".join(said)


def _is_range(mask: Value, loop: Lanes, forms: LaneForms) -> bool:
    """True for a range of the loop's own index: the loop is cut there (`codegen.lanes_loop`)."""
    test = mask.defining_op
    return (
        isinstance(test, InBounds)
        and test.index is loop.body.args[0]
        and forms.of(test.low).is_uniform
        and forms.of(test.high).is_uniform
    )


# ---- loops and products ----


def _axes(loop: Lanes) -> tuple[str, ...]:
    axes = [axis_of(loop.body.args[0])]
    parent = loop.parent_op
    while parent is not None:
        if isinstance(parent, Group):
            axes.append(axis_of(parent.body.args[0]))
        parent = parent.parent_op
    return tuple(reversed(axes))


def _loop(op: Lanes) -> Loop:
    return Loop(_axes(op), op.width, f"{words(op.low)} to {words(op.high)}", tuple(op.combines))


def _product(op: ContractBuffers) -> Product:
    rows, depth = op.a.type.shape
    packed = _packed(op.a), _packed(op.b)
    return Product((rows, op.b.type.shape[1], depth), (op.rows, op.columns), packed, op.form)


def _packed(operand: Value) -> str:
    memory = operand.defining_op
    name = _plain(operand.name)
    layout = "row by row"
    if isinstance(memory, Memory) and memory.panel:
        layout = f"in panels of {memory.panel} columns"
    if isinstance(memory, Memoise):
        return f"{name} packed {layout}; up to {memory.tiles} tiles shared by the programs of a launch"
    return f"{name} packed {layout}"


# ---- what is kept ----


def _kept(kernel: Kernel, schedule: Schedule) -> Iterator[Kept]:
    for op in kernel.walk():
        if not isinstance(op, (BufferOp, Memoise)):
            continue
        name = _plain(op.result.name)
        reason = schedule.kept.get(f"%{name}", "") or _reason_for(op)
        count = op.tiles if isinstance(op, Memoise) else 1
        writer = next((u for u in op.result.users if u.location.line), op)
        yield Kept(name, writer.location.line, str(op.result.type), count * op.byte_count(), reason)


def _plain(name: str) -> str:
    return name.removesuffix("_buf").removesuffix("_packed") or "a value"


def _reason_for(op: Memory) -> str:
    """Why there is memory for what no choice of the schedule keeps."""
    users = op.result.users
    if isinstance(op, Memoise):
        return f"packed for a matrix product; room for {op.tiles} tiles that programs share"
    if any(isinstance(u, ContractBuffers) and u.acc is op.result for u in users):
        return "accumulator of a matrix product"
    if any(isinstance(u, ContractBuffers) for u in users):
        return "packed for a matrix product"
    return "made by one loop, or one round of a loop, and read by another"
