"""Random Python functions of integers, for comparing compiled control flow with CPython's.

Every assigned value is masked to a small range, and every loop ends: ranges are short and `while` burns fuel.
    A program is
drawn from a seed, which names it: small depths come first, so that the first failing seed is a short program.
"""

from __future__ import annotations

from random import Random

NAMES = ("a", "b", "c")
_INDENT = "    "
_PREDICATES = ("<", "<=", ">", ">=", "==", "!=")


def program(seed: int) -> str:
    """The text of `def program(a, b, c, s)`, which returns three integers; `s` is a step, never 0."""
    writer = _Writer(Random(seed), depth=1 + seed % 3)
    body = ["fuel = 6", "i = 0", *writer.block(writer.depth, in_loop=False), "return a, b, c"]
    return "\n".join(["def program(a, b, c, s):", *_indented(body)]) + "\n"


def _indented(lines: list[str]) -> list[str]:
    return [_INDENT + line for line in lines]


class _Writer:
    def __init__(self, random: Random, depth: int) -> None:
        self.random = random
        self.depth = depth

    # ---- expressions ----

    def expression(self, depth: int = 2) -> str:
        if depth == 0 or self.random.random() < 0.4:
            return self.random.choice([*NAMES, *NAMES, str(self.random.randint(-3, 9))])
        x, y = self.expression(depth - 1), self.expression(depth - 1)
        match self.random.randrange(5):
            case 0 | 1:
                return f"({x} {self.random.choice('+-*&|^')} {y})"
            case 2:
                return f"{self.random.choice(['min', 'max'])}({x}, {y})"
            case 3:
                return f"({x} if {self.condition(depth - 1)} else {y})"
        return self.random.choice([f"({x} {self.random.choice(['and', 'or'])} {y})", f"(-{x})"])

    def condition(self, depth: int = 1) -> str:
        x, y, z = (self.expression(depth) for _ in range(3))
        p, q = (self.random.choice(_PREDICATES) for _ in range(2))
        match self.random.randrange(6):
            case 0 | 1:
                return f"{x} {p} {y}"
            case 2:
                return f"{x} {p} {y} {q} {z}"
            case 3:
                return x
            case 4:
                return f"not ({x} {p} {y})"
        return f"{x} {p} {y} {self.random.choice(['and', 'or'])} {y} {q} {z}"

    # ---- statements ----

    def block(self, depth: int, *, in_loop: bool) -> list[str]:
        count = self.random.randint(1, 3)
        return [line for _ in range(count) for line in self.statement(depth, in_loop=in_loop)]

    def statement(self, depth: int, *, in_loop: bool) -> list[str]:
        simple = ["assign", "assign", "augment", "swap"]
        jumps = ["return", *(["break", "continue", "break", "continue"] if in_loop else [])]
        compound = ["if", "if", "if", "for", "for", "while", "while", "static"] if depth else []
        match self.random.choice([*simple, *jumps, *compound]):
            case "assign":
                return [f"{self.random.choice(NAMES)} = ({self.expression()} & 15) - 4"]
            case "augment":
                name = self.random.choice(NAMES)
                return [f"{name} += {self.expression()}", f"{name} = {name} & 15"]
            case "swap":
                return ["a, b = b, a"]
            case "if":
                return self._branches(depth, in_loop=in_loop)
            case "for":
                return self._loop(self._for_head(), depth, in_loop=in_loop)
            case "static":
                return self._loop(
                    f"for i in static_range({self.random.randint(0, 3)}):", depth, in_loop=in_loop
                )
            case "while":
                head, *rest = self._loop(f"while fuel > 0 and ({self.condition()}):", depth, in_loop=in_loop)
                return [head, f"{_INDENT}fuel -= 1", *rest]
            case "return":
                return [f"return a, b, {self.expression()}"]
            case jump:
                return [jump]

    def _branches(self, depth: int, *, in_loop: bool) -> list[str]:
        lines = [f"if {self.condition()}:", *_indented(self.block(depth - 1, in_loop=in_loop))]
        if self.random.random() < 0.3:
            lines += [f"elif {self.condition()}:", *_indented(self.block(depth - 1, in_loop=in_loop))]
        if self.random.random() < 0.5:
            lines += ["else:", *_indented(self.block(depth - 1, in_loop=in_loop))]
        return lines

    def _for_head(self) -> str:
        index = self.random.choice([*NAMES, "i", "i"])
        start, stop = self.random.choice([*NAMES, "0", "-2"]), self.random.choice([*NAMES, "3"])
        return f"for {index} in range({start}, {stop}, {self.random.choice(['1', '2', '-1', '-3', 's'])}):"

    def _loop(self, head: str, depth: int, *, in_loop: bool) -> list[str]:
        lines = [head, *_indented(self.block(depth - 1, in_loop=True))]
        if self.random.random() < 0.4:
            lines += ["else:", *_indented(self.block(depth - 1, in_loop=in_loop))]
        return lines
