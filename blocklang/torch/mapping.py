"""`cuda` means the CPU: for scripts that ask for a GPU by name.

A torch function mode sees every call into PyTorch and puts the CPU in the place of each device of type cuda:
in `device=`, in `.to("cuda")`, in `torch.device("cuda")` itself, so that comparisons of devices hold.
`.cuda()` and `pin_memory()` give the tensor that they are called on, and `is_cuda` is true of tensors on the
CPU. The functions of `torch.cuda` are replaced (`fake_cuda`). What tells a tensor's device is left alone: it
is the CPU's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode

from blocklang.torch import fake_cuda
from blocklang.torch.device import means_gpu

_CPU = torch.device("cpu")
# Where the first string argument is a device.
_TAKES_DEVICE_FIRST = frozenset({"to", "_parse_to", "set_default_device", "type", "new_tensor"})
_PINS = frozenset({"pin_memory"})


def _mapped(value: Any) -> Any:
    return _CPU if means_gpu(value) else value


class CudaMeansCpu(TorchFunctionMode):  # type: ignore[misc, unused-ignore]
    """Puts the CPU in the place of every device of type cuda."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = dict(kwargs or {})
        if func is torch.device:
            return self._device(args, named)
        name = getattr(func, "__name__", "")
        if name == "cuda":
            return args[0]
        if name == "__get__":
            owner = getattr(func, "__self__", None)
            if owner is torch.Tensor.is_cuda:
                return args[0].device.type in ("cpu", "cuda")
            return func(*args, **named)
        if name in _PINS:
            return args[0]
        if name == "is_pinned":
            return False
        if "device" in named:
            named["device"] = _mapped(named["device"])
        named.pop("pin_memory", None)
        strings = name in _TAKES_DEVICE_FIRST
        args = [_mapped(a) if strings or isinstance(a, torch.device) else a for a in args]
        return func(*args, **named)

    @staticmethod
    def _device(args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        kind = args[0] if args else named.get("type", named.get("device"))
        if isinstance(kind, int) or means_gpu(kind):  # a number alone is the index of a GPU
            return _CPU
        return torch.device(*args, **named)


def _generator(original: type) -> type:
    class Generator(original):  # type: ignore[misc, valid-type, unused-ignore]
        """A generator of random numbers; cuda means the CPU."""

        def __new__(cls, device: Any = "cpu") -> Any:
            return original(_mapped(device))

    return _standing_for(Generator, original)


def _standing_for(own: type, original: type) -> type:
    """A class that replaces another and of which every object of the other is one."""
    meta = type("Meta", (type(own),), {"__instancecheck__": lambda cls, value: isinstance(value, original)})
    stand_in: type = meta(original.__name__, (own,), {"__module__": original.__module__})
    return stand_in


def _autocast(original: type) -> type:
    class autocast(original):  # type: ignore[misc, valid-type, unused-ignore]
        """Casts automatically; cuda means the CPU."""

        def __init__(self, device_type: str = "cuda", *args: Any, **kwargs: Any) -> None:
            super().__init__("cpu" if means_gpu(device_type) else device_type, *args, **kwargs)

    return autocast


def _load(original: Callable[..., Any]) -> Callable[..., Any]:
    def load(f: Any, map_location: Any = None, **kwargs: Any) -> Any:
        """Load what was saved; tensors of a GPU come to the CPU."""
        if map_location is None or means_gpu(map_location):
            map_location = "cpu"
        return original(f, map_location=map_location, **kwargs)

    return load


@contextmanager
def cuda_means_cpu() -> Iterator[None]:
    """Let `cuda` mean the CPU while the context lasts."""
    with ExitStack() as stack:
        for name, value in fake_cuda.functions().items():
            stack.enter_context(patch.object(torch.cuda, name, value, create=True))
            if not hasattr(torch.cpu, name):  # `getattr(torch, device.type)`, and the device is the CPU
                stack.enter_context(patch.object(torch.cpu, name, value, create=True))
        stack.enter_context(patch.object(torch, "Generator", _generator(torch.Generator)))
        autocast = _autocast(torch.amp.autocast)
        stack.enter_context(patch.object(torch.amp, "autocast", autocast))
        stack.enter_context(patch.object(torch, "autocast", autocast))
        stack.enter_context(patch.object(torch, "load", _load(torch.load)))
        accelerator = getattr(torch, "accelerator", None)
        if accelerator is not None:
            replaced: dict[str, Any] = {
                "is_available": lambda: True,
                "device_count": lambda: 1,
                "synchronize": lambda *_: None,
                "current_accelerator": lambda *_, **__: _CPU,
                "current_device_index": lambda: 0,
            }
            for name, value in replaced.items():
                stack.enter_context(patch.object(accelerator, name, value, create=True))
        stack.enter_context(CudaMeansCpu())
        yield
