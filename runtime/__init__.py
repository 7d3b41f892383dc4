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
    device_memory  the memory of an emulated device: arrays in its global space, and its spaces on the chip
    device_arrays  its arrays; `leases` say who uses their bytes, until when
    device_heap    its global space: guards, and what was written into them; `allocator` is its book-keeping
    device_spaces  its spaces on the chip, in partitions and banks
    fastcall   the native function behind a warm `kernel[grid](...)`

Not here: what a kernel is specialised on (`blocklang.jit`) and how machine code is made
(`blocklang.codegen`); they meet this room in `blocklang.abi`. llvmlite is imported by `loader` when something
has to be assembled or linked by it, not before.
"""
