"""The release of Triton whose surface is served here."""

from __future__ import annotations

VERSION = "3.7.1"
