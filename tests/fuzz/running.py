"""Many seeds in child processes: a kernel that kills its process, or never ends, is reported like any other.

Children take batches of seeds. They say which seed they begin and what became of it, so that the parent knows
whose fault it is when one of them dies; the rest of its batch goes to a new child.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess

from tests.fuzz.cases import Case
from tests.fuzz.execution import OUT_OF_TIME, Check, Failure, InvalidCase, end_after

BATCH = 25  # seeds that a child takes
DIED = "the process that checks"  # the stage of what ends a process
_FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Outcome:
    """What became of a seed.

    Attributes:
        seed: of the case.
        checked: False if the kernel leaves its arrays: nothing is promised about it.
        failure: how it fails, if it does.
        test: the failing case as the source of a test, if it was made small.
    """

    seed: int
    checked: bool = True
    failure: Failure | None = None
    test: str = ""


Examine = Callable[[int], Outcome]


@dataclass
class _Child:
    process: ForkProcess
    seeds: range
    begun: int | None = None
    done: int = 0


@dataclass
class Runner:
    """Examines seeds in child processes.

    Attributes:
        examine: what is done with a seed.
        jobs: how many children there are at once.
        seed_seconds: a child that takes longer for one seed is ended.
        deadline: on the clock of `time.monotonic`; no seed begins after it.
    """

    examine: Examine
    jobs: int = 1
    seed_seconds: int = 300
    deadline: float = float("inf")
    _waiting: deque[range] = field(default_factory=deque)
    _children: dict[Connection, _Child] = field(default_factory=dict)

    def run(self, seeds: range) -> Iterator[Outcome]:
        """The outcomes of the seeds, in the order in which they come."""
        self._waiting = deque(seeds[i : i + BATCH] for i in range(0, len(seeds), BATCH))
        try:
            while self._waiting or self._children:
                while self._waiting and len(self._children) < self.jobs:
                    self._start(self._waiting.popleft())
                for ready in wait(list(self._children)):
                    assert isinstance(ready, Connection)
                    if outcome := self._hear(ready):
                        yield outcome
        finally:
            for child in self._children.values():
                child.process.kill()
                child.process.join()

    def _start(self, seeds: range) -> None:
        receiver, sender = _FORK.Pipe(duplex=False)
        process = _FORK.Process(target=self._work, args=(seeds, sender))
        process.start()
        sender.close()
        self._children[receiver] = _Child(process, seeds)

    def _work(self, seeds: range, sender: Connection) -> None:
        for seed in seeds:
            if time.monotonic() > self.deadline:
                break
            sender.send(seed)
            end_after(self.seed_seconds)
            sender.send(self.examine(seed))

    def _hear(self, connection: Connection) -> Outcome | None:
        """What a child has to say, or why it says nothing any more."""
        child = self._children[connection]
        try:
            message = connection.recv()
        except (EOFError, ConnectionError):
            del self._children[connection]
            connection.close()
            child.process.join()
            if child.begun is None:
                return None
            if rest := child.seeds[child.done + 1 :]:
                self._waiting.appendleft(rest)
            return Outcome(child.begun, failure=Failure(DIED, way_of_death(child.process.exitcode)))
        if isinstance(message, Outcome):
            child.begun, child.done = None, child.done + 1
            return message
        child.begun = message
        return None


def way_of_death(exit_code: int | None) -> str:
    """In words."""
    if exit_code is None or exit_code >= 0:
        return f"ended with status {exit_code}"
    died = signal.Signals(-exit_code)
    return "ran too long" if died in OUT_OF_TIME else f"died of {died.name}"


@dataclass(frozen=True)
class IsolatedCheck:
    """A check in a process of its own, for cases that may end it.

    Attributes:
        check: the check.
        seconds: after which the process is ended.
    """

    check: Check
    seconds: int = 60

    def __call__(self, case: Case) -> Failure | None:
        """As the check.

        Raises:
            InvalidCase: the kernel leaves its arrays.
        """
        receiver, sender = _FORK.Pipe(duplex=False)
        process = _FORK.Process(target=self._work, args=(case, sender))
        process.start()
        sender.close()
        try:
            found = receiver.recv()
        except (EOFError, ConnectionError):
            process.join()
            return Failure(DIED, way_of_death(process.exitcode))
        finally:
            receiver.close()
        process.join()
        if isinstance(found, str):
            raise InvalidCase(found)
        assert found is None or isinstance(found, Failure)
        return found

    def _work(self, case: Case, sender: Connection) -> None:
        end_after(self.seconds)
        try:
            found: Failure | str | None = self.check(case)
        except InvalidCase as invalid:
            found = str(invalid)
        sender.send(found)
