"""The conformance page: every name of Triton's surface as a row, and what running its probe showed.

    model      a row, a probe, an outcome
    sources    kernels from text
    kernels    probes that launch a kernel in both modes
    rows/      the rows themselves, by group
    running    probes run, and timed beside NumPy
    page       the page as text, and a page read back

A state is measured and never claimed: a row whose probe gives other numbers than its reference, or other bits
in the two modes, has failed.
"""
