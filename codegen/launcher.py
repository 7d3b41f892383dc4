"""The native launcher: one function for the process, behind every warm `kernel[grid](...)`.

It is a METH_FASTCALL | METH_KEYWORDS function, written as LLVM IR, that reads a *launch table*: what the
arguments of a launch must be for one compiled kernel, and where their values go. It checks, fills the slots
of `abi`, and calls the entry. Whatever does not fit the table is handed on, unchanged, to the next callable:
the launcher with another table, or the launch in Python, which makes every error message. So no check here
needs a message, and none may be weaker than what the table was specialised on.

    launch(self, args, nargs, kwnames)    self = (next callable, address of the table, owners of both...)
                                          args = (the kernel's object, grid, arguments...)

Checked, in this order: the launcher is switched on; number of positional and names of keyword arguments;
globals and closure variables are the objects that were compiled in; a grid function is called; each
argument's guard (NumPy arrays and PyTorch's CPU tensors are read in place); alias class of the arrays; the
launch is short. A launch shorter than HOLD_NS keeps the GIL; the time of every launch is learned.

The table is an array of 8-byte fields, `TABLE`; guards, captured variables, pairs and names are arrays of
records of 8-byte fields. The offsets into Python's, NumPy's and PyTorch's objects are given and verified by
the caller (`PythonLayout`, `TensorLayout`).
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from blocklang.abi import LAUNCH_NUMBER

LAUNCHER = "launch"
MAXIMUM_ARGUMENTS = 64

# Fields of a table, each 8 bytes.
TABLE = (
    "enabled",  # address of an int64: 0 sends every launch to Python
    "positional",  # number of positional arguments, kernel and grid included
    "keywords",  # number of keyword arguments
    "keyword_names",  # address of their names
    "guards",  # address of one guard per argument, positional first
    "guard_count",
    "captured",  # address of (dict, name, value) of globals, (cell, 0, value) of closure variables
    "captured_count",
    "meta",  # address of (name, index into args or -1, value): what a grid function is given
    "meta_count",
    "pairs",  # address of pairs of arrays of which the kernel writes one
    "pair_count",
    "alias",  # expected alias class: 0 disjoint, 1 same, 2 unknown
    "array_type",  # numpy.ndarray
    "entry",
    "scratch",  # address of an arena that nobody uses, or 0 while somebody does
    "needs_scratch",
    "program_ns",  # address of a double
    "longest_ns",  # a double: launches expected to take longer go to Python
    "result",  # the object to return
)
# Fields of a guard.
GUARD = (
    "kind",
    "slot",
    "expected",  # the object that must be there: dtype of an array, type of a tensor, a constant
    "flags",  # flags that an array must have
    "low",  # range of an integer, or the integer itself for a constant; dtype and device of a tensor
    "high",  # of a tensor: what kind it is
    "divisible",  # 0 no, 1 yes, 2 of no interest
    "size",  # bytes of an array's element; for an integer, 1 if the value 1 is refused
)
ARRAY, INTEGER, FLOAT, IDENTICAL, CONSTANT_INTEGER, BOOL, TENSOR = range(7)
# The record of an array or tensor that was checked, each field 8 bytes; a stride counts `unit` bytes.
RECORD = ("low", "high", "data", "size", "rank", "strides", "unit", "unused")

HOLD_NS = (
    5000.0  # giving up the GIL and taking it again costs a fraction of a microsecond when nobody wants it
)


@dataclass(frozen=True)
class PythonLayout:
    """Byte offsets of fields in Python's and NumPy's objects on this interpreter."""

    object_type: int = 8
    array_data: int = 16
    array_rank: int = 24
    array_shape: int = 32
    array_strides: int = 40
    array_dtype: int = 56
    array_flags: int = 64


@dataclass(frozen=True)
class TensorLayout:
    """Byte offsets of fields in PyTorch's tensors; verified against live tensors before they are used.

    Attributes:
        implementation: in the Python object, the address of the tensor's implementation.
        storage, rank, shape, strides, offset: in the implementation; offset and strides count elements.
        dtype_and_device: 8 bytes of which `dtype_and_device_mask` says dtype and device.
        kind: the set of what handles the tensor: dense on the CPU, negated, for inference, ...
        inline_rank: shape and strides lie in place up to so many axes.
        storage_data, storage_flags: in the storage, its address; 4 bytes of which `storage_flags_mask` is 0
            if its memory is its own, to be read and written in place.
    """

    implementation: int = 16
    storage: int = 16
    rank: int = 56
    shape: int = 64
    strides: int = 104
    offset: int = 144
    dtype_and_device: int = 160
    dtype_and_device_mask: int = 0xFF_FFFF_FFFF
    kind: int = 168
    inline_rank: int = 5
    storage_data: int = 16
    storage_flags: int = 56
    storage_flags_mask: int = 0xFFFF_0000


TENSORS = TensorLayout()


def emit_launcher(layout: PythonLayout, monotonic_clock: int) -> str:
    """The module of LLVM IR that defines `launch`.

    Args:
        layout: where the fields of objects are.
        monotonic_clock: the number of clock_gettime's monotonic clock.
    """
    functions = (
        _DECLARATIONS,
        _read_type(layout),
        _READ_INTEGER,
        _READ_GRID,
        _shape_fits(),
        _CAPTURED_HOLD,
        _CALL_GRID,
        _byte_range(),
        _check_array(layout),
        _check_tensor(TENSORS),
        _check_number(),
        _check_arguments(),
        _relation(),
        _alias_class(),
        _run(monotonic_clock),
        _launch(),
    )
    return "\n".join(textwrap.dedent(text).strip("\n") for text in functions) + "\n"


def _field(result: str, fields: tuple[str, ...], name: str, base: str, type: str = "i64") -> str:
    """Load a field of a table or guard, by name."""
    return _load(result, base, 8 * fields.index(name), type)


def _set(fields: tuple[str, ...], name: str, base: str, value: str) -> str:
    """Store a value, with its type, into a field of a record, by name."""
    at = f"%{base}.{name}.at"
    return f"{at} = getelementptr i8, ptr %{base}, i64 {8 * fields.index(name)}\n  store {value}, ptr {at}"


def _load(result: str, base: str, offset: int, type: str) -> str:
    """Load what lies `offset` bytes past `base` into the value %result."""
    return (
        f"%{result}.at = getelementptr i8, ptr %{base}, i64 {offset}\n"
        f"  %{result} = load {type}, ptr %{result}.at"
    )


_DECLARATIONS = """
@PyLong_Type = external global i8
@PyFloat_Type = external global i8
@PyTuple_Type = external global i8
@_Py_TrueStruct = external global i8
@_Py_FalseStruct = external global i8
declare ptr @PyTuple_GetItem(ptr, i64)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyDict_New()
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare ptr @PyDict_GetItem(ptr, ptr)
declare ptr @PyCell_Get(ptr)
declare i32 @PyCallable_Check(ptr)
declare ptr @PyObject_CallOneArg(ptr, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i32 @clock_gettime(i32, ptr)
declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)
"""


def _read_type(layout: PythonLayout) -> str:
    return f"""
