"""Libraries and wheels end to end: from C and from a Python without a compiler, with the jit's bits."""

from __future__ import annotations

import importlib
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import blocklang as bl
from blocklang.target import X86_LEVELS
from tests.aot.kernels import kinds, shift

Build = Callable[[str], Path]
Run = Callable[..., str]
X86 = pytest.mark.skipif(
    not re.fullmatch("x86_64|AMD64", platform.machine()), reason="levels are of x86-64 CPUs"
)
THREE = ("add", "softmax", "matmul")


def numbers(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


# Per kernel: the arrays, the output last, and how the wheel's function is called with them.
CALLS: dict[str, tuple[list[NDArray[Any]], str]] = {
    "add": (
        [numbers(70_001), numbers(70_001) + 1, np.zeros(70_001, np.float32)],
        "add(a, b, out, out.size, grid=-(-out.size // 4096))",
    ),
    "softmax": (
        [numbers(61, 777), np.zeros((61, 777), np.float32)],
        "softmax(out, a, 777, 777, 777, grid=61)",
    ),
    "matmul": (
        [numbers(200, 333), numbers(333, 150), np.zeros((200, 150), np.float32)],
        "matmul(a, b, out, 200, 150, 333, 333, 1, 150, 1, 150, 1, grid=(4,))",
    ),
}
MODULES = {"add": "vector_add", "softmax": "softmax", "matmul": "matmul"}


def jit_answer(name: str) -> NDArray[Any]:
    *given, out = (array.copy() for array in CALLS[name][0])
    importlib.import_module(f"examples.{MODULES[name]}").launch(*given, out)
    return out


def call_in_python(name: str, directory: Path, run: Run, tmp_path: Path, **environment: str) -> list[str]:
    """Call the wheel's function; the level that ran. The output is in out.npy."""
    arrays, call = CALLS[name]
    for array, stem in zip(arrays, "ab", strict=False):
        np.save(tmp_path / f"{stem}.npy", array)
    np.save(tmp_path / "out.npy", arrays[-1])
    code = f"""
from {name} import {name}, cpu_level
out = np.load("out.npy")
a = np.load("a.npy")
b = np.load("b.npy")
{call}
np.save("out.npy", out)
print(cpu_level())
"""
    return run(directory / "site", code, **environment).split()


def host_level(build: Build, run: Run) -> int:
    """n of the best x86-64-vn that this CPU has."""
    level = run(build("add") / "site", "import add; print(add.cpu_level())").strip()
    return X86_LEVELS.index(level) + 1 if level in X86_LEVELS else 0


# ---- the same bits ----


@pytest.mark.parametrize("name", THREE)
def test_python_without_a_compiler(
    name: str, build: Build, run_without_compiler: Run, tmp_path: Path
) -> None:
    call_in_python(name, build(name), run_without_compiler, tmp_path)
    assert np.load(tmp_path / "out.npy").tobytes() == jit_answer(name).tobytes()


@X86
@pytest.mark.parametrize("level", X86_LEVELS[1:])
@pytest.mark.parametrize("name", THREE)
def test_a_lower_level_is_forced(
    name: str, level: str, build: Build, run_without_compiler: Run, tmp_path: Path
) -> None:
    if X86_LEVELS.index(level) + 1 > host_level(build, run_without_compiler):
        pytest.skip(f"this CPU has no {level}; test_assembly_of_levels looks at its code")
    ran = call_in_python(name, build(name), run_without_compiler, tmp_path, BLOCKLANG_CPU=level)
    assert ran == [level]
    assert np.load(tmp_path / "out.npy").tobytes() == jit_answer(name).tobytes()


@X86
@pytest.mark.parametrize("name", THREE)
def test_assembly_of_levels(name: str, build: Build) -> None:
    directory = build(name)
    used = {}
    for level in X86_LEVELS[1:]:
        text = (directory / f"{name}.{level}.s").read_text(encoding="utf-8")
        used[level] = {kind for kind in ("xmm", "ymm", "zmm") if f"%{kind}" in text}
    assert used["x86-64-v2"] == {"xmm"}
    assert "ymm" in used["x86-64-v3"]
    assert "zmm" not in used["x86-64-v3"]
    assert "zmm" in used["x86-64-v4"]


@X86
@pytest.mark.parametrize("value", ["x86-64", "x86-64-v9", "znver4"])
def test_no_code_for_the_level_asked_for(value: str, build: Build, run_without_compiler: Run) -> None:
    code = """
import add
assert add.cpu_level() is None
x = np.zeros(4, np.float32)
try:
    add.add(x, x, x, 4, grid=1)
except RuntimeError as error:
    print(error)
"""
    said = run_without_compiler(build("add") / "site", code, BLOCKLANG_CPU=value)
    assert said == (
        "add(): the library has no code for this CPU, or BLOCKLANG_CPU names no level that this CPU has\n"
    )


C_PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include "NAME.h"

static float *read_floats(const char *path, size_t count)
{
    float *data = malloc(count * sizeof *data);
    FILE *file = fopen(path, "rb");
    if (!data || !file || fread(data, sizeof *data, count, file) != count)
        exit(2);
    fclose(file);
    return data;
}

int main(void)
{
    float *a = read_floats("a.bin", COUNT_A), *b = read_floats("b.bin", COUNT_B);
    float *out = calloc(COUNT_OUT, sizeof *out);
    (void)b;
    for (int threads = 0; threads < 3; threads++) {
        int status = CALL;
        if (status != BLOCKLANG_OK) {
            fprintf(stderr, "%s\\n", NAME_strerror(status));
            return 1;
        }
    }
    FILE *file = fopen("out.bin", "wb");
    fwrite(out, sizeof *out, COUNT_OUT, file);
    fclose(file);
    puts(NAME_cpu_level());
    return 0;
}
"""
C_CALLS = {
    "add": "add_restrict(COUNT_OUT / ADD_BLOCK + 1, 1, 1, a, b, out, COUNT_OUT, threads)",
    "softmax": "softmax(61, 1, 1, out, a, 777, 777, 777, threads)",
    "matmul": "matmul_restrict(4, 1, 1, a, b, out, 200, 150, 333, 333, 1, 150, 1, 150, 1, threads)",
}


def compile_c(linker: list[str], program: str, name: str, directory: Path, tmp_path: Path) -> Path:
    (tmp_path / "main.c").write_text(program, encoding="utf-8")
    command = [
        *(*linker, "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "main.c", "-o", "main"),
        *(f"-I{directory}", f"-L{directory}", f"-l{name}", f"-Wl,-rpath,{directory}"),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return tmp_path / "main"


@pytest.mark.parametrize("name", THREE)
def test_c_program(name: str, build: Build, linker: list[str], tmp_path: Path) -> None:
    arrays, _ = CALLS[name]
    for array, stem in zip(arrays, "ab", strict=False):
        (tmp_path / f"{stem}.bin").write_bytes(array.tobytes())
    program = C_PROGRAM.replace("CALL", C_CALLS[name])
    counts = {"COUNT_A": arrays[0], "COUNT_B": arrays[1], "COUNT_OUT": arrays[-1]}
    for word, array in counts.items():
        program = program.replace(word, str(array.size))
    program = program.replace("NAME", name)
    done = subprocess.run(
        [compile_c(linker, program, name, build(name), tmp_path)],
        cwd=tmp_path,
        env={"PATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.bin").read_bytes() == jit_answer(name).tobytes()


# ---- what the signature admits ----


def test_arrays_that_overlap(build: Build, run_without_compiler: Run) -> None:
    code = """
from shift import shift
memory = np.arange(1, 401, dtype=np.float32)
shift(memory[:300], memory[DISTANCE:300 + DISTANCE], 300, grid=1)
print(memory.tobytes().hex())
"""
    interpreted = bl.jit(interpret=True)(shift.fn)
    for distance in (0, 1, 63, 64, 100):
        memory = np.arange(1, 401, dtype=np.float32)
        interpreted[(1,)](memory[:300], memory[distance : 300 + distance], 300, BLOCK=64)
        said = run_without_compiler(build("shift") / "site", code.replace("DISTANCE", str(distance)))
        assert said.strip() == memory.tobytes().hex(), distance


def test_numbers_of_every_kind(build: Build, run_without_compiler: Run) -> None:
    code = """
from kinds import kinds
memory = np.zeros(10)
out = memory[memory.ctypes.data // 8 % 2:][:8]
kinds(out, True, -7, 65535, -2**40, 1 / 3, 1 / 3, 1 / 3, 1 / 3, grid=1)
print(*out.tolist())
for bad in [(out[1:], True, 0, 0, 0), (out, 1, 0, 0, 0), (out, True, 128, 0, 0), (out, True, 0, -1, 0),
            (out, True, 0, 0, 8)]:
    try:
        kinds(*bad, 0, 0, 0, 0, grid=1)
    except (TypeError, ValueError) as error:
        print(error)
"""
    first, *errors = run_without_compiler(build("kinds") / "site", code).splitlines()
    third, half, brain = float(np.float32(1 / 3)), float(np.float16(1 / 3)), 0.333984375
    assert [float(text) for text in first.split()] == [1, -7, 65535, -(2**40), half, brain, third, 1 / 3]
    assert errors == [
        "kinds() argument 'out': expected an address that is a multiple of 16, got 8 more than one; "
        "pass a copy, or build the function without :16",
        "kinds() argument 'flag': expected a bool, got int",
        "kinds() argument 'small': expected -128 to 127, got 128",
        "kinds() argument 'word': expected 0 to 65535, got -1",
        "kinds() argument 'wide': expected a multiple of 16, as the function was built for, got 8",
    ]
    assert kinds.__name__ == "kinds"


def test_arguments_with_a_default(build: Build, run_without_compiler: Run) -> None:
    """They are arguments like others; that the default of n is a multiple of 16 binds nobody."""
    code = """
from scaled import scaled
x = np.ones(32, np.float32)
scaled(x, 0.5, 7, grid=1)
print(x.sum())
"""
    assert run_without_compiler(build("scaled") / "site", code).split() == ["28.5"]


def test_arrays_of_bfloat16(build: Build, run_without_compiler: Run) -> None:
    code = """
import ml_dtypes
from doubled import doubled
x = np.arange(9).astype(ml_dtypes.bfloat16)
doubled(x, 9, grid=1)
print(x.astype(float).sum())
try:
    doubled(x.view(np.uint16), 9, grid=1)
except TypeError as error:
    print(error)
"""
    assert run_without_compiler(build("doubled") / "site", code).splitlines() == [
        "72.0",
        "doubled() argument 'x': expected an array of bfloat16, got one of uint16; "
        "convert it, for instance with x.astype('bfloat16')",
    ]


def test_names_that_are_used_around_it(build: Build, run_without_compiler: Run) -> None:
    code = """
import spread
out = np.zeros(1, np.int32)
spread.spread(out, 7, grid=1)
print(*out, spread.np, spread.Kernel)
"""
    assert run_without_compiler(build("spread") / "site", code).split() == ["73", "10", "3"]


def test_programs_that_synchronise(build: Build, run_without_compiler: Run) -> None:
    code = """
from count_up import count_up
total, lock = np.zeros(2, np.int64), np.zeros(1, np.int32)
count_up(total, lock, 3, grid=(50, 40, 30), num_threads=4)
print(*total)
"""
    assert run_without_compiler(build("count_up") / "site", code).split() == ["180000", "180000"]


def test_python_refuses_what_c_could_not(build: Build, run_without_compiler: Run) -> None:
    code = """
from add import add
x = np.zeros(8, np.float32)
read_only = x.copy()
read_only.flags.writeable = False
odd = np.zeros(33, np.uint8)[1:].view(np.float32)
for bad, grid, threads in [
    ((x.astype(float), x, x, 8), 1, None), ((x.astype(">f4"), x, x, 8), 1, None), (([0.0], x, x, 8), 1, None),
    ((np.ma.array(x), x, x, 8), 1, None), ((x, x, read_only, 8), 1, None), ((x, x, odd, 8), 1, None),
    ((x, x, x, 8.0), 1, None), ((x, x, x, 2**31), 1, None), ((x, x, x, 8), (1, 1, 1, 1), None),
    ((x, x, x, 8), -1, None), ((x, x, x, 8), (2**31 - 1,) * 3, None), ((x, x, x, 8), 1, 0),
]:
    try:
        add(*bad, grid=grid, num_threads=threads)
        print("no error")
    except (TypeError, ValueError) as error:
        print(type(error).__name__, error)
add(x, x, x, 8, grid=0)
"""
    assert run_without_compiler(build("add") / "site", code).splitlines() == [
        "TypeError add() argument 'x_ptr': expected an array of float32, got one of float64; "
        "convert it, for instance with x.astype('float32')",
        "TypeError add() argument 'x_ptr': expected an array of float32, got one of >f4; "
        "convert it, for instance with x.astype('float32')",
        "TypeError add() argument 'x_ptr': expected an array of float32, got list; pass a NumPy array",
        "TypeError add() argument 'x_ptr': expected an array of float32, got MaskedArray; "
        "a kernel sees no mask: pass x.data",
        "ValueError add() argument 'out_ptr': expected an array that can be written, got a read-only one; "
        "pass a copy",
        "ValueError add() argument 'out_ptr': expected an address that is a multiple of 4, "
        "got 1 more than one; pass a copy",
        "TypeError add() argument 'n': expected an integer, got float",
        "ValueError add() argument 'n': expected -2147483648 to 2147483647, got 2147483648",
        "ValueError add(): expected a grid of one to three extents, got (1, 1, 1, 1)",
        "ValueError add() argument 'grid': expected 0 to 2147483647, got -1",
        "ValueError add(): an extent of the grid is negative, or the grid has more than 2^63 - 1 programs",
        "ValueError add() argument 'num_threads': expected 1 to 2147483647, got 0",
    ]


STATUSES = """
#include <stdio.h>
#include <sys/resource.h>
#include "matmul.h"

static float a[4], b[4], c[4];

static void call(int x, int y, int z, float *first, int threads)
{
    printf("%d\\n", matmul(x, y, z, first, b, c, 2, 2, 2, 2, 1, 2, 1, 2, 1, threads));
}

int main(void)
{
    struct rlimit none = {1 << 20, 1 << 20};
    call(0, 1, 1, a, 1);
    call(-1, 1, 1, a, 1);
    call(2147483647, 2147483647, 2147483647, a, 1);
    call(1, 1, 1, (float *)((char *)a + 1), 1);
    call(1, 1, 1, a, -1);
    call(1, 1, 1, a, 1);
    fflush(stdout);
    if (setrlimit(RLIMIT_AS, &none) != 0)
        return 3;
    call(1, 1, 1, a, 1);
    puts(matmul_strerror(BLOCKLANG_ERROR_MEMORY));
    puts(matmul_strerror(77));
    return 0;
}
"""


def test_statuses(build: Build, linker: list[str], tmp_path: Path) -> None:
    program = STATUSES.replace("#include <stdio.h>", "#define _XOPEN_SOURCE 700\n#include <stdio.h>")
    main = compile_c(linker, program, "matmul", build("matmul"), tmp_path)
    done = subprocess.run([main], capture_output=True, text=True)
    *statuses, memory, unknown = done.stdout.splitlines()
    assert statuses == ["0", "1", "1", "2", "3", "0", "4"]
    assert memory == "there is not enough memory for the blocks of one program"
    assert unknown == "no status of this library"


def test_the_header_is_cpp_too(build: Build, tmp_path: Path) -> None:
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    (tmp_path / "main.cpp").write_text('#include "add.h"\n#include "matmul.h"\nint main() {}\n')
    includes = [f"-I{build(name)}" for name in ("add", "matmul")]
    command = [compiler, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "main.cpp", *includes]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# ---- threads ----


def test_threads_that_call_at_once(build: Build, run_without_compiler: Run, tmp_path: Path) -> None:
    """Each matrix product shares packed tiles in scratch memory of its own call."""
    code = """
from concurrent.futures import ThreadPoolExecutor
from matmul import matmul

def product(seed):
    random = np.random.default_rng(seed)
    a, b = random.random((600, 400), np.float32), random.random((400, 520), np.float32)
    alone, out = np.zeros((2, 600, 520), np.float32)
    sizes = (600, 520, 400, 400, 1, 520, 1, 520, 1)
    matmul(a, b, alone, *sizes, grid=25, num_threads=1)
    same = 0
    for _ in range(20):
        out[:] = 0
        matmul(a, b, out, *sizes, grid=25, num_threads=2)
        same += out.tobytes() == alone.tobytes()
    return same

with ThreadPoolExecutor(2) as pool:
    print(*pool.map(product, range(2)))
"""
    assert run_without_compiler(build("matmul") / "site", code).split() == ["20", "20"]


def test_a_forked_child_may_call(build: Build, run_without_compiler: Run) -> None:
    code = """
import os
from add import add
x = np.ones(200_000, np.float32)
out = np.zeros_like(x)
add(x, x, out, x.size, grid=49, num_threads=2)
child = os.fork()
if child == 0:
    add(x, out, out, x.size, grid=49, num_threads=2)
    os._exit(0 if (out == 3).all() else 1)
print(os.waitpid(child, 0)[1], (out == 2).all())
"""
    assert run_without_compiler(build("add") / "site", code).split() == ["0", "True"]


# ---- the files ----


def test_only_the_documented_symbols_are_visible(build: Build) -> None:
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("no nm")
    listed = subprocess.run(
        [nm, "-D", "--defined-only", build("add") / "libadd.so"], capture_output=True, text=True
    )
    names = {line.split()[-1] for line in listed.stdout.splitlines()}
    assert names == {"add", "add_restrict", "add_strerror", "add_cpu_level"}


def test_the_wheel_says_where_it_installs(build: Build) -> None:
    from packaging.tags import sys_tags
    from packaging.utils import parse_wheel_filename

    (wheel,) = build("add").glob("*.whl")
    name, version, _, tags = parse_wheel_filename(wheel.name)
    assert (name, str(version)) == ("add", "0.1.0")
    assert tags & set(sys_tags())
    assert not any(tag.platform in ("any", "linux_x86_64") for tag in tags)
    assert "Root-Is-Purelib: false" in (build("add") / "site/add-0.1.0.dist-info/WHEEL").read_text()


@pytest.mark.slow
def test_the_package_is_typed(build: Build, tmp_path: Path) -> None:
    site = build("add") / "site"
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), "-p", "add"]
    done = subprocess.run(command, cwd=site, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
