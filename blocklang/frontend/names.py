"""Which names a piece of syntax assigns, and what jumps it holds."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _walk_scope(node: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs in the same scope as `node`, itself included."""
    pending = [node]  # and no recursion: what is nested too deeply to compile is refused by who visits it
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (*_SCOPES, *_COMPREHENSIONS)):
            pending += reversed(list(ast.iter_child_nodes(node)))


def assigned_names(statements: Iterable[ast.stmt]) -> dict[str, ast.AST]:
    """The names that the statements assign in their own scope, in order, each with the last place."""
    found: dict[str, ast.AST] = {}
    for statement in statements:
        for node in _walk_scope(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found[node.id] = node
            elif isinstance(node, ast.FunctionDef):
                found[node.name] = node
    return found


def has_return(statements: Iterable[ast.stmt]) -> bool:
    """True if the statements hold a `return` of their own function."""
    return any(isinstance(n, ast.Return) for s in statements for n in _walk_scope(s))
