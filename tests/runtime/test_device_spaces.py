"""Spaces on an emulated chip: places as addresses, partitions at their pitch, banks, and placed blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import blocklang as bl
from blocklang.abi import SpaceLayout, address_of
from blocklang.compiler import compile_counted
from blocklang.diagnostics import UsageError
from blocklang.emulation.placement import place_blocks
from blocklang.jit import record_launches
from tests.emulator import kernels


@dataclass
class Block:
    name: str = "acc"
    type: str = "<128x4xf32>"
    space: str = "accumulator"
    offset: int = 2048
    size: int = 16
    versions: int = 2


def test_a_place_is_base_pitch_and_offset() -> None:
    space = SpaceLayout("sbuf", 1 << 20, 128, 192 * 1024)
    assert space.pitch == 192 * 1024 + 4096 + 64
    assert address_of(space, 0, 0) == 1 << 20
    assert address_of(space, 3, 77) == (1 << 20) + 3 * space.pitch + 77
    assert space.host_bytes == 128 * space.pitch


@pytest.mark.parametrize(
    ("partition", "offset", "message"),
    [(-1, 0, "no partition -1"), (128, 0, "no partition 128"), (0, -1, "offset -1"), (0, 16, "offset 16")],
)
def test_places_that_are_none(partition: int, offset: int, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        address_of(SpaceLayout("psum", 0, 128, 16), partition, offset)
    assert raised.value.help


def test_bytes_are_at_their_addresses() -> None:
    sbuf = bl.device("trn2").space("sbuf")
    assert bl.device("trn2").space("scratch") is sbuf
    assert sbuf.bytes.shape == (128, 224 * 1024)
    sbuf.bytes[5, 100] = 42
    try:
        first = int(sbuf.bytes.__array_interface__["data"][0])
        assert sbuf.address_of(0, 0) == first == sbuf.layout.base
        assert sbuf.address_of(5, 100) == first + 5 * sbuf.bytes.strides[0] + 100
        view = sbuf.view(Block(space="scratch", offset=96, size=8), dtype=np.uint8)
        assert np.argwhere(view).tolist() == [[5, 4]]
    finally:
        sbuf.bytes[5, 100] = 0


def test_a_space_in_one_piece() -> None:
    shared = bl.device("h100").space("scratch")
    assert shared.layout.partitions == 1
    assert shared.bytes.shape[1] == shared.description.capacity_bytes


def test_banks() -> None:
    psum = bl.device("trn2").space("psum")
    assert [psum.bank_of(at) for at in (0, 2047, 2048, 16383)] == [0, 0, 1, 7]
    shared = bl.device("h100").space("scratch")
    assert [shared.bank_of(at) for at in (0, 3, 4, 127, 128)] == [0, 0, 1, 31, 0]
    assert bl.device("trn2").space("sbuf").bank_of(0) is None


def test_versions_of_a_block() -> None:
    psum = bl.device("trn2").space("psum")
    first, second = (psum.view(Block(), version=v) for v in range(2))
    assert first.shape == (128, 4)
    assert first.dtype == np.float32
    addresses = [int(v.__array_interface__["data"][0]) for v in (first, second)]
    assert addresses == [psum.address_of(0, 2048), psum.address_of(0, 2064)]
    second[3, 1] = 1.5
    assert first.any() == np.False_
    assert psum.bytes[3, 2064 + 4 : 2064 + 8].view(np.float32) == 1.5
    second[3, 1] = 0


@pytest.mark.parametrize(
    ("block", "version", "message"),
    [
        (Block(space="scratch"), 0, "'acc' is in scratch, not in accumulator"),
        (Block(), 2, "no version 2"),
        (Block(offset=16 * 1024 - 8), 0, "ends at byte 16392"),
    ],
)
def test_wrong_blocks(block: Block, version: int, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        bl.device("trn2").space("psum").view(block, version=version)
    assert raised.value.help


def test_unknown_spaces() -> None:
    for name in ("l1", "global", "hbm"):
        with pytest.raises(UsageError, match="no space") as raised:
            bl.device("trn2").space(name)
        assert "sbuf" in str(raised.value.help)


def test_blocks_of_a_kernel_have_places() -> None:
    """Every block that a kernel has on the chip, written where it is placed: those that live at the same time
    share no byte.
    """
    arrays = [np.zeros((64, 64), np.float32) for _ in range(3)]
    with record_launches() as launches:
        kernels.matmul[(2, 2)](*arrays, 64, 64, 64, BM=32, BN=32, BK=16)
    dev = bl.device("trn2")
    kernel = compile_counted(launches[0].compiled.source, dev.description).block
    placement = place_blocks(kernel, dev.description)
    assert {block.space for block in placement.blocks} == {"scratch", "accumulator"}
    for block in placement.blocks:
        alive = [b for b in placement.blocks if b.first <= block.last and block.first <= b.last]
        for number, each in enumerate(alive):
            dev.space(each.space).view(each, dtype=np.uint8)[...] = number
        for number, each in enumerate(alive):
            assert (dev.space(each.space).view(each, dtype=np.uint8) == number).all()
        for each in alive:
            dev.space(each.space).view(each, dtype=np.uint8)[...] = 0
    (product,) = (block for block in placement.blocks if block.space == "accumulator")
    assert dev.space("psum").view(product).dtype == np.float32


def test_a_bank_is_of_the_partition() -> None:
    psum = bl.device("trn2").space("psum")
    assert psum.bank_of(psum.layout.partition_bytes - 1) == 7
    with pytest.raises(UsageError, match="outside of a partition"):
        psum.bank_of(psum.layout.partition_bytes)
