"""A process that compiles Block IR for another: `python -m blocklang.jit.compile_worker`.

It reads requests from standard input and writes answers to standard output, until the input ends. Both are
frames: a length of 4 bytes and so many bytes. A request is JSON: the text of Block IR, and the switches. An
answer is an entry of the disk cache (`blocklang.cache.entries`) whose key is the digest of the request, so it
carries its own check; an empty frame means that it could not be compiled, and whoever asked finds out why.
The first frame says what compiler this is (`blocklang.cache.identity`).

No object of the user's comes here, and no code of the user's runs: a script needs no `__main__` guard.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import struct
import sys
from typing import IO

from blocklang.depth import deep_recursion
from blocklang.jit.environment import usual_environment

_LENGTH = struct.Struct("<I")


def write_frame(file: IO[bytes], content: bytes) -> None:
    """Write one frame. Raises OSError if nobody reads it any more."""
    file.write(_LENGTH.pack(len(content)) + content)
    file.flush()


def read_frame(file: IO[bytes]) -> bytes | None:
    """The next frame; None at the end, or if the writer ended in the middle of one."""
    header = file.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(header)
    content = file.read(length)
    return content if len(content) == length else None


def key_of(request: bytes) -> str:
    """The key of the answer to a request."""
    return hashlib.sha256(request).hexdigest()


@usual_environment()
@deep_recursion()
def answer(request: bytes) -> bytes:
    """Compile what a request asks for.

    Raises:
        BlocklangError: it cannot be compiled.
    """
    from blocklang.cache.entries import Entry, encode
    from blocklang.compiler import compile_kernel
    from blocklang.ir.parser import parse_kernel
    from blocklang.jit.capture import Captured
    from blocklang.jit.stored import describe_abi
    from blocklang.jit.switches import Switches

    wanted = json.loads(request)
    options = Switches(*wanted["switches"]).compile_options()
    compiled = compile_kernel(parse_kernel(wanted["block_ir"]), options=options)
    description = {"abi": describe_abi(compiled.abi, Captured([]))}
    return encode(key_of(request), Entry(description, compiled.object_code))


def main() -> None:
    """Answer requests until there are no more."""
    from blocklang.cache.identity import compiler_identity
    from blocklang.diagnostics import BlocklangError
    from blocklang.jit.stored import Unstorable

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal interrupts both; the other one closes the pipe
    requests = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not print into the frames
    write_frame(answers, compiler_identity().encode())
    while (request := read_frame(requests)) is not None:
        try:
            content = answer(request)
        except (BlocklangError, Unstorable):
            content = b""
        write_frame(answers, content)


if __name__ == "__main__":
    main()
