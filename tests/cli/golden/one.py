import sys

import numpy as np

import blocklang as bl
import blocklang.language as tl


@bl.jit
def add(x, y, out, n, BLOCK: bl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask) + tl.load(y + offsets, mask), mask)


def main():
    print("this goes to standard error under --from-run")
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    x = np.ones(size, np.float32)
    out = np.empty_like(x)
    add[(bl.cdiv(size, 256),)](x, x, out, size, BLOCK=256)
    assert (out == 2).all()
    print("not reached under --from-run")


if __name__ == "__main__":
    main()
