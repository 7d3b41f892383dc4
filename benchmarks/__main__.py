"""`python -m benchmarks` is `blocklang bench`, from this checkout."""

from __future__ import annotations

import sys

from blocklang.cli import main

if __name__ == "__main__":
    main(["bench", *sys.argv[1:]], prog_name="blocklang")
