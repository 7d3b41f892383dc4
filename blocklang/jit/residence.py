"""Where the arrays of a launch lie: on this host, or in the memory of an emulated device.

Any launch takes arrays of the host and of one device together. One that is emulated takes no other device's,
and none of the host if it is strict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from blocklang.runtime.arrays import Array, numpy_dtype
from blocklang.runtime.leases import Lease

if TYPE_CHECKING:
    from blocklang.jit.parameters import Signature
    from blocklang.jit.recording import Launch


def require_one_device(signature: Signature, leases: Sequence[tuple[str, Lease]]) -> None:
    """Name the pieces of a launch's device arrays after its arguments, for what is found later.

    Raises:
        LaunchError: they are of more than one device.
    """
    first, holder = leases[0]
    for name, lease in leases:
        lease.piece.name = lease.piece.name or name
        if lease.device != holder.device:
            raise signature.error(
                f"argument {name!r} is in the memory of {lease.device}, and {first!r} in that of "
                f"{holder.device}",
                _moved(name, holder.device),
            )


def require_arrays_on(device: str, launch: Launch, strict: bool) -> None:
    """Look where the arrays of an emulated launch lie.

    Raises:
        LaunchError: one is of another device, or of the host if `strict`; says how to move it.
    """
    for name, array in launch.arrays.items():
        if (lies_on := _device_of(array)) == device or (lies_on is None and not strict):
            continue
        where = "this host" if lies_on is None else lies_on
        kinder = f", or take it where it lies: `bl.emulate({device!r})`" if lies_on is None else ""
        raise launch.function.signature.error(
            f"argument {name!r} ({numpy_dtype(array.element)} of shape {tuple(array.shape)}) is in the "
            f"memory of {where}, and the launch is emulated on {device}",
            f"{_moved(name, device)}{kinder}",
        )


def _moved(name: str, device: str) -> str:
    """What to write to have an argument on a device; an item of a tuple has no name of its own."""
    move = f"bl.device({device!r}).to_device"
    return f"move it: `{name} = {move}({name})`" if name.isidentifier() else f"pass `{move}(...)` for it"


def _device_of(array: Array) -> str | None:
    return array.owner.device if isinstance(array.owner, Lease) else None
