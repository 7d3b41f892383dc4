"""The parts of `place`: loop nests, reductions, matrix products, control flow."""
