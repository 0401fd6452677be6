"""The hook itself: where this rank is, which collective it is in, what it died of. Stdlib only, no output.

The page: the first 512 bytes as in headway's own heartbeat (phase and steps), then the hook's part. One writer, this
process; readers see whole 8-byte numbers. A write costs about a microsecond. Once torch has a process group, one thread
sleeps on a socket: it is asked for the flight recorder when the ranks hang and the main thread cannot answer.
"""

import atexit
import errno
import faulthandler
import functools
import json
import mmap
import os
import signal
import stat
import struct
import sys
import time

BEAT = struct.Struct("<8sqqqqqqddd")
OWN = struct.Struct("<8sqqqqqqqqq64s")
OWN_AT = 512
SIZE = 4096
FULL = (errno.ENOSPC, errno.EDQUOT)
RANK_NAMES = ("HEADWAY_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK_ID", "SLURM_PROCID")
SIGNS = {"RANK": "TORCHELASTIC_RUN_ID", "SLURM_PROCID": "SLURM_STEP_ID"}
"""What a launcher sets beside a rank's number: where this is new, the number is, be it the same as outside."""
JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID")
"""A batch system's name for a job; one that the script has submitted inherits our environment."""
START, FORWARD, OPTIMIZER, ENDED = 0, 3, 5, 9
WORDS = (
    "all_reduce all_reduce_coalesced broadcast reduce all_gather all_gather_into_tensor all_gather_object "
    "all_gather_coalesced gather scatter reduce_scatter reduce_scatter_tensor all_to_all all_to_all_single barrier "
    "monitored_barrier broadcast_object_list gather_object scatter_object_list send recv"
)
COLLECTIVES = WORDS.split()
TEXT_CHARS = 8000
TRACEBACK_CHARS = 20000
FLIGHT_ENTRIES = 8
SO_PASSCRED = 16  # of <asm-generic/socket.h>
MOST_QUESTIONS = 64
ANSWER_EVERY_S = 0.2
KEPT = []
"""Files that stay open for as long as the process lives."""
PAGES = []
"""The page of this process, once it is a rank."""
COLUMN_WORDS = "step samples loss lr grad_norm t dt data forward backward comm optimizer save eval mem"
COLUMNS = COLUMN_WORDS.split()
"""Of a line of metrics, as headway.telemetry has them."""


def stack_signal():
    """Return the signal that asks for stacks: one of the real-time signals, which no trainer uses."""
    return signal.SIGRTMIN + 13


class Page:
    """What is written, as plain numbers."""

    def __init__(self, path, attempt):
        self.memory = map_page(path)
        self.pid, self.attempt = os.getpid(), attempt
        self.phase, self.steps = START, 0
        self.loss, self.lr = float("nan"), 0.0
        self.metrics, self.logged_t = None, 0.0
        self.collectives = self.entered_ns = self.optimizers = self.numel = self.depth = 0
        self.numel_before = -1
        self.numels = {}
        self.name = b""
        self.flight = os.path.join(os.path.dirname(path), f"flight-{attempt}.json")
        self.is_answering = False
        self.is_live = True
        self.write()

    def write(self):
        if not self.is_live:
            return
        now = time.monotonic_ns()
        BEAT.pack_into(
            self.memory, 0, b"HWBEAT01", self.pid, self.attempt, self.phase, self.steps, 0, now, self.loss, self.lr, 0.0
        )
        OWN.pack_into(
            self.memory,
            OWN_AT,
            b"HWHOOK01",
            self.pid,
            self.attempt,
            self.steps,
            self.collectives,
            self.entered_ns,
            self.numel,
            self.numel_before,
            self.optimizers,
            now,
            self.name,
        )


