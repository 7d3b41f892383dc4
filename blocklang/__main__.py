"""`python -m blocklang`: the command, for places where no script is on the path."""

from __future__ import annotations

from blocklang.cli import main

if __name__ == "__main__":
    main(prog_name="blocklang")
