"""What the parent and a peer's process tell each other: one JSON object a line, on the process's pipes.

    {"do": "prepare", "workload": NAME, "small": false, "exact": FILE}  make inputs, compile, check the result
        -> {"seconds": of one warm call}
    {"do": "run", "calls": N, "warm": true}     time N calls, after one that is not timed if `warm`
        -> {"seconds": of one call, "cores": processor time over time}
    {"do": "limits", "largest": BYTES}          measure the machine (peer `c` only)
        -> the fields of `limits.Limits`

An answer {"failure": TEXT} says that it could not be done; the process goes on.
"""

from __future__ import annotations

from typing import Any

Message = dict[str, Any]
