"""`inline_asm_elementwise`: PTX as Triton kernels in the wild write it, compiled for the CPU.

The text is read as straight-line PTX on registers (`ptx`), and every instruction becomes operations of the
language, so both modes and every device give the same bits.
"""

from __future__ import annotations

from typing import Any

from blocklang.language.registry import builtin


@builtin
def inline_asm_elementwise(asm: Any, constraints: Any, args: Any, dtype: Any, is_pure: Any, pack: Any) -> Any:
    """Run straight-line PTX on every element.

    Args:
        asm: PTX text; `$0`, `$1`, ... are the registers of the outputs, then of the inputs.
        constraints: for each register its kind: `=r`, `=f`, ... for outputs, `r`, `f`, ... for inputs.
        args: blocks and scalars, broadcast to one shape.
        dtype: the element type of the result, or a tuple of them for several results.
        is_pure: accepted; what is understood has no effects.
        pack: how many elements one run of the text computes. Elements of less than 32 bits share registers.
            Which elements meet in a pack is not said, so none may influence another.

    Returns:
        A tensor, or a tuple of tensors. Approximate instructions give the accurate result.

    Example:
        x = tl.full((8,), 0.5, tl.float32)
        y = tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [x], tl.float32, True, 1)
    """
    from blocklang.language.ptx.inlining import inline  # a reader of PTX, which few kernels need

    return inline(asm, constraints, args, dtype, is_pure, pack)
