"""Where a launch stands under the roofs of a device: its arithmetic intensity, its rate, what bounds it.

The model is Williams, Waterman and Patterson's (Communications of the ACM 52:4, 2009): operations per second
are at most the peak of what computes, and at most the bytes per second of the memory times the operations
per byte.

Invariants: rates are of what the launch runs on: one core of a neuron device, the whole chip of a gpu.
"""

from __future__ import annotations

from dataclasses import dataclass

from blocklang.emulation.profile import LaunchProfile
from blocklang.emulation.work import Work
from blocklang.target import Device
from blocklang.target.device import Engine


@dataclass(frozen=True)
class Roof:
    """The most operations per second of an engine."""

    name: str
    rate: float


@dataclass(frozen=True)
class Roofline:
    """A launch as a point, and the roofs above it.

    Attributes:
        intensity: floating-point operations per byte of global memory.
        rate: floating-point operations per second.
        bandwidth: bytes per second of global memory; None if the description does not say.
        roofs: of the engines that this launch could use, the highest first.
    """

    intensity: float
    rate: float
    bandwidth: float | None
    roofs: tuple[Roof, ...]

    @property
    def bound(self) -> float | None:
        """The most operations per second at this intensity; None if no roof is known."""
        limits = [roof.rate for roof in self.roofs[:1]]
        if self.bandwidth is not None:
            limits.append(self.bandwidth * self.intensity)
        return min(limits, default=None)


def roofline_of(launch: LaunchProfile, device: Device) -> Roofline | None:
    """The roofline of a launch; None if it has no time, no arithmetic, or moved no bytes."""
    work, estimate = launch.work, launch.estimate
    if work is None or estimate is None or not estimate.seconds or not work.flops:
        return None
    moved = estimate.bytes.get("global", 0.0)
    if not moved:
        return None
    roofs = tuple(sorted(_roofs(work, device), key=lambda roof: -roof.rate))
    return Roofline(work.flops / moved, work.flops / estimate.seconds, _bandwidth(device), roofs)


def _bandwidth(device: Device) -> float | None:
    """Bytes per second between the memory of arrays and what computes."""
    if device.transfers is not None:
        dma = device.transfers
        if dma.core_bandwidth is not None:
            return dma.core_bandwidth.value
        return dma.engines.value * dma.bandwidth.value
    figure = device.memory["global"].bandwidth
    return None if figure is None else figure.value


def _roofs(work: Work, device: Device) -> list[Roof]:
    found = []
    for dtype in work.products:
        for name, engine in device.engines.items():
            figure = engine.throughput.get(dtype) or engine.throughput.get(dtype[:2])  # f8e4m3: f8
            if figure is not None:
                found.append(Roof(f"{name} {dtype}", figure.value))
    if work.lanes:
        for name in ("vector", "simt"):
            if name in device.engines:
                found += _lane_roof(name, device.engines[name])
    return list(dict.fromkeys(found))


def _lane_roof(name: str, engine: Engine) -> list[Roof]:
    """What is published for f32, or one operation for each element of a cycle; none if neither is known."""
    elements = engine.elements_of("f32")
    if "f32" in engine.throughput:
        return [Roof(f"{name} f32", engine.throughput["f32"].value)]
    return [] if elements is None else [Roof(f"{name} f32", elements * engine.clock_hz)]
