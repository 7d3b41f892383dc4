"""`AsyncCompileMode`: compile in the threads of an executor, and use what is compiled when it is there."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextvars import ContextVar
from typing import Any


class FutureKernel:
    """A kernel that is being compiled. `result()` waits for it, and so does every attribute of the kernel."""

    def __init__(self, future: Future[Any]) -> None:
        self.future = future

    def result(self, ignore_errors: bool = False) -> Any:
        """The compiled kernel. Raises what the compilation raised, unless errors are ignored."""
        if ignore_errors and self.future.exception() is not None:
            return None
        return self.future.result()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.result(), name)


class AsyncCompileMode:
    """While the context lasts, `kernel.warmup(...)` compiles in `executor` and returns a `FutureKernel`.

    At the end of the context everything that was asked for is compiled.

    Args:
        executor: a thread pool of `concurrent.futures`.
        ignore_errors: do not raise at the end what a compilation raised.
    """

    def __init__(self, executor: Executor, *, ignore_errors: bool = False) -> None:
        self.executor = executor
        self.ignore_errors = ignore_errors
        self._kernels: list[FutureKernel] = []

    def submit(self, compile: Callable[[], Any]) -> FutureKernel:
        """Compile in the executor."""
        kernel = FutureKernel(self.executor.submit(compile))
        self._kernels.append(kernel)
        return kernel

    def __enter__(self) -> AsyncCompileMode:
        if active_mode.get() is not None:
            raise RuntimeError("one AsyncCompileMode is active already")
        self._token = active_mode.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        active_mode.reset(self._token)
        for kernel in self._kernels:
            kernel.result(self.ignore_errors)


active_mode: ContextVar[AsyncCompileMode | None] = ContextVar("active_mode", default=None)
