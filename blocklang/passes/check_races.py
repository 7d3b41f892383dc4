"""Report accesses that another program of the launch made to the same element, where nothing orders the two.

    kernel @k(%x: ptr<f32>, %v: f32) alias="disjoint" {
      store %x, %v
      return
    }

becomes

    kernel @k(%x: ptr<f32>, %v: f32, %checks_first: i64 checks_first="", %x.stores: ptr<i64> stores_of="x") alias="disjoint" {
      %v0 = program_id axis=0 : i32
      %v1 = cast %v0 : i64
      %v2 = program_id axis=1 : i32
      %v3 = cast %v2 : i64
      %v4 = program_id axis=2 : i32
      %v5 = cast %v4 : i64
      %v6 = num_programs axis=0 : i32
      %v7 = cast %v6 : i64
      %v8 = num_programs axis=1 : i32
      %v9 = cast %v8 : i64
      %v10 = mul %v5, %v9 : i64
      %v11 = add %v10, %v3 : i64
      %v12 = mul %v11, %v7 : i64
      %v13 = add %v12, %v1 : i64
      %v14 = constant value=32 : i64
      %v15 = shl %checks_first, %v14 : i64
      %v16 = shl %v13, %v14 : i64
      %v17 = add %v15, %v16 : i64
      %v18 = load %x.stores : i64
      %v19 = cmp %v18, %v15, predicate="ge" : i1
      %v20 = cmp %v18, %v17, predicate="lt" : i1
      %v21 = and %v19, %v20 : i1
      if %v21 {
        %v22 = constant value=0 : i32
        %v23 = cast %x : i64
        %v24 = load %x.stores : i64
        %v25 = sub %v24, %v15 : i64
        %v26 = constant value=0 : i64
        report_fault %v22, %v23, %v25, %v26, kind="race", action="store", size=4, arrays=["x"], places=["<unknown>:0:0:0:0"]
        yield
      }
      %v27 = constant value=0 : i64
      %v28 = add %v17, %v27 : i64
      store %x.stores, %v28
      store %x, %v
      return
    }

Programs of a checked launch run one after another, in ascending order, so what is found does not depend on
chance. Every element has words (`blocklang.ops.faults`): its last store, its first load and its first atomic,
each with
the program that made it. An access looks at the words of those that it conflicts with: a load at stores and
atomics,
a store at everything, an atomic at loads and stores. A word counts if it is of this launch, of an earlier
program, and not ordered before this one.

**What is ordered.** An atomic that releases leaves, in the word of its element, how far its program has come.
One
that acquires such a word of another program is ordered behind everything up to there: so is what follows it.
The
order is one number per program, so it also takes in what third programs did before: two that never met at a
lock
may pass for ordered, but what a lock or a counter orders is never called a race. A volatile load acquires as
an atomic does, and plain stores to an array that is loaded so release.

Only arrays that the launch writes have words; where arrays of the launch overlap, all have.

Requires: level block; accesses have been checked (`insert_checks`), so that words exist for each live lane.
Keeps: all results; every effect and its order.
"""  # noqa: E501

from __future__ import annotations

import math

from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Value
from blocklang.ir.types import I64, shape_of
from blocklang.ops.atomics import Atomic, AtomicCas, AtomicRmw
from blocklang.ops.creation import NumPrograms, ProgramId
from blocklang.ops.elementwise import Add, And, Cast, Compare, Maximum, Minimum, Mul, Select, Shl, Sub
from blocklang.ops.events import ReportFault
from blocklang.ops.faults import (
    ATOMICS_OF,
    LOADS_OF,
    PLACE_BITS,
    PROGRAM_SHIFT,
    RACE,
    RELEASE_BITS,
    RELEASES_OF,
    STORES_OF,
    place_text,
)
from blocklang.ops.memory import Load, Offset, Store, pointee
from blocklang.ops.reduction import Reduce
from blocklang.ops.shape import Reshape
from blocklang.passes.checking.accesses import accesses_of, action_of, arrays_behind, mask_of, pointer_of
from blocklang.passes.checking.reports import among, as_word, at_first, shaped
from blocklang.passes.checking.words import Elements, SystemArguments, elements_of
from blocklang.passes.uniform import make_constant