define internal ptr @type_of(ptr %object) {{
  {_load("type", "object", layout.object_type, "ptr")}
  ret ptr %type
}}
"""


# True, and the value at %out, for an exact int that 64 bits hold.
_READ_INTEGER = """
define internal i1 @read_integer(ptr %object, ptr %out) {
entry:
  %over = alloca i32
  %type = call ptr @type_of(ptr %object)
  %exact = icmp eq ptr %type, @PyLong_Type
  br i1 %exact, label %read, label %no
read:
  %value = call i64 @PyLong_AsLongLongAndOverflow(ptr %object, ptr %over)
  store i64 %value, ptr %out
  %sign = load i32, ptr %over
  %fits = icmp eq i32 %sign, 0
  ret i1 %fits
no:
  ret i1 false
}
"""

# True, and three extents at %grid, for an exact int or an exact tuple of one to three, each 0 to 2^31 - 1.
_READ_GRID = """
define internal i1 @read_extent(ptr %object, ptr %grid, i64 %axis) {
entry:
  %out = alloca i64
  %is.integer = call i1 @read_integer(ptr %object, ptr %out)
  br i1 %is.integer, label %check, label %no
check:
  %value = load i64, ptr %out
  %fits = icmp ule i64 %value, 2147483647
  %extent = trunc i64 %value to i32
  %at = getelementptr i32, ptr %grid, i64 %axis
  store i32 %extent, ptr %at
  ret i1 %fits
no:
  ret i1 false
}
define internal i1 @read_grid(ptr %object, ptr %grid) {
entry:
  %y.at = getelementptr i32, ptr %grid, i64 1
  %z.at = getelementptr i32, ptr %grid, i64 2
  store i32 1, ptr %y.at
  store i32 1, ptr %z.at
  %type = call ptr @type_of(ptr %object)
  %is.tuple = icmp eq ptr %type, @PyTuple_Type
  br i1 %is.tuple, label %tuple, label %single
single:
  %only = call i1 @read_extent(ptr %object, ptr %grid, i64 0)
  ret i1 %only
tuple:
  %size = call i64 @PyTuple_Size(ptr %object)
  %index = sub i64 %size, 1
  %size.ok = icmp ult i64 %index, 3
  br i1 %size.ok, label %next, label %no
next:
  %axis = phi i64 [ 0, %tuple ], [ %axis.next, %good ]
  %more = icmp slt i64 %axis, %size
  br i1 %more, label %read, label %yes
read:
  %item = call ptr @PyTuple_GetItem(ptr %object, i64 %axis)
  %ok = call i1 @read_extent(ptr %item, ptr %grid, i64 %axis)
  br i1 %ok, label %good, label %no
good:
  %axis.next = add i64 %axis, 1
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}
"""


def _shape_fits() -> str:
    """The launcher is switched on, and the call has the expected form."""
    return f"""
