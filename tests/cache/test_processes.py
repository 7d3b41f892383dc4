"""What a second process finds: results without a compiler, and nothing that is out of date."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.rooms import ROOT

_PROLOGUE = """
import json, sys
import numpy as np
import blocklang as bl
import blocklang.language as tl
"""
_EPILOGUE = """
from blocklang.cache.store import named_store
found = named_store().statistics
print(json.dumps({
    "result": result, "hits": found.hits, "misses": found.misses, "kept": found.kept,
    "loaded": sorted({"llvmlite", "blocklang.frontend", "blocklang.passes"} & set(sys.modules)),
}))
"""


class Machine:
    """A directory with a user's files and a cache, in which processes are started."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.cache = home / "cache"

    def write(self, name: str, text: str, prologue: str = _PROLOGUE) -> Path:
        path = self.home / name
        path.write_text(prologue + textwrap.dedent(text))
        return path

    def start(self, script: Path, **environment: str) -> subprocess.Popen[str]:
        variables = {n: v for n, v in os.environ.items() if not n.startswith("BLOCKLANG_")}
        variables |= {"PYTHONPATH": str(ROOT), "BLOCKLANG_CACHE_DIR": str(self.cache), **environment}
        return subprocess.Popen(
            [sys.executable, "-W", "error::UserWarning", script.name],
            cwd=self.home,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, script: Path, **environment: str) -> dict[str, Any]:
        """What the script's last line says, with its other output as `stdout` and `stderr`."""
        process = self.start(script, **environment)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        *said, last = out.splitlines()
        return {**json.loads(last), "stdout": said, "stderr": err}

    def run_text(self, text: str, **environment: str) -> dict[str, Any]:
        return self.run(self.write("script.py", textwrap.dedent(text) + _EPILOGUE), **environment)

    @property
    def entries(self) -> list[Path]:
        return sorted((self.cache / "kernels").glob("*.kernel"))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def assert_found(answer: dict[str, Any]) -> None:
    """The process compiled nothing, and did not import what compiles."""
    assert answer["misses"] == answer["kept"] == 0
    assert answer["hits"] > 0
    assert answer["loaded"] == []


# Every kind of kernel whose launch needs more than code: events, tuples, descriptors, scratch, tuning.
_KINDS = """
@bl.jit
def inner(x, SCALE: tl.constexpr):
    return x * SCALE

@bl.jit
def softmax(out, x, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + cols, mask=cols < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + tl.program_id(0) * n + cols, inner(e / tl.sum(e, 0), 2), mask=cols < n)

@bl.jit
def sorting(x, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    tl.store(x + cols, tl.sort(tl.load(x + cols)))

@bl.jit
def printing(x):
    tl.device_print("value", tl.load(x + tl.program_id(0)))

@bl.jit(debug=True)
def asserting(x):
    tl.device_assert(tl.load(x) < 3, "too large")

@bl.jit
def tupled(out, pair, DTYPE: tl.constexpr):
    tl.store(out, (tl.load(pair[0]) + pair[1]).to(DTYPE))

@bl.jit
def described(desc, out):
    tl.store(out + tl.arange(0, 4), tl.sum(desc.load([0, 0]), 0))

@bl.jit
def matmul(c, a, b, M: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    tl.store(c + i * M + j, tl.dot(tl.load(a + i * M + j), tl.load(b + i * M + j)))

@bl.autotune([bl.Config({"BLOCK": 16}), bl.Config({"BLOCK": 32})], key=["n"])
@bl.jit
def tuned(x, n, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + cols, tl.load(x + cols, mask=cols < n) + 1, mask=cols < n)

rng = np.random.default_rng(0)
x = rng.random((3, 100), np.float32)
soft = np.empty_like(x)
for _ in range(40):  # native launches too
    softmax[(3,)](soft, x, 100, BLOCK=128)
softmax[(3,)](x, x, 100, BLOCK=128)  # in place: another alias class
keys = rng.permutation(64).astype(np.float32)
sorting[(1,)](keys, BLOCK=64)
numbers = np.array([1.5, 2.5], np.float32)
printing[(2,)](numbers)
asserting[(1,)](numbers)
try:
    asserting[(1,)](numbers + 2)
    said = "nothing"
except Exception as error:
    said = str(error)
total = np.zeros(1, np.float16)
tupled[(1,)](total, (numbers, 4), DTYPE=tl.float16)
rows = np.arange(16, dtype=np.float32).reshape(4, 4)
sums = np.zeros(4, np.float32)
described[(1,)](bl.TensorDescriptor.from_tensor(rows, [4, 4]), sums)
product = np.zeros((16, 16), np.float32)
a, b = rng.random((2, 16, 16), np.float32)
matmul[(1,)](product, a, b, M=16)
large = np.zeros((4000, 1000), np.float32)
softmax[(4000,)](large, rng.random((4000, 1000), np.float32), 1000, BLOCK=1024)  # on the pool
ones = np.zeros(50, np.float32)
tuned[lambda meta: (bl.cdiv(50, meta["BLOCK"]),)](ones, 50)
result = [soft.sum().item(), x.sum().item(), keys.tolist(), said, total.item(), sums.tolist(),
          np.abs(product - a @ b).max().item() < 1e-5, large.sum().item(), ones.tolist()]
"""