def start():
    """Claim the rank of this process; a process started by one that has claimed it does nothing.

    A program that starts its other ranks by itself gives each of them a number of its own.
    """
    outside = json.loads(os.environ.get("HEADWAY_HOOK_OUTSIDE") or "{}")
    if find_job(os.environ) != find_job(outside):
        let_go()
        return
    sys.meta_path.insert(
        0, Finder(None, {"multiprocessing.util": watch_temps, "multiprocessing.process": watch_daemons})
    )
    claimed = os.environ.get("HEADWAY_HOOK_CLAIMED")
    if claimed is not None and not os.environ.get("HEADWAY_HOOK_FAMILY"):
        return
    rank = find_rank(os.environ, outside, claimed)
    if rank is None and claimed is None and os.environ.get("HEADWAY_HOOK_FAMILY"):
        # A launcher, a tool, or a script on its own: whoever makes an optimizer trains.
        sys.meta_path.insert(0, Finder(None, {"torch.optim.optimizer": claim_by_training}))
    if rank is not None and claimed != rank:
        claim(rank)


def find_rank(environ, outside, claimed):
    """Return the number that a launcher inside of the run has given this process; None: none has.

    A pod or an allocation may have given one to all of us before: that is the node's, and no launcher's word.
    """
    if claimed is None and environ.get("HEADWAY_RANK", "").isdigit():
        return environ["HEADWAY_RANK"]
    names = RANK_NAMES[1:] if claimed is None else (*RANK_NAMES[1:], "LOCAL_RANK")
    for name in names:
        is_new = any(environ.get(one) != outside.get(one) for one in (name, SIGNS.get(name, name)))
        if is_new and environ.get(name, "").isdigit():
            return environ[name]
    # A launcher that repeats the number from outside (RANK=0 in a pod) still says which process of the node it is.
    is_placed = environ.get("LOCAL_RANK", "") != outside.get("LOCAL_RANK", "")
    return next((environ[name] for name in names if is_placed and environ.get(name, "").isdigit()), None)


def find_job(environ):
    """Return the batch job that an environment belongs to; what `srun` starts from outside of one belongs to none."""
    is_batch = environ.get("ENVIRONMENT") == "BATCH"
    return [environ.get(name) if is_batch or name != "SLURM_JOB_ID" else None for name in JOBS]


def let_go():
    """This is another job, submitted from inside of the run: nothing of it is ours to watch or to keep."""
    run = os.environ.get("HEADWAY_HOOK_RUN", "")
    for name in [name for name in os.environ if name.startswith("HEADWAY_HOOK_")]:
        del os.environ[name]
    for name in ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"):
        if run and os.environ.get(name, "").startswith(run):
            del os.environ[name]


def claim(rank):
    """Be that rank from here on; return the page."""
    folder = os.path.join(os.environ["HEADWAY_HOOK_RUN"], "ranks", rank)
    os.makedirs(folder, exist_ok=True)
    attempt = int(os.environ["HEADWAY_HOOK_ATTEMPT"])
    os.environ["HEADWAY_HOOK_CLAIMED"] = rank
    stacks = os.fdopen(above_standard(open_beneath(folder, "stacks", os.O_WRONLY | os.O_TRUNC)), "w")
    KEPT.append(stacks)
    faulthandler.register(stack_signal(), file=stacks, all_threads=True, chain=False)
    if not faulthandler.is_enabled():
        faulthandler.enable(file=sys.stderr or stacks)
    page = Page(os.path.join(folder, "heartbeat"), attempt)
    PAGES.append(page)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: setattr(page, "is_live", False))
    report = functools.partial(write_error, page, os.path.join(folder, f"error-{attempt}.json"))
    chain = sys.excepthook

    def excepthook(kind, value, trace):
        report(kind, value, trace)
        chain(kind, value, trace)

    sys.excepthook = excepthook
    atexit.register(say_end, page, report)
    sys.meta_path.insert(0, Finder(page, dict(WATCHED)))
    return page


def open_beneath(folder, name, flags):
    """Open a file of the run for writing; a link planted in its place is not followed, a FIFO not waited for."""
    flags |= os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    handle = os.open(os.path.join(folder, name), flags, 0o644)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{name} is not a regular file")
    return handle