define internal i1 @shape_fits(ptr %table, i64 %nargs, ptr %kwnames) {{
entry:
  {_field("enabled", TABLE, "enabled", "table", "ptr")}
  %switch = load i64, ptr %enabled
  %on = icmp ne i64 %switch, 0
  {_field("positional", TABLE, "positional", "table")}
  %positional.ok = icmp eq i64 %nargs, %positional
  %so.far = and i1 %on, %positional.ok
  br i1 %so.far, label %count, label %no
count:
  {_field("keywords", TABLE, "keywords", "table")}
  %without = icmp eq ptr %kwnames, null
  br i1 %without, label %none, label %some
none:
  %none.ok = icmp eq i64 %keywords, 0
  ret i1 %none.ok
some:
  {_field("names", TABLE, "keyword_names", "table", "ptr")}
  %size = call i64 @PyTuple_Size(ptr %kwnames)
  %size.ok = icmp eq i64 %size, %keywords
  br i1 %size.ok, label %next, label %no
next:
  %i = phi i64 [ 0, %some ], [ %i.next, %good ]
  %more = icmp slt i64 %i, %keywords
  br i1 %more, label %compare, label %yes
compare:
  %name = call ptr @PyTuple_GetItem(ptr %kwnames, i64 %i)
  %wanted.at = getelementptr ptr, ptr %names, i64 %i
  %wanted = load ptr, ptr %wanted.at
  %equal = icmp eq ptr %name, %wanted
  br i1 %equal, label %good, label %no
good:
  %i.next = add i64 %i, 1
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}}
"""


_CAPTURED_HOLD = f"""
define internal i1 @captured_hold(ptr %table) {{
entry:
  {_field("records", TABLE, "captured", "table", "ptr")}
  {_field("count", TABLE, "captured_count", "table")}
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %good ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %look, label %yes
look:
  %offset = mul i64 %i, 3
  %record = getelementptr ptr, ptr %records, i64 %offset
  {_load("container", "record", 0, "ptr")}
  {_load("name", "record", 8, "ptr")}
  {_load("wanted", "record", 16, "ptr")}
  %is.cell = icmp eq ptr %name, null
  br i1 %is.cell, label %cell, label %dict
dict:
  %global = call ptr @PyDict_GetItem(ptr %container, ptr %name)
  br label %compare
cell:
  %content = call ptr @PyCell_Get(ptr %container)
  %empty = icmp eq ptr %content, null
  br i1 %empty, label %no, label %held
held:
  call void @Py_DecRef(ptr %content)
  br label %compare
compare:
  %found = phi ptr [ %global, %dict ], [ %content, %held ]
  %equal = icmp eq ptr %found, %wanted
  br i1 %equal, label %good, label %no
good:
  %i.next = add i64 %i, 1
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}}
"""

# Calls a grid function with a dict of all arguments by name. A new reference, or null with an exception set.
_CALL_GRID = f"""
define internal ptr @call_grid(ptr %table, ptr %function, ptr %args) {{
entry:
  {_field("records", TABLE, "meta", "table", "ptr")}
  {_field("count", TABLE, "meta_count", "table")}
  %meta = call ptr @PyDict_New()
  %failed = icmp eq ptr %meta, null
  br i1 %failed, label %error, label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %stored ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %look, label %call
look:
  %offset = mul i64 %i, 3
  %record = getelementptr ptr, ptr %records, i64 %offset
  {_load("name", "record", 0, "ptr")}
  {_load("index", "record", 8, "i64")}
  %is.default = icmp slt i64 %index, 0
  br i1 %is.default, label %default, label %given
default:
  {_load("value", "record", 16, "ptr")}
  br label %store
given:
  %arg.at = getelementptr ptr, ptr %args, i64 %index
  %arg = load ptr, ptr %arg.at
  br label %store
store:
  %item = phi ptr [ %value, %default ], [ %arg, %given ]
  %status = call i32 @PyDict_SetItem(ptr %meta, ptr %name, ptr %item)
  %bad = icmp ne i32 %status, 0
  br i1 %bad, label %drop, label %stored
stored:
  %i.next = add i64 %i, 1
  br label %next
call:
  %grid = call ptr @PyObject_CallOneArg(ptr %function, ptr %meta)
  call void @Py_DecRef(ptr %meta)
  ret ptr %grid
drop:
  call void @Py_DecRef(ptr %meta)
  br label %error
error:
  ret ptr null
}}
"""


def _byte_range() -> str:
    """The addresses [low, high) of an array's elements, in its record; empty if there are none."""
    return f"""
define internal void @byte_range(ptr %record, ptr %shape) {{
entry:
  {_field("data", RECORD, "data", "record")}
  {_field("size", RECORD, "size", "record")}
  {_field("rank", RECORD, "rank", "record")}
  {_field("strides", RECORD, "strides", "record", "ptr")}
  {_field("unit", RECORD, "unit", "record")}
  %first.end = add i64 %data, %size
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %axis ]
  %low = phi i64 [ %data, %entry ], [ %low.next, %axis ]
  %high = phi i64 [ %first.end, %entry ], [ %high.next, %axis ]
  %more = icmp slt i64 %i, %rank
  br i1 %more, label %read, label %done
read:
  %extent.at = getelementptr i64, ptr %shape, i64 %i
  %extent = load i64, ptr %extent.at
  %empty = icmp eq i64 %extent, 0
  br i1 %empty, label %nothing, label %axis
axis:
  %stride.at = getelementptr i64, ptr %strides, i64 %i
  %steps = load i64, ptr %stride.at
  %stride = mul i64 %steps, %unit
  %last = sub i64 %extent, 1
  %reach = mul i64 %last, %stride
  %negative = icmp slt i64 %reach, 0
  %down = select i1 %negative, i64 %reach, i64 0
  %up = select i1 %negative, i64 0, i64 %reach
  %low.next = add i64 %low, %down
  %high.next = add i64 %high, %up
  %i.next = add i64 %i, 1
  br label %next
nothing:
  br label %done
done:
  %from = phi i64 [ %low, %next ], [ %data, %nothing ]
  %to = phi i64 [ %high, %next ], [ %data, %nothing ]
  {_set(RECORD, "low", "record", "i64 %from")}
  {_set(RECORD, "high", "record", "i64 %to")}
  ret void
}}
"""