def test_kernels_of_all_kinds_are_found_by_another_process(machine: Machine) -> None:
    first = machine.run_text(_KINDS)
    assert first["hits"] == 0
    assert first["kept"] == len(machine.entries) >= 10
    assert "llvmlite" in first["loaded"]
    second = machine.run_text(_KINDS)
    assert_found(second)
    assert second["result"] == first["result"]
    assert second["stdout"] == first["stdout"]
    assert [line.split()[0] for line in first["stdout"]] == ["pid", "pid"]
    assert "too large" in first["result"][3]
    assert first["stderr"] == second["stderr"] == ""
    switched_off = machine.run_text(_KINDS, BLOCKLANG_CACHE="0")
    assert switched_off["result"] == first["result"]
    assert switched_off["hits"] == switched_off["misses"] == 0


_LAUNCH = """
import helpers

@bl.jit
def kernel(out):
    tl.store(out, helpers.value() + helpers.NUMBER)

out = np.zeros(1, np.int32)
kernel[(1,)](out)
result = out.item()
"""
_HELPERS = """
NUMBER = 10

@bl.jit
def value():
    return 1
"""


def test_edited_helpers_and_globals_are_seen(machine: Machine) -> None:
    machine.write("helpers.py", _HELPERS)
    assert machine.run_text(_LAUNCH)["result"] == 11
    answer = machine.run_text(_LAUNCH)
    assert_found(answer)
    assert answer["result"] == 11
    machine.write("helpers.py", _HELPERS.replace("return 1", "return 2"))
    assert machine.run_text(_LAUNCH)["result"] == 12
    machine.write("helpers.py", _HELPERS.replace("NUMBER = 10", "NUMBER = 20"))
    assert machine.run_text(_LAUNCH)["result"] == 21
    machine.write("helpers.py", "# moved\n\n" + _HELPERS)
    answer = machine.run_text(_LAUNCH)
    assert_found(answer)
    assert answer["result"] == 11


def test_what_the_byte_code_does_not_show_is_not_kept(machine: Machine) -> None:
    """A module under a local name: the frontend follows it, the digest does not."""
    text = _LAUNCH.replace(
        "tl.store(out, helpers.value() + helpers.NUMBER)", "h = helpers\n    tl.store(out, h.NUMBER)"
    )
    machine.write("helpers.py", _HELPERS)
    answer = machine.run_text(text)
    assert (answer["result"], answer["kept"]) == (10, 0)
    machine.write("helpers.py", _HELPERS.replace("NUMBER = 10", "NUMBER = 20"))
    assert machine.run_text(text)["result"] == 20


_ASSERTING = """
@bl.jit
def small(x):
    tl.device_assert(x < 3, "too large")

@bl.jit(debug=True)
def kernel(x):
    small(tl.load(x))

try:
    kernel[(1,)](np.array([5], np.int32))
except Exception as error:
    result = [error.location.line, str(error)]
"""


