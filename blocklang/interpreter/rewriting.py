"""Rewrites a kernel's Python so that its own lines run, with the language's rules where Python's differ.

    s = 2                  s = __blocklang__.assigned(2)
    s += x                 s = __blocklang__.assigned(s + x)
    N: tl.constexpr = 4    N = __blocklang__.compile_time(4)
    if s < n:              if __blocklang__.truth(s < n):
    if a and b:            if __blocklang__.truth(a) and __blocklang__.truth(b):
    x = a and b            x = __blocklang__.joined_and(t, b) if __blocklang__.goes_on_and(t := a) else
                               __blocklang__.decided_and(t, lambda: b)
    a if c else b          __blocklang__.chosen(t, a, lambda: b) if __blocklang__.truth(t := c) else ...
    a < b < c              the same as `(a < t) and (t < c)`, b evaluated once
    for i in range(n):     for i in __blocklang__.iterate(__blocklang__.callee(range)(n)):
    f(x)                   __blocklang__.callee(f)(x)

`__blocklang__` is a `rules.Rules`. Every node keeps its place in the user's file: tracebacks, pdb and
coverage show the user's lines. Nothing is refused here: what a kernel may contain is the frontend's to say.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Sequence
from typing import Protocol, TypeVar

RULES = "__blocklang__"
MAKER = "make_kernel"

NodeT = TypeVar("NodeT", bound=ast.AST)


class Code(Protocol):
    """What must be known of a kernel's source (`frontend.KernelSource` is one)."""

    @property
    def function(self) -> object:
        """The user's Python function."""
        ...

    @property
    def name(self) -> str: ...

    @property
    def file(self) -> str: ...

    @property
    def node(self) -> ast.FunctionDef:
        """Its syntax tree, with the lines and columns of the file."""
        ...

    @property
    def padded_text(self) -> str:
        """Text with the function's lines at their places in the file."""
        ...


def rewrite(node: ast.FunctionDef, free: Sequence[str], numbers: Collection[str] = ()) -> ast.Module:
    """A module that defines MAKER: a function of the free variables and RULES that returns the kernel.

    Args:
        numbers: names from outside whose values are NumPy scalars; a kernel reads them as Python numbers.
    """
    kernel = _Rewriter(numbers).function(copy.deepcopy(node))
    kernel.args.defaults, kernel.args.kw_defaults = [], [None] * len(kernel.args.kwonlyargs)
    # A parameter without a default may follow: the defaults are those of the user's function, set afterwards.
    names = [ast.arg(name) for name in (*free, RULES)]
    maker = ast.FunctionDef(
        name=MAKER,
        args=ast.arguments(posonlyargs=[], args=names, kwonlyargs=[], kw_defaults=[], defaults=[]),
        body=[kernel, ast.Return(ast.Name(kernel.name, ast.Load()))],
        decorator_list=[],
    )
    _place(maker, node)
    return ast.fix_missing_locations(ast.Module([maker], []))


def _place(node: NodeT, like: ast.AST) -> NodeT:
    """Give a new node, and what it holds and has no place, the place of an old one."""
    for part in ast.walk(node):
        if "lineno" in part._attributes and not hasattr(part, "lineno"):
            ast.copy_location(part, like)
    return node


def is_constexpr(annotation: ast.expr | None) -> bool:
    """True for an annotation that is, or ends in, `constexpr`."""
    if annotation is None:
        return False
    return ast.unparse(annotation).strip("'\" ").rpartition(".")[2] == "constexpr"


def _ask(method: str, *arguments: ast.expr) -> ast.Call:
    """A call of a rule."""
    rule = ast.Attribute(ast.Name(RULES, ast.Load()), method, ast.Load())
    return ast.Call(rule, list(arguments), [])