def _check_array(layout: PythonLayout) -> str:
    """An exact ndarray of the expected dtype, flags, alignment; fills its record."""
    return f"""
define internal i1 @check_array(ptr %table, ptr %guard, ptr %object, ptr %slot, ptr %record) {{
entry:
  {_field("array.type", TABLE, "array_type", "table", "ptr")}
  %type = call ptr @type_of(ptr %object)
  %exact = icmp eq ptr %type, %array.type
  br i1 %exact, label %look, label %no
look:
  {_load("dtype", "object", layout.array_dtype, "ptr")}
  {_field("wanted", GUARD, "expected", "guard", "ptr")}
  %dtype.ok = icmp eq ptr %dtype, %wanted
  {_load("has32", "object", layout.array_flags, "i32")}
  %has = zext i32 %has32 to i64
  {_field("must", GUARD, "flags", "guard")}
  %common = and i64 %has, %must
  %flags.ok = icmp eq i64 %common, %must
  {_load("data", "object", layout.array_data, "i64")}
  store i64 %data, ptr %slot
  %divisible.ok = call i1 @divisibility_fits(ptr %guard, i64 %data)
  %both = and i1 %dtype.ok, %flags.ok
  %all = and i1 %both, %divisible.ok
  {_field("size", GUARD, "size", "guard")}
  {_load("rank32", "object", layout.array_rank, "i32")}
  %rank = sext i32 %rank32 to i64
  {_load("shape", "object", layout.array_shape, "ptr")}
  {_load("strides", "object", layout.array_strides, "ptr")}
  {_set(RECORD, "data", "record", "i64 %data")}
  {_set(RECORD, "size", "record", "i64 %size")}
  {_set(RECORD, "rank", "record", "i64 %rank")}
  {_set(RECORD, "strides", "record", "ptr %strides")}
  {_set(RECORD, "unit", "record", "i64 1")}
  call void @byte_range(ptr %record, ptr %shape)
  ret i1 %all
no:
  ret i1 false
}}
define internal i1 @divisibility_fits(ptr %guard, i64 %value) {{
  {_field("wanted", GUARD, "divisible", "guard")}
  %low.bits = and i64 %value, 15
  %is = icmp eq i64 %low.bits, 0
  %is.wide = zext i1 %is to i64
  %equal = icmp eq i64 %is.wide, %wanted
  %ignored = icmp eq i64 %wanted, 2
  %fits = or i1 %equal, %ignored
  ret i1 %fits
}}
"""


