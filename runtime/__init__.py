"""The runtime: arrays, launch, worker pool, kernel cache, devices, emulator, profiler.

This directory is the package `blocklang.runtime`; it is never imported as plain `runtime`. It knows nothing
of LLVM IR: generated code meets it in `blocklang.abi`, and neither imports the other.
"""
