import numpy as np

import blocklang as bl
import blocklang.language as tl


@bl.jit
def twice(x):
    return x + x


@bl.jit
def double(x, BLOCK: bl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x + offsets, twice(tl.load(x + offsets)))


@bl.jit
def negate(x, BLOCK: bl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x + offsets, -tl.load(x + offsets))


x = np.arange(8, dtype=np.float32)
double[(1,)](x, BLOCK=8)
negate[(1,)](x, BLOCK=8)