def _check_tensor(layout: TensorLayout) -> str:
    """A tensor of the expected type, dtype, device and kind, with memory of its own; fills its record."""
    return f"""
define internal i1 @check_tensor(ptr %guard, ptr %object, ptr %slot, ptr %record) {{
entry:
  {_field("wanted", GUARD, "expected", "guard", "ptr")}
  %type = call ptr @type_of(ptr %object)
  %exact = icmp eq ptr %type, %wanted
  br i1 %exact, label %look, label %no
look:
  {_load("tensor", "object", layout.implementation, "ptr")}
  {_load("kind", "tensor", layout.kind, "i64")}
  {_field("wanted.kind", GUARD, "high", "guard")}
  %kind.ok = icmp eq i64 %kind, %wanted.kind
  {_load("word", "tensor", layout.dtype_and_device, "i64")}
  %elements = and i64 %word, {layout.dtype_and_device_mask}
  {_field("wanted.elements", GUARD, "low", "guard")}
  %elements.ok = icmp eq i64 %elements, %wanted.elements
  {_load("rank", "tensor", layout.rank, "i64")}
  %rank.ok = icmp ule i64 %rank, {layout.inline_rank}
  %two = and i1 %kind.ok, %elements.ok
  %three = and i1 %two, %rank.ok
  br i1 %three, label %memory, label %no
memory:
  {_load("storage", "tensor", layout.storage, "ptr")}
  {_load("flags", "storage", layout.storage_flags, "i32")}
  %shared = and i32 %flags, {layout.storage_flags_mask}
  %own = icmp eq i32 %shared, 0
  {_load("base", "storage", layout.storage_data, "i64")}
  %there = icmp ne i64 %base, 0
  {_load("offset", "tensor", layout.offset, "i64")}
  {_field("size", GUARD, "size", "guard")}
  %distance = mul i64 %offset, %size
  %data = add i64 %base, %distance
  store i64 %data, ptr %slot
  %divisible.ok = call i1 @divisibility_fits(ptr %guard, i64 %data)
  %readable = and i1 %own, %there
  %all = and i1 %readable, %divisible.ok
  %shape = getelementptr i8, ptr %tensor, i64 {layout.shape}
  %strides = getelementptr i8, ptr %tensor, i64 {layout.strides}
  {_set(RECORD, "data", "record", "i64 %data")}
  {_set(RECORD, "size", "record", "i64 %size")}
  {_set(RECORD, "rank", "record", "i64 %rank")}
  {_set(RECORD, "strides", "record", "ptr %strides")}
  {_set(RECORD, "unit", "record", "i64 %size")}
  call void @byte_range(ptr %record, ptr %shape)
  ret i1 %all
no:
  ret i1 false
}}
"""


def _check_number() -> str:
    """Integers in range and divisible, not 1 if that has its own version; constants; floats; bools."""
    return f"""
define internal i1 @check_integer(ptr %guard, ptr %object, ptr %slot) {{
entry:
  %is.integer = call i1 @read_integer(ptr %object, ptr %slot)
  br i1 %is.integer, label %check, label %no
check:
  %value = load i64, ptr %slot
  {_field("low", GUARD, "low", "guard")}
  {_field("high", GUARD, "high", "guard")}
  {_field("refused", GUARD, "size", "guard")}
  %above = icmp sge i64 %value, %low
  %below = icmp sle i64 %value, %high
  %inside = and i1 %above, %below
  %divisible.ok = call i1 @divisibility_fits(ptr %guard, i64 %value)
  %is.one = icmp eq i64 %value, 1
  %refuses = icmp ne i64 %refused, 0
  %one = and i1 %is.one, %refuses
  %not.one = xor i1 %one, true
  %both = and i1 %inside, %divisible.ok
  %all = and i1 %both, %not.one
  ret i1 %all
no:
  ret i1 false
}}
define internal i1 @check_constant(ptr %guard, ptr %object) {{
entry:
  %out = alloca i64
  %is.integer = call i1 @read_integer(ptr %object, ptr %out)
  br i1 %is.integer, label %check, label %no
check:
  %value = load i64, ptr %out
  {_field("wanted", GUARD, "low", "guard")}
  %equal = icmp eq i64 %value, %wanted
  ret i1 %equal
no:
  ret i1 false
}}
define internal i1 @check_float(ptr %object, ptr %slot) {{
entry:
  %type = call ptr @type_of(ptr %object)
  %exact = icmp eq ptr %type, @PyFloat_Type
  br i1 %exact, label %read, label %no
read:
  %value = call double @PyFloat_AsDouble(ptr %object)
  %rounded = fptrunc double %value to float
  store i64 0, ptr %slot
  store float %rounded, ptr %slot
  ret i1 true
no:
  ret i1 false
}}
define internal i1 @check_bool(ptr %object, ptr %slot) {{
  %is.true = icmp eq ptr %object, @_Py_TrueStruct
  %is.false = icmp eq ptr %object, @_Py_FalseStruct
  %value = zext i1 %is.true to i64
  store i64 %value, ptr %slot
  %is.bool = or i1 %is.true, %is.false
  ret i1 %is.bool
}}
"""