_LOAD, _STORE, _ATOMIC = "load", "store", "atomic"
_WORDS = {_LOAD: LOADS_OF, _STORE: STORES_OF, _ATOMIC: ATOMICS_OF}
_CONFLICTS = {_LOAD: (_STORE, _ATOMIC), _STORE: (_STORE, _LOAD, _ATOMIC), _ATOMIC: (_STORE, _LOAD)}
_CODES = {_STORE: 0, _LOAD: 1, _ATOMIC: 2}  # of an earlier action, in a report
_BEHIND, _RELEASED = 0, 1  # positions in the state


def check_races(kernel: Kernel) -> None:
    """Put a check before every access to an array that the launch writes."""
    assert kernel.level == "block"
    _Races(kernel).run()


class _Races:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.arguments = SystemArguments(kernel)
        self.accesses = list(accesses_of(kernel.body))
        self.arrays = {op: arrays_behind(kernel, pointer_of(op)) or [] for op in self.accesses}
        self.places = tuple(dict.fromkeys(place_text(op.location) for op in self.accesses))
        self.polled = {a for op in self.accesses if _is_polling(op) for a in self.arrays[op]}
        self.actions = self._actions()
        self.has_order = any(_acquires(op) for op in self.accesses)

    def _actions(self) -> dict[Value, set[str]]:
        """What is done to each array, or to one that may be the same memory."""
        actions: dict[Value, set[str]] = {}
        for op in self.accesses:
            for array in self.arrays[op]:
                actions.setdefault(array, set()).add(self.kind(op, array))
        if self.kernel.attributes.get("alias") != "disjoint":
            everything = set().union(*actions.values())
            return dict.fromkeys(actions, everything)
        return actions

    def kind(self, op: Operation, array: Value) -> str:
        """What an access counts as: one that synchronises is an atomic."""
        is_atomic = (
            isinstance(op, Atomic) or _is_polling(op) or (isinstance(op, Store) and array in self.polled)
        )
        return _ATOMIC if is_atomic else op.name

    def run(self) -> None:
        if not any(actions - {_LOAD} for actions in self.actions.values()):
            return
        entry = Builder(self.kernel.body, self.kernel.body.ops[0], self.kernel.location)
        self.first, self.start = self._programs(entry)
        if self.has_order:
            self._set(entry, _BEHIND, self.first)
            self._set(entry, _RELEASED, make_constant(entry, 0, I64))
        for op in self.accesses:
            self.check(op)

    # ---- programs ----

    def _programs(self, builder: Builder) -> tuple[Value, Value]:
        """The lowest word of the launch's first program, and of this one."""
        ids = [builder.value(Cast, builder.value(ProgramId, axis=n), result_types=[I64]) for n in (0, 1, 2)]
        counts = [builder.value(Cast, builder.value(NumPrograms, axis=n), result_types=[I64]) for n in (0, 1)]
        number = builder.value(Add, builder.value(Mul, ids[2], counts[1]), ids[1])
        number = builder.value(Add, builder.value(Mul, number, counts[0]), ids[0])
        shift = make_constant(builder, PROGRAM_SHIFT, I64)
        first = builder.value(Shl, self.arguments.first, shift)
        return first, builder.value(Add, first, builder.value(Shl, number, shift))

    def _slot(self, builder: Builder, position: int) -> Value:
        return builder.value(Offset, self.arguments.state, make_constant(builder, position, I64))

    def _get(self, builder: Builder, position: int) -> Value:
        return builder.value(Load, self._slot(builder, position))

    def _set(self, builder: Builder, position: int, value: Value) -> None:
        builder.create(Store, self._slot(builder, position), value)

    def _behind(self, builder: Builder) -> Value:
        """The word from which on earlier accesses are not ordered before what comes now."""
        return self._get(builder, _BEHIND) if self.has_order else self.first

    def _now(self, builder: Builder) -> Value:
        """The word of an access that is made now, without its place."""
        if not self.has_order:
            return self.start
        released = self._get(builder, _RELEASED)
        return builder.value(
            Add, self.start, builder.value(Shl, released, make_constant(builder, PLACE_BITS, I64))
        )

    # ---- accesses ----

    def check(self, op: Operation) -> None:
        """Look at the words of one access, and leave its own."""
        arrays = [a for a in self.arrays[op] if self.actions[a] - {_LOAD}]
        if not arrays:
            return
        builder = Builder.before_op(op)
        # All arrays of the pointer are asked about: where a lane may lie decides which words are its own.
        held = elements_of(self.arguments, builder, pointer_of(op), mask_of(op), self.arrays[op])
        for elements in held:
            if elements.array in arrays:
                self._check(op, elements)
        if not _acquires(op) and not any(self._releases(op, a) for a in arrays):
            return
        after = Builder.after_op(op)
        for elements in elements_of(self.arguments, after, pointer_of(op), mask_of(op), self.arrays[op]):
            if elements.array in arrays and self.kind(op, elements.array) == _ATOMIC:
                self._order(op, elements)

    def _check(self, op: Operation, elements: Elements) -> None:
        kind, actions = self.kind(op, elements.array), self.actions[elements.array]
        builder = elements.builder
        for other in _CONFLICTS[kind]:
            if other in actions:
                self._compare(op, elements, other)
        if not any(kind in _CONFLICTS[other] for other in actions):
            return
        place = min(self.places.index(place_text(op.location)), (1 << PLACE_BITS) - 1)
        word = builder.value(Add, self._now(builder), make_constant(builder, place, I64))
        where = elements.words(self.arguments.words(_WORDS[kind], elements.array))
        if kind != _STORE:
            # The first that counts stays: whoever conflicts with a later one conflicts with it, or is its
            # own.
            known = elements.load(where)
            mine = shaped(builder, word, shape_of(known.type))
            word = builder.value(Select, self._counts(builder, known), known, mine)
        elements.store(where, word)

    def _counts(self, builder: Builder, word: Value) -> Value:
        """The lanes whose word is of an earlier program of this launch, not ordered before this one."""
        shape = shape_of(word.type)
        behind = shaped(builder, self._behind(builder), shape)
        return builder.value(
            And,
            builder.value(Compare, word, behind, predicate="ge"),
            builder.value(Compare, word, shaped(builder, self.start, shape), predicate="lt"),
        )

    def _compare(self, op: Operation, elements: Elements, other: str) -> None:
        """Report the first lane whose element had a conflicting access."""
        builder, pointer = elements.builder, elements.pointer
        where = elements.words(self.arguments.words(_WORDS[other], elements.array))
        bad = among(builder, self._counts(builder, elements.load(where)), elements.live)

        def report(lane: Value, found: list[Value]) -> None:
            address, word = found
            relative = builder.value(Sub, word, self.first)
            code = make_constant(builder, _CODES[other], I64)
            builder.create(
                ReportFault,
                lane,
                [address, relative, code],
                kind=RACE,
                action=action_of(op),
                shape=shape_of(pointer.type),
                size=pointee(pointer.type).bytes,
                arrays=(elements.array.name,),
                places=self.places,
            )

        blocks = [lambda: as_word(builder, pointer), lambda: elements.load(where)]
        at_first(builder, bad, blocks, report)

    # ---- order ----

    def _releases(self, op: Operation, array: Value) -> bool:
        if isinstance(op, (AtomicRmw, AtomicCas)):
            return op.sem in ("release", "acq_rel")
        return isinstance(op, Store) and array in self.polled

    def _order(self, op: Operation, elements: Elements) -> None:
        """Behind an atomic: learn what its element says of other programs, and say how far this one is."""
        builder = elements.builder
        where = elements.words(self.arguments.words(RELEASES_OF, elements.array))
        if _acquires(op):
            word = elements.load(where)
            start = shaped(builder, self.start, shape_of(word.type))
            other = builder.value(Compare, word, start, predicate="lt")
            known = builder.value(Select, other, word, make_constant(builder, 0, word.type))
            behind = builder.value(Maximum, self._get(builder, _BEHIND), _largest(builder, known))
            self._set(builder, _BEHIND, behind)
        if self._releases(op, elements.array) and self.has_order:
            count = builder.value(Add, self._get(builder, _RELEASED), make_constant(builder, 1, I64))
            most = make_constant(builder, (1 << RELEASE_BITS) - 1, I64)
            self._set(builder, _RELEASED, builder.value(Minimum, count, most))
            elements.store(where, self._now(builder))


def _largest(builder: Builder, words: Value) -> Value:
    shape = shape_of(words.type)
    if not shape:
        return words
    flat = builder.value(Reshape, words, shape=(math.prod(shape),)) if len(shape) > 1 else words
    return builder.value(Reduce, flat, combine="max", axis=0)


def _is_polling(op: Operation) -> bool:
    """True for a load that looks at memory which other programs are expected to change."""
    return isinstance(op, Load) and (op.volatile or op.cache_modifier == ".cv")


def _acquires(op: Operation) -> bool:
    if isinstance(op, (AtomicRmw, AtomicCas)):
        return op.sem in ("acquire", "acq_rel")
    return _is_polling(op)
