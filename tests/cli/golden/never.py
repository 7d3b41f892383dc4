import blocklang as bl
import blocklang.language as tl


@bl.jit
def double(x, BLOCK: bl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x + offsets, 2 * tl.load(x + offsets))
