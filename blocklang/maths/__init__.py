"""Vector maths: each function is one recipe over elementary steps, so every executor gives the same bits.

A recipe (`registry.RECIPES`) takes an implementation of `steps.Steps` and values, and returns a value. The
interpreter's steps compute with NumPy; a compiler pass's steps emit IR. This room knows neither: it imports
nothing but the standard library.
"""

from __future__ import annotations
