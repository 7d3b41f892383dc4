"""A process whose every launch is emulated because its environment says so.

    BLOCKLANG_DEVICE      a device, or the path of a description: the table is printed when the process ends
    BLOCKLANG_PROFILE     with it: the report is also saved in this file (`Profile.save`)

Both are read when blocklang is imported; `blocklang.jit` imports this module only where the first is set, so
that nobody else pays for it. Nothing is looked for, and no report made, before something is launched. What is
interpreted (BLOCKLANG_INTERPRET) is not emulated.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import ExitStack

from blocklang.diagnostics import BlocklangError, UsageError
from blocklang.jit.recording import Launch, replace_launches, replaced_by

DEVICE, PROFILE = "BLOCKLANG_DEVICE", "BLOCKLANG_PROFILE"


def emulate_process() -> None:
    """Emulate this process from its first launch to its end."""
    process = _Process(os.environ[DEVICE], os.environ.get(PROFILE, ""))
    process.contexts.enter_context(replace_launches(process.first, measured=False))
    atexit.register(process.report)


class _Process:
    def __init__(self, device: str, output: str) -> None:
        self.device = device
        self.output = output
        self.contexts = ExitStack()
        self._lock = threading.Lock()
        self._profile: object = None

    def first(self, launch: Launch) -> None:
        """Start the emulation and hand the launch to it; later ones go there themselves."""
        with self._lock:
            if self._profile is None:
                self._profile = self._started()
        run = replaced_by()
        assert run is not None
        run(launch)

    def _started(self) -> object:
        from blocklang.emulation.saving import form_of
        from blocklang.jit.emulating import emulate

        variable = PROFILE
        try:
            if self.output:
                form_of(self.output)  # a wrong name is told now, not when the work is done
            variable = DEVICE
            return self.contexts.enter_context(emulate(self.device))
        except UsageError as error:
            raise UsageError(f"{variable}: {error.message}", help=error.help) from None

    def report(self) -> None:
        """Print the table and save the report, if something was launched."""
        from blocklang.emulation.profile import Profile

        profile = self._profile
        if not isinstance(profile, Profile) or not profile.launches:
            return
        print(profile, end="", file=sys.stderr)
        if self.output:
            try:
                profile.save(self.output)
            except BlocklangError as error:
                print(error, file=sys.stderr)
