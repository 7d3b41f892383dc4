"""Kernels as operators of PyTorch: `bl.torch.op`.

An operator is what PyTorch itself knows: it has a schema, shapes without data, a gradient; `torch.compile`,
`torch.export` and `torch.func` treat it as one of their own. Registration is `torch.library.custom_op`'s;
what is added here: shapes come from the function itself, run with launches that do nothing; a backward says
by the names of its parameters what is kept for it, and is an operator too; a batch (`vmap`) is a loop.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import torch

from blocklang.diagnostics import LaunchError, Location
from blocklang.jit.function import JITFunction
from blocklang.jit.functional import KernelFunction, caller_location, named_results
from blocklang.jit.interface import KernelInterface
from blocklang.jit.recording import is_skipping, launches_skipped

Function = Callable[..., Any]


class Operator:
    """An operator of PyTorch whose work is done by kernels; call it as a function of tensors.

    Attributes:
        name: `namespace::name`.
        op: the `torch.ops` overload, for `torch.library.opcheck` and for graphs.
        fn: the function that launches.
    """

    def __init__(
        self, function: Function, name: str, mutates: Sequence[str], location: Location | None
    ) -> None:
        self.fn = function
        self.name = name
        self.location = location
        self.__name__ = name.partition("::")[2]
        self.__doc__ = function.__doc__
        try:
            self._definition = torch.library.custom_op(name, function, mutates_args=tuple(mutates))
        except ValueError as reason:
            raise LaunchError(
                f"{name} cannot be an operator: {reason}",
                location=location,
                help="annotate each parameter and the result: "
                "`def f(x: torch.Tensor, eps: float) -> torch.Tensor`",
            ) from None
        namespace, _, own = name.partition("::")
        self.op: Any = getattr(getattr(torch.ops, namespace), own).default
        self._definition.register_fake(self._shapes)
        self._definition.register_vmap(self._batched)
        if not mutates:
            self._definition.register_autograd(self._refuse_gradient)

    def __repr__(self) -> str:
        return f"Operator({self.op._schema})"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.op(*args, **kwargs)

    def register_fake(self, function: Function) -> Function:
        """Let `function` say the shapes of the results, instead of the operator's own lines."""
        self._definition.register_fake(function)
        return function

    def register_autograd(self, backward: Function, *, setup_context: Function | None = None) -> None:
        """Give the gradient in PyTorch's own form, with a context; see `torch.library.register_autograd`.

        A `backward` that launches kernels must do so in operators, or `torch.compile` cannot follow it.
        """
        self._definition.register_autograd(backward, setup_context=setup_context)

    @overload
    def backward(self, function: Function, /) -> Operator: ...
    @overload
    def backward(
        self, function: None = None, /, *, inputs: Sequence[str] | None = None
    ) -> Callable[[Function], Operator]: ...
    def backward(self, function: Function | None = None, /, *, inputs: Sequence[str] | None = None) -> Any:
        """Give the gradient: a function of what its parameters name.

        `grad` is the gradient of the result, `output` the result, and every input goes by its name; an
        operator of several results has `grad_0`, `grad_1`, `output_0`, ... What is named is kept for the
        backward, nothing else. The function becomes an operator, so it may launch kernels, and may have a
        backward itself.

        Args:
            function: returns one gradient for each of `inputs`: a tensor, or a tuple of tensors.
            inputs: names of the inputs that have a gradient; by default every tensor.

        Example:
            @softmax.backward
            def softmax_backward(grad: torch.Tensor, output: torch.Tensor) -> torch.Tensor: ...
        """
        if function is None:
            return lambda decorated: self._differentiate_by(decorated, inputs)
        return self._differentiate_by(function, inputs)

    def _differentiate_by(self, function: Function, inputs: Sequence[str] | None) -> Operator:
        derivative = function
        if not isinstance(derivative, Operator):
            derivative = Operator(function, f"{self.name}_backward", (), _location_of(function))
        kept = [a.name for a in derivative.op._schema.arguments]
        self._check_backward(derivative, kept, inputs)
        arguments = [a.name for a in self.op._schema.arguments if not a.kwarg_only]
        targets = self._differentiable(inputs)

        def set_up(ctx: Any, inputs: Any, output: Any, keyword_only_inputs: Any = None) -> None:
            known = {**dict(zip(arguments, inputs, strict=True)), **(keyword_only_inputs or {})}
            known |= self._results("output", output)
            tensors = [n for n in kept if isinstance(known.get(n), torch.Tensor)]
            ctx.save_for_backward(*[known[n] for n in tensors])
            ctx.kept_tensors = tensors
            ctx.kept_values = {n: known[n] for n in kept if n in known and n not in tensors}

        def differentiate(ctx: Any, *grads: Any) -> Any:
            known = {**ctx.kept_values, **dict(zip(ctx.kept_tensors, ctx.saved_tensors, strict=True))}
            known |= self._results("grad", grads[0] if len(grads) == 1 else grads)
            answer = derivative(*[known[n] for n in kept])
            found = dict(zip(targets, answer if isinstance(answer, (tuple, list)) else [answer], strict=True))
            gradients = tuple(found.get(n) for n in arguments)
            return gradients if len(gradients) > 1 else gradients[0]

        self._definition.register_autograd(differentiate, setup_context=set_up)
        return derivative

    def _differentiable(self, inputs: Sequence[str] | None) -> list[str]:
        tensors = [a.name for a in self.op._schema.arguments if str(a.type) == "Tensor" and not a.kwarg_only]
        return tensors if inputs is None else list(inputs)

    def _results(self, word: str, values: Any) -> dict[str, Any]:
        return named_results(word, values, len(self.op._schema.returns))

    def _check_backward(
        self, derivative: Operator, kept: Sequence[str], inputs: Sequence[str] | None
    ) -> None:
        count = len(self.op._schema.returns)
        own = [a.name for a in self.op._schema.arguments]
        given = [*self._results("grad", range(count)), *self._results("output", range(count))]
        unknown = [n for n in kept if n not in own and n not in given]
        if unknown:
            raise LaunchError(
                f"the backward of {self.name} asks for {unknown[0]!r}, which it does not have",
                location=derivative.location,
                help=f"its parameters can be {', '.join([*given, *own])}",
            )
        targets = self._differentiable(inputs)
        returns = len(derivative.op._schema.returns)
        if any(n not in own for n in targets) or returns != len(targets):
            raise LaunchError(
                f"the backward of {self.name} returns {returns} gradients, and they are of "
                f"{', '.join(targets)}",
                location=derivative.location,
                help="return a gradient for each tensor, or say which have one: `@f.backward(inputs=['x'])`",
            )

    def _shapes(self, *args: Any, **kwargs: Any) -> Any:
        with launches_skipped():
            return self.fn(*args, **kwargs)

    def _batched(self, info: Any, in_dims: Any, *args: Any, **kwargs: Any) -> Any:
        def item(value: Any, dimension: int | None, index: int) -> Any:
            return value if dimension is None else value.select(dimension, index)

        calls = [
            self.op(*[item(a, d, index) for a, d in zip(args, in_dims, strict=True)], **kwargs)
            for index in range(info.batch_size)
        ]
        if not self.op._schema.returns:
            return None, None
        if isinstance(calls[0], torch.Tensor):
            return torch.stack(calls), 0
        return tuple(map(torch.stack, zip(*calls, strict=True))), (0,) * len(calls[0])

    def _refuse_gradient(self, ctx: Any, *grads: Any) -> Any:
        raise LaunchError(
            f"a gradient is asked of operator {self.name}, which has none",
            location=self.location,
            help=f"give it one with `@{self.__name__}.backward`, or call it under `torch.no_grad()` "
            "or on `x.detach()`",
        )


