"""Wheel, sdist, editable install and bare checkout are the same package under the same names.

Nothing is fetched: builds use the setuptools of this environment, and each installation gets an environment
that sees this one's packages behind its own, so that only blocklang is installed into it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.architecture.rooms import MAPPED, ROOT

pytestmark = pytest.mark.slow

PROJECT_FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
PACKAGED_SUFFIXES = {".c", ".css", ".js", ".py", ".pyi", ".toml", ".typed"}
IMPORT_BOTH = (
    "import blocklang.codegen as first, blocklang.runtime as second; print(first.__name__, second.__name__)"
)
BUILD = "import sys, setuptools.build_meta as backend; print(getattr(backend, sys.argv[1])(sys.argv[2]))"


def run(command: Sequence[str | Path], cwd: Path) -> str:
    """Run a command outside this test's own import path; its standard output."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build(kind: str, source: Path, destination: Path) -> Path:
    """Build a 'wheel' or an 'sdist' of the tree `source` with the backend that pyproject.toml names."""
    destination.mkdir()
    output = run([sys.executable, "-c", BUILD, f"build_{kind}", destination], cwd=source)
    return destination / output.splitlines()[-1]


def make_environment(path: Path) -> Path:
    """A virtual environment without pip whose packages are its own, then this environment's; its Python."""
    venv.create(path, symlinks=os.name != "nt")
    python = path / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    (site_of(python) / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def site_of(python: Path) -> Path:
    text = run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], cwd=python.parent)
    return Path(text.strip())


def install(python: Path, *what: str | Path) -> None:
    options = ("--no-deps", "--no-index", "--no-build-isolation", "--force-reinstall", "--quiet")
    run([sys.executable, "-m", "pip", "--python", python, "install", *options, *what], cwd=python.parent)


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}


def assert_installed(python: Path, elsewhere: Path) -> None:
    """Both packages import under their users' names, and under no other."""
    assert run([python, "-c", IMPORT_BOTH], cwd=elsewhere).split() == list(MAPPED.values())
    for name in MAPPED:
        missing = f"import importlib.util; assert importlib.util.find_spec({name!r}) is None"
        run([python, "-c", missing], cwd=elsewhere)
        assert not list(site_of(python).glob(f"{name}*"))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A clean copy of the checkout, links kept."""
    copy = tmp_path / "checkout"
    copy.mkdir()
    for name in PROJECT_FILES:
        shutil.copy(ROOT / name, copy)
    for name in ("blocklang", *MAPPED):
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=ignored)
    return copy


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    directory = tmp_path / "elsewhere"
    directory.mkdir()
    return directory


def test_links_are_relative() -> None:
    for name in MAPPED:
        assert os.readlink(ROOT / "blocklang" / name) == os.path.join("..", name)


def test_wheel(tree: Path, elsewhere: Path, tmp_path: Path) -> None:
    wheel = build("wheel", tree, tmp_path / "dist")
    assert {name.split("/")[0] for name in contents(wheel)} == {"blocklang"}

    python = make_environment(tmp_path / "venv")
    install(python, wheel)
    assert_installed(python, elsewhere)


def test_wheel_holds_every_file_once(tree: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(build("wheel", tree, tmp_path / "dist")) as archive:
        packed = sorted(name for name in archive.namelist() if ".dist-info/" not in name)
    expected = sorted(
        f"{prefix}/{path.relative_to(tree / directory).as_posix()}"
        for directory, prefix in [("blocklang", "blocklang"), *((d, f"blocklang/{d}") for d in MAPPED)]
        for path in (tree / directory).rglob("*")
        if path.suffix in PACKAGED_SUFFIXES
        if not (directory == "blocklang" and path.relative_to(tree).parts[1] in MAPPED)
    )
    assert packed == expected


def test_sdist_builds_the_same_wheel(tree: Path, elsewhere: Path, tmp_path: Path) -> None:
    sdist = build("sdist", tree, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    for name in MAPPED:
        assert not (unpacked / "blocklang" / name).exists(), "the sdist holds a linked package twice"

    from_sdist = build("wheel", unpacked, tmp_path / "from-sdist")
    assert contents(from_sdist) == contents(build("wheel", tree, tmp_path / "from-tree"))

    python = make_environment(tmp_path / "venv")
    install(python, sdist)
    assert_installed(python, elsewhere)


def test_tree_without_links_builds_the_same_wheel(tree: Path, tmp_path: Path) -> None:
    with_links = contents(build("wheel", tree, tmp_path / "with"))
    shutil.rmtree(tree / "build")
    for name in MAPPED:
        (tree / "blocklang" / name).unlink()
    assert contents(build("wheel", tree, tmp_path / "without")) == with_links


def test_editable(tree: Path, elsewhere: Path, tmp_path: Path) -> None:
    python = make_environment(tmp_path / "venv")
    install(python, "--editable", tree)
    assert_installed(python, elsewhere)
    where = run([python, "-c", "import blocklang.codegen as c; print(c.__file__)"], cwd=elsewhere).strip()
    assert Path(where).resolve() == tree / "codegen" / "__init__.py"


def test_bare_checkout(tree: Path, tmp_path: Path) -> None:
    python = make_environment(tmp_path / "venv")
    assert run([python, "-c", IMPORT_BOTH], cwd=tree).split() == list(MAPPED.values())


def test_type_checker_resolves_both(tree: Path, elsewhere: Path, tmp_path: Path) -> None:
    (elsewhere / "user.py").write_text("import blocklang.codegen\nimport blocklang.runtime\n")
    mypy = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--follow-imports=silent"]
    cache = ("--cache-dir", tmp_path / "cache")

    run([*mypy, *cache, "-c", IMPORT_BOTH], cwd=tree)

    python = make_environment(tmp_path / "venv")
    install(python, build("wheel", tree, tmp_path / "dist"))
    run([*mypy, *cache, "--python-executable", python, "user.py"], cwd=elsewhere)