def map_page(path):
    """Return a page of the file, with its place on the disk taken; where there is none, one that only we can see.

    A page without a place is given one at the first write, and on a full disk that is a SIGBUS in the user's script.
    """
    try:
        handle = open_beneath(os.path.dirname(path), os.path.basename(path), os.O_RDWR)
    except OSError as err:
        if err.errno in FULL:
            return mmap.mmap(-1, SIZE)
        raise
    try:
        os.posix_fallocate(handle, 0, SIZE)
        return mmap.mmap(handle, SIZE)
    except OSError as err:
        if err.errno in FULL:
            return mmap.mmap(-1, SIZE)
        raise
    finally:
        os.close(handle)


def above_standard(handle):
    """Return the file under a number above 2: where stderr was closed, it would be taken for it."""
    if handle > 2:
        return handle
    import fcntl

    moved = fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(handle)
    return moved


def tell(text):
    """Say something on stderr, where there is one."""
    if sys.stderr is not None:
        sys.stderr.write("[headway] " + text + "\n")


def claim_by_training(module, _):
    """Be rank 0 at the first optimizer, if no other process without a rank has been faster."""
    own = module.Optimizer.__init__

    @functools.wraps(own)
    def init(self, *args, **kwargs):
        module.Optimizer.__init__ = own
        try:
            if is_first():
                watch_optimizers(module, claim("0"))
        except Exception as err:  # border: the script comes first
            tell(f"the hook is off in this process: {err!r}")
        return module.Optimizer.__init__(self, *args, **kwargs)

    module.Optimizer.__init__ = init


def is_first():
    folder = os.path.join(os.environ["HEADWAY_HOOK_RUN"], "ranks", "0")
    os.makedirs(folder, exist_ok=True)
    try:
        os.close(os.open(os.path.join(folder, "taken-" + os.environ["HEADWAY_HOOK_ATTEMPT"]), os.O_CREAT | os.O_EXCL))
    except OSError:
        return False
    return True


def watch_temps(module, _):
    """Note the temporary folder that multiprocessing makes for sockets: a killed process cannot remove it any more."""
    own = module.get_temp_dir
    noted = set()

    @functools.wraps(own)
    def get_temp_dir():
        path = own()
        if path not in noted:
            noted.add(path)
            try:
                place = os.path.join(os.environ["HEADWAY_HOOK_RUN"], "ranks", "temps")
                with open(place, "a", encoding="utf-8", errors="surrogateescape") as file:
                    file.write(path + "\n")
            except (OSError, KeyError):
                pass  # a full disk: the folder stays behind
        return path

    module.get_temp_dir = get_temp_dir


def watch_daemons(module, _):
    """Note the processes that work for this one alone, as a data loader's do: a stop is not for them.

    They would die of it, and this process of their death, in the middle of its save.
    """
    own = module.BaseProcess.start

    @functools.wraps(own)
    def start(self):
        own(self)
        if self.daemon:
            try:
                place = os.path.join(os.environ["HEADWAY_HOOK_RUN"], "ranks", "helpers")
                with open(place, "a", encoding="ascii") as file:
                    file.write(f"{self.pid} {os.getpid()}\n")
            except (OSError, KeyError):
                pass  # a full disk: it is taken for a rank

    module.BaseProcess.start = start


def say_end(page, report):
    """Note the end; an excepthook that replaced ours has left the exception in `sys`."""
    if getattr(sys, "last_value", None) is not None:
        report(type(sys.last_value), sys.last_value, sys.last_traceback)
    page.phase = ENDED
    page.write()


def write_error(page, path, kind, value, trace):
    """Keep the first uncaught exception of this process for the supervisor."""
    if not page.is_live or os.path.exists(path):
        return
    import traceback

    told = {
        "kind": "error",
        "type": kind.__name__,
        "text": str(value)[:TEXT_CHARS],
        "traceback": without_us(traceback, kind, value, trace)[-TRACEBACK_CHARS:],
        "step": page.steps,
        "pid": page.pid,
        "monotonic_ns": time.monotonic_ns(),
    }
    try:
        with open(path + ".tmp", "w", encoding="utf-8", errors="backslashreplace") as file:
            json.dump(told, file)
        os.replace(path + ".tmp", path)
    except OSError:
        pass  # a full disk: the traceback is in the output anyway


