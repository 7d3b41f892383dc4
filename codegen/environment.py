"""The entry of a kernel: it runs the programs in IEEE's floating-point environment, whatever the caller's is.

A thread may round otherwise, or flush subnormal numbers to zero; threads of one launch may even differ. The
entry looks at the thread's control register; where it is unusual, it sets it, and sets it back at the end.
The programs are a function of their own that is not inlined, so no arithmetic moves out of the entry's care.
"""

from __future__ import annotations

from blocklang.target import Target

_ARGUMENTS = "ptr %arguments, ptr %grid, i64 %begin, i64 %end, ptr %scratch"
# MXCSR after a reset: all exceptions masked, to nearest, subnormals kept. The low six bits tell what
# happened.
_X86 = """\
  %callers = alloca i32, align 4
  %ours = alloca i32, align 4
  call void @llvm.x86.sse.stmxcsr(ptr %callers)
  %control = load i32, ptr %callers, align 4
  %settings = and i32 %control, 65472
  %is.usual = icmp eq i32 %settings, 8064
  br i1 %is.usual, label %usual, label %unusual

usual:
  call void {programs}
  ret void

unusual:
  store i32 8064, ptr %ours, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr %ours)
  call void {programs}
  call void @llvm.x86.sse.ldmxcsr(ptr %callers)
  ret void"""
# FPCR is zero: no traps, to nearest, subnormals kept, NaN as they are.
_AARCH64 = """\
  %callers = call i64 @llvm.aarch64.get.fpcr()
  %is.usual = icmp eq i64 %callers, 0
  br i1 %is.usual, label %usual, label %unusual

usual:
  call void {programs}
  ret void

unusual:
  call void @llvm.aarch64.set.fpcr(i64 0)
  call void {programs}
  call void @llvm.aarch64.set.fpcr(i64 %callers)
  ret void"""
_ELSEWHERE = """\
  call void {programs}
  ret void"""


def programs_of(symbol: str) -> str:
    """The name of the function that an entry calls."""
    return f"{symbol}.programs"


def emit_entry(target: Target, symbol: str, signature: str) -> tuple[list[str], list[str]]:
    """The declarations and the lines of the entry `symbol`, which calls `programs_of(symbol)`."""
    declarations: list[str] = []
    body = _ELSEWHERE
    if target.triple.startswith("x86_64"):
        body = _X86
        declarations = [f"declare void @llvm.x86.sse.{name}mxcsr(ptr)" for name in ("ld", "st")]
    elif target.triple.startswith(("aarch64", "arm64")):
        body = _AARCH64
        declarations = ["declare i64 @llvm.aarch64.get.fpcr()", "declare void @llvm.aarch64.set.fpcr(i64)"]
    text = body.replace("{programs}", f'@"{programs_of(symbol)}"({_ARGUMENTS})')
    return declarations, [f'define void @"{symbol}"({signature}) {{', "entry:", *text.splitlines(), "}"]
