"""The parts of `place`: loop nests, reductions, matrix products, sorts and their like, control flow."""
