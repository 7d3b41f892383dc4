"""Straight-line PTX on registers: `syntax` reads it, `values` and `instructions` say what it computes in
operations of the language, `sharing` finds out which elements of a pack a result depends on.
"""

from __future__ import annotations