def _location_of(function: Any) -> Location | None:
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    try:
        lines, first = inspect.getsourcelines(function)
    except OSError:
        return Location(code.co_filename, code.co_firstlineno)
    for offset, text in enumerate(lines):
        at = text.find("def ")
        if at >= 0:
            return Location(
                code.co_filename, first + offset, at + 4, first + offset, at + 4 + len(function.__name__)
            )
    return Location(code.co_filename, first)


def _default_name(function: Any) -> str:
    """Of the module and the function, so that operators of two modules never meet."""
    module = str(getattr(function, "__module__", "") or "blocklang").strip("_").replace(".", "_")
    return f"{module}::{function.__name__}"


@overload
def op(name: str | None = None, /, *, mutates: Sequence[str] = ()) -> Callable[[Function], Operator]: ...
@overload
def op(
    function: Function | KernelInterface,
    /,
    *,
    name: str | None = None,
    mutates: Sequence[str] = (),
    grid: Any = None,
    outputs: Mapping[str, Any] | None = None,
    inputs: Mapping[str, type] | None = None,
    contiguous: bool = True,
    **values: Any,
) -> Operator: ...
def op(
    function: Any = None,
    /,
    *,
    name: str | None = None,
    mutates: Sequence[str] = (),
    grid: Any = None,
    outputs: Mapping[str, Any] | None = None,
    inputs: Mapping[str, type] | None = None,
    contiguous: bool = True,
    **values: Any,
) -> Any:
    """Make an operator of PyTorch, of a function that launches kernels or of one kernel.

    A function is decorated. It has annotations, makes its results, launches, and returns them:

        @bl.torch.op
        def softmax(x: torch.Tensor) -> torch.Tensor:
            out = torch.empty_like(x)
            kernel[(x.shape[0],)](out, x, ...)
            return out

    For a kernel add(x, y, out, n, BLOCK) it is said what each parameter is; what is left are inputs:

        add = bl.torch.op(
            add_kernel, grid=lambda meta: (bl.cdiv(meta["n"], meta["BLOCK"]),),
            outputs={"out": "x"}, n=lambda x: x.numel(), BLOCK=1024,
        )

    Args:
        function: the function or the kernel; its name is the first argument if it is text.
        name: `"library::name"`; by default of the module and the function.
        mutates: inputs that are changed in place.
        grid: of a kernel, as in brackets at a launch.
        outputs: of a kernel: for each parameter that it fills, the input that the result is like, or a
            function of inputs (by name) that makes it.
        inputs: of a kernel: types of inputs that are no tensors, such as `{"eps": float}`.
        contiguous: a kernel is given its inputs as contiguous memory, if need be copies; without, as they
            are, so it needs their strides.
        values: of a kernel: every other parameter, a value or a function of the inputs (by name).

    Returns:
        Operator: call it on tensors. `.backward` gives it a gradient.

    Raises:
        LaunchError: the roles of the parameters do not fit.
    """
    location = caller_location()
    if isinstance(function, str):
        function, name = None, function
    if function is None:
        return lambda decorated: op(
            decorated,
            name=name,
            mutates=mutates,
            grid=grid,
            outputs=outputs,
            inputs=inputs,
            contiguous=contiguous,
            **values,
        )
    if isinstance(function, KernelInterface):
        if not isinstance(function, JITFunction):
            raise LaunchError(
                f"this form is for a kernel itself, not for {type(function).__name__} around one",
                location=location,
                help="write a function that launches it, and put `@bl.torch.op` above",
            )
        kernel = KernelFunction(function, outputs or {}, mutates, values, location)
        return Operator(
            _launching(kernel, grid, inputs or {}, contiguous),
            name or _default_name(function),
            mutates,
            location,
        )
    if grid is not None or outputs or inputs or values:
        raise LaunchError(
            f"grid, outputs, inputs and values are for a kernel; {function.__name__} is a function",
            location=location,
            help="let the function launch its kernels and return what it made",
        )
    return Operator(function, name or _default_name(function), mutates, _location_of(function))


