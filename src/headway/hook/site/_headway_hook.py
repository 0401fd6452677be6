"""The hook itself: where this rank is, which collective it is in, what it died of. Stdlib only, no thread, no output.

The page: the first 512 bytes as in headway's own heartbeat (phase and steps), then the hook's part. One writer, this
process; readers see whole 8-byte numbers. A write costs about a microsecond.
"""

import atexit
import faulthandler
import functools
import json
import mmap
import os
import signal
import struct
import sys
import time

BEAT = struct.Struct("<8sqqqqqqddd")
OWN = struct.Struct("<8sqqqqqqqqq64s")
OWN_AT = 512
SIZE = 4096
RANK_NAMES = ("HEADWAY_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK_ID", "SLURM_PROCID")
START, FORWARD, OPTIMIZER, ENDED = 0, 3, 5, 9
WORDS = (
    "all_reduce all_reduce_coalesced broadcast reduce all_gather all_gather_into_tensor all_gather_object "
    "all_gather_coalesced gather scatter reduce_scatter reduce_scatter_tensor all_to_all all_to_all_single barrier "
    "monitored_barrier broadcast_object_list gather_object scatter_object_list send recv"
)
COLLECTIVES = WORDS.split()
TEXT_CHARS = 8000
TRACEBACK_CHARS = 20000


def stack_signal():
    """Return the signal that asks for stacks: one of the real-time signals, which no trainer uses."""
    return signal.SIGRTMIN + 13


class Page:
    """What is written, as plain numbers."""

    def __init__(self, path, attempt):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(handle, SIZE)
        self.memory = mmap.mmap(handle, SIZE)
        os.close(handle)
        self.pid, self.attempt = os.getpid(), attempt
        self.phase, self.steps = START, 0
        self.collectives = self.entered_ns = self.optimizers = self.numel = self.depth = 0
        self.numel_before = -1
        self.numels = {}
        self.name = b""
        self.is_live = True
        self.write()

    def write(self):
        if not self.is_live:
            return
        now = time.monotonic_ns()
        BEAT.pack_into(
            self.memory, 0, b"HWBEAT01", self.pid, self.attempt, self.phase, self.steps, 0, now, float("nan"), 0.0, 0.0
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
    """Claim the rank of this process; a process started by one that has claimed it does nothing."""
    rank = next((os.environ[name] for name in RANK_NAMES if os.environ.get(name, "").isdigit()), None)
    if rank is None or os.environ.get("HEADWAY_HOOK_CLAIMED") == rank:
        return
    folder = os.path.join(os.environ["HEADWAY_HOOK_RUN"], "ranks", rank)
    os.makedirs(folder, exist_ok=True)
    attempt = int(os.environ["HEADWAY_HOOK_ATTEMPT"])
    os.environ["HEADWAY_HOOK_CLAIMED"] = rank
    stacks = open(os.path.join(folder, "stacks"), "w")  # noqa: SIM115 - open for as long as the process lives
    faulthandler.register(stack_signal(), file=stacks, all_threads=True, chain=False)
    if not faulthandler.is_enabled():
        faulthandler.enable()
    page = Page(os.path.join(folder, "heartbeat"), attempt)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: setattr(page, "is_live", False))
    report = functools.partial(write_error, page, os.path.join(folder, f"error-{attempt}.json"))
    chain = sys.excepthook

    def excepthook(kind, value, trace):
        report(kind, value, trace)
        chain(kind, value, trace)

    sys.excepthook = excepthook
    atexit.register(say_end, page, report)
    sys.meta_path.insert(0, Finder(page))


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
        pass  # a full disk: the traceback is in the output all the same


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

    def __init__(self, page):
        self.page = page
        self.waiting = {
            "torch.distributed.distributed_c10d": watch_collectives,
            "torch.optim.optimizer": watch_optimizers,
        }

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
            sys.stderr.write(f"[headway] {module.__name__} is not watched: {err!r}\n")


def watch_collectives(module, page):
    """Count every collective that Python calls; those inside of C++ (DDP's own) are not seen here."""
    for name in COLLECTIVES:
        if hasattr(module, name):
            setattr(module, name, watched(getattr(module, name), name, page))


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
