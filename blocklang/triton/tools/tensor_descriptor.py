"""`triton.tools.tensor_descriptor`: `TensorDescriptor`, an array with its shape, strides and block shape."""

from __future__ import annotations

from typing import Any

from blocklang.diagnostics import LaunchError
from blocklang.triton.forwarding import forward

_look_up, __dir__ = forward(
    __name__,
    "blocklang.runtime.descriptors",
    "blocklang.runtime.tensor_descriptor",
    "blocklang.runtime.arrays",
    "blocklang",
)


class _NotBuiltYet:
    """Lets sources import the name that they may never use."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise LaunchError(
            "TensorDescriptor is not built yet", help="pass the array, its shape and its strides"
        )

    from_tensor = classmethod(lambda cls, *args, **keywords: cls(*args, **keywords))


def __getattr__(name: str) -> Any:
    if name != "TensorDescriptor":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return _look_up(name)
    except AttributeError:
        return _NotBuiltYet