def test_a_moved_assertion_names_its_new_line(machine: Machine) -> None:
    first = machine.run_text(_ASSERTING)
    moved = machine.run_text("\n\n\n" + _ASSERTING)
    assert_found(moved)
    assert moved["result"][0] == first["result"][0] + 3
    line = (machine.home / "script.py").read_text().splitlines()[moved["result"][0] - 1]
    assert "device_assert" in line
    assert line.strip() in moved["result"][1]


_FAULTS = """
import helpers

@bl.jit
def reading(out, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i), mask=i < n)

@bl.jit
def writing(out, pair, BLOCK: tl.constexpr):
    helpers.put(pair[0], tl.load(out + tl.arange(0, BLOCK)))

@bl.jit
def rooted(out, x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.sqrt(tl.load(x + i)))

@bl.jit
def scaled(out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, i * n)

def said(launch):
    try:
        launch()
    except Exception as error:
        return [type(error).__name__, error.location.file.split("/")[-1], error.location.line, str(error)]

x = np.arange(12, dtype=np.float32).reshape(3, 4)
out = np.zeros(16, np.float32)
whole = np.zeros(16, np.int32)
result = [
    said(lambda: reading[(4,)](out, x, 12, BLOCK=4, debug=True)),
    said(lambda: reading[(3,)](out, x, 12, BLOCK=4, debug=True)),
    said(lambda: reading[(2,)](out, x[:1], 12, BLOCK=4, debug=True)),
    said(lambda: reading[(4,)](x, x, 12, BLOCK=4, debug=True)),
    said(lambda: writing[(1,)](out, (x[1], 3), BLOCK=8, debug=True)),
    said(lambda: rooted[(1,)](out, x[0] - 2, BLOCK=4, debug="nan")),
    said(lambda: rooted[(1,)](out, x[0] - 2, BLOCK=4, debug=True)),
    said(lambda: scaled[(1,)](whole, 2**30, BLOCK=4, sanitize_overflow=True)),
    said(lambda: scaled[(1,)](whole, 2**30, BLOCK=4)),
]
"""
_PUT = """
@bl.jit
def put(x, v):
    tl.store(x + tl.arange(0, 8), v)
"""


def test_faults_are_said_alike_by_kernels_from_disk(machine: Machine) -> None:
    machine.write("helpers.py", _PUT)
    first = machine.run_text(_FAULTS)
    assert first["kept"] == len(machine.entries) > 0
    classes = [answer and answer[0] for answer in first["result"]]
    assert classes == [
        *("CheckError", None, "CheckError", "CheckError", "CheckError", "CheckError", None),
        *("DeviceAssertionError", None),
    ]
    assert "'x' (float32 of shape (3, 4)): 4 bytes past the end" in first["result"][0][3]
    assert "'x' (float32 of shape (1, 4)): 4 bytes past the end" in first["result"][2][3]
    assert "'pair.0' (float32 of shape (4,)): 4 bytes past the end" in first["result"][4][3]
    assert first["result"][4][1] == "helpers.py"
    again = machine.run_text(_FAULTS)
    assert_found(again)
    assert again["result"] == first["result"]
    assert machine.run_text(_FAULTS, BLOCKLANG_CACHE="0")["result"] == first["result"]


def test_moved_faults_name_their_new_lines(machine: Machine) -> None:
    machine.write("helpers.py", _PUT)
    first = machine.run_text(_FAULTS)
    machine.write("helpers.py", "# moved\n\n" + _PUT)
    moved = machine.run_text("\n\n\n" + _FAULTS)
    assert_found(moved)
    by = {"script.py": 3, "helpers.py": 2}
    for before, now in zip(first["result"], moved["result"], strict=True):
        assert (before is None) == (now is None)
        if before is not None:
            kind, file, line, text = before
            there = f"{file}:{line}:"
            assert there in text
            new = line + by[file]
            assert now == [kind, file, new, text.replace(there, f"{file}:{new}:")]


