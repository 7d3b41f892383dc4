import blocklang as bl


@bl.jit
def broken(x:
    pass