def _check_arguments() -> str:
    """Every guard holds; the slots are filled, and the records of the arrays, in order."""
    return f"""
define internal i1 @check_arguments(ptr %table, ptr %args, ptr %slots, ptr %records) {{
entry:
  %nowhere = alloca i64
  {_field("guards", TABLE, "guards", "table", "ptr")}
  {_field("count", TABLE, "guard_count", "table")}
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %good ]
  %record = phi ptr [ %records, %entry ], [ %record.next, %good ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %look, label %yes
look:
  %offset = mul i64 %i, {len(GUARD)}
  %guard = getelementptr i64, ptr %guards, i64 %offset
  %position = add i64 %i, 2
  %object.at = getelementptr ptr, ptr %args, i64 %position
  %object = load ptr, ptr %object.at
  {_field("kind", GUARD, "kind", "guard")}
  {_field("index", GUARD, "slot", "guard")}
  %has.slot = icmp sge i64 %index, 0
  %own.slot = getelementptr i64, ptr %slots, i64 %index
  %slot = select i1 %has.slot, ptr %own.slot, ptr %nowhere
  switch i64 %kind, label %no [
    i64 {ARRAY}, label %array
    i64 {INTEGER}, label %integer
    i64 {FLOAT}, label %float
    i64 {IDENTICAL}, label %identical
    i64 {CONSTANT_INTEGER}, label %constant
    i64 {BOOL}, label %bool
    i64 {TENSOR}, label %tensor
  ]
array:
  %array.ok = call i1 @check_array(ptr %table, ptr %guard, ptr %object, ptr %slot, ptr %record)
  %record.after = getelementptr i64, ptr %record, i64 {len(RECORD)}
  br label %decide
tensor:
  %tensor.ok = call i1 @check_tensor(ptr %guard, ptr %object, ptr %slot, ptr %record)
  %record.after.tensor = getelementptr i64, ptr %record, i64 {len(RECORD)}
  br label %decide
integer:
  %integer.ok = call i1 @check_integer(ptr %guard, ptr %object, ptr %slot)
  br label %decide
float:
  %float.ok = call i1 @check_float(ptr %object, ptr %slot)
  br label %decide
identical:
  {_field("wanted", GUARD, "expected", "guard", "ptr")}
  %identical.ok = icmp eq ptr %object, %wanted
  br label %decide
constant:
  %constant.ok = call i1 @check_constant(ptr %guard, ptr %object)
  br label %decide
bool:
  %bool.ok = call i1 @check_bool(ptr %object, ptr %slot)
  br label %decide
decide:
  %ok = phi i1 [ %array.ok, %array ], [ %integer.ok, %integer ], [ %float.ok, %float ],
               [ %identical.ok, %identical ], [ %constant.ok, %constant ], [ %bool.ok, %bool ],
               [ %tensor.ok, %tensor ]
  %record.next = phi ptr [ %record.after, %array ], [ %record, %integer ], [ %record, %float ],
                         [ %record, %identical ], [ %record, %constant ], [ %record, %bool ],
                         [ %record.after.tensor, %tensor ]
  br i1 %ok, label %good, label %no
good:
  %i.next = add i64 %i, 1
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}}
"""


def _relation() -> str:
    """How two arrays overlap: 0 disjoint, 1 same, 2 unknown. Read from their records."""
    return f"""
define internal i64 @relation(ptr %one, ptr %other) {{
entry:
  {_field("low", RECORD, "low", "one")}
  {_field("high", RECORD, "high", "one")}
  {_field("other.low", RECORD, "low", "other")}
  {_field("other.high", RECORD, "high", "other")}
  %before = icmp ule i64 %high, %other.low
  %behind = icmp ule i64 %other.high, %low
  %empty = icmp eq i64 %low, %high
  %other.empty = icmp eq i64 %other.low, %other.high
  %apart = or i1 %before, %behind
  %either = or i1 %empty, %other.empty
  %disjoint = or i1 %apart, %either
  br i1 %disjoint, label %apart.out, label %compare
compare:
  {_field("size", RECORD, "size", "one")}
  {_field("other.size", RECORD, "size", "other")}
  {_field("data", RECORD, "data", "one")}
  {_field("other.data", RECORD, "data", "other")}
  {_field("rank", RECORD, "rank", "one")}
  {_field("other.rank", RECORD, "rank", "other")}
  {_field("strides", RECORD, "strides", "one", "ptr")}
  {_field("other.strides", RECORD, "strides", "other", "ptr")}
  {_field("unit", RECORD, "unit", "one")}
  {_field("other.unit", RECORD, "unit", "other")}
  %size.ok = icmp eq i64 %size, %other.size
  %data.ok = icmp eq i64 %data, %other.data
  %rank.ok = icmp eq i64 %rank, %other.rank
  %two = and i1 %size.ok, %data.ok
  %three = and i1 %two, %rank.ok
  br i1 %three, label %next, label %unknown
next:
  %i = phi i64 [ 0, %compare ], [ %i.next, %good ]
  %more = icmp slt i64 %i, %rank
  br i1 %more, label %axis, label %same
axis:
  %stride.at = getelementptr i64, ptr %strides, i64 %i
  %steps = load i64, ptr %stride.at
  %stride = mul i64 %steps, %unit
  %other.stride.at = getelementptr i64, ptr %other.strides, i64 %i
  %other.steps = load i64, ptr %other.stride.at
  %other.stride = mul i64 %other.steps, %other.unit
  %equal = icmp eq i64 %stride, %other.stride
  br i1 %equal, label %good, label %unknown
good:
  %i.next = add i64 %i, 1
  br label %next
apart.out:
  ret i64 0
same:
  ret i64 1
unknown:
  ret i64 2
}}
"""


