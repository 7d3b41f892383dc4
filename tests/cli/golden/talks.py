import blocklang as bl
import blocklang.language as tl


@bl.jit
def talks(x):
    tl.device_print("x", tl.load(x))
