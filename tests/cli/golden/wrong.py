import numpy as np

import blocklang as bl
import blocklang.language as tl


@bl.jit
def wrong(x, BLOCK: bl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x + offsets, values)


x = np.zeros(8, np.float32)
wrong[(1,)](x, BLOCK=8)
