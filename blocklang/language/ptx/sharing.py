"""Which elements of a pack each bit of a register depends on.

A pack is computed as if all its elements were one (see `inline_asm`), which is right if every result depends
on its own element alone. This walk over the program follows bits: moves, logic, and shifts by numbers in the
text keep them apart, pairs keep their halves apart, and everything else mixes all bits of its operands.
"""

from __future__ import annotations

from functools import reduce

from blocklang.language.ptx.syntax import Instruction, Operand, Program, refuse
from blocklang.language.ptx.values import integer_immediate, width_of

# For each bit, from the lowest, the set of elements as a mask of bits.
Sources = list[int]
_MIXED_BY_BITS = frozenset({"and", "or", "xor", "not", "lop3", "mov", "selp"})


def check_independence(
    program: Program,
    types: dict[str, str],
    holders: dict[str, tuple[int, int, int]],
    places: list[tuple[int, int]],
    pack: int,
) -> None:
    """Raise CompilationError unless every element of every result depends on its own element alone.

    Args:
        holders: for each input register the width of its elements, its number among the argument's registers,
            and its own width.
        places: for each result the width of its elements, and how many registers it has.
    """
    walk = _Walk({**program.declared, **types})
    for name, (width, part, whole) in holders.items():
        each = whole // width if width < 32 else 1
        elements = [part * each + bit // width for bit in range(whole)] if width < 32 else [part] * whole
        walk.contents[name] = [1 << element if element < pack else 0 for element in elements]
    for instruction in program.instructions:
        walk.run(instruction)
    index = 0
    for width, count in places:
        for part in range(count):
            sources = walk.contents.get(f"${index}", [])
            each = len(sources) // width if width < 32 else 1
            for bit, found in enumerate(sources):
                element = part * each + bit // width if width < 32 else part
                if element < pack and found & ~(1 << element):
                    raise refuse(
                        f"pack={pack} for this text",
                        f"element {element} of a result depends on another element of its pack",
                    )
            index += 1


class _Walk:
    def __init__(self, types: dict[str, str]) -> None:
        self.types = types
        self.contents: dict[str, Sources] = {}

    def read(self, operand: Operand, width: int) -> Sources:
        if operand.parts:
            found = [s for p in operand.parts for s in self.read(p, width_of(self.types[p.name]))]
        else:
            found = list(self.contents.get(operand.name, [0] * width))
        return (found + [0] * width)[:width]

    def write(self, operand: Operand, sources: Sources, guard: int) -> None:
        if operand.parts:
            size = len(sources) // len(operand.parts)
            for i, part in enumerate(operand.parts):
                self.write(part, sources[i * size : (i + 1) * size], guard)
            return
        if operand.name in self.types:
            width = width_of(self.types[operand.name])
            # A narrower result is extended, perhaps by its sign.
            padded = (sources + [sources[-1] if sources else 0] * width)[:width]
            old = self.contents.get(operand.name, [0] * width) if guard else [0] * width
            self.contents[operand.name] = [s | guard | o for s, o in zip(padded, old, strict=True)]

    def run(self, instruction: Instruction) -> None:
        guard = 0
        if instruction.predicate is not None:
            guard = self.read(instruction.predicate, 1)[0]
        sized = [m for m in instruction.modifiers if m in _WIDTHS]
        widths = [_WIDTHS[m] for m in sized] or [32]
        results = 2 if instruction.opcode == "setp" and len(instruction.operands) > 3 else 1
        operands = instruction.operands[results:]
        sources = self.computed(instruction, operands, widths, sized)
        for result in instruction.operands[:results]:
            self.write(result, sources, guard)
        if guard == 0 and instruction.predicate is not None:
            return

    def computed(
        self, instruction: Instruction, operands: tuple[Operand, ...], widths: list[int], types: list[str]
    ) -> Sources:
        opcode, width = instruction.opcode, widths[0]
        if opcode == "cvt":
            return self.converted(operands, widths, types)
        read = [self.read(operand, width) for operand in operands]
        if opcode in ("and", "or", "lop3"):
            number = next((n for n in map(integer_immediate, operands[:2]) if n is not None), None)
            if opcode == "and" and number is not None:
                return [s if number >> bit & 1 else 0 for bit, s in enumerate(_joined(read, width))]
            if opcode == "lop3":
                return self.looked_up(operands, read, width)
        if opcode in _MIXED_BY_BITS:
            return _joined(read, width)
        count = integer_immediate(operands[1]) if len(operands) > 1 else None
        if opcode in ("shl", "shr") and count is not None:
            if opcode == "shl":
                return ([0] * count + read[0])[:width]
            above = read[0][-1] if instruction.modifiers[-1].startswith("s") else 0
            return (read[0][count:] + [above] * count)[:width]
        if opcode == "bfe" and count is not None:
            size = integer_immediate(operands[2])
            if size is not None:
                kept = read[0][count : count + size]
                above = kept[-1] if kept and instruction.modifiers[-1].startswith("s") else 0
                return (kept + [above] * width)[:width]
        if opcode == "prmt":
            selector = integer_immediate(operands[2])
            if selector is not None:
                source = read[0] + read[1]
                chosen = [selector >> (4 * i) & 15 for i in range(4)]
                return [source[8 * (c & 7) + (7 if c & 8 else bit)] for c in chosen for bit in range(8)]
        if types and types[0].endswith("x2"):
            low = _all([s for sources in read for s in sources[:16]])
            high = _all([s for sources in read for s in sources[16:]])
            return [low] * 16 + [high] * 16
        if opcode in ("add", "sub", "mul", "mad") and types and types[0][0] in "sub":
            return self.carried(read, width, instruction)
        return [_all([s for sources in read for s in sources])] * (
            64 if "wide" in instruction.modifiers else width
        )

    @staticmethod
    def carried(read: list[Sources], width: int, instruction: Instruction) -> Sources:
        """Sums and low products: a bit depends on all that are not above it."""
        if "wide" in instruction.modifiers or "hi" in instruction.modifiers:
            return [_all([s for sources in read for s in sources])] * (2 * width)
        found, below = [], 0
        for bits in zip(*read, strict=True):
            below |= _all(list(bits))
            found.append(below)
        return found

    def looked_up(self, operands: tuple[Operand, ...], read: list[Sources], width: int) -> Sources:
        """lop3: where the numbers among its operands decide a bit, it depends on nothing."""
        table = integer_immediate(operands[3]) or 0
        numbers = [integer_immediate(operand) for operand in operands[:3]]
        result = []
        for bit in range(width):
            found = 0
            for position in range(3):
                if numbers[position] is None and _matters(table, position, numbers, bit):
                    found |= read[position][bit]
            result.append(found)
        return result

    def converted(self, operands: tuple[Operand, ...], widths: list[int], types: list[str]) -> Sources:
        if types[0].endswith("x2"):
            high, low = (_all(self.read(operand, widths[1])) for operand in operands)
            return [low] * 16 + [high] * 16
        source = self.read(operands[0], widths[-1])
        if all(t[0] in "su" for t in types):
            above = source[-1] if types[-1][0] == "s" else 0
            return (source + [above] * widths[0])[: widths[0]]
        return [_all(source)] * widths[0]


def _matters(table: int, position: int, numbers: list[int | None], bit: int) -> bool:
    """Whether the operand at a position can change a bit of lop3, given the operands that are numbers."""
    for row in range(8):
        values = [row >> (2 - i) & 1 for i in range(3)]
        fixed = all(n is None or (n >> bit & 1) == v for n, v in zip(numbers, values, strict=True))
        other = row ^ (1 << (2 - position))
        if fixed and (table >> row & 1) != (table >> other & 1):
            return True
    return False


def _all(sources: Sources) -> int:
    return reduce(lambda a, b: a | b, sources, 0)


def _joined(read: list[Sources], width: int) -> Sources:
    return [_all([sources[bit] for sources in read]) for bit in range(width)]


_WIDTHS = {
    **{f"{kind}{bits}": bits for kind in "sub" for bits in (8, 16, 32, 64)},
    "f16": 16,
    "bf16": 16,
    "f16x2": 32,
    "bf16x2": 32,
    "f32": 32,
    "f64": 64,
    "pred": 1,
}