def without_us(traceback, kind, value, trace):
    """Return the traceback as text, our own wrapper left out of it."""
    told = one = traceback.TracebackException(kind, value, trace)
    for _ in range(10):
        own = [frame for frame in one.stack if frame.filename != __file__]
        one.stack = traceback.StackSummary.from_list(own)
        one = one.__cause__ or one.__context__
        if one is None:
            break
    return "".join(told.format())


class Finder:
    """Waits for two modules of torch to be imported, without ever importing them."""

    def __init__(self, page, waiting):
        self.page, self.waiting = page, waiting

    def find_spec(self, name, path=None, target=None):
        watch = self.waiting.pop(name, None)
        if watch is None:
            return None
        import importlib.util

        spec = importlib.util.find_spec(name)  # asks the other finders: this one has let go of the name
        if spec is None or spec.loader is None:
            return None
        spec.loader = Loader(spec.loader, watch, self.page)
        return spec


class Loader:
    """Loads a module as its own loader would, then watches it."""

    def __init__(self, loader, watch, page):
        self.loader, self.watch, self.page = loader, watch, page

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        try:
            self.watch(module, self.page)
        except Exception as err:  # border: another version of torch; the script comes first
            tell(f"{module.__name__} is not watched: {err!r}")


def watch_collectives(module, page):
    """Count every collective that Python calls; those inside of C++ (DDP's own) are not seen here."""
    for name in COLLECTIVES:
        if hasattr(module, name):
            setattr(module, name, watched(getattr(module, name), name, page))
    begin = module.init_process_group

    @functools.wraps(begin)
    def init_process_group(*args, **kwargs):
        group = begin(*args, **kwargs)
        listen(page)
        return group

    module.init_process_group = init_process_group


def listen(page):
    """Begin to answer, once a process; an abstract socket leaves no file, and its name ends with the process."""
    if page.is_answering or not page.is_live or not sys.platform.startswith("linux"):
        return
    import _thread
    import socket

    ask = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        ask.setsockopt(socket.SOL_SOCKET, SO_PASSCRED, 1)
        ask.bind(f"\0headway-ask-{page.pid}")
        _thread.start_new_thread(answer, (ask, page))
    except OSError:
        ask.close()
        return
    page.is_answering = True


def is_asked(ask):
    """Wait for questions; say whether one of them is from our own user or root, for an abstract socket has no rights.

    All that wait are read at once, and then nothing for a while: a flood from another user costs five wakes a second.
    """
    ours, flags = False, 0
    for _ in range(MOST_QUESTIONS):
        try:
            _, beside, _, _ = ask.recvmsg(16, 64, flags)
        except BlockingIOError:
            break
        flags = 0x40  # MSG_DONTWAIT: the first was waited for, the others are there or are not
        for level, kind, data in beside:
            if (level, kind) == (1, 2) and len(data) >= 12:  # SOL_SOCKET, SCM_CREDENTIALS: pid, uid, gid
                ours = ours or struct.unpack("3i", data[:12])[1] in (0, os.getuid())
    return ours


def answer(ask, page):
    while True:
        if is_asked(ask):
            tell_flight(page)
        time.sleep(ANSWER_EVERY_S)


def tell_flight(page):
    """Write the recorder beside the page."""
    try:
        told = read_flight()
    except Exception as err:  # border: another version of torch; the script comes first
        told = {"error": repr(err)}
    told["pid"], told["monotonic_ns"] = page.pid, time.monotonic_ns()
    try:
        with open(page.flight + ".tmp", "w", encoding="utf-8") as file:
            json.dump(told, file)
        os.replace(page.flight + ".tmp", page.flight)
    except OSError:
        pass  # a full disk: the table has one column less


