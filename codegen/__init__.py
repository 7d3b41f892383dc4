"""Code generation: placed Tile IR to LLVM IR to object code, per target.

This directory is the package `blocklang.codegen`; it is never imported as plain `codegen`. It knows nothing
of arrays, workers or launches: the runtime meets it in `blocklang.abi`, and neither imports the other.
"""
