"""`.blir` files: one kernel of any level in the text syntax of IR."""

from __future__ import annotations

from pathlib import Path

import blocklang.ops  # noqa: F401  (registers the operations)
from blocklang.diagnostics import CompilationError, UsageError, VerifyError
from blocklang.ir import Kernel, parse_kernel, verify

SUFFIX = ".blir"


def read_kernel(path: Path) -> Kernel:
    """Parse and verify the kernel in a file.

    Raises:
        ParseError: the text is malformed.
        CompilationError: it breaks a rule of the IR; the message shows the operation at fault.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    kernel = parse_kernel(text, str(path))
    try:
        verify(kernel)
    except VerifyError as error:  # here the text is the user's, not ours
        message = f"the kernel breaks a rule of the IR: {error.message.rstrip()}"
        raise CompilationError(message, help="the operations and their rules are in docs/ops.md") from error
    return kernel
