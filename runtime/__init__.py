"""Running compiled kernels on this machine: arrays, threads, scratch memory, loading and launching.

    arrays     what an argument is in memory: address, element type, shape, strides
    descriptors an array with its shape, strides and a block shape, as one argument
    grids      how many programs a launch runs
    loader     object code to callable machine code, freed when it is dropped
    image      how, for ELF objects: `elf` reads them, `relocations` fills in addresses
    arena      scratch memory of one worker
    threads    how many threads a launch may use
    pool       the persistent workers
    launch     one launch of one loaded kernel
    profile    what launches moved on an emulated device; `profile_report` is its text
    fastcall   the native function behind a warm `kernel[grid](...)`

Not here: what a kernel is specialised on (`blocklang.jit`) and how machine code is made
(`blocklang.codegen`); they meet this room in `blocklang.abi`. llvmlite is imported by `loader` when something
has to be assembled or linked by it, not before.
"""
