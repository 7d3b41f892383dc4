"""The LLVM IR of the handler that XLA calls: see `foreign_call`.

The layout of a call frame is that of `xla/ffi/api/c_api.h` (OpenXLA, in jaxlib's `include`), version 0.3.
Numbers behind `@word` and `@address` are offsets in 8-byte words:

    frame      1 extension, 2 api, 3 context, 4 stage, 7 and 9 arguments (how many, where), 12 and 14 results,
               17 and 20 attributes
    buffer     3 memory
    scalar     1 where its value is
    api        0 its size, 6 make an error, 8 destroy one, 17 schedule a task, 18 number of threads
    metadata   as 32-bit words: 6 and 7 the version, 8 traits

XLA asks for the version, 0.`MINOR`; an older XLA wants to hear its own, and has had all of these since 0.1.
"""

from __future__ import annotations

import time

from blocklang.abi import LAUNCH_NUMBER, SCRATCH_ALIGNMENT

SERVE, ADD, SEED, ANSWER = "serve", "add", "seed", "answer"
MINOR = 3
_CHUNKS_PER_THREAD = 8
_WAKE_NS = 30_000  # a call that is expected to take less wakes nobody

# Reading and setting the floating-point mode: subnormals are kept, roundings are to nearest, nothing traps.
MACHINES = {
    "x86_64": """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define internal i64 @usual_mode() {
  %old = alloca i32
  %new = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %old)
  store i32 8064, ptr %new
  call void @llvm.x86.sse.ldmxcsr(ptr %new)
  %mode = load i32, ptr %old
  %wide = zext i32 %mode to i64
  ret i64 %wide
}
define internal void @restore_mode(i64 %wide) {
  %old = alloca i32
  %mode = trunc i64 %wide to i32
  store i32 %mode, ptr %old
  call void @llvm.x86.sse.ldmxcsr(ptr %old)
  ret void
}
""",
    "aarch64": """
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
define internal i64 @usual_mode() {
  %mode = call i64 @llvm.aarch64.get.fpcr()
  call void @llvm.aarch64.set.fpcr(i64 0)
  ret i64 %mode
}
define internal void @restore_mode(i64 %mode) {
  call void @llvm.aarch64.set.fpcr(i64 %mode)
  ret void
}
""",
}
MACHINES["arm64"] = MACHINES["aarch64"]

_MESSAGES = {
    "not_here": "a blocklang kernel that this process has not compiled: call its operator before",
    "misfit": "a blocklang kernel was called with other buffers than it has",
    "no_memory": "there is no memory for the blocks of a program of this blocklang kernel",
}

# The 8-byte words of a plan, which the code names as `$next`, `$number`, ... Those of a unit of work are: 0
# the counter, in a cache line of its own, 8 total, 9 chunk, 10 plan, 11 threads inside, 12 closed, 13
# references, and from 14 on the addresses of the buffers, one for each pointer of the plan.
PLAN = (
    *("next", "number", "entry", "programs", "total", "levels", "extents", "slots", "template"),
    *(
        "pointers",
        "sources",
        "scratch",
        "grid",
        "copies",
        "copied",
        "arguments",
        "results",
        "threads",
        "spare",
        "known",
    ),
)
_WORDS = {name: index for index, name in enumerate(PLAN)}