def _alias_class() -> str:
    """The arrays' alias class is the expected one."""
    return f"""
define internal i1 @alias_fits(ptr %table, ptr %records) {{
entry:
  {_field("pairs", TABLE, "pairs", "table", "ptr")}
  {_field("count", TABLE, "pair_count", "table")}
  {_field("wanted", TABLE, "alias", "table")}
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %look ]
  %worst = phi i64 [ 0, %entry ], [ %worst.next, %look ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %look, label %done
look:
  %offset = mul i64 %i, 2
  %pair = getelementptr i64, ptr %pairs, i64 %offset
  {_load("first", "pair", 0, "i64")}
  {_load("second", "pair", 8, "i64")}
  %first.offset = mul i64 %first, {len(RECORD)}
  %second.offset = mul i64 %second, {len(RECORD)}
  %one = getelementptr i64, ptr %records, i64 %first.offset
  %other = getelementptr i64, ptr %records, i64 %second.offset
  %class = call i64 @relation(ptr %one, ptr %other)
  %worse = icmp ugt i64 %class, %worst
  %worst.next = select i1 %worse, i64 %class, i64 %worst
  %i.next = add i64 %i, 1
  br label %next
done:
  %fits = icmp eq i64 %worst, %wanted
  ret i1 %fits
}}
"""


def _run(monotonic_clock: int) -> str:
    """Run the programs if that is expected to be short and an arena is free; learn how long one took."""
    return f"""
define internal double @now() {{
  %time = alloca [2 x i64]
  %status = call i32 @clock_gettime(i32 {monotonic_clock}, ptr %time)
  {_load("seconds", "time", 0, "i64")}
  {_load("rest", "time", 8, "i64")}
  %scaled = mul i64 %seconds, 1000000000
  %sum = add i64 %scaled, %rest
  %value = sitofp i64 %sum to double
  ret double %value
}}
define internal i1 @run(ptr %table, ptr %slots, ptr %grid) {{
entry:
  {_load("x32", "grid", 0, "i32")}
  {_load("y32", "grid", 4, "i32")}
  {_load("z32", "grid", 8, "i32")}
  %x = zext i32 %x32 to i64
  %y = zext i32 %y32 to i64
  %z = zext i32 %z32 to i64
  %xy = mul i64 %x, %y
  %product = call {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64 %xy, i64 %z)
  %total = extractvalue {{ i64, i1 }} %product, 0
  %over = extractvalue {{ i64, i1 }} %product, 1
  %none = icmp eq i64 %total, 0
  br i1 %over, label %no, label %count
count:
  br i1 %none, label %yes, label %estimate
estimate:
  {_field("known.at", TABLE, "program_ns", "table", "ptr")}
  {_field("longest", TABLE, "longest_ns", "table", "double")}
  %known = load double, ptr %known.at
  %programs = uitofp i64 %total to double
  %expected = fmul double %known, %programs
  %short = fcmp olt double %expected, %longest
  br i1 %short, label %arena, label %no
arena:
  {_field("needs", TABLE, "needs_scratch", "table")}
  %scratch.at = getelementptr i64, ptr %table, i64 {TABLE.index("scratch")}
  %needed = icmp ne i64 %needs, 0
  br i1 %needed, label %take, label %ready
take:
  %taken = atomicrmw xchg ptr %scratch.at, i64 0 seq_cst
  %busy = icmp eq i64 %taken, 0
  br i1 %busy, label %no, label %number
number:
  %number.address = add i64 %taken, {LAUNCH_NUMBER}
  %number.at = inttoptr i64 %number.address to ptr
  %number.before = load i64, ptr %number.at
  %number.now = add i64 %number.before, 1
  store i64 %number.now, ptr %number.at
  br label %ready
ready:
  %arena.address = phi i64 [ 0, %arena ], [ %taken, %number ]
  %scratch = inttoptr i64 %arena.address to ptr
  {_field("entry.at", TABLE, "entry", "table", "ptr")}
  %hold = fcmp olt double %expected, {HOLD_NS:e}
  br i1 %hold, label %start, label %release
release:
  %thread = call ptr @PyEval_SaveThread()
  br label %start
start:
  %state = phi ptr [ null, %ready ], [ %thread, %release ]
  %begin = call double @now()
  call void %entry.at(ptr %slots, ptr %grid, i64 0, i64 %total, ptr %scratch)
  %end = call double @now()
  %took = fsub double %end, %begin
  %measured = fdiv double %took, %programs
  %sum = fadd double %measured, %known
  %learned = fmul double %sum, 5.0e-1
  store double %learned, ptr %known.at
  br i1 %needed, label %give, label %given
give:
  store atomic i64 %arena.address, ptr %scratch.at seq_cst, align 8
  br label %given
given:
  br i1 %hold, label %yes, label %acquire
acquire:
  call void @PyEval_RestoreThread(ptr %state)
  br label %yes
yes:
  ret i1 true
no:
  ret i1 false
}}
"""


