"""blocklang beside its peers: `python -m benchmarks`, which is `blocklang bench` of this checkout.

    workloads     what is computed, by family: our kernel and every peer's code; `c/` holds C's
    workload      what a workload is
    catalogue     every row of the table, and how names choose among them
    peers         who takes part, and how their threads are fixed
    native        C, compiled by gcc at run time
    limits        what the machine can do at most
    worker, pool  the process of one peer, and the parent's side of it; `messages` is what they say
    measuring     peers of one row in turns
    fresh         rows that only a new process shows: compilation, caches, imports (`first_result`)
    suite         a whole run
    results       what was measured, as data and JSON
    markdown, plot, progress

`python -m benchmarks.first_speeds` is the short table of the README (with `side_by_side`). Nothing here is
imported by blocklang itself.
"""
