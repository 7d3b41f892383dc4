"""The NumPy meaning of every op, and the two drivers that run it."""

from __future__ import annotations
