"""An interface in JSON's types, and back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from blocklang.jit.capture import Captured
from blocklang.jit.stored import abi_from, describe_abi


@bl.jit
def checked(out, x, n, BLOCK: bl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i * n, mask=i < n)
    tl.device_assert(v < 9, "too large")
    tl.device_print("root", tl.sqrt(v))
    tl.store(out + i, v, mask=i < n)


@pytest.mark.parametrize(
    "options", [{}, {"debug": True}, {"debug": "nan,poison"}, {"sanitize_overflow": True}], ids=str
)
def test_what_is_read_is_what_was_written(options: dict[str, Any]) -> None:
    x = np.arange(8, dtype=np.float32)
    abi = checked.warmup(x, x, 3, BLOCK=8, **options).abi
    assert bool(abi.bounds) == any(event.fault is not None for event in abi.events) == ("debug" in options)
    captured = Captured([checked.fn])
    text = json.dumps(describe_abi(abi, captured))
    read = abi_from(json.loads(text), captured)
    assert read == abi
    assert [type(event.fault) for event in read.events] == [type(event.fault) for event in abi.events]
