import numpy as np

import blocklang as bl
import blocklang.language as tl


@bl.jit
def product(a, b, c, SIZE: bl.constexpr):
    i = tl.arange(0, SIZE)
    at = i[:, None] * SIZE + i[None, :]
    left = tl.load(a + at)
    right = tl.load(b + at)
    acc = tl.dot(left, right)
    tl.store(c + at, acc)


def main():
    size = 1024
    a = np.ones((size, size), np.float32)
    product[(1,)](a, a, np.empty_like(a), SIZE=size)


if __name__ == "__main__":
    main()
