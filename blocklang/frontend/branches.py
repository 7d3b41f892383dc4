"""Branches: both ways of an `if` compiled into regions, and their names merged; jumps.

A jump sets a flag in the environment. What follows a statement that may have jumped runs in the branch that
did not jump, or, where both branches may go on, under a test of the flags; since function bodies end in a
`return` and loop bodies in a `continue`, most programs need no flag at run time.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.frontend.base import Visitor
from blocklang.frontend.scope import BREAK, CONTINUE, FLAGS, RETURN, STOPPED, VALUE, Environment, Undefined
from blocklang.frontend.values import (
    describe_kind,
    hint,
    is_number,
    placeholder,
    same_compile_time,
)
from blocklang.ir import Region, Value
from blocklang.language.arithmetic import logical, logical_not
from blocklang.language.compound import children, is_alike, remake
from blocklang.language.tensor import tensor, to_tensor
from blocklang.ops.control import If, Yield

MISSING = Undefined("is not defined", "assign it first")


def discard(region: Region) -> None:
    """Forget what was recorded in a region."""
    for op in list(region.walk()):
        op.drop_operands()


@dataclass
class Path:
    """One way through an `if`: its region, and the names at its end."""

    region: Region
    env: Environment
    name: str

    @property
    def stopped(self) -> bool:
        return bool(self.env.get(STOPPED))

    @property
    def returned(self) -> bool:
        return self.env.get(RETURN) is True


@dataclass(frozen=True)
class _Slot:
    """The place of a merged leaf among the results of an `if`."""

    index: int


class _Merge:
    """Brings the values of two paths together; run-time leaves that differ become results of the `if`."""

    def __init__(self, visitor: Visitor, paths: tuple[Path, Path]) -> None:
        self.visitor = visitor
        self.paths = paths
        self.yields: tuple[list[Value], list[Value]] = ([], [])

    def value(self, name: str, a: Any, b: Any) -> Any:
        """The merged tree, with a `_Slot` for each leaf that differs."""
        if a is b:
            return a
        for mine, other, path in ((a, b, self.paths[0]), (b, a, self.paths[1])):
            if isinstance(mine, Undefined):
                return self._one_sided(name, other, path, mine)
        if is_alike(a, b):
            pairs = zip(children(a) or (), children(b) or (), strict=True)
            return remake(a, [self.value(name, x, y) for x, y in pairs])
        if not isinstance(a, tensor) and not isinstance(b, tensor) and same_compile_time(a, b):
            return a
        return self._leaf(name, a, b)

    def _one_sided(self, name: str, other: Any, path: Path, missing: Undefined) -> Any:
        if not path.stopped and name != VALUE:
            return missing if isinstance(other, Undefined) else self._undefined(name, path)
        if isinstance(other, Undefined):
            return other
        return self._all_leaves(other, path)

    def _all_leaves(self, value: Any, stopped: Path) -> Any:
        items = children(value)
        if items is not None:
            return remake(value, [self._all_leaves(v, stopped) for v in items])
        if not isinstance(value, tensor):
            return value
        live = self.paths[1] if stopped is self.paths[0] else self.paths[0]
        return self._slot(value, live, stopped)

    def _slot(self, value: tensor, live: Path, stopped: Path) -> _Slot:
        with self.visitor.builder.at(stopped.region):
            filler = placeholder(value.value.type)
        first = live is self.paths[0]
        self.yields[0].append((value if first else filler).value)
        self.yields[1].append((filler if first else value).value)
        return _Slot(len(self.yields[0]) - 1)

    def _undefined(self, name: str, path: Path) -> Undefined:
        assigned = "does not hold" if path is self.paths[0] else "holds"
        return Undefined(
            f"is assigned only if the condition on line {self.visitor.builder.location.line} {assigned}",
            f"assign `{name}` before the `if`, or in both branches",
        )

    def _leaf(self, name: str, a: Any, b: Any) -> Any:
        first, second = (self._as_tensor(v, p) for v, p in zip((a, b), self.paths, strict=True))
        if first is not None and second is not None and first.value.type == second.value.type:
            self.yields[0].append(first.value)
            self.yields[1].append(second.value)
            return _Slot(len(self.yields[0]) - 1)
        for path, live, value in ((0, 1, b), (1, 0, a)):
            if name != VALUE and self.paths[path].returned and not self.paths[live].returned:
                return self._all_leaves(value, self.paths[path])
        what = "the returned value" if name == VALUE else f"`{name}`"
        raise CompilationError(
            f"{what} is {describe_kind(a)} {self.paths[0].name}, but {describe_kind(b)} {self.paths[1].name}",
            help="both paths must give one type; cast with `.to(...)`, or use two names",
        )

    def _as_tensor(self, value: Any, path: Path) -> tensor | None:
        if isinstance(value, tensor):
            return value
        if not is_number(value):
            return None
        with self.visitor.builder.at(path.region):
            return to_tensor(value)


class Branches(Visitor):
    """Lists of statements, branches and jumps."""

    def take_rest(self) -> list[ast.stmt]:
        """The statements after the current one, for a statement that compiles them itself."""
        rest, self._rest = self._rest, []
        return rest

    def statements(self, body: list[ast.stmt]) -> None:
        """Compile a list of statements, as far as control gets."""
        for position, statement in enumerate(body):
            if self.frame.stopped():
                return
            if self.pending() is not None:
                self._guarded(body[position:])
                return
            if self.statement(statement, body[position + 1 :]):
                return

    def statement(self, node: ast.stmt, rest: list[ast.stmt]) -> bool:
        """Compile a statement; True if it has compiled the rest of its list too."""
        self._rest = rest
        return self.visit(node) is True

    def pending(self) -> tensor | None:
        """Whether control has left, where only the run can tell; None if it is here for sure."""
        flags = [self.env[name] for name in FLAGS if isinstance(self.env.get(name), tensor)]
        left: tensor | None = None
        for flag in flags:
            left = flag if left is None else logical("or", left, flag)
        return left

    def _guarded(self, rest: list[ast.stmt]) -> None:
        """Compile statements that run only if control has not left."""
        pending = self.pending()
        assert pending is not None

        def go_on() -> None:
            self.frame.reset_flags()
            self.statements(rest)

        unknown = [name for name in FLAGS if isinstance(self.env[name], tensor)]

        def left() -> None:
            self.env[STOPPED] = True
            if len(unknown) == 1:
                self.env[unknown[0]] = True

        self.branches(logical_not(pending), go_on, left)

    def branches(
        self,
        condition: tensor,
        then: Callable[[], None],
        otherwise: Callable[[], None],
        rest: list[ast.stmt] | None = None,
    ) -> bool:
        """Compile both ways of an `if` on a run-time condition, and merge their names.

        Args:
            rest: the statements after the `if`. If exactly one branch leaves, they are compiled in the other
                one.

        Returns:
            True if `rest` has been compiled.
        """
        paths: list[Path] = []
        for compile_path, name in ((then, "where the condition holds"), (otherwise, "where it does not")):
            region, env = Region(), dict(self.env)
            with self.branch(region, env):
                compile_path()
                paths.append(Path(region, self.frame.env, name))
        consumed = False
        if rest and paths[0].stopped != paths[1].stopped:
            staying = paths[1] if paths[0].stopped else paths[0]
            with self.branch(staying.region, staying.env):
                self.statements(rest)
                staying.env = self.frame.env
            consumed = True
        self._merge(condition, (paths[0], paths[1]))
        return consumed

    def _merge(self, condition: tensor, paths: tuple[Path, Path]) -> None:
        merge = _Merge(self, paths)
        merged: Environment = {}
        for name in self._merged_names(paths):
            a, b = (p.env.get(name, False if name in FLAGS else MISSING) for p in paths)
            merged[name] = merge.value(name, a, b)
        results = self._make_if(condition, paths, merge)

        def fill(value: Any) -> Any:
            if isinstance(value, _Slot):
                return tensor(results[value.index])
            items = children(value)
            return value if items is None else remake(value, [fill(v) for v in items])

        env = {name: fill(value) for name, value in merged.items()}
        for name, value in env.items():
            hint(value, name.strip("<>"))
        env[STOPPED] = paths[0].stopped and paths[1].stopped
        env.setdefault(CONTINUE, env[STOPPED] and bool(self.frame.loops))
        self.frame.env = env

    def _merged_names(self, paths: tuple[Path, Path]) -> Iterable[str]:
        names = dict.fromkeys([*paths[0].env, *paths[1].env])
        names.pop(STOPPED, None)
        if not all(p.stopped for p in paths):
            return names
        # Nothing below runs: only what the target of the jump reads.
        wanted = {BREAK, RETURN, VALUE}  # a round that ends is the same by `continue` and by its last line
        if self.frame.loops:
            carried = self.frame.loops[-1].carried
            wanted |= set(names) if carried is None else carried
        return [n for n in names if n in wanted]

    def _make_if(self, condition: tensor, paths: tuple[Path, Path], merge: _Merge) -> list[Value]:
        types = [v.type for v in merge.yields[0]]
        for path, values in zip(paths, merge.yields, strict=True):
            with self.builder.at(path.region):
                self.builder.create(Yield, values)
        regions = [p.region for p in paths]
        if not types and len(regions[1].ops) == 1:
            if len(regions[0].ops) == 1:
                return []  # neither path does anything
            regions = regions[:1]
        op = self.builder.create(If, condition.value, result_types=types, regions=regions)
        return op.results
