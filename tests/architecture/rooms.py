"""The rooms of the project as data, and the imports of a source file as facts.

`ROOMS` is the table of the design: which room may import which. `imports_of` reads a file's imports from its
syntax tree, wherever they stand: relative, inside functions, under `TYPE_CHECKING`. Importing nothing itself,
it sees files that could not be imported.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Directories at the top level that are packages of another name (see setup.py).
MAPPED = {"codegen": "blocklang.codegen", "runtime": "blocklang.runtime"}

_FOUNDATION = frozenset({"target", "ir", "ops", "abi", "maths"})
_STAGES = frozenset(
    {"language", "frontend", "interpreter", "analysis", "passes", "codegen", "runtime", "cache"}
)
_BELOW_COMPILER = _FOUNDATION | _STAGES
_COMPILER = _BELOW_COMPILER | {"cache", "compiler"}
_KERNELS = _COMPILER | {"emulation", "jit"}

# Rooms that every room may import, besides itself.
EVERYONES = frozenset({"depth", "diagnostics", "lazy"})

# Room: the other rooms that it may import.
ROOMS: dict[str, frozenset[str]] = {
    "depth": frozenset(),
    "diagnostics": frozenset(),
    "lazy": frozenset(),
    "target": frozenset(),
    "ir": frozenset(),
    "ops": frozenset({"ir"}),
    "language": frozenset({"ir", "ops"}),
    "frontend": frozenset({"ir", "ops", "language"}),
    "maths": frozenset({"ir"}),
    "interpreter": frozenset({"ir", "ops", "language", "maths"}),
    "abi": frozenset({"ir", "target"}),
    "analysis": frozenset({"ir", "ops", "abi", "target"}),
    "passes": frozenset({"ir", "ops", "abi", "target", "analysis", "maths"}),
    "codegen": frozenset({"ir", "ops", "abi", "target", "maths"}),
    "cache": frozenset({"target"}),
    "runtime": frozenset({"ir", "ops", "abi", "target", "cache"}),
    "compiler": _BELOW_COMPILER,
    "explain": _FOUNDATION | {"analysis", "passes"},
    "emulation": _FOUNDATION,
    "jit": _COMPILER | {"emulation"},
    "testing": _KERNELS,
    "tune": _KERNELS,
    "torch": _KERNELS | {"tune"},
    "aot": _KERNELS,
    "jax": _KERNELS,
    "triton": _KERNELS | {"tune", "torch"},
    # The package itself: `blocklang/__init__.py`, the public surface.
    "blocklang": _KERNELS | {"testing", "tune", "torch", "jax"},
    "cli": _KERNELS | {"aot", "explain", "testing", "tune", "torch", "triton", "blocklang"},
}

# Packages that only an extra installs, and that their rooms import when they are asked to.
OPTIONAL = frozenset({"jax", "matplotlib", "packaging", "rich", "torch"})

# Third-party packages, and the rooms that may import them. A package that no line names is not a dependency.
THIRD_PARTY: dict[str, frozenset[str]] = {
    "numpy": frozenset(ROOMS) - EVERYONES,
    "ml_dtypes": frozenset(ROOMS) - EVERYONES,
    "llvmlite": frozenset({"target", "codegen", "runtime", "compiler", "cli"}),
    "click": frozenset({"cli"}),
    "packaging": frozenset({"aot"}),
    "torch": frozenset({"torch"}),
    "jax": frozenset({"jax"}),
    "matplotlib": frozenset({"cli"}),
    "rich": frozenset({"tune"}),
}


@dataclass(frozen=True)
class Import:
    """One imported module, by its absolute name, and the line that asks for it."""

    path: Path
    line: int
    module: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.module}"


def module_name(path: Path) -> str:
    """The name under which the file `path`, relative to the root, is imported."""
    parts = path.with_suffix("").parts
    if parts[-1] == "__init__":
        parts = parts[:-1]
    return ".".join((MAPPED.get(parts[0], parts[0]), *parts[1:]))


def room_of(module: str) -> str | None:
    """The room of a blocklang module; None for a module of another package."""
    parts = module.split(".")
    if parts[0] != "blocklang":
        return None
    if len(parts) == 1:
        return "blocklang"
    return "cli" if parts[1] == "__main__" else parts[1]


def source_files(*directories: str, root: Path = ROOT) -> Iterator[Path]:
    """Every Python file under the directories, relative to `root`; links are not followed."""
    for directory in directories:
        for path in sorted((root / directory).rglob("*.py")):
            relative = path.relative_to(root)
            if not any((root / parent).is_symlink() for parent in relative.parents):
                yield relative


def imports_of(path: Path, source: str) -> Iterator[Import]:
    """Every import in `source`, as absolute module names.

    `from package import name` yields `package.name` when the package is blocklang itself and `name` is a room
    (`from blocklang import ir`), and `package` otherwise.
    """
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package.pop()
    for node in ast.walk(ast.parse(source, filename=str(path))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(path, node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            for module in _modules_of(node, package):
                yield Import(path, node.lineno, module)


def _modules_of(node: ast.ImportFrom, package: list[str]) -> Iterator[str]:
    above = package[: len(package) - node.level + 1] if node.level else []
    base = ".".join([*above, node.module] if node.module else above)
    for alias in node.names:
        is_room = base == "blocklang" and alias.name in ROOMS
        yield f"{base}.{alias.name}" if is_room else base


def explain_refusal(item: Import) -> str | None:
    """Why the table forbids this import; None when it allows it."""
    here = room_of(module_name(item.path))
    if here not in ROOMS:
        return f"{item.path}: room '{here}' is not in the table of tests/architecture/rooms.py"
    there = room_of(item.module)
    if there is None:
        return _explain_outside(item, here)
    if there not in ROOMS:
        return f"{item}: room '{there}' is not in the table of tests/architecture/rooms.py"
    if there == here or there in EVERYONES | ROOMS[here]:
        return None
    return f"{item}: room '{here}' may not import '{there}'"


def _explain_outside(item: Import, here: str) -> str | None:
    package = item.module.split(".")[0]
    if package in sys.stdlib_module_names:
        return None
    if package in MAPPED:
        return f"{item}: write {MAPPED[package]}; a plain '{package}' does not exist for users"
    if package not in THIRD_PARTY:
        return f"{item}: '{package}' is not a dependency of blocklang"
    if here not in THIRD_PARTY[package]:
        return f"{item}: room '{here}' may not import '{package}'"
    return None
