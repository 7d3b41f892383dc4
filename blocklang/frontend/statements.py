"""Statements: assignments, branches, loops, jumps, assertions, local functions."""

from __future__ import annotations

import ast
import builtins
from typing import Any

from blocklang.diagnostics import CompileTimeAssertionFailure
from blocklang.frontend.base import fields
from blocklang.frontend.branches import MISSING
from blocklang.frontend.calls import Calls, LocalFunction
from blocklang.frontend.expressions import PYTHON_REFUSALS
from blocklang.frontend.scope import BREAK, CONTINUE, RETURN, STOPPED, VALUE, Undefined
from blocklang.frontend.source import is_constexpr_annotation
from blocklang.frontend.values import describe_kind, hint, run_time
from blocklang.language.constexpr import constexpr, is_compile_time, unwrap
from blocklang.language.events import device_assert
from blocklang.language.hints import range as tl_range
from blocklang.language.hints import static_range
from blocklang.language.tensor import tensor


class Statements(Calls):
    """Every kind of statement."""

    # ---- assignments ----

    @fields("targets", "value")
    def visit_Assign(self, node: ast.Assign) -> None:
        value = run_time(self.visit(node.value))
        for target in node.targets:
            self.assign(target, value)

    def assign(self, target: ast.expr, value: Any) -> None:
        """Bind a target to a value as it is."""
        if isinstance(target, ast.Name):
            hint(value, target.id)
            self.env[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value)
        else:
            kind = "an attribute" if isinstance(target, ast.Attribute) else "an element"
            if isinstance(target, ast.Starred):
                kind = "a starred name"
            self.refuse(
                f"an assignment to {kind}",
                at=target,
                help="assign to a name; write to arrays with `tl.store`",
            )

    def _unpack(self, target: ast.Tuple | ast.List, value: Any) -> None:
        plain = unwrap(value)
        if not isinstance(plain, (tuple, list)):
            self.fail(
                f"{describe_kind(value)} cannot be unpacked", at=target, help="only tuples can be unpacked"
            )
        if any(isinstance(t, ast.Starred) for t in target.elts):
            self.refuse("an assignment to a starred name", at=target)
        if len(plain) != len(target.elts):
            self.fail(f"{len(plain)} values cannot be unpacked into {len(target.elts)} names", at=target)
        for name, item in zip(target.elts, plain, strict=True):
            self.assign(name, item)

    @fields("target", "op", "value")
    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            self.refuse("an assignment to a part of a value", at=node.target, help="assign to a name")
        load = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        operation = ast.copy_location(ast.BinOp(load, node.op, node.value), node)
        self.assign(node.target, run_time(self.visit(operation)))

    @fields("target", "annotation", "value", "simple")
    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            return
        value = self.visit(node.value)
        if not is_constexpr_annotation(ast.unparse(node.annotation)):
            self.assign(node.target, run_time(value))
            return
        self._declare(node)
        if not is_compile_time(value):
            self.fail(
                f"a constexpr must be known at compile time, got {describe_kind(value)}",
                at=node.value,
                help="drop the annotation, or compute it from literals, shapes and `tl.constexpr` parameters",
            )
        self.assign(node.target, constexpr(value))

    def _declare(self, node: ast.AnnAssign) -> None:
        """A constexpr is declared once; a round of an unrolled loop may declare it again."""
        if not isinstance(node.target, ast.Name):
            return
        name = node.target.id
        is_again = not self.rules.strict and self.frame.declared.get(name) is node
        if not is_again and not isinstance(self.env.get(name, MISSING), Undefined):
            self.fail(
                f"`{name}` is already defined, and a constexpr cannot be reassigned",
                at=node.target,
                help="use another name",
            )
        self.frame.declared[name] = node

    @fields("value")
    def visit_Expr(self, node: ast.Expr) -> None:
        if not (isinstance(node.value, ast.Constant) and node.value.value is ...):
            self.dropped = node.value
            self.visit(node.value)

    @fields()
    def visit_Pass(self, node: ast.Pass) -> None:
        pass

    # ---- branches and loops ----

    @fields("test", "body", "orelse")
    def visit_If(self, node: ast.If) -> bool:
        rest = self.take_rest()
        test = self.condition(node.test)
        if not isinstance(test, tensor):
            self.statements(node.body if unwrap(test) else node.orelse)
            return False
        return self.branches(
            test, lambda: self.statements(node.body), lambda: self.statements(node.orelse), rest
        )

    @fields("test", "body", "orelse")
    def visit_While(self, node: ast.While) -> None:
        self.while_loop(node, self.condition)

    @fields("target", "iter", "body", "orelse")
    def visit_For(self, node: ast.For) -> None:
        iterable = self.visit_iterable(node.iter)
        if isinstance(iterable, tl_range) and not isinstance(iterable, static_range):
            stages = unwrap(iterable.num_stages)
            self.range_loop(node, iterable.bounds(), stages if isinstance(stages, int) else 0)
            return
        if not isinstance(iterable, static_range):
            self.refuse_strictly("loop over values", at=node.iter)
        items = self.static_items(iterable, node.iter)
        self.unrolled_loop(node, items)

    def visit_iterable(self, node: ast.expr) -> Any:
        """What a loop runs over: a `tl.range`, or a compile-time sequence."""
        if not isinstance(node, ast.Call):
            return self.visit(node)
        function = unwrap(self.visit(node.func))
        if function is builtins.range:
            return self._python_range(self.items(node.args), node)
        if isinstance(function, type) and issubclass(function, tl_range):
            keywords = {k.arg: self.visit(k.value) for k in node.keywords if k.arg is not None}
            try:
                return function(*self.items(node.args), **keywords)
            except TypeError as error:
                self.fail(str(error).replace("range.__init__()", "range()"), at=node)
        return self.visit(node)

    def _python_range(self, args: list[Any], node: ast.Call) -> tl_range:
        if node.keywords or not 1 <= len(args) <= 3:
            self.fail("range takes one to three arguments, none by name", at=node)
        return tl_range(*args)

    def static_items(self, iterable: Any, node: ast.expr) -> list[Any]:
        """The items of a compile-time iterable."""
        plain = unwrap(iterable)
        if isinstance(plain, tl_range):
            return list(self._static_range(plain, node))
        if isinstance(plain, (tuple, list, range)):
            return list(plain)
        self.fail(
            f"a loop cannot run over {describe_kind(plain)}",
            at=node,
            help="loop over `range`, `tl.range`, `tl.static_range` or a tuple",
        )

    def _static_range(self, bounds: tl_range, node: ast.expr) -> range:
        values = [unwrap(b) for b in bounds.bounds()]
        for value in values:
            if isinstance(value, tensor) or not hasattr(value, "__index__"):
                self.fail(
                    f"the bounds must be integers known at compile time, got {describe_kind(value)}",
                    at=node,
                    help="use `range` for bounds known at run time",
                )
        try:
            return range(*values)
        except PYTHON_REFUSALS as error:
            self.fail(str(error), at=node)

    # ---- jumps ----

    @fields("value")
    def visit_Return(self, node: ast.Return) -> None:
        value = None if node.value is None else self.visit(node.value)
        if self.frame.depth == 0 and value is not None:
            self.fail("a kernel cannot return a value", help="store it to an array")
        if any(loop.carried is not None for loop in self.frame.loops):
            self.refuse_strictly("return in loop")
        self.env[VALUE] = value
        self._jump(RETURN)

    @fields()
    def visit_Break(self, node: ast.Break) -> None:
        self._jump(BREAK)

    @fields()
    def visit_Continue(self, node: ast.Continue) -> None:
        self._jump(CONTINUE)

    def _jump(self, flag: str) -> None:
        self.env[flag] = True
        self.env[STOPPED] = True

    # ---- checks and definitions ----

    @fields("test", "msg")
    def visit_Assert(self, node: ast.Assert) -> None:
        test = self.visit(node.test)
        if not is_compile_time(test):
            device_assert(test, "" if node.msg is None else self._message(node.msg))
            return
        if not unwrap(test):
            message = "" if node.msg is None else f": {unwrap(self.visit(node.msg))}"
            raise CompileTimeAssertionFailure(f"the assertion failed{message}")

    def _message(self, node: ast.expr) -> Any:
        message = self.visit(node)
        if not is_compile_time(message):
            self.fail(
                f"the message of an assertion must be known at compile time, got {describe_kind(message)}",
                at=node,
                help="write a string; print run-time values with `tl.device_print`",
            )
        return str(unwrap(message))

    @fields("name", "args", "body", "returns", "decorator_list")
    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.decorator_list:
            self.refuse("a decorator on an inner function", at=node.decorator_list[0], help="leave it out")
        self.env[node.name] = self._local_function(node, node.name)

    @fields("args", "body")
    def visit_Lambda(self, node: ast.Lambda) -> LocalFunction:
        return self._local_function(node, "<lambda>")

    def _local_function(self, node: ast.FunctionDef | ast.Lambda, name: str) -> LocalFunction:
        args = node.args
        if args.vararg is not None or args.kwarg is not None:
            self.refuse("`*` parameters of an inner function", help="name every parameter")
        positional = [*args.posonlyargs, *args.args]
        pairs = list(zip(positional[len(positional) - len(args.defaults) :], args.defaults, strict=True))
        pairs += [(a, d) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is not None]
        defaults = {argument.arg: self.visit(default) for argument, default in pairs}
        return LocalFunction(self, node, self.frame, name, defaults)