def read_flight():
    """Return the state of every process group and the last collectives, as torch's own recorder has them in JSON."""
    module = sys.modules["torch._C._distributed_c10d"]
    groups, entries = {}, []
    for name in ("_dump_fr_trace_json", "_dump_nccl_trace_json"):
        dump = getattr(module, name, None)
        if dump is None:
            continue
        told = json.loads(dump(True, False))
        groups.update(told.get("pg_status") or {})
        for entry in (told.get("entries") or [])[-FLIGHT_ENTRIES:]:
            entries.append({key: value for key, value in entry.items() if key != "frames"})
    return {"groups": groups, "entries": entries}


def watched(function, name, page):
    label = name.encode()

    @functools.wraps(function)
    def call(*args, **kwargs):
        if page.depth:  # one collective made of others is one
            return function(*args, **kwargs)
        page.depth = 1
        page.collectives += 1
        page.name, page.numel = label, count(args, kwargs)
        seen = page.numels.setdefault(name, set())
        page.numel_before = page.numel if page.numel in seen or page.collectives < 3 else -2
        if len(seen) < 1000:
            seen.add(page.numel)
        page.entered_ns = time.monotonic_ns()
        page.write()
        try:
            return function(*args, **kwargs)
        finally:
            page.depth = page.entered_ns = 0
            page.write()

    return call


def count(args, kwargs):
    """Return the number of elements of a collective's tensor, or -1."""
    tensor = args[0] if args else kwargs.get("tensor")
    try:
        return int(tensor.numel())
    except (AttributeError, TypeError, RuntimeError):
        return -1


def log(step, loss, lr, grad_norm, samples):
    """Write a step that the script tells by itself (`headway.log`) into the rank's metrics and onto its page."""
    try:
        if not PAGES and os.environ.get("HEADWAY_HOOK_CLAIMED") is None and is_first():
            claim("0")  # no launcher has given a number, and no optimizer was made
        if PAGES and PAGES[0].is_live:
            write_step(PAGES[0], step, loss, lr, grad_norm, samples)
    except Exception as err:  # border: the script comes first
        for page in PAGES:
            page.is_live = False
        tell(f"headway.log is off in this process: {err!r}")


def write_step(page, step, loss, lr, grad_norm, samples):
    if page.metrics is None:
        folder = os.path.join(os.environ["HEADWAY_HOOK_RUN"], "ranks", os.environ["HEADWAY_HOOK_CLAIMED"])
        page.metrics = open_beneath(folder, "metrics.jsonl", os.O_WRONLY | os.O_APPEND)
    now = time.time()
    page.steps = page.steps + 1 if step is None else int(step)
    page.loss, page.lr = number(loss), number(lr) if lr is not None else 0.0
    row = dict.fromkeys(COLUMNS, 0)
    row.update(step=page.steps, samples=int(samples or 0), loss=page.loss, lr=number(lr), grad_norm=number(grad_norm))
    row.update(t=now, dt=now - page.logged_t if page.logged_t else 0.0, mem=None)
    page.logged_t = now
    page.phase = FORWARD
    plain = {name: shown(value) for name, value in row.items()}
    os.write(page.metrics, (json.dumps(dict({"a": page.attempt}, **plain)) + "\n").encode())
    page.write()


def number(value):
    return float("nan") if value is None else float(value)


def shown(value):
    """Return a number as JSON can hold it."""
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return None if value != value else value


def watch_optimizers(module, page):
    """Count optimizers and their steps."""
    own = module.Optimizer.__init__

    @functools.wraps(own)
    def init(self, *args, **kwargs):
        page.optimizers += 1
        page.write()
        return own(self, *args, **kwargs)

    module.Optimizer.__init__ = init
    first = []

    def stepped(optimizer, args, kwargs):
        # Several optimizers take turns within one step: the first that ever stepped is the clock.
        if not first:
            first.append(id(optimizer))
        if id(optimizer) == first[0]:
            page.steps += 1
        page.phase = FORWARD
        page.write()

    module.register_optimizer_step_post_hook(stepped)


WATCHED = {
    "torch.distributed.distributed_c10d": watch_collectives,
    "torch.optim.optimizer": watch_optimizers,
}
