"""Compiling several versions of kernels at once, with the help of other processes.

LLVM is used under one lock per process, and the rest of a compilation is Python, so threads do not help.
Helpers are fresh processes (`compile_worker`) that read the text of Block IR and answer with machine code.
They take what is to be compiled from the end of one list; this process compiles from its start meanwhile. So
nothing waits for a process that starts slowly, is refused by the system, or dies: what it leaves is compiled
here.

BLOCKLANG_COMPILE_PROCESSES says how many helpers there may be; 0 for none.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import IO

from blocklang.cache.entries import BrokenEntry, decode
from blocklang.cache.identity import compiler_identity
from blocklang.diagnostics import BlocklangError
from blocklang.ir.core import Kernel
from blocklang.ir.printer import print_kernel
from blocklang.jit.compile_worker import key_of, read_frame, write_frame
from blocklang.jit.function import MadeCode, Uncompiled
from blocklang.jit.stored import abi_from
from blocklang.runtime.threads import default_num_threads

PATIENCE_SECONDS = 30.0  # for what helpers still compile when all else is done
START_SECONDS = 0.4  # until a helper is there, besides loading the compiler
PAYS_FROM = 3.0  # times what a helper needs before its first compilation, of work that is left
# Places that they report are not part of the text of Block IR.
_SAYS_PLACES = frozenset({"device_print", "device_assert"})


def helper_limit() -> int:
    """How many helpers there may be: as many as there are processors besides this process's own."""
    chosen = os.environ.get("BLOCKLANG_COMPILE_PROCESSES", "").strip()
    if chosen.isdecimal():
        return int(chosen)
    return max(default_num_threads() - 1, 0) if _is_python(sys.executable) else 0


def _is_python(path: str | None) -> bool:
    """False in a program that embeds Python: to start it again would not start Python."""
    return bool(path) and os.path.basename(str(path)).lower().startswith(("python", "pypy"))


def compile_all(wanted: Sequence[Uncompiled], advance: Callable[[int], object] = lambda done: None) -> int:
    """Compile versions; those that cannot be are left uncompiled, and say why when they are launched.

    Args:
        wanted: what to compile.
        advance: called with the number of those that are done, from this thread.

    Returns:
        How many other processes compiled.
    """
    left = deque(wanted)
    made: deque[tuple[Uncompiled, MadeCode]] = deque()
    helpers: list[_Helper] = []
    taken = done = 0
    seconds: list[float] = []  # of each that was compiled here
    try:
        # Whether helpers are busy is asked first: what one has finished since is in one of the lists.
        while any(helper.is_busy for helper in helpers) or left or made:
            while made:
                item, code = made.popleft()
                item.compile(code)
                taken += 1
                done += 1
                advance(done)
            try:
                item = left.popleft()
            except IndexError:
                _wait_for(helpers, made)
                continue
            started = time.perf_counter()
            _compile_here(item)
            done += 1
            advance(done)
            seconds.append(time.perf_counter() - started)
            if not helpers and _pays(seconds, len(left)):
                helpers = [_Helper(left, made) for _ in range(min(helper_limit(), len(left) - 1))]
    finally:
        for helper in helpers:
            helper.stop()
    return taken


def _pays(seconds: Sequence[float], left: int) -> bool:
    """True if helpers would save time.

    Args:
        seconds: what was compiled here took so long; the first includes loading the compiler.
        left: how many are left.
    """
    if len(seconds) < 2 or left < 2:
        return False
    start = START_SECONDS + max(seconds[0] - seconds[1], 0.0)
    return min(seconds[1:]) * left > PAYS_FROM * start


def _compile_here(item: Uncompiled) -> None:
    try:
        item.compile()
    except BlocklangError:
        return  # its launch says so


def _wait_for(helpers: Sequence[_Helper], made: deque[tuple[Uncompiled, MadeCode]]) -> None:
    """Wait for a result; a helper that takes too long is ended, and what it held is compiled here."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not made and any(helper.is_busy for helper in helpers):
        time.sleep(0.002)
        if time.monotonic() > end:
            for helper in helpers:
                helper.stop()


class _Helper:
    """A process that compiles, and the thread that talks to it.

    Args:
        left: what is to be compiled; an item is taken from its end, and put back if nothing came of it.
        made: where results go.
    """

    def __init__(self, left: deque[Uncompiled], made: deque[tuple[Uncompiled, MadeCode]]) -> None:
        self._left = left
        self._made = made
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self.is_busy = False  # holds an item
        self._thread = threading.Thread(target=self._serve, name="blocklang-compile", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the process, whatever it does."""
        self._stopped = True
        process = self._process
        if process is not None:
            process.kill()
        self._thread.join()

    def _serve(self) -> None:
        try:
            self._process = _start()
        except (OSError, ValueError):
            return
        with self._process as process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                if not self._stopped and read_frame(process.stdout) == compiler_identity().encode():
                    self._compile(process.stdin, process.stdout)
            except OSError:  # it has ended
                pass
            finally:
                process.kill()

    def _compile(self, requests: IO[bytes], answers: IO[bytes]) -> None:
        while not self._stopped:
            self.is_busy = True  # before the item is taken: nobody may think that all is done
            try:
                item = self._left.pop()
            except IndexError:
                self.is_busy = False
                return
            code: MadeCode | None = None
            try:
                code = _ask(item, requests, answers)
            finally:
                if code is None:
                    self._left.appendleft(item)
                else:
                    self._made.append((item, code))
                self.is_busy = False
            if code is None:
                return


def _start() -> subprocess.Popen[bytes]:
    found = [find_spec(name) for name in ("blocklang", "numpy", "llvmlite", "ml_dtypes")]
    origins = [spec.origin for spec in found if spec is not None and spec.origin is not None]
    paths = os.pathsep.join(dict.fromkeys(os.path.dirname(os.path.dirname(path)) for path in origins))
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "blocklang.jit.compile_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1"},
    )


def _ask(item: Uncompiled, requests: IO[bytes], answers: IO[bytes]) -> MadeCode | None:
    """What a helper makes of an item; None if it cannot."""
    kernel = item.block_ir()
    if item.specialisation.switches.debug or _says_places(kernel):
        return None
    switches = list(item.specialisation.switches)
    request = json.dumps({"block_ir": print_kernel(kernel), "switches": switches}).encode()
    write_frame(requests, request)
    content = read_frame(answers)
    if not content:
        return None
    try:
        entry = decode(key_of(request), content)
    except BrokenEntry:
        return None
    return MadeCode(abi_from(entry.description["abi"], item.version.captured), entry.object_code)


def _says_places(kernel: Kernel) -> bool:
    return any(op.name in _SAYS_PLACES for op in kernel.walk())
