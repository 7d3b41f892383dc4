"""The disk cache: what was compiled once is found by later processes.

    places     where the cache lies, and its settings
    entries    one entry as bytes: digest, description, object code
    trust      whose files are believed
    store      finding, keeping and evicting entries
    identity   what compiled the entries: blocklang's own sources, LLVM, NumPy, Python, the CPU

Not here: what a kernel's key is made of (`blocklang.jit`), and how object code becomes callable
(`blocklang.runtime`).

Invariant: nothing that happens to the files makes a launch fail or run another kernel's code. An entry that
cannot be believed is compiled again, with a warning.
"""