class _Rewriter(ast.NodeTransformer):
    def __init__(self, numbers: Collection[str]) -> None:
        self._numbers = numbers
        self._temporaries = 0

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"{RULES}{self._temporaries}"

    # ---- functions ----

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Rewrite a definition: its body, and its annotations away."""
        parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        static = [p.arg for p in parameters if is_constexpr(p.annotation)]
        for parameter in parameters:
            parameter.annotation = None
        node.decorator_list, node.returns = [], None
        body = [self._constexpr_parameter(name, node) for name in static]
        node.body = [*body, *(s for old in node.body for s in _listed(self.visit(old)))]
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [None if d is None else self.visit(d) for d in node.args.kw_defaults]
        return node

    def _constexpr_parameter(self, name: str, node: ast.AST) -> ast.stmt:
        value = _ask("constexpr_parameter", ast.Name(name, ast.Load()))
        return _place(ast.Assign([ast.Name(name, ast.Store())], value), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return self.function(node)

    # ---- statements ----

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        node.value = _place(_ask("assigned", node.value), node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return _place(ast.Pass(), node)
        rule = "compile_time" if is_constexpr(node.annotation) else "assigned"
        value = _place(_ask(rule, self.visit(node.value)), node.value)
        return _place(ast.Assign([self.visit(node.target)], value), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        old = _place(ast.Name(node.target.id, ast.Load()), node.target)
        value = _place(_ask("assigned", ast.BinOp(old, node.op, node.value)), node)
        return _place(ast.Assign([node.target], value), node)

    def visit_If(self, node: ast.If) -> ast.AST:
        test = self._truth(node.test)
        node.test = ast.Constant(True)
        self.generic_visit(node)
        node.test = test
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        test = self._truth(node.test)
        node.test = ast.Constant(True)
        self.generic_visit(node)
        node.test = test
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.generic_visit(node)
        message = ast.Constant("") if node.msg is None else node.msg
        return _place(ast.Expr(_place(_ask("asserted", node.test, _later(message)), node)), node)

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        node.iter = _place(_ask("iterate", node.iter), node.iter)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        node.ifs, tests = [], node.ifs
        self.generic_visit(node)
        node.iter = _place(_ask("iterate", node.iter), node.iter)
        node.ifs = [self._truth(test) for test in tests]
        return node

    # ---- expressions ----

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self._numbers and isinstance(node.ctx, ast.Load):
            return _place(_ask("number", node), node)
        return node

    def visit_List(self, node: ast.List) -> ast.AST:
        self.generic_visit(node)
        return _place(_ask("listed", node), node) if isinstance(node.ctx, ast.Load) else node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        self.generic_visit(node)
        return _place(_ask("listed", node), node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        kept, test = self._kept(self.visit(node.test))
        values = [(node.body, node.orelse), (node.orelse, node.body)]
        arms = [
            _ask("chosen", kept, self.visit(copy.deepcopy(a)), _later(self.visit(copy.deepcopy(b))))
            for a, b in values
        ]
        return _place(ast.IfExp(_ask("truth", test), *arms), node)

    def _kept(self, value: ast.expr) -> tuple[ast.expr, ast.expr]:
        """A name, and an expression that computes a value and gives it that name."""
        temporary = self._temporary()
        naming = ast.NamedExpr(ast.Name(temporary, ast.Store()), value)
        return ast.Name(temporary, ast.Load()), _place(naming, value)

    def _truth(self, test: ast.expr) -> ast.expr:
        """A test whose value only decides: `and` and `or` are Python's."""
        if isinstance(test, ast.BoolOp):
            return _place(ast.BoolOp(test.op, [self._truth(v) for v in test.values]), test)
        return _place(_ask("truth", self.visit(test)), test)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        self.generic_visit(node)
        node.value = _place(_ask("assigned", node.value), node.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        node.func = _place(_ask("callee", node.func), node.func)
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            return _place(_ask("negated", node.operand), node)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        return self._joined("and" if isinstance(node.op, ast.And) else "or", node.values, node)

    def _joined(self, name: str, values: Sequence[ast.expr], node: ast.expr) -> ast.expr:
        """`a and b`, `a or b`: b is evaluated only if a does not decide."""
        *before, last = values
        if not before:
            return last
        rest = self._joined(name, values[1:], node)
        kept, test = self._kept(values[0])
        both = _ask(f"joined_{name}", kept, rest)
        alone = _ask(f"decided_{name}", kept, _later(copy.deepcopy(rest)))
        return _place(ast.IfExp(_ask(f"goes_on_{name}", test), both, alone), node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        left, parts = node.left, []
        for position, (op, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            following = right
            if position < len(node.ops) - 1:
                following, right = self._kept(right)
            parts.append(_place(_compared(left, op, right), node))
            left = following
        return self._joined("and", parts, node)


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
    rules = {
        ast.Eq: "equal",
        ast.NotEq: "unequal",
        ast.Is: "same",
        ast.IsNot: "different",
        ast.In: "contained",
        ast.NotIn: "absent",
    }
    if type(op) in rules:
        return _ask(rules[type(op)], left, right)
    return ast.Compare(left, [op], [right])


def _later(value: ast.expr) -> ast.expr:
    """A function that computes a value."""
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(nothing, value)


def _listed(result: ast.AST | list[ast.stmt] | None) -> list[ast.stmt]:
    if result is None:
        return []
    return result if isinstance(result, list) else [result]  # type: ignore[list-item]
