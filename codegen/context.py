"""What the lowerings of lane-wise operations share: where to write, for which target, how many lanes."""

from __future__ import annotations

from blocklang.codegen.emitter import Emitter, llvm_scalar, llvm_type, vector_of
from blocklang.codegen.float8 import narrow_float8
from blocklang.codegen.floats import narrow_from_f32, splat_number, widen_to_f32
from blocklang.ir.float8 import FLOAT8
from blocklang.ir.types import ScalarType, Type
from blocklang.target import Target


class Context:
    """What lowerings share: where to write, for which target, how many lanes."""

    def __init__(self, emit: Emitter, target: Target, width: int) -> None:
        self.emit = emit
        self.target = target
        self.width = width

    def type(self, type: Type) -> str:
        return llvm_type(type, self.width)

    @property
    def mask_type(self) -> str:
        return vector_of("i1", self.width)

    def number(self, type: ScalarType, value: float) -> str:
        return splat_number(type, value, self.width)

    def select(self, condition: str, type: Type, a: str, b: str) -> str:
        text = self.type(type)
        return self.emit.op(f"select {self.mask_type} {condition}, {text} {a}, {text} {b}")

    def intrinsic(self, name: str, type: Type, *arguments: str) -> str:
        """Call an overloaded intrinsic whose operands and result have one type."""
        scalar = llvm_scalar(type)
        suffix = {"half": "f16", "float": "f32", "double": "f64"}.get(scalar, scalar)
        text = self.type(type)
        overload = f"v{self.width}{suffix}" if self.width else suffix
        return self.emit.call(text, f"llvm.{name}.{overload}", [(text, a) for a in arguments])

    def widen(self, type: ScalarType, text: str) -> str:
        if not type.is_small_float:
            return text
        return widen_to_f32(self.emit, type, text, self.width, hardware=self.target.has_f16c)

    def narrow(self, type: ScalarType, text: str) -> str:
        if not type.is_small_float:
            return text
        return narrow_from_f32(self.emit, type, text, self.width, hardware=self.target.has_f16c)

    def restore(self, type: ScalarType, text: str) -> str:
        """The inverse of `widen`, for one of several widened values: an infinity does not saturate."""
        if not type.is_float8:
            return self.narrow(type, text)
        form = FLOAT8[type.name]
        return narrow_float8(self.emit, form, text, self.width, limit=form.top)
