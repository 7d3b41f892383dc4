"""Kernels as operators of JAX: `bl.jax.op`.

An operator is a function of arrays that gives new arrays. Under it lie `jax.ffi.ffi_call` (machine code in
place, no Python at run time), `jax.custom_batching.custom_vmap` (a batch is further extents of the grid) and
`jax.custom_vjp` (the gradient that is given).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from blocklang.diagnostics import LaunchError, Location
from blocklang.jax.calls import Level, call
from blocklang.jax.manual_axes import vary_alike
from blocklang.jit.functional import KernelFunction, caller_location, named_results

Statics = tuple[tuple[str, Any], ...]


class Operator:
    """A kernel as a function of JAX's arrays.

    Inputs that are Python's or NumPy's numbers are passed by value; arrays are passed in place.
    """

    def __init__(self, function: KernelFunction, grid: Any) -> None:
        self._function = function
        self._grid = grid
        self._backward: Callable[..., Any] | None = None
        self._backward_inputs: tuple[str, ...] | None = None
        self.__name__ = function.kernel.__name__
        self.__doc__ = function.kernel.__doc__
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(p.name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for p in function.inputs]
        )
        self._differentiable = functools.lru_cache(maxsize=256)(self._make_differentiable)

    def __repr__(self) -> str:
        return f"Operator({self.__name__}{self.__signature__})"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            given = self.__signature__.bind(*args, **kwargs).arguments
        except TypeError as reason:
            raise LaunchError(
                f"{self.__name__}{self.__signature__}: {reason}",
                location=caller_location(),
                help="the other parameters of the kernel were bound when the operator was made",
            ) from None
        statics = tuple((n, v) for n, v in given.items() if isinstance(v, (bool, int, float, np.generic)))
        names = tuple(n for n in given if n not in dict(statics))
        arrays = vary_alike([self._as_array(name, given[name]) for name in names])
        key = tuple((n, type(v), v) for n, v in statics)
        floats = tuple(n for n, a in zip(names, arrays, strict=True) if jnp.issubdtype(a.dtype, jnp.floating))
        results = self._differentiable(names, floats, key)(*arrays)
        return results[0] if len(results) == 1 else results

    def _as_array(self, name: str, value: Any) -> Any:
        if isinstance(value, (jax.Array, np.ndarray)):
            return jnp.asarray(value) if isinstance(value, np.ndarray) else value
        try:
            return jnp.asarray(value)
        except TypeError:
            raise LaunchError(
                f"input {name!r} of {self.__name__} is a {type(value).__name__}, which is no array",
                location=caller_location(),
                help="pass an array of JAX or NumPy, or a number",
            ) from None

    def backward(
        self, function: Callable[..., Any] | None = None, /, *, inputs: Sequence[str] | None = None
    ) -> Any:
        """Give the gradient: a function of what its parameters name.

        `grad` is the gradient of the result, `output` the result, and every input goes by its name; an
        operator of several results has `grad_0`, `grad_1`, `output_0`, ... Only what is named is kept. It is
        traced as any function of JAX, and may call operators.

        Args:
            function: returns one gradient for each of `inputs`: an array, or a tuple of arrays.
            inputs: names of the inputs that have a gradient; by default every array of floats.
        """
        if function is None:
            return lambda decorated: self.backward(decorated, inputs=inputs)
        known = [p.name for p in self._function.inputs]
        count = len(self._function.outputs) + len(self._function.updates)
        results = [*named_results("grad", range(count), count), *named_results("output", range(count), count)]
        unknown = [n for n in inspect.signature(function).parameters if n not in (*known, *results)]
        unknown += [n for n in inputs or () if n not in known]
        if unknown:
            code = function.__code__
            raise LaunchError(
                f"the backward of {self.__name__} asks for {unknown[0]!r}, which it does not have",
                location=Location(code.co_filename, code.co_firstlineno),
                help=f"its parameters can be {', '.join([*results, *known])}",
            )
        self._backward = function
        self._backward_inputs = None if inputs is None else tuple(inputs)
        self._differentiable.cache_clear()
        return function

    def _make_differentiable(
        self, names: tuple[str, ...], floats: tuple[str, ...], key: tuple[Any, ...]
    ) -> Callable[..., Any]:
        statics = {name: value for name, _, value in key}
        primal = jax.jit(self._batchable(statics, names, ()))
        function: Any = jax.custom_vjp(primal)
        wanted = () if self._backward is None else tuple(inspect.signature(self._backward).parameters)

        def forward(*arrays: Any) -> tuple[Any, Any]:
            results = primal(*arrays)
            known = {**dict(zip(names, arrays, strict=True)), **self._named("output", results)}
            return results, {n: v for n, v in known.items() if n in wanted}

        def backward(kept: Any, grads: Any) -> tuple[Any, ...]:
            return self._gradients(names, floats, statics, {**kept, **self._named("grad", grads)})

        function.defvjp(forward, backward)
        differentiable: Callable[..., Any] = function
        return differentiable

    def _named(self, word: str, results: Sequence[Any]) -> dict[str, Any]:
        return named_results(word, results[0] if len(results) == 1 else results, len(results))

    def _gradients(
        self,
        names: Sequence[str],
        floats: Sequence[str],
        statics: Mapping[str, Any],
        known: Mapping[str, Any],
    ) -> tuple[Any, ...]:
        if self._backward is None:
            raise self._function.error(
                f"a gradient is asked of operator {self.__name__}, which has none",
                f"give it one with `@{self.__name__}.backward`, or stop it: `jax.lax.stop_gradient(x)`",
            )
        inputs = floats if self._backward_inputs is None else self._backward_inputs
        named = {**statics, **known}
        answer = self._backward(**{n: named[n] for n in inspect.signature(self._backward).parameters})
        gradients = answer if isinstance(answer, (tuple, list)) else (answer,)
        if len(gradients) != len(inputs):
            raise self._function.error(
                f"the backward of {self.__name__} returns {len(gradients)} gradients, and they are of "
                f"{', '.join(inputs)}",
                "return a gradient for each array, or say which have one: `@f.backward(inputs=['x'])`",
            )
        found = dict(zip(inputs, gradients, strict=True))
        return tuple(found.get(name) for name in names)

    def _batchable(
        self, statics: Mapping[str, Any], names: tuple[str, ...], levels: tuple[Level, ...]
    ) -> Callable[..., Any]:
        """The operator with the axes of these levels, the outermost first."""

        def one(*arrays: Any) -> tuple[Any, ...]:
            return call(self._function, self._grid, statics, names, arrays, levels)

        def batch(size: int, has_axis: Sequence[bool], *arrays: Any) -> tuple[Any, Any]:
            own = list(has_axis)
            moved = list(arrays)
            for index, name in enumerate(names):
                if name in self._function.updates and not own[index]:  # each item gets its own
                    moved[index] = jnp.broadcast_to(arrays[index], (size, *arrays[index].shape))
                    own[index] = True
            results = self._batchable(statics, names, (Level(size, tuple(own)), *levels))(*moved)
            return results, (True,) * len(results)

        function: Any = jax.custom_batching.custom_vmap(one)
        function.def_vmap(batch)
        batchable: Callable[..., Any] = function
        return batchable


def op(
    kernel: Any,
    /,
    *,
    grid: Any = None,
    outputs: Mapping[str, Any] | None = None,
    updates: Sequence[str] = (),
    **values: Any,
) -> Operator:
    """Make an operator of JAX of a kernel.

    For a kernel add(x, y, out, n, BLOCK) it is said what each parameter is; what is left are inputs:

        add = bl.jax.op(
            add_kernel, grid=lambda meta: (bl.cdiv(meta["n"], meta["BLOCK"]),),
            outputs={"out": "x"}, n=lambda x: x.size, BLOCK=1024,
        )
        add(x, y)   # also under jax.jit, jax.vmap, jax.shard_map; with `@add.backward` under jax.grad

    Args:
        kernel: a function under `@jit`.
        grid: as in brackets at a launch.
        outputs: for each parameter that the kernel fills, the input that the result is like, or a function
            of inputs (by name) for a `jax.ShapeDtypeStruct`. The memory is not cleared: what is added to, is
            an update.
        updates: inputs that the kernel changes. The operator returns what they become, behind the outputs;
            the arrays that were passed stay as they are (memory is reused where nobody else needs it).
        values: every other parameter, a value or a function of the inputs (by name), which have shape and
            dtype.

    Returns:
        Operator: call it on arrays. `.backward` gives it a gradient.

    Raises:
        LaunchError: the roles of the parameters do not fit.
    """
    location = caller_location()
    function = KernelFunction(kernel, outputs or {}, updates, values, location)
    if grid is None:
        raise function.error("a kernel needs a grid", "write grid=(x,), or grid=lambda meta: (...)")
    return Operator(function, grid)
