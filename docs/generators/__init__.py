"""One module per generated reference: `docs/generators/<name>.py` renders `docs/<name>.md`.

Each has a function `render() -> str`, the whole text of the page. A renderer reads declarations (ops,
language functions, devices) and writes no sentence of its own that could be said where the thing is declared.
"""