def _launch() -> str:
    return f"""
define internal i1 @attempt(ptr %table, ptr %grid.object, ptr %args) {{
entry:
  %grid = alloca [3 x i32]
  %slots = alloca [{MAXIMUM_ARGUMENTS} x i64], align 16
  %records = alloca [{len(RECORD) * MAXIMUM_ARGUMENTS} x i64]
  %grid.ok = call i1 @read_grid(ptr %grid.object, ptr %grid)
  br i1 %grid.ok, label %arguments, label %no
arguments:
  %arguments.ok = call i1 @check_arguments(ptr %table, ptr %args, ptr %slots, ptr %records)
  br i1 %arguments.ok, label %aliases, label %no
aliases:
  %aliases.ok = call i1 @alias_fits(ptr %table, ptr %records)
  br i1 %aliases.ok, label %go, label %no
go:
  %done = call i1 @run(ptr %table, ptr %slots, ptr %grid)
  ret i1 %done
no:
  ret i1 false
}}
define ptr @{LAUNCHER}(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) {{
entry:
  %copy = alloca [{MAXIMUM_ARGUMENTS} x ptr]
  %address = call ptr @PyTuple_GetItem(ptr %self, i64 1)
  %table = call ptr @PyLong_AsVoidPtr(ptr %address)
  %shape.ok = call i1 @shape_fits(ptr %table, i64 %nargs, ptr %kwnames)
  br i1 %shape.ok, label %captured, label %hand.on
captured:
  %captured.ok = call i1 @captured_hold(ptr %table)
  br i1 %captured.ok, label %grid, label %hand.on
grid:
  {_load("grid.object", "args", 8, "ptr")}
  %grid.type = call ptr @type_of(ptr %grid.object)
  %is.tuple = icmp eq ptr %grid.type, @PyTuple_Type
  br i1 %is.tuple, label %direct, label %callable
callable:
  %is.callable = call i32 @PyCallable_Check(ptr %grid.object)
  %calls = icmp ne i32 %is.callable, 0
  br i1 %calls, label %call, label %direct
direct:
  %done = call i1 @attempt(ptr %table, ptr %grid.object, ptr %args)
  br i1 %done, label %finish, label %hand.on
finish:
  {_field("result", TABLE, "result", "table", "ptr")}
  call void @Py_IncRef(ptr %result)
  ret ptr %result
hand.on:
  %next = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %answer = call ptr @PyObject_Vectorcall(ptr %next, ptr %args, i64 %nargs, ptr %kwnames)
  ret ptr %answer
call:
  %called = call ptr @call_grid(ptr %table, ptr %grid.object, ptr %args)
  %failed = icmp eq ptr %called, null
  br i1 %failed, label %error, label %try
error:
  ret ptr null
try:
  %tried = call i1 @attempt(ptr %table, ptr %called, ptr %args)
  br i1 %tried, label %finish.called, label %replace
finish.called:
  call void @Py_DecRef(ptr %called)
  br label %finish
replace:
  {_field("guard.count", TABLE, "guard_count", "table")}
  %size = add i64 %guard.count, 2
  br label %next.argument
next.argument:
  %i = phi i64 [ 0, %replace ], [ %i.next, %copied ]
  %more = icmp slt i64 %i, %size
  br i1 %more, label %copied, label %hand.on.called
copied:
  %from = getelementptr ptr, ptr %args, i64 %i
  %item = load ptr, ptr %from
  %to = getelementptr ptr, ptr %copy, i64 %i
  store ptr %item, ptr %to
  %i.next = add i64 %i, 1
  br label %next.argument
hand.on.called:
  %grid.at = getelementptr ptr, ptr %copy, i64 1
  store ptr %called, ptr %grid.at
  %next.called = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %answer.called = call ptr @PyObject_Vectorcall(ptr %next.called, ptr %copy, i64 %nargs, ptr %kwnames)
  call void @Py_DecRef(ptr %called)
  ret ptr %answer.called
}}
"""