def test_other_settings_are_other_entries(machine: Machine) -> None:
    text = """
    @bl.jit
    def kernel(out, a, b, c):
        tl.store(out, a * b + c)
    out = np.zeros(1, np.float32)
    kernel[(1,)](out, 1.0001, 1.0001, -1.0, **OPTIONS)
    result = out.item()
    """
    seen = set()
    asked = (
        *("{}", "{'enable_fp_fusion': True}", "{'debug': True}", "{'debug': 'nan'}", "{'debug': 'poison'}"),
        *("{'debug': 'nan,poison'}", "{'sanitize_overflow': True}"),
        "{'debug': True, 'sanitize_overflow': True}",
    )
    for options in asked:
        answer = machine.run_text(text.replace("OPTIONS", options))
        assert answer["kept"] == 1, options
        seen.add(answer["result"])
    assert len(seen) == 2  # fused and not
    assert machine.run_text(text.replace("OPTIONS", "{}"), BLOCKLANG_CPU="x86-64-v2")["kept"] == 1
    for options in asked:
        assert_found(machine.run_text(text.replace("OPTIONS", options)))
    assert_found(machine.run_text(text.replace("OPTIONS", "{}"), BLOCKLANG_DEBUG="nan"))
    assert len(machine.entries) == len(asked) + 1


def test_damaged_and_planted_entries_cost_a_compilation(machine: Machine) -> None:
    machine.write("helpers.py", _HELPERS)
    machine.run_text(_LAUNCH)
    (entry,) = machine.entries
    good = entry.read_bytes()
    entry.write_bytes(good[:-7])
    answer = machine.run_text(_LAUNCH)
    assert (answer["result"], answer["kept"]) == (11, 1)
    assert "damaged" in answer["stderr"]
    assert entry.read_bytes() == good
    if os.name == "posix":
        entry.chmod(0o666)
        answer = machine.run_text(_LAUNCH)
        assert answer["result"] == 11
        assert "other users may write" in answer["stderr"]
        assert "llvmlite" in answer["loaded"]


@pytest.mark.skipif(os.name != "posix", reason="/dev/null is no directory on POSIX")
def test_no_home_and_no_place_to_write_are_no_errors(machine: Machine) -> None:
    machine.write("helpers.py", _HELPERS)
    answer = machine.run_text(_LAUNCH, BLOCKLANG_CACHE_DIR="", HOME="/dev/null", XDG_CACHE_HOME="")
    assert (answer["result"], answer["kept"]) == (11, 0)
    assert answer["stderr"].count("RuntimeWarning") == 1
    assert "BLOCKLANG_CACHE_DIR" in answer["stderr"]


