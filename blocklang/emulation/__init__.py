"""What a launch would do on a device that is not here, and how long it would take.

    addresses   where the lanes of a block are in memory, for the arguments of one launch
    indices     what is loaded to know where other accesses go
    placement   which block is where in the memory on the chip, and what does not fit
    planning    from Block IR to a stream of instructions: what all kinds of devices share
    neuron      the instructions of a NeuronCore
    gpu         the instructions of a GPU's multiprocessor, and how many programs share it
    stream      instructions, loops and branches, as data
    simulate    when each of them runs
    estimate    the time of a launch: programs that did the same are timed once
    work        how much arithmetic a launch is; `roofline` what it could reach
    profile     what the launches of a run did: the report as data
    table       the report for a terminal; `page` as HTML, `trace` for Perfetto, `saving` as files
    whatif      the same launches on changed descriptions

Not here: the launches themselves (`blocklang.jit.emulating`), the counters in a kernel
(`blocklang.passes.count_accesses`), the descriptions (`blocklang.target`), device memory
(`blocklang.runtime`).
"""
