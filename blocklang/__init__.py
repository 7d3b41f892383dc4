"""blocklang: a block kernel language in Python, compiled natively for the CPU."""
