"""`--device-map cuda=cpu`: what PyTorch's devices mean while a script runs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec

from blocklang.diagnostics import UsageError

_ONLY = "cuda=cpu"


def mapped_devices(text: str | None) -> AbstractContextManager[None]:
    """The context in which a script runs.

    Raises:
        UsageError: the map is not known, or PyTorch is missing.
    """
    if text is None:
        return nullcontext()
    if text.replace(" ", "") != _ONLY:
        raise UsageError(f"expected --device-map {_ONLY}, got {text!r}", help="kernels run on the CPU only")
    if find_spec("torch") is None:
        raise UsageError(
            "--device-map is about PyTorch, which is not installed", help="pip install 'blocklang[torch]'"
        )
    from blocklang.torch.mapping import cuda_means_cpu  # PyTorch takes a second to import

    return cuda_means_cpu()