def _launching(kernel: KernelFunction, grid: Any, numbers: Mapping[str, type], contiguous: bool) -> Function:
    """A function with a signature that launches one kernel."""
    if grid is None:
        raise kernel.error("a kernel needs a grid", "write grid=(x,), or grid=lambda meta: (...)")
    names = [p.name for p in kernel.inputs]
    checked: list[bool] = []  # empty until the first launch

    def launch(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        seen = {n: _dense(v) if contiguous else v for n, v in given.items()}
        made = kernel.outputs_for(seen, lambda x: torch.empty_like(x, memory_format=torch.contiguous_format))
        arguments = {**seen, **made, **kernel.values_for(seen)}
        if not checked and not is_skipping():
            kernel.check_writes(arguments)
            checked.append(True)
        kernel.kernel[grid](**arguments)
        for name in kernel.updates:
            if seen[name] is not given[name]:
                given[name].copy_(seen[name])
        results = tuple(made.values())
        return results[0] if len(results) == 1 else results or None

    count = len(kernel.outputs)
    returns: Any = torch.Tensor if count else None
    if count > 1:
        returns = types.GenericAlias(tuple, (torch.Tensor,) * count)
    signature = inspect.Signature(
        [
            inspect.Parameter(
                n, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=numbers.get(n, torch.Tensor)
            )
            for n in names
        ],
        return_annotation=returns,
    )
    launch.__name__ = kernel.kernel.__name__
    launch.__doc__ = kernel.kernel.__doc__
    launch.__signature__ = signature  # type: ignore[attr-defined]
    return launch


def _dense(value: Any) -> Any:
    return value.contiguous() if isinstance(value, torch.Tensor) else value