_CODE = """
@plans = internal global ptr null
@launches = internal global i64 0
@minor = internal global i32 0
$messages

declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @sched_yield()
declare i32 @clock_gettime(i32, ptr)
declare ptr @memcpy(ptr, ptr, i64)

define void @seed(i64 %start) {
  store atomic i64 %start, ptr @launches seq_cst, align 8
  ret void
}

define void @answer(i32 %version) {
  store i32 %version, ptr @minor
  ret void
}

define void @add(ptr %plan) {
  %first = load ptr, ptr @plans
  store ptr %first, ptr %plan
  store atomic ptr %plan, ptr @plans seq_cst, align 8
  ret void
}

define internal i64 @word(ptr %base, i64 %index) alwaysinline {
  %at = getelementptr i64, ptr %base, i64 %index
  %value = load i64, ptr %at
  ret i64 %value
}

define internal ptr @address(ptr %base, i64 %index) alwaysinline {
  %at = getelementptr i64, ptr %base, i64 %index
  %value = load ptr, ptr %at
  ret ptr %value
}

define internal i64 @nanoseconds() {
  %time = alloca [2 x i64]
  %answer = call i32 @clock_gettime(i32 $clock, ptr %time)
  %seconds = load i64, ptr %time
  %rest = call i64 @word(ptr %time, i64 1)
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %rest
  ret i64 %sum
}

define internal ptr @failure(ptr %frame, ptr %message, i32 %code) {
  %args = alloca [4 x i64]
  store i64 28, ptr %args
  %p1 = getelementptr i64, ptr %args, i64 1
  store i64 0, ptr %p1
  %p2 = getelementptr i64, ptr %args, i64 2
  store ptr %message, ptr %p2
  %p3 = getelementptr i64, ptr %args, i64 3
  store i32 %code, ptr %p3
  %api = call ptr @address(ptr %frame, i64 2)
  %create = call ptr @address(ptr %api, i64 6)
  %error = call ptr %create(ptr %args)
  ret ptr %error
}

; 1 if the call went well; an error of XLA's is destroyed.
define internal i1 @went_well(ptr %api, ptr %error) {
  %fine = icmp eq ptr %error, null
  br i1 %fine, label %yes, label %no
no:
  %args = alloca [3 x i64]
  store i64 24, ptr %args
  %p1 = getelementptr i64, ptr %args, i64 1
  store i64 0, ptr %p1
  %p2 = getelementptr i64, ptr %args, i64 2
  store ptr %error, ptr %p2
  %destroy = call ptr @address(ptr %api, i64 8)
  call void %destroy(ptr %args)
  ret i1 false
yes:
  ret i1 true
}

define internal ptr @find(i64 %number) {
start:
  %first = load atomic ptr, ptr @plans seq_cst, align 8
  br label %look
look:
  %plan = phi ptr [ %first, %start ], [ %next, %other ]
  %none = icmp eq ptr %plan, null
  br i1 %none, label %end, label %compare
compare:
  %its = call i64 @word(ptr %plan, i64 $number)
  %same = icmp eq i64 %its, %number
  br i1 %same, label %end, label %other
other:
  %next = load ptr, ptr %plan
  br label %look
end:
  ret ptr %plan
}

; The slots of item %item of the batch: the template, and pointers moved to the item.
define internal void @fill(ptr %plan, ptr %work, ptr %slots, i64 %item) {
start:
  %levels = call i64 @word(ptr %plan, i64 $levels)
  %extents = call ptr @address(ptr %plan, i64 $extents)
  %pointers = call i64 @word(ptr %plan, i64 $pointers)
  %sources = call ptr @address(ptr %plan, i64 $sources)
  %pitch = add i64 %levels, 2
  br label %pointer
pointer:
  %p = phi i64 [ 0, %start ], [ %p.next, %store ]
  %more = icmp slt i64 %p, %pointers
  br i1 %more, label %move, label %done
move:
  %base.index = add i64 %p, 14
  %base = call i64 @word(ptr %work, i64 %base.index)
  %source.index = mul i64 %p, %pitch
  %source = getelementptr i64, ptr %sources, i64 %source.index
  br label %level
level:
  %l = phi i64 [ %levels, %move ], [ %l.next, %step ]
  %rest = phi i64 [ %item, %move ], [ %rest.next, %step ]
  %at = phi i64 [ %base, %move ], [ %at.next, %step ]
  %inner = icmp sgt i64 %l, 0
  br i1 %inner, label %step, label %store
step:
  %l.next = sub i64 %l, 1
  %extent = call i64 @word(ptr %extents, i64 %l.next)
  %digit = urem i64 %rest, %extent
  %rest.next = udiv i64 %rest, %extent
  %stride.index = add i64 %l.next, 2
  %stride = call i64 @word(ptr %source, i64 %stride.index)
  %moved = mul i64 %digit, %stride
  %at.next = add i64 %at, %moved
  br label %level
store:
  %slot = load i64, ptr %source
  %slot.at = getelementptr i64, ptr %slots, i64 %slot
  store i64 %at, ptr %slot.at
  %p.next = add i64 %p, 1
  br label %pointer
done:
  ret void
}

; A number for a launch that begins: what lies in the scratch memory is of an earlier one.
define internal void @begin(ptr %scratch) {
  %launch = atomicrmw add ptr @launches, i64 1 seq_cst
  %launch.at = getelementptr i8, ptr %scratch, i64 $launch
  store i64 %launch, ptr %launch.at
  ret void
}

; Programs %begin to %end of the whole batch. Each item is a launch of its own: its arrays are elsewhere.
define internal void @run(ptr %plan, ptr %work, ptr %scratch, i64 %begin, i64 %end) {
start:
  %entry = call ptr @address(ptr %plan, i64 $entry)
  %grid = call ptr @address(ptr %plan, i64 $grid)
  %programs = call i64 @word(ptr %plan, i64 $programs)
  %levels = call i64 @word(ptr %plan, i64 $levels)
  %is.batch = icmp ne i64 %levels, 0
  %count = call i64 @word(ptr %plan, i64 $slots)
  %template = call ptr @address(ptr %plan, i64 $template)
  %slots = alloca i64, i64 %count
  %bytes = mul i64 %count, 8
  %copied = call ptr @memcpy(ptr %slots, ptr %template, i64 %bytes)
  br label %item
item:
  %from = phi i64 [ %begin, %start ], [ %to, %enter ]
  %more = icmp slt i64 %from, %end
  br i1 %more, label %launch, label %done
launch:
  %number = udiv i64 %from, %programs
  %origin = mul i64 %number, %programs
  %limit = add i64 %origin, %programs
  %short = icmp slt i64 %limit, %end
  %to = select i1 %short, i64 %limit, i64 %end
  call void @fill(ptr %plan, ptr %work, ptr %slots, i64 %number)
  br i1 %is.batch, label %renew, label %enter
renew:
  call void @begin(ptr %scratch)
  br label %enter
enter:
  %first = sub i64 %from, %origin
  %last = sub i64 %to, %origin
  call void %entry(ptr %slots, ptr %grid, i64 %first, i64 %last, ptr %scratch)
  br label %item
done:
  ret void
}

; Take chunks until none is left; how many programs that were. Without memory none is taken.
define internal i64 @drain(ptr %work) {
start:
  %plan = call ptr @address(ptr %work, i64 10)
  %bytes = call i64 @word(ptr %plan, i64 $scratch)
  %spare.at = getelementptr i64, ptr %plan, i64 $spare
  %kept = atomicrmw xchg ptr %spare.at, i64 0 seq_cst
  %is.kept = icmp ne i64 %kept, 0
  br i1 %is.kept, label %take.kept, label %make
make:
  %with.header = add i64 %bytes, $margin
  %made = call ptr @malloc(i64 %with.header)
  %made.at = ptrtoint ptr %made to i64
  %nothing = icmp eq ptr %made, null
  br i1 %nothing, label %fail, label %ready
take.kept:
  br label %ready
ready:
  %memory = phi i64 [ %kept, %take.kept ], [ %made.at, %make ]
  %behind = add i64 %memory, $behind
  %aligned = and i64 %behind, $mask
  %scratch = inttoptr i64 %aligned to ptr
  call void @begin(ptr %scratch)
  %total = call i64 @word(ptr %work, i64 8)
  %chunk = call i64 @word(ptr %work, i64 9)
  %mode = call i64 @usual_mode()
  br label %next
next:
  %ran = phi i64 [ 0, %ready ], [ %ran.now, %execute ]
  %begin = atomicrmw add ptr %work, i64 %chunk seq_cst
  %over = icmp sge i64 %begin, %total
  br i1 %over, label %done, label %execute
execute:
  %rest = sub i64 %total, %begin
  %short = icmp slt i64 %rest, %chunk
  %count = select i1 %short, i64 %rest, i64 %chunk
  %end = add i64 %begin, %count
  %ran.now = add i64 %ran, %count
  call void @run(ptr %plan, ptr %work, ptr %scratch, i64 %begin, i64 %end)
  br label %next
done:
  call void @restore_mode(i64 %mode)
  %other = atomicrmw xchg ptr %spare.at, i64 %memory seq_cst
  %other.at = inttoptr i64 %other to ptr
  call void @free(ptr %other.at)
  ret i64 %ran
fail:
  ret i64 0
}

define internal void @release(ptr %work) {
  %refs.at = getelementptr i64, ptr %work, i64 13
  %refs = atomicrmw sub ptr %refs.at, i64 1 seq_cst
  %last = icmp eq i64 %refs, 1
  br i1 %last, label %drop, label %keep
drop:
  call void @free(ptr %work)
  ret void
keep:
  ret void
}

; What a thread of XLA's pool does.
define internal void @help(ptr %work) {
  %inside.at = getelementptr i64, ptr %work, i64 11
  %entered = atomicrmw add ptr %inside.at, i64 1 seq_cst
  %closed.at = getelementptr i64, ptr %work, i64 12
  %closed = load atomic i64, ptr %closed.at seq_cst, align 8
  %late = icmp ne i64 %closed, 0
  br i1 %late, label %leave, label %work.on
work.on:
  %done = call i64 @drain(ptr %work)
  br label %leave
leave:
  %left = atomicrmw sub ptr %inside.at, i64 1 seq_cst
  call void @release(ptr %work)
  ret void
}

; How many threads may work: those of XLA's pool, at most as many as the plan allows.
define internal i64 @threads(ptr %api, ptr %context, i64 %most) {
  %count = alloca i64
  store i64 1, ptr %count
  %size = load i64, ptr %api
  %known = icmp uge i64 %size, 152
  %wanted = icmp sgt i64 %most, 1
  %ask = and i1 %known, %wanted
  br i1 %ask, label %question, label %alone
question:
  %args = alloca [4 x i64]
  store i64 32, ptr %args
  %p1 = getelementptr i64, ptr %args, i64 1
  store i64 0, ptr %p1
  %p2 = getelementptr i64, ptr %args, i64 2
  store ptr %context, ptr %p2
  %p3 = getelementptr i64, ptr %args, i64 3
  store ptr %count, ptr %p3
  %function = call ptr @address(ptr %api, i64 18)
  %error = call ptr %function(ptr %args)
  %fine = call i1 @went_well(ptr %api, ptr %error)
  br i1 %fine, label %answer, label %alone
answer:
  %threads = load i64, ptr %count
  %fewer = icmp slt i64 %threads, %most
  %both = select i1 %fewer, i64 %threads, i64 %most
  ret i64 %both
alone:
  ret i64 1
}

define internal void @invite(ptr %frame, ptr %work) {
  %api = call ptr @address(ptr %frame, i64 2)
  %context = call ptr @address(ptr %frame, i64 3)
  %refs.at = getelementptr i64, ptr %work, i64 13
  %refs = atomicrmw add ptr %refs.at, i64 1 seq_cst
  %args = alloca [5 x i64]
  store i64 40, ptr %args
  %p1 = getelementptr i64, ptr %args, i64 1
  store i64 0, ptr %p1
  %p2 = getelementptr i64, ptr %args, i64 2
  store ptr %context, ptr %p2
  %p3 = getelementptr i64, ptr %args, i64 3
  store ptr @help, ptr %p3
  %p4 = getelementptr i64, ptr %args, i64 4
  store ptr %work, ptr %p4
  %function = call ptr @address(ptr %api, i64 17)
  %error = call ptr %function(ptr %args)
  %fine = call i1 @went_well(ptr %api, ptr %error)
  br i1 %fine, label %end, label %not.invited
not.invited:
  call void @release(ptr %work)
  ret void
end:
  ret void
}

; The memory of argument or result %index of a frame; results count from -1 downwards.
define internal ptr @buffer(ptr %frame, i64 %index) {
  %is.argument = icmp sge i64 %index, 0
  %list.at = select i1 %is.argument, i64 9, i64 14
  %list = call ptr @address(ptr %frame, i64 %list.at)
  %as.result = sub i64 -1, %index
  %number = select i1 %is.argument, i64 %index, i64 %as.result
  %buffer = call ptr @address(ptr %list, i64 %number)
  %data = call ptr @address(ptr %buffer, i64 3)
  ret ptr %data
}

define ptr @serve(ptr %frame) {
start:
  %extension = call ptr @address(ptr %frame, i64 1)
  %plain = icmp eq ptr %extension, null
  br i1 %plain, label %which.stage, label %is.question
is.question:
  %type.at = getelementptr i64, ptr %extension, i64 1
  %type = load i32, ptr %type.at
  %is.metadata = icmp eq i32 %type, 1
  br i1 %is.metadata, label %metadata, label %which.stage
metadata:
  %metadata.at = call ptr @address(ptr %extension, i64 3)
  %major.at = getelementptr i32, ptr %metadata.at, i64 6
  store i32 0, ptr %major.at
  %minor.at = getelementptr i32, ptr %metadata.at, i64 7
  %minor = load i32, ptr @minor
  store i32 %minor, ptr %minor.at
  %traits.at = getelementptr i32, ptr %metadata.at, i64 8
  store i32 0, ptr %traits.at
  ret ptr null
which.stage:
  %stage.at = getelementptr i64, ptr %frame, i64 4
  %stage = load i32, ptr %stage.at
  %execute = icmp eq i32 %stage, 3
  br i1 %execute, label %identify, label %nothing
nothing:
  ret ptr null
identify:
  %attributes = call i64 @word(ptr %frame, i64 17)
  %has.one = icmp eq i64 %attributes, 1
  br i1 %has.one, label %read.number, label %unknown
read.number:
  %attribute.list = call ptr @address(ptr %frame, i64 20)
  %scalar = load ptr, ptr %attribute.list
  %value = call ptr @address(ptr %scalar, i64 1)
  %number = load i64, ptr %value
  %plan = call ptr @find(i64 %number)
  %is.unknown = icmp eq ptr %plan, null
  br i1 %is.unknown, label %unknown, label %fits
unknown:
  %error.unknown = call ptr @failure(ptr %frame, ptr @not_here, i32 9)
  ret ptr %error.unknown
fits:
  %given = call i64 @word(ptr %frame, i64 7)
  %given.results = call i64 @word(ptr %frame, i64 12)
  %arguments = call i64 @word(ptr %plan, i64 $arguments)
  %results = call i64 @word(ptr %plan, i64 $results)
  %fit.1 = icmp eq i64 %given, %arguments
  %fit.2 = icmp eq i64 %given.results, %results
  %fit = and i1 %fit.1, %fit.2
  br i1 %fit, label %copies, label %wrong
wrong:
  %error.wrong = call ptr @failure(ptr %frame, ptr @misfit, i32 3)
  ret ptr %error.wrong
copies:
  %copy.count = call i64 @word(ptr %plan, i64 $copies)
  %copy.list = call ptr @address(ptr %plan, i64 $copied)
  br label %copy
copy:
  %c = phi i64 [ 0, %copies ], [ %c.next, %copied ]
  %any = icmp slt i64 %c, %copy.count
  br i1 %any, label %copy.one, label %prepare
copy.one:
  %three = mul i64 %c, 3
  %record = getelementptr i64, ptr %copy.list, i64 %three
  %copy.from.index = load i64, ptr %record
  %copy.to.index = call i64 @word(ptr %record, i64 1)
  %copy.bytes = call i64 @word(ptr %record, i64 2)
  %copy.from = call ptr @buffer(ptr %frame, i64 %copy.from.index)
  %copy.to = call ptr @buffer(ptr %frame, i64 %copy.to.index)
  %in.place = icmp eq ptr %copy.from, %copy.to
  br i1 %in.place, label %copied, label %move
move:
  %moved = call ptr @memcpy(ptr %copy.to, ptr %copy.from, i64 %copy.bytes)
  br label %copied
copied:
  %c.next = add i64 %c, 1
  br label %copy
prepare:
  %total = call i64 @word(ptr %plan, i64 $total)
  %empty = icmp eq i64 %total, 0
  br i1 %empty, label %nothing, label %gather
gather:
  %pointers = call i64 @word(ptr %plan, i64 $pointers)
  %words = add i64 %pointers, 14
  %bytes = mul i64 %words, 8
  %work = call ptr @malloc(i64 %bytes)
  %none = icmp eq ptr %work, null
  br i1 %none, label %no.memory, label %set.up
set.up:
  %api = call ptr @address(ptr %frame, i64 2)
  %context = call ptr @address(ptr %frame, i64 3)
  %most = call i64 @word(ptr %plan, i64 $threads)
  %fewer = icmp slt i64 %total, %most
  %most.here = select i1 %fewer, i64 %total, i64 %most
  %known.at = getelementptr i64, ptr %plan, i64 $known
  %known = load atomic i64, ptr %known.at monotonic, align 8
  %expected = mul i64 %known, %total
  %is.unknown.yet = icmp eq i64 %known, 0
  %is.short = icmp slt i64 %expected, $wake
  %is.known = xor i1 %is.unknown.yet, true
  %small = and i1 %is.known, %is.short
  %most.now = select i1 %small, i64 1, i64 %most.here
  %threads = call i64 @threads(ptr %api, ptr %context, i64 %most.now)
  %pieces = mul i64 %threads, $pieces
  %part = udiv i64 %total, %pieces
  %no.part = icmp eq i64 %part, 0
  %part.least = select i1 %no.part, i64 1, i64 %part
  %is.alone = icmp sle i64 %threads, 1
  %chunk = select i1 %is.alone, i64 %total, i64 %part.least
  store i64 0, ptr %work
  %total.at = getelementptr i64, ptr %work, i64 8
  store i64 %total, ptr %total.at
  %chunk.at = getelementptr i64, ptr %work, i64 9
  store i64 %chunk, ptr %chunk.at
  %plan.at = getelementptr i64, ptr %work, i64 10
  store ptr %plan, ptr %plan.at
  %inside.at = getelementptr i64, ptr %work, i64 11
  store i64 0, ptr %inside.at
  %closed.at = getelementptr i64, ptr %work, i64 12
  store i64 0, ptr %closed.at
  %refs.at = getelementptr i64, ptr %work, i64 13
  store i64 1, ptr %refs.at
  %sources = call ptr @address(ptr %plan, i64 $sources)
  %levels = call i64 @word(ptr %plan, i64 $levels)
  %pitch = add i64 %levels, 2
  br label %pointer
pointer:
  %p = phi i64 [ 0, %set.up ], [ %p.next, %one ]
  %more = icmp slt i64 %p, %pointers
  br i1 %more, label %one, label %helpers
one:
  %source.first = mul i64 %p, %pitch
  %source.index = add i64 %source.first, 1
  %source = call i64 @word(ptr %sources, i64 %source.index)
  %data = call ptr @buffer(ptr %frame, i64 %source)
  %data.index = add i64 %p, 14
  %data.at = getelementptr i64, ptr %work, i64 %data.index
  store ptr %data, ptr %data.at
  %p.next = add i64 %p, 1
  br label %pointer
helpers:
  %h = phi i64 [ 1, %pointer ], [ %h.next, %helper ]
  %wanted = icmp slt i64 %h, %threads
  br i1 %wanted, label %helper, label %own.part
helper:
  call void @invite(ptr %frame, ptr %work)
  %h.next = add i64 %h, 1
  br label %helpers
own.part:
  %begun = call i64 @nanoseconds()
  %ran = call i64 @drain(ptr %work)
  %ended = call i64 @nanoseconds()
  store atomic i64 1, ptr %closed.at seq_cst, align 8
  %idle = icmp eq i64 %ran, 0
  br i1 %idle, label %wait, label %learn
learn:
  %elapsed = sub i64 %ended, %begun
  %measured = udiv i64 %elapsed, %ran
  %both = add i64 %measured, %known
  %half = udiv i64 %both, 2
  %is.new = icmp eq i64 %known, 0
  %average = select i1 %is.new, i64 %measured, i64 %half
  %is.nothing = icmp eq i64 %average, 0
  %learnt = select i1 %is.nothing, i64 1, i64 %average
  store atomic i64 %learnt, ptr %known.at monotonic, align 8
  br label %wait
wait:
  %inside = load atomic i64, ptr %inside.at seq_cst, align 8
  %busy = icmp ne i64 %inside, 0
  br i1 %busy, label %wait.more, label %finished
wait.more:
  %yielded = call i32 @sched_yield()
  br label %wait
finished:
  %counter = load atomic i64, ptr %work seq_cst, align 8
  %complete = icmp sge i64 %counter, %total
  call void @release(ptr %work)
  br i1 %complete, label %nothing, label %no.memory
no.memory:
  %error.memory = call ptr @failure(ptr %frame, ptr @no_memory, i32 8)
  ret ptr %error.memory
}
"""


def handler_ir(machine: str) -> str:
    """The module for one of `MACHINES`, with the functions SERVE, ADD, SEED and ANSWER."""
    texts = [
        f'@{name} = internal constant [{len(text) + 1} x i8] c"{text}\\00"'
        for name, text in _MESSAGES.items()
    ]
    code = _CODE.replace("$messages", "\n".join(texts))
    constants = {
        **_WORDS,
        "margin": SCRATCH_ALIGNMENT * 3,
        "behind": SCRATCH_ALIGNMENT * 2 - 1,
        "mask": -SCRATCH_ALIGNMENT,
        "launch": LAUNCH_NUMBER,
        "clock": time.CLOCK_MONOTONIC,
        "wake": _WAKE_NS,
        "pieces": _CHUNKS_PER_THREAD,
    }
    for name in sorted(constants, key=len, reverse=True):
        code = code.replace(f"${name}", str(constants[name]))
    return MACHINES[machine] + code
