"""Objects are loaded, found by name, kept apart, and freed."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from blocklang.runtime.loader import LoadedObject, assemble
from tests.architecture.rooms import ROOT

_ANSWER = "define i64 @answer() {{\n  ret i64 {value}\n}}\n"


def call(address: int) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(address)())


def test_equal_names_in_two_objects_do_not_meet() -> None:
    first = LoadedObject(assemble(_ANSWER.format(value=1)), ["answer"])
    second = LoadedObject(assemble(_ANSWER.format(value=2)), ["answer"])
    assert [call(first.address("answer")), call(second.address("answer"))] == [1, 2]


def test_functions_of_the_process_are_found() -> None:
    source = "declare i32 @abs(i32)\ndefine i32 @f(i32 %x) {\n  %y = call i32 @abs(i32 %x)\n  ret i32 %y\n}\n"
    loaded = LoadedObject(assemble(source), ["f"])
    assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(loaded.address("f"))(-3) == 3


def test_a_missing_function_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match="materialize"):
        LoadedObject(
            assemble("declare void @nowhere_to_be_found()\ndefine void @f() {\n"
                     "  call void @nowhere_to_be_found()\n  ret void\n}\n"),
            ["f"],
        )  # fmt: skip
    assert "nowhere_to_be_found" in capfd.readouterr().err


def resident_kib() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the memory use from /proc")
def test_memory_of_dropped_objects_is_given_back() -> None:
    code = assemble(_ANSWER.format(value=1))
    for _ in range(100):
        LoadedObject(code, ["answer"])
    before = resident_kib()
    for _ in range(1000):
        LoadedObject(code, ["answer"])
    assert resident_kib() - before < 1024


def test_llvmlite_is_loaded_by_the_first_object_only() -> None:
    check = (
        "import sys, blocklang.runtime.launch as l; assert 'llvmlite' not in sys.modules\n"
        "import blocklang.runtime.loader as l; l.assemble(''); assert 'llvmlite' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", check], cwd=ROOT, check=True)


_FORK_WHILE_ANOTHER_THREAD_COMPILES = """
import os, threading, time
from blocklang.runtime.loader import LoadedObject, assemble

def compile_one():
    LoadedObject(assemble("define i64 @answer() {\\n  ret i64 7\\n}\\n"), ["answer"])

def compile_all():
    while not stopped:
        compile_one()

stopped = False
compile_one()
threads = [threading.Thread(target=compile_all) for _ in range(3)]
for thread in threads:
    thread.start()
children = []
for _ in range(8):
    time.sleep(0.005)
    child = os.fork()
    if child == 0:
        compile_one()
        os._exit(0)
    children.append(child)
stopped = True
for thread in threads:
    thread.join()
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 8
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_child_forked_while_another_thread_compiles_can_compile() -> None:
    """A process of its own, which is killed with its children if one of them waits forever."""
    script = [sys.executable, "-c", _FORK_WHILE_ANOTHER_THREAD_COMPILES]
    with subprocess.Popen(script, cwd=ROOT, start_new_session=True) as process:
        try:
            assert process.wait(60) == 0
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
