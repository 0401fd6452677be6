"""A rank without a framework: takes steps, saves, and fails exactly as its job tells it to."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

from headway.errors import TrainError
from headway.process import die_with_parent
from headway.telemetry import HeartbeatWriter, RunDir, read_json

FORWARD = 3


class Rank:
    def __init__(self, job: dict[str, Any]) -> None:
        self.run = RunDir(Path(job["run_dir"]))
        self.rank, self.attempt, self.report_fd = job["rank"], job["attempt"], job["report_fd"]
        self.fake = read_json(self.run.job)["config"]["fake"]
        self.beat = HeartbeatWriter(self.run.heartbeat(self.rank), self.attempt)
        self.is_stopping = False
        self.latest = self.run.checkpoints / "latest-step"
        self.is_save_asked = False
        signal.signal(signal.SIGTERM, self.on_term)
        signal.signal(signal.SIGUSR1, self.on_usr1)
        self.peers = meet(job)

    def on_term(self, signum: int, frame: object) -> None:
        if self.fake.get("on_term") == "ignore":
            print("not listening")
            return
        self.is_stopping = True

    def on_usr1(self, signum: int, frame: object) -> None:
        self.is_save_asked = True

    def report(self, **report: Any) -> None:
        os.write(self.report_fd, json.dumps(report).encode() + b"\n")

    def save(self, step: int) -> None:
        if self.rank == 0:
            time.sleep(self.fake.get("save_s", 0))
            temp = self.latest.with_name("latest-step.tmp")
            temp.write_text(str(step))
            temp.replace(self.latest)
            self.report(kind="event", event={"kind": "checkpoint_committed", "step": step, "path": str(self.latest)})

    def train(self) -> int:
        start = int(self.latest.read_text()) if self.latest.exists() else 0
        if self.rank == 0:
            self.report(kind="event", event={"kind": "training_started", "attempt": self.attempt, "step": start})
        for step in range(start + 1, self.fake["steps"] + 1):
            self.misbehave(step)
            time.sleep(self.fake.get("step_s", 0.005))
            is_stopping = self.agree(self.is_stopping)
            self.beat.beat(FORWARD, step=step, samples=step * 8, loss=1.0 / step)
            print(f"rank {self.rank} step {step}")
            if (self.fake.get("save_every") and step % self.fake["save_every"] == 0) or self.is_save_asked:
                self.is_save_asked = False
                self.save(step)
            if is_stopping:
                self.save(step)
                return self.finish("stopped", step)
        return self.finish("done", self.fake["steps"])

    def agree(self, flag: bool) -> bool:
        """Wait for all ranks and learn whether any has raised the flag, as a collective would."""
        if self.rank == 0:
            flag = any([flag, *(receive(peer) for peer in self.peers)])
            for peer in self.peers:
                peer.sendall(bytes([flag]))
            return flag
        self.peers[0].sendall(bytes([flag]))
        return receive(self.peers[0])

    def finish(self, state: str, step: int) -> int:
        self.report(kind="finished", state=state, step=step)
        return 0

    def misbehave(self, step: int) -> None:
        for fault in self.fake.get("faults", ()):
            if fault.get("rank", 0) != self.rank or fault.get("step", 1) != step:
                continue
            if self.attempt in fault.get("attempts", [self.attempt]):
                FAULTS[fault["do"]](self, fault)


def meet(job: dict[str, Any]) -> list[socket.socket]:
    """Connect all ranks with rank 0 over the socket the supervisor bound, as a store would."""
    if job["rank"] != 0:
        return [socket.create_connection(("127.0.0.1", int(os.environ["MASTER_PORT"])))]
    with socket.socket(fileno=job["listen_fd"]) as listener:
        assert listener.getsockname() == ("127.0.0.1", job["master_port"])
        return [listener.accept()[0] for _ in range(job["world_size"] - 1)]


def receive(peer: socket.socket) -> bool:
    data = peer.recv(1)
    if not data:
        raise RuntimeError("[gloo/transport/tcp/pair.cc:547] Connection closed by peer")
    return bool(data[0])


def main(job: dict[str, Any]) -> int:
    return Rank(job).train()


def signal_itself(rank: Rank, fault: dict[str, Any]) -> None:
    os.kill(os.getpid(), getattr(signal, fault["signal"]))
    time.sleep(60)


def fail(rank: Rank, fault: dict[str, Any]) -> None:
    raise ValueError(fault.get("text", "labels are out of range"))


def fail_headway(rank: Rank, fault: dict[str, Any]) -> None:
    raise TrainError("diagnose/exited", exit=77)


def lose_peer(rank: Rank, fault: dict[str, Any]) -> None:
    raise RuntimeError("[gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:4242")


def lose_peer_then_fail(rank: Rank, fault: dict[str, Any]) -> None:
    time.sleep(0.1)
    raise ValueError("the true cause, told late")


def exit_early(rank: Rank, fault: dict[str, Any]) -> None:
    sys.exit(fault.get("code", 0))


def claim_done(rank: Rank, fault: dict[str, Any]) -> None:
    os._exit(rank.finish("done", 0))


def flood(rank: Rank, fault: dict[str, Any]) -> None:
    line = b"x" * 99 + b"\n"
    for _ in range(fault["megabytes"]):
        os.write(1, line * 10_000)


def print_long_line(rank: Rank, fault: dict[str, Any]) -> None:
    data = memoryview(b"y" * (10 << 20) + b"\nafter the long line\n")
    while data:
        data = data[os.write(1, data) :]


def print_odd_bytes(rank: Rank, fault: dict[str, Any]) -> None:
    os.write(1, b"\xff\xfe\x00bad\x1b]0;title\x07\rbar\nnext\n")


def close_stdout(rank: Rank, fault: dict[str, Any]) -> None:
    os.close(1)
    os.close(2)
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - lives as long as the process


def start_children(rank: Rank, fault: dict[str, Any]) -> None:
    """A loader worker that dies with its rank, and a daemon that cut every tie."""
    parent = os.getpid()
    if os.fork() == 0:
        die_with_parent(parent)
        sleep_long("worker", rank)
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork() == 0:
            sleep_long("daemon", rank)
        os._exit(0)


def sleep_long(name: str, rank: Rank) -> None:
    (rank.run.root / f"{name}-{rank.rank}.pid").write_text(str(os.getpid()))
    time.sleep(600)
    os._exit(0)


def hang(rank: Rank, fault: dict[str, Any]) -> None:
    threading.Event().wait(600)


def send_odd_reports(rank: Rank, fault: dict[str, Any]) -> None:
    os.write(rank.report_fd, b'not json\n[1]\n{"kind": 7}\n{"kind":"event","event":{"no":"kind"}}\n{"kind":"event"}\n')


FAULTS = {name: call for name, call in list(globals().items()) if callable(call) and name not in ("main", "Rank")}
