"""Place control flow: scalars stay values, blocks that are carried or chosen get buffers.

Blocks that a loop carries are updated all at once at its end, as Python's parallel assignment is; where an
update may read lanes that another has written already, the new values are staged in buffers of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from blocklang.ir.core import Operation, Region, Value
from blocklang.ir.types import BlockType, as_shaped, shape_of
from blocklang.ops.control import Condition, For, If, While, Yield
from blocklang.ops.tile import Contract, Iterate
from blocklang.passes.placing.contractions import pack_operands_outside
from blocklang.passes.placing.nests import Nests
from blocklang.passes.schedule import is_producer

PlaceRegion = Callable[[Region], None]


@dataclass(frozen=True)
class RegionReads:
    """What the regions of an operation read.

    Attributes:
        values: those from outside, in the order in which they are read first.
        contracts: the matrix products inside, in order.
    """

    values: Sequence[Value]
    contracts: Sequence[Contract]


class ControlFlowPlacement:
    """Places `for`, `while` and `if` of one kernel.

    Args:
        nests: what has been placed.
        place_region: places the operations of a region, but for its terminator.
    """

    def __init__(self, nests: Nests, place_region: PlaceRegion) -> None:
        self.nests = nests
        self.place_region = place_region
        self._reads: dict[Operation, RegionReads] = {}

    def for_loop(self, op: For) -> None:
        self.prepare_for_regions(op)
        buffers = self.carried_buffers(op.outputs, op.inits)
        carried = list(zip(op.body.args[1:], op.outputs, op.inits, buffers, strict=True))
        scalars = [(arg, out, init) for arg, out, init, buf in carried if buf is None]
        region = Region([op.body.args[0].type, *(a.type for a, _, _ in scalars)])
        for new, old in zip(region.args, [op.body.args[0], *(a for a, _, _ in scalars)], strict=True):
            new.name = old.name
            self.nests.scalars[old] = new
        for arg, out, _, buf in carried:
            if buf is not None:
                self.nests.buffers[arg] = self.nests.buffers[out] = buf
        with self.nests.builder.at(region):
            self.place_region(op.body)
            yielded = op.body.terminator.operands
            self.update_carried(
                [(b, a, y) for (a, _, _, b), y in zip(carried, yielded, strict=True) if b is not None]
            )
            kept = [
                self.nests.scalars[y] for (_, _, _, b), y in zip(carried, yielded, strict=True) if b is None
            ]
            self.nests.builder.create(Yield, *kept)
        bounds = [self.nests.scalars[v] for v in (op.start, op.stop, op.step)]
        new_op = self.nests.builder.create(
            For,
            *bounds,
            inits=[self.nests.scalars[i] for _, _, i in scalars],
            result_types=[o.type for _, o, _ in scalars],
            regions=[region],
            **op.attributes,
        )
        self.bind_results([o for _, o, _ in scalars], new_op)

    def while_loop(self, op: While) -> None:
        self.prepare_for_regions(op)
        buffers = self.carried_buffers(op.before.args, op.inits)
        for arg, buf in zip(op.before.args, buffers, strict=True):
            if buf is not None:
                self.nests.buffers[arg] = buf
        passed = op.before.terminator.operands[1:]
        results = [
            self.nests.buffer(o.type, o.name or "passed") if isinstance(o.type, BlockType) else None
            for o in op.outputs
        ]
        scalar_args = [a for a, b in zip(op.before.args, buffers, strict=True) if b is None]
        before = Region([a.type for a in scalar_args], [a.name for a in scalar_args])
        self.nests.scalars.update(zip(scalar_args, before.args, strict=True))
        with self.nests.builder.at(before):
            self.place_region(op.before)
            self.nests.write_blocks([(r, p) for r, p in zip(results, passed, strict=True) if r is not None])
            scalars = [self.nests.scalars[p] for r, p in zip(results, passed, strict=True) if r is None]
            self.nests.builder.create(
                Condition, self.nests.scalars[op.before.terminator.operands[0]], scalars
            )
        for arg, out, result in zip(op.after.args, op.outputs, results, strict=True):
            if result is not None:
                self.nests.buffers[arg] = self.nests.buffers[out] = result
        scalar_args = [a for a, r in zip(op.after.args, results, strict=True) if r is None]
        after = Region([a.type for a in scalar_args], [a.name for a in scalar_args])
        self.nests.scalars.update(zip(scalar_args, after.args, strict=True))
        with self.nests.builder.at(after):
            self.place_region(op.after)
            yielded = op.after.terminator.operands
            updates = zip(buffers, op.before.args, yielded, strict=True)
            self.update_carried([(b, a, y) for b, a, y in updates if b is not None])
            kept = [self.nests.scalars[y] for b, y in zip(buffers, yielded, strict=True) if b is None]
            self.nests.builder.create(Yield, *kept)
        inits = [self.nests.scalars[i] for b, i in zip(buffers, op.inits, strict=True) if b is None]
        outputs = [o for o, r in zip(op.outputs, results, strict=True) if r is None]
        new_op = self.nests.builder.create(
            While, inits, result_types=[o.type for o in outputs], regions=[before, after]
        )
        self.bind_results(outputs, new_op)

    def conditional(self, op: If) -> None:
        self.prepare_for_regions(op)
        targets = [
            self.nests.buffer(o.type, o.name or "chosen") if isinstance(o.type, BlockType) else None
            for o in op.outputs
        ]
        regions: list[Region] = []
        for branch in op.regions:
            region = Region()
            with self.nests.builder.at(region), self.branch_scope():
                self.place_region(branch)
                yielded = branch.ops[-1].operands
                self.nests.write_blocks(
                    [(t, y) for t, y in zip(targets, yielded, strict=True) if t is not None]
                )
                scalars = [self.nests.scalars[y] for t, y in zip(targets, yielded, strict=True) if t is None]
                self.nests.builder.create(Yield, *scalars)
            regions.append(region)
        outputs = [o for o, t in zip(op.outputs, targets, strict=True) if t is None]
        for out, target in zip(op.outputs, targets, strict=True):
            if target is not None:
                self.nests.buffers[out] = target
        condition = self.nests.scalars[op.condition]
        new_op = self.nests.builder.create(
            If, condition, result_types=[o.type for o in outputs], regions=regions
        )
        self.bind_results(outputs, new_op)

    def prepare_for_regions(self, op: Operation) -> None:
        """Give buffers to kept values and packed operands from outside that `op`'s regions read."""
        read = self.reads_of(op)
        wanted = self._kept_of(read.values)
        for contract in read.contracts:
            pack_operands_outside(self.nests, contract, op)
        for value in wanted:
            self.nests.materialise(value)

    def reads_of(self, op: Operation) -> RegionReads:
        """What `op`'s regions read. Nested operations are asked once, however deep they are nested."""
        if op not in self._reads:
            read: dict[Value, None] = {}
            defined: set[Value] = set()
            contracts: list[Contract] = []
            for region in op.regions:
                defined.update(region.args)
                for inner in region.ops:
                    read.update(dict.fromkeys(inner.operands))
                    defined.update(inner.results)
                    if isinstance(inner, Contract):
                        contracts.append(inner)
                    elif inner.regions:
                        nested = self.reads_of(inner)
                        read.update(dict.fromkeys(nested.values))
                        contracts += nested.contracts
            self._reads[op] = RegionReads([v for v in read if v not in defined], contracts)
        return self._reads[op]

    def _kept_of(self, values: Sequence[Value]) -> list[Value]:
        """What is kept of what `values` are computed from, itself included, and has no buffer yet."""
        wanted: list[Value] = []
        seen: set[Value] = set()
        for value in values:
            stack = [value]
            while stack:
                current = stack.pop()
                producer = current.defining_op
                if current in seen or producer is None or current in self.nests.buffers:
                    continue
                seen.add(current)
                if not is_producer(current):
                    continue
                if self.nests.is_kept(current):
                    wanted.append(current)
                else:
                    stack += producer.operands
        return wanted

    def carried_buffers(self, values: Sequence[Value], inits: Sequence[Value]) -> list[Value | None]:
        """A buffer for each carried block, filled with its initial value; None for scalars."""
        found: list[Value | None] = []
        for value, init in zip(values, inits, strict=True):
            if not isinstance(value.type, BlockType):
                found.append(None)
                continue
            target = self.nests.buffer(value.type, value.name or "carried", panel=0)
            self.nests.write_blocks([(target, init)])
            found.append(target)
        return found

    def bind_results(self, old: Sequence[Value], new_op: Operation) -> None:
        for value, result in zip(old, new_op.results, strict=True):
            result.name = value.name
            self.nests.scalars[value] = result

    @contextmanager
    def branch_scope(self) -> Iterator[None]:
        """Buffers that are filled inside a region count as filled only there."""
        buffers, packed = dict(self.nests.buffers), dict(self.nests.packed)
        yield
        self.nests.buffers, self.nests.packed = buffers, packed

    def update_carried(self, updates: Sequence[tuple[Value, Value, Value]]) -> None:
        """Set carried buffers to their next values, all at once: (buffer, current value, next value)."""
        pending = [
            (buf, arg, new)
            for buf, arg, new in updates
            if new is not arg and self.nests.buffers.get(new) is not buf
        ]
        buffers = {buf for buf, _, _ in pending}
        shapes = {shape_of(new.type) for _, _, new in pending}
        if len(shapes) <= 1 and all(self.reads_own_lanes(new, buffers) for _, _, new in pending):
            self.nests.write_blocks([(buf, new) for buf, _, new in pending])
            return
        staged = [
            (buf, self.nests.buffer(as_shaped(new.type), f"{new.name}_next"), new) for buf, _, new in pending
        ]
        for _, stage, new in staged:
            self.nests.write_blocks([(stage, new)])
        for buf, stage, _ in staged:
            self.nests.copy_buffer(buf, stage)

    def reads_own_lanes(self, value: Value, buffers: set[Value]) -> bool:
        """True if computing a lane of `value` reads no other lane of any of `buffers`."""
        rank = len(shape_of(value.type))
        stack: list[tuple[Value, bool]] = [(value, True)]
        seen: set[tuple[Value, bool]] = set()
        while stack:
            current, aligned = stack.pop()
            if (current, aligned) in seen:
                continue
            seen.add((current, aligned))
            if current in self.nests.buffers:
                if self.nests.buffers[current] in buffers and not aligned:
                    return False
                continue
            op = current.defining_op
            if isinstance(op, Iterate):
                same = len(op.space) == rank
                stack += [
                    (v, aligned and same and m.is_identity) for v, m in zip(op.inputs, op.maps, strict=True)
                ]
        return True
