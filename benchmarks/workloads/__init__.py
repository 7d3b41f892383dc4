"""The workloads by family.

Our kernels are what one writes for Triton: plain kernels with sensible block sizes, and nothing in them is
there for the CPU. The peers' code is what their users write: functions with `out=` where there are some, one
compiled function for JAX, loops for Numba, vectorised loops for C (`benchmarks/c`).
"""
