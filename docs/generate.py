"""Write the generated references, or check that they are in sync: `python -m docs.generate [--check]`.

Knows no reference by name: it runs every module of `docs/generators/`, whose docstring states the contract.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path

from docs import generators

DIRECTORY = Path(__file__).resolve().parent


def render_all() -> Iterator[tuple[Path, str]]:
    """Every generated page with the text that it should have now."""
    for module in pkgutil.iter_modules(generators.__path__):
        page = importlib.import_module(f"{generators.__name__}.{module.name}")
        render: Callable[[], str] = page.render
        yield getattr(page, "TARGET", DIRECTORY / f"{module.name}.md"), render()


def list_stale() -> list[Path]:
    """The pages whose file is missing or says something else than its source."""
    return [path for path, text in render_all() if not path.exists() or path.read_text("utf-8") != text]


def main() -> int:
    """Command line entry; the exit status is 1 when `--check` finds a stale page."""
    parser = argparse.ArgumentParser(prog="python -m docs.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is stale")
    if parser.parse_args().check:
        stale = list_stale()
        for path in stale:
            print(f"{path.name} is stale: run `make docs` and commit the result")
        return int(bool(stale))
    for path, text in render_all():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
