"""The faults of `fault_blame.py`: a small job that can fail in many ways, and what is right to say of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

JOB = """
import os, signal, socket, sys, time
import torch, torch.distributed as dist
fault, rank, odd = sys.argv[1], int(os.environ["RANK"]), int(sys.argv[2])
dist.init_process_group("gloo")
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def mark():
    with open("struck", "w") as file:
        file.write(repr(time.time()))

class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 1
    def __getitem__(self, index):
        time.sleep(1000)

class Greedy(Slow):
    def __getitem__(self, index):
        kept = []
        while True:
            kept.append(bytearray(os.urandom(1 << 20) * 32))

def load(step):
    if step == 6 and rank == odd and fault in ("slow-loader", "slow-worker"):
        mark()
        loader = torch.utils.data.DataLoader(Slow(), batch_size=1, num_workers=int(fault == "slow-worker"))
        next(iter(loader))
    return torch.randn(4, 8)

def strike():
    mark()
    if fault == "exception":
        raise ValueError("a bad batch")
    if fault == "key-error":
        {}["lr"]
    if fault == "missing-file":
        open("/no/such/file.bin")
    if fault == "import":
        import no_such_module
    if fault == "exit-3":
        sys.exit(3)
    if fault == "exit-0":
        sys.exit(0)
    if fault == "os-exit-0":
        os._exit(0)
    if fault in ("SIGKILL", "SIGSEGV", "SIGSTOP", "SIGTERM", "SIGABRT", "SIGBUS"):
        os.kill(os.getpid(), getattr(signal, fault))
    if fault == "memory":
        raise MemoryError("Cannot allocate memory")
    if fault == "skip":
        time.sleep(1000)
    if fault == "host-oom":
        kept = []
        while True:
            kept.append(bytearray(os.urandom(1 << 20) * 32))
    if fault == "worker-oom":
        next(iter(torch.utils.data.DataLoader(Greedy(), batch_size=1, num_workers=1)))
    if fault == "fork-bomb":
        while True:
            if os.fork() == 0:
                time.sleep(1000)
                os._exit(0)
    if fault == "data-server":
        socket.create_connection(("127.0.0.1", int(os.environ["CLOSED_PORT"])))
    if fault == "port-taken":
        socket.create_server(("127.0.0.1", int(os.environ["TAKEN_PORT"])))

for step in range(1, 13):
    loss = model(load(step)).pow(2).mean()
    loss.backward()
    if step == 6 and rank == odd:
        strike()
        if fault == "skip-step":
            continue
        if fault == "wrong-collective":
            dist.barrier()
    if fault == "closed-terminal" or (fault == "killed-launcher" and step > 6):
        time.sleep(0.3 if fault == "closed-terminal" else 5)
    for p in model.parameters():
        grad = p.grad
        if fault == "shape" and step == 6 and rank == odd:
            grad = torch.cat([grad.flatten(), grad.flatten()])
        dist.all_reduce(grad)
    optimizer.step(); optimizer.zero_grad()
    print(f"step {step}: loss {loss.item():.4f}", flush=True)
dist.destroy_process_group()
"""

Cage = Literal["memory", "pids"]
Act = Literal["kill the launcher", "close the terminal", "take the port of the line"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One way to fail."""

    kinds: frozenset[str] = frozenset()
    """Classes that describe it; empty: the fault must not end the run at all, or nobody is left to say anything."""
    cage: Cage | None = None
    """A control group around the whole launch."""
    act: Act | None = None
    """What is done from outside, once the odd rank has come to its sixth step."""
    is_tie: bool = False
    """Two ranks only disagree, and nothing tells who is odd: right is to blame neither."""
    dead: bool = field(default=False)
    """The rank is dead at once, so the time until the supervisor knows is measured."""


def _kinds(*names: str) -> Fault:
    return Fault(kinds=frozenset(names))


def _deadly(*names: str) -> Fault:
    return Fault(kinds=frozenset(names), dead=True)


FAULTS: dict[str, Fault] = {
    "exception": _kinds("python-exception"),
    "key-error": _kinds("python-exception"),
    "missing-file": _kinds("missing-file"),
    "import": _kinds("import-error"),
    "memory": _kinds("host-out-of-memory"),
    "port-taken": _kinds("port-in-use"),
    "data-server": _kinds("server-refused"),
    "exit-3": _kinds("exited"),
    "exit-0": _kinds("early-exit"),
    "os-exit-0": Fault(kinds=frozenset({"early-exit"}), dead=True),
    "SIGKILL": _deadly("killed"),
    "SIGTERM": _deadly("preempted"),
    "SIGSEGV": _deadly("crashed"),
    "SIGBUS": _deadly("crashed"),
    "SIGABRT": _deadly("crashed"),
    "host-oom": Fault(kinds=frozenset({"host-oom-kill"}), cage="memory"),
    "worker-oom": Fault(kinds=frozenset({"host-oom-kill"}), cage="memory"),
    "fork-bomb": Fault(kinds=frozenset({"process-limit"}), cage="pids"),
    "SIGSTOP": _kinds("rank-stopped"),
    "skip": _kinds("rank-behind"),
    "skip-step": _kinds("early-exit", "collective-mismatch"),
    "wrong-collective": Fault(kinds=frozenset({"collective-mismatch"}), is_tie=True),
    "shape": _kinds("collective-mismatch"),
    "slow-loader": _kinds("data-stall"),
    "slow-worker": _kinds("data-stall"),
    "line-port-taken": Fault(act="take the port of the line"),
    "closed-terminal": Fault(act="close the terminal"),
    "killed-launcher": Fault(act="kill the launcher"),
}
