"""Checks a kernel against the rules of the IR. A failure is a bug of blocklang, reported with the IR around
it.

Rules of every level:
 1. Every operation is legal at the kernel's level, and so are its result types: any operation may make
    blocks at level 'block', only tile operations and control flow at level 'tile', none at level 'placed'.
 2. Operands are present as declared, and their types meet the declared constraints.
 3. Attributes are declared, present if required, of the declared Python type, and among the choices.
 4. Result types are what the declaration's rule computes.
 5. Regions are present as declared; each ends in exactly one terminator, which is its last operation.
 6. A value is used only below its definition, in the same region or in one nested in it (dominance).
 7. Use lists and parent links agree with the structure.
 8. What an operation's own `verify_op` demands.
"""

from __future__ import annotations

from blocklang.diagnostics import VerifyError
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.declaration import infer_result_types
from blocklang.ir.printer import print_kernel
from blocklang.ir.types import BlockType, Type


class _Verifier:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def fail(self, op: Operation, message: str) -> None:
        text = print_kernel(self.kernel, annotate=lambda o: f"error: {message}" if o is op else "")
        raise VerifyError(f"{op.name}: {message}\n{text}", location=op.location)

    def region(self, region: Region, visible: set[Value]) -> None:
        visible |= set(region.args)
        for position, op in enumerate(region.ops):
            if op.parent is not region:
                self.fail(op, "the parent link does not point at the region that lists the operation")
            self.operation(op, visible)
            visible |= set(op.results)
            if op.is_terminator != (position == len(region.ops) - 1):
                self.fail(op, "a region ends in exactly one terminator")

    def operation(self, op: Operation, visible: set[Value]) -> None:
        level = self.kernel.level
        if level not in op.levels:
            self.fail(op, f"not legal at level {level!r}")
        if level not in op.block_levels and any(isinstance(r.type, BlockType) for r in op.results):
            self.fail(op, f"block results are not legal at level {level!r}")
        self._operands(op, visible)
        self._attributes(op)
        required = sum(not f.optional for f in op.region_fields)
        if not required <= len(op.regions) <= len(op.region_fields):
            self.fail(op, f"expected {required} regions, got {len(op.regions)}")
        try:
            expected = infer_result_types(op, _given_types(op))
            op.verify_op()
        except ValueError as error:
            self.fail(op, str(error))
        if expected != [r.type for r in op.results]:
            self.fail(op, f"result types should be {', '.join(map(str, expected))}")
        for region in op.regions:
            if region.parent is not op:
                self.fail(op, "a region's parent link is wrong")
            if region.terminator is None:
                self.fail(op, "a region ends without a terminator")
            self.region(region, set(visible))

    def _operands(self, op: Operation, visible: set[Value]) -> None:
        for index, value in enumerate(op.operands):
            if value not in visible:
                self.fail(op, f"operand %{value.name or index} is not defined above its use")
            if not any(u.operation is op and u.index == index for u in value.uses):
                self.fail(op, f"operand %{value.name or index} does not list this use")
        for field in op.operand_fields:
            values = op.segment(field.name)
            if not values and not (field.optional or field.variadic):
                self.fail(op, f"operand {field.name!r} is missing")
            for value in values:
                if not field.constraint.accepts(value.type):
                    self.fail(
                        op, f"operand {field.name!r} must be {field.constraint.description}, got {value.type}"
                    )

    def _attributes(self, op: Operation) -> None:
        fields = {f.name: f for f in op.attribute_fields}
        for name, value in op.attributes.items():
            if name not in fields:
                self.fail(op, f"undeclared attribute {name!r}")
            field = fields[name]
            exact_bool = isinstance(value, bool) and field.type is int
            if not isinstance(value, field.type) or exact_bool:
                self.fail(op, f"attribute {name!r} has the wrong type: {value!r}")
            if field.choices and value not in field.choices:
                self.fail(op, f"attribute {name!r} must be one of {field.choices}, got {value!r}")
        for name, field in fields.items():
            if field.required and name not in op.attributes:
                self.fail(op, f"attribute {name!r} is missing")


def _given_types(op: Operation) -> list[Type]:
    """Types of the results whose declaration has no rule."""
    fields = list(op.result_fields)
    if any(f.variadic for f in fields):
        leading = sum(not f.variadic for f in fields)
        return [
            r.type for r, f in zip(op.results, fields, strict=False) if f.rule is None and not f.variadic
        ] + [r.type for r in op.results[leading:]]
    return [r.type for r, f in zip(op.results, fields, strict=False) if f.rule is None]


def verify(kernel: Kernel) -> None:
    """Check `kernel` against the rules above.

    Raises:
        VerifyError: with the whole kernel printed and the message at the operation at fault.
    """
    _Verifier(kernel).region(kernel.body, set())
    if kernel.body.terminator is None:
        raise VerifyError(f"the kernel has no terminator\n{print_kernel(kernel)}", location=kernel.location)