def test_sixteen_processes_share_a_cold_cache(machine: Machine) -> None:
    script = machine.write("script.py", _KINDS + _EPILOGUE)
    processes = [machine.start(script) for _ in range(16)]
    answers = []
    for process in processes:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        assert err == ""
        answers.append(json.loads(out.splitlines()[-1])["result"])
    assert all(answer == answers[0] for answer in answers)
    assert not list((machine.cache / "kernels").glob("*.part"))
    last = machine.run(script)
    assert_found(last)
    assert last["result"] == answers[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_uses_and_fills_the_cache(machine: Machine) -> None:
    text = """
    import os
    @bl.jit
    def first(out):
        tl.store(out, 1)
    @bl.jit
    def second(out):
        tl.store(out, 2)
    out = np.zeros(1, np.int32)
    first[(1,)](out)
    child = os.fork()
    if child == 0:
        second[(1,)](out)
        first[(1,)](out)
        os._exit(0 if out[0] == 1 else 1)
    status = os.waitpid(child, 0)[1]
    result = [status, out.item()]
    """
    assert machine.run_text(text)["result"] == [0, 1]
    assert len(machine.entries) == 2
    assert machine.run_text(text)["result"] == [0, 1]


def test_the_interpreter_leaves_the_cache_alone(machine: Machine) -> None:
    machine.write("helpers.py", _HELPERS)
    answer = machine.run_text(_LAUNCH, BLOCKLANG_INTERPRET="1")
    assert answer["result"] == 11
    assert answer["hits"] == answer["misses"] == answer["kept"] == 0
    assert not machine.cache.exists()


def test_a_kernel_from_disk_can_be_looked_at(machine: Machine) -> None:
    text = """
    @bl.jit
    def kernel(out):
        tl.store(out, 1)
    out = np.zeros(1, np.int32)
    compiled = kernel[(1,)](out)
    found = "llvmlite" not in sys.modules
    result = [found, str(compiled.source), compiled.llvm_ir, compiled.assembly, dict(compiled.stages)]
    """
    first, second = machine.run_text(text), machine.run_text(text)
    assert [first["result"][0], second["result"][0]] == [False, True]
    assert first["result"][1:] == second["result"][1:]


def test_a_kernel_from_disk_whose_globals_changed_says_so(machine: Machine) -> None:
    text = """
    N = 1
    @bl.jit
    def kernel(out):
        tl.store(out, N)
    out = np.zeros(1, np.int32)
    compiled = kernel[(1,)](out)
    N = 2
    try:
        result = str(compiled.source)
    except bl.CompilationError as error:
        result = str(error)
    kernel[(1,)](out)
    result = [result, out.item()]
    """
    first, second = machine.run_text(text), machine.run_text(text)
    assert "store" in first["result"][0]
    assert "has changed since it was compiled" in second["result"][0]
    assert first["result"][1] == second["result"][1] == 2


def test_what_is_edited_while_a_process_runs_is_not_kept_under_the_old_name(machine: Machine) -> None:
    """Only one alias class is on disk; the other is compiled after the file has changed."""
    kernel = "@bl.jit\ndef kernel(out, x):\n    tl.store(out, tl.load(x) + 1)\n"
    machine.write("kernels.py", kernel)
    text = """
    import linecache
    import kernels
    a, b = np.zeros(1, np.int32), np.zeros(1, np.int32)
    kernels.kernel[(1,)](a, b)
    if EDITS:
        text = open("kernels.py").read().replace("+ 1", "+ 7")
        open("kernels.py", "w").write(text)
        linecache.checkcache()
    kernels.kernel[(1,)](b, b)
    result = [a.item(), b.item()]
    """
    machine.run_text(text.replace("EDITS", "False").replace("kernels.kernel[(1,)](b, b)", "pass"))
    edited = machine.run_text(text.replace("EDITS", "True"))
    assert edited["kept"] == 0
    machine.write("kernels.py", kernel)
    assert machine.run_text(text.replace("EDITS", "False"))["result"] == [1, 1]


def test_kernels_of_triton_are_found_too(machine: Machine) -> None:
    text = """
    import blocklang.triton as triton
    import blocklang.triton.language as tt

    @triton.jit
    def scale(x, FACTOR: tt.constexpr):
        return x * FACTOR

    @triton.jit
    def kernel(out, x, n, BLOCK: tt.constexpr):
        cols = tt.arange(0, BLOCK)
        tt.store(out + cols, scale(tt.load(x + cols, mask=cols < n), 3) + tt.math.exp(0.0), mask=cols < n)

    @triton.jit
    def replaced(out):
        tt.store(out, 1)

    out, x = np.zeros(5, np.float32), np.arange(5, dtype=np.float32)
    kernel[(1,)](out, x, 5, BLOCK=8)
    result = out.tolist()
    if REPLACES:
        replaced._unsafe_update_src("def replaced(out):\\n    tt.store(out, 2)\\n")
    replaced[(1,)](out)
    result.append(out[0].item())
    """
    plain = text.replace("REPLACES", "False")
    expected = [1.0, 4.0, 7.0, 10.0, 13.0, 1.0]
    first, second = machine.run_text(plain), machine.run_text(plain)
    assert first["result"] == second["result"] == expected
    assert_found(second)
    replacing = machine.run_text(text.replace("REPLACES", "True"))
    assert replacing["result"] == [*expected[:-1], 2.0]
    assert replacing["kept"] == 0
    assert machine.run_text(plain)["result"] == expected


def test_spawned_workers_find_what_their_parent_compiled(machine: Machine) -> None:
    machine.write(
        "kernels.py",
        """
        @bl.jit
        def kernel(out):
            tl.store(out, 7)

        def work(number):
            from blocklang.cache.store import named_store
            out = np.zeros(1, np.int32)
            kernel[(1,)](out)
            return [out.item(), named_store().statistics.hits, "llvmlite" in sys.modules]
        """,
    )
    text = """
    import multiprocessing
    import kernels
    if __name__ == "__main__":
        kernels.work(0)
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            result = pool.map(kernels.work, range(2), chunksize=1)
    else:
        result = None
    """
    for value, hits, loaded in machine.run_text(text)["result"]:
        assert (value, hits > 0, loaded) == (7, True, False)
