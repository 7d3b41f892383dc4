"""What a loop carries from round to round: names that its body assigns, and the flags that end it.

Region arguments are made before the body is compiled, from the names that it may assign; those that it hands
on unchanged are dropped afterwards, and the flags and a returned value are added once they turn out to be
needed.
"""

from __future__ import annotations

import ast
from collections.abc import Container
from typing import Any

from blocklang.frontend.base import Visitor
from blocklang.frontend.branches import MISSING
from blocklang.frontend.scope import BREAK, FLAGS, RETURN, STOPPED, VALUE, Environment, Undefined
from blocklang.frontend.values import (
    describe_kind,
    hint,
    is_number,
    leaves,
    placeholder,
    rebuild,
    same_compile_time,
)
from blocklang.ir import Region, Value
from blocklang.ir.types import Type
from blocklang.language import dtypes as tl
from blocklang.language.compound import Compound, children
from blocklang.language.constexpr import constexpr, unwrap
from blocklang.language.tensor import constant, tensor, to_tensor


class Carry:
    """The carried values of one loop.

    Args:
        visitor: at the place before the loop.
        assigned: the names that the loop may assign, each with the place.
        index: the names of the loop's target, which may change their type in it, and the type of the index.

    Attributes:
        names: the carried names, each with the tree of its value before the loop.
        inits: the run-time leaves before the loop; those of the names, then flags, then a returned value.
        labels: a name for each of `inits`.
        flags: the places of the flags among `inits`.
    """

    def __init__(
        self, visitor: Visitor, assigned: dict[str, ast.AST], index: tuple[Container[str], Type] | None = None
    ) -> None:
        self.visitor = visitor
        self.assigned = assigned
        self.names: dict[str, Any] = {}
        self.inits: list[tensor] = []
        self.labels: list[str] = []
        self.flags: dict[str, int] = {}
        self._before = visitor.env
        self._home = visitor.builder.region
        self._entered: list[tuple[Region, list[Value]]] = []
        self._replaced: dict[Value, Value] = {}
        self._kept: list[bool] = []
        self._returned: tuple[Any, int] | None = None
        self._retyped: set[str] = set()
        for name in assigned:
            self._add_name(name, index)

    def _add_name(self, name: str, index: tuple[Container[str], Type] | None) -> None:
        before = self._before.get(name, MISSING)
        if isinstance(before, constexpr) and before.type is None:
            return  # a compile-time name: `leave` checks that it stays what it is
        if is_number(before):
            before = self._before[name] = to_tensor(before)
        if index is not None and name in index[0] and not _has_type(before, index[1]):
            self._retyped.add(name)
            return
        found = list(leaves(before))
        if found:
            self.names[name] = before
            self.inits += found
            self.labels += [name] * len(found)

    def enter(self, region: Region) -> Environment:
        """Add an argument for each carried leaf to a region; the result is the environment inside."""
        args: list[Value] = []
        env = dict(self._before)
        for name, before in self.names.items():

            def argument(leaf: tensor, name: str = name) -> tensor:
                args.append(region.add_argument(leaf.value.type, name))
                return tensor(args[-1])

            env[name] = rebuild(before, argument)
        self._entered.append((region, args))
        env |= dict.fromkeys(FLAGS, False)
        env[STOPPED] = False
        return env

    def leave(self, ends: Environment) -> list[tensor]:
        """What the body, the region entered last, hands to the next round, in the order of `inits`.

        Raises:
            CompilationError: a name has another type or compile-time value than before the loop.
        """
        yields: list[tensor] = []
        for name, before in self.names.items():
            yields += self._carried(name, before, ends.get(name, MISSING))
        self._check_compile_time(ends)
        yields = self._drop_unchanged(yields)
        for flag in (BREAK, RETURN):
            if ends.get(flag, False) is not False:
                self.flags[flag] = len(self.inits)
                self._append(to_tensor(ends[flag]), yields, flag.strip("<>"))
        if RETURN in self.flags and VALUE in ends:
            value = to_tensor(ends[VALUE]) if is_number(ends[VALUE]) else ends[VALUE]
            self._returned = value, len(self.inits)
            for leaf in leaves(value):
                self._append(leaf, yields, "value")
        return [self.current(v) for v in yields]

    def current(self, value: tensor) -> tensor:
        """The value, or what stands for it if it was an argument that is no longer carried."""
        return tensor(self._replaced.get(value.value, value.value))

    def _carried(self, name: str, before: Any, after: Any) -> list[tensor]:
        if isinstance(before, tensor) and is_number(after):
            after = to_tensor(after)
        types = [[leaf.value.type for leaf in leaves(v)] for v in (before, after)]
        if isinstance(after, Undefined) or _outline(before) != _outline(after) or types[0] != types[1]:
            now = f"{after.reason}" if isinstance(after, Undefined) else f"has type {describe_kind(after)}"
            self.visitor.fail(
                f"Loop-carried variable `{name}` has initial type {describe_kind(before)} before the loop, "
                f"but {now} after a round of it",
                help=f"give `{name}` its final type before the loop, cast with `.to(...)` inside "
                "it, or use two names",
                at=self.assigned[name],
            )
        return list(leaves(after))

    def _check_compile_time(self, ends: Environment) -> None:
        for name in self.assigned:
            before, after = self._before.get(name, MISSING), ends.get(name, MISSING)
            if (
                name in self.names
                or name in self._retyped
                or isinstance(before, Undefined)
                or before is after
            ):
                continue
            if isinstance(after, tensor) or not same_compile_time(before, after):
                self.visitor.fail(
                    f"`{name}` is {describe_kind(before)}, known at compile time, and cannot change "
                    "in a loop",
                    help="start with a run-time value under another name, or unroll the loop with "
                    "`tl.static_range`",
                    at=self.assigned[name],
                )

    def _drop_unchanged(self, yields: list[tensor]) -> list[tensor]:
        """Stop carrying leaves that the body hands on as they came."""
        body_args = self._entered[-1][1]
        self._kept = [end.value is not arg for end, arg in zip(yields, body_args, strict=True)]
        for region, args in self._entered:
            for kept, arg, init in zip(self._kept, args, self.inits, strict=True):
                if not kept:
                    arg.replace_all_uses_with(init.value)
                    region.remove_argument(region.args.index(arg))
                    self._replaced[arg] = init.value
        self._dropped = [t for t, kept in zip(self.inits, self._kept, strict=True) if not kept]
        self.inits = [t for t, kept in zip(self.inits, self._kept, strict=True) if kept]
        self.labels = [t for t, kept in zip(self.labels, self._kept, strict=True) if kept]
        return [t for t, kept in zip(yields, self._kept, strict=True) if kept]

    def _append(self, end: tensor, yields: list[tensor], label: str) -> None:
        """Carry one more value, which the first round finds as False or 0."""
        assert self._home is not None
        yields.append(end)
        with self.visitor.builder.at(self._home):
            is_flag = end.value.type == tl.int1.ir_type
            self.inits.append(constant(False, tl.int1) if is_flag else placeholder(end.value.type))
        self.labels.append(label)
        self._entered[-1][0].add_argument(end.value.type, label)

    def bind(self, results: list[tensor]) -> None:
        """Give names and flags their values after the loop, in the visitor's environment."""
        env = self.visitor.env
        kept, dropped = iter(results), iter(self._dropped)
        queue = iter([next(kept) if keep else next(dropped) for keep in self._kept])
        for name, before in self.names.items():
            env[name] = rebuild(before, lambda _: next(queue))
            hint(env[name], name)
        for name in self.assigned:
            if name not in self.names and (
                name in self._retyped or isinstance(env.get(name, MISSING), Undefined)
            ):
                env[name] = Undefined(
                    "is assigned only inside the loop, which may not run", f"assign `{name}` before the loop"
                )
        env |= dict.fromkeys(FLAGS, False)
        env[STOPPED] = False
        if RETURN in self.flags:
            env[RETURN] = results[self.flags[RETURN]]
        if self._returned is not None:
            value, start = self._returned
            rest = iter(results[start:])
            env[VALUE] = rebuild(value, lambda _: next(rest))

    def broken(self, results: list[tensor]) -> tensor | None:
        """Whether a `break` ended the loop; None if it has none."""
        return results[self.flags[BREAK]] if BREAK in self.flags else None


def _has_type(value: Any, type_: Type) -> bool:
    return isinstance(value, tensor) and value.value.type == type_


def _outline(value: Any) -> Any:
    """A tree without its run-time leaves: what must stay the same in a loop."""
    items = children(value)
    if items is not None:
        kind = (type(value), value.constants) if isinstance(value, Compound) else ()
        return (*kind, *map(_outline, items))
    return tensor if isinstance(value, tensor) else repr(unwrap(value))
