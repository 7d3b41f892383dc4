"""The workloads by family. Our kernels are what one writes for Triton: nothing in them is there for the CPU."""
