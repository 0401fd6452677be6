"""Several nodes for one run: who takes part is settled before the plan is made, by the leader; the others follow."""

from __future__ import annotations

import os
import re
import secrets
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import headway
from headway.config import LoadedConfig
from headway.errors import CheckError, HeadwayError, PlanError, UsageError
from headway.launch import Job, Nursery, Training, read_job, write_job
from headway.launch.nodes.leader import Hello, Leader, Node
from headway.launch.nodes.link import Door
from headway.launch.nodes.rendezvous import (
    Meeting,
    address_towards,
    is_own,
    meeting_file,
    network_variables,
    new_secret,
    open_listener,
    own_address,
    read_place,
)
from headway.messages import language, say
from headway.planner import Batch, Plan, keep_total
from headway.start.nursery import Tell
from headway.start.ssh import SshNodes
from headway.telemetry import RunDir, write_json, write_whole

_COUNTS: Final = re.compile(r"(\d+)(?::(\d+))?")
_TELL_S: Final = 15.0
_CALLED_OFF_S: Final = 3600.0
"""How long the word that a start was called off is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesWish:
    """What is asked for."""

    most: int
    least: int
    hosts: tuple[str, ...] = ()
    """To be started over ssh, this node apart; empty: they come by themselves."""
    address: str | None = None
    """`HOST` or `HOST:PORT` on which this node is reached."""
    meet: Path | None = None
    is_public: bool = False
    """An address that the internet may reach is agreed to."""
    wait_s: float = 300.0
    """Longest time until all nodes have joined."""


def wish_nodes(
    nodes: str | None, *, least: int | None = None, address: str | None = None, **others: Any
) -> NodesWish | None:
    """Read `--nodes`: a number, `MIN:MAX`, or names of hosts; none: this node alone. Any: the other fields."""
    if nodes is None:
        if address is not None or others.get("meet") is not None or least is not None:
            raise UsageError("nodes/not-asked")
        return None
    counts = _COUNTS.fullmatch(nodes)
    hosts: tuple[str, ...] = ()
    if counts is not None:
        low, high = int(counts[1]), int(counts[2] or counts[1])
    else:
        named = tuple(name.strip() for name in nodes.split(",") if name.strip())
        hosts = tuple(name for name in named if not is_own(name.rpartition("@")[2]))
        if len(hosts) == len(named):
            raise UsageError("nodes/not-here", here=socket.gethostname(), first=named[0], names=nodes)
        low = high = len(named)
    least = low if least is None else least
    if not 1 <= least <= high or high < 2:
        raise UsageError("nodes/bad-number", nodes=nodes, least=least)
    return NodesWish(most=high, least=least, hosts=hosts, address=address, **others)


def refuse_behind(wish: NodesWish | None, is_detached: bool) -> None:
    """Refuse to lead nodes from the background: the supervisor there would have to let them in a second time."""
    if wish is not None and is_detached:
        raise UsageError("nodes/detached")


class Assembly:
    """The nodes of a run that is about to start, or runs."""

    def __init__(self, wish: NodesWish, leader: Leader, meeting: Meeting, tell: Tell) -> None:
        self.wish, self.leader, self.meeting, self._tell = wish, leader, meeting, tell
        self.ssh: SshNodes | None = None
        self.file: Path | None = None
        """Of the run, with address and secret while it lasts."""

    def wait(self) -> None:
        """Let all nodes in.

        Raises:
            CheckError: they were not there in time, or cannot take part.
        """
        began = told = time.monotonic()
        while not self.leader.is_whole:
            for node in self.leader.gather(0.2):
                self._tell(say("nodes/joined", index=node.index, host=node.hello.host, address=node.link.peer))
            if self.ssh is not None:
                self.ssh.look()
            now = time.monotonic()
            here, command = len(self.leader.nodes) + 1, self.join_command()
            if now - began > self.wish.wait_s:
                raise CheckError(
                    "nodes/not-joined", here=here, nodes=self.wish.most, seconds=f"{self.wish.wait_s:g}", typed=command
                )
            if now - told > _TELL_S:
                told = now
                self._tell(say("nodes/waiting", here=here, nodes=self.wish.most, typed=command))

    def join_command(self) -> str:
        """Return what a further node is started with, ready to paste."""
        if self.wish.meet is not None:
            return f"headway node --meet {self.wish.meet.absolute()}"
        return f"headway node --leader {self.meeting.address}:{self.meeting.port}"

    def settle(self, loaded: LoadedConfig, *, on_gpus: bool) -> int:
        """Wait for all nodes; return how many ranks the others take.

        Raises:
            CheckError: a node has not what the config asks for.
        """
        parallel = loaded.config.parallel

        def admit(node: Node) -> tuple[str, Mapping[str, object]] | None:
            if not on_gpus:
                node.num_ranks, node.devices = node.hello.cpus or parallel.cpus, ()
                return None
            return _take_gpus(node, node.hello, parallel.gpus)

        return self._settle(admit)

    def settle_line(self, job: Job, wanted: str | None, counted: str | None) -> int:
        """The same for a launch line, whose ranks are as many on every node, or as many as there are GPUs.

        Args:
            job: of this node.
            wanted: `--gpus`.
            counted: `gpu` or `auto`, where the line says so.
        """

        spans = job.foreign is not None and job.foreign.spans_nodes

        def admit(node: Node) -> tuple[str, Mapping[str, object]] | None:
            if spans:
                node.num_ranks, node.devices = 1, None  # its launcher makes the ranks
                return None
            if wanted is not None:
                return _take_gpus(node, node.hello, int(wanted) if wanted.isdigit() else wanted.split(","))
            by_gpu = len(node.hello.gpus) if counted in ("gpu", "auto") and job.devices != () else 0
            node.num_ranks = node.hello.cpus or by_gpu or job.world_size
            node.devices = job.devices if job.devices == () else None
            return None

        return self._settle(admit)

    def _settle(self, admit: Any) -> int:
        """Any: the leader's own question."""
        self.wait()
        self.leader.admit = admit
        for node in self.leader.nodes.values():
            why = admit(node)
            if why is not None:
                raise CheckError(why[0], **{"host": node.hello.host, **why[1]})
        return sum(node.num_ranks for node in self.leader.nodes.values())

    def prepare(self, nursery: Nursery) -> None:
        """Let the other nodes import what this one does."""
        self.leader.prepare(nursery)

    def lead(self, run: RunDir, job: Job, *, local_ranks: int) -> Leader:
        """Tell the nodes of the run that is written; what follows is the supervisor's."""
        mark = secrets.token_hex(16)
        write_whole(run.root / "ranks" / ".nodes", mark.encode("ascii"))
        self.file = meeting_file(run)
        self.meeting.write(self.file)
        self.leader.local_ranks = local_ranks
        self.leader.network = network_variables(self.meeting.address)
        self.leader.resize = partial(_resize, run)
        foreign = job.foreign
        self.leader.brief(
            {
                "run_dir": str(run.root.absolute()),
                "mark": mark,
                "cwd": os.getcwd(),
                "lang": language(),
                "job": job.to_json(),
                "argv": None if foreign is None else list(foreign.argv),
                "environment": dict(job.environment),
            }
        )
        return self.leader


@contextmanager
def assembled(wish: NodesWish | None, tell: Tell) -> Iterator[Assembly | None]:
    """Open the door of a run on several nodes, and start those that are reached over ssh."""
    if wish is None:
        yield None
        return
    host, port = read_place(wish.address) if wish.address else ("", 0)
    own = host or (address_towards(wish.hosts[0].rpartition("@")[2]) if wish.hosts else own_address())
    secret = new_secret()
    door = Door(open_listener(own, port, is_public=wish.is_public), secret.encode())
    meeting = Meeting(address=door.address[0], port=door.address[1], secret=secret)
    leader = Leader(door, num_nodes=wish.most, least=wish.least, version=headway.__version__)
    assembly = Assembly(wish, leader, meeting, tell)
    exit_code = 1
    try:
        if wish.meet is not None:
            meeting.write(wish.meet)
        if wish.hosts:
            assembly.ssh = SshNodes(wish.hosts, meeting, python=sys.executable, tell=tell)
            leader.call_back = assembly.ssh.start
        tell(say("nodes/leading", address=meeting.address, port=meeting.port, nodes=wish.most))
        yield assembly
    except HeadwayError as err:
        exit_code = err.exit_code
        raise
    finally:
        is_early = assembly.file is None and not leader.is_whole
        leader.close(None)
        for file in (wish.meet, assembly.file):
            if file is not None:
                file.unlink(missing_ok=True)
        if is_early and wish.meet is not None:
            _call_off(wish.meet, exit_code)
        if assembly.ssh is not None:
            assembly.ssh.close()


def _call_off(meet: Path, exit_code: int) -> None:
    """Let nodes that are still to come end at once, instead of waiting in an allocation for a leader that has ended."""
    with suppress(OSError):
        for old in meet.parent.glob(".nodes-slurm-*.json"):
            if time.time() - old.stat().st_mtime > _CALLED_OFF_S:
                old.unlink(missing_ok=True)
        Meeting.call_off(meet, exit_code)


def _take_gpus(node: Node, hello: Hello, wanted: object) -> tuple[str, Mapping[str, object]] | None:
    """Give a node the GPUs that the config means, by its own count."""
    have = hello.gpus
    if wanted == "auto":
        chosen = have
    elif isinstance(wanted, int):
        chosen = have[:wanted] if len(have) >= wanted else ()
    else:
        assert isinstance(wanted, Sequence), "a list of indexes"
        chosen = tuple(str(one) for one in wanted if str(one) in have or not str(one).isdigit())
        chosen = chosen if len(chosen) == len(wanted) else ()
    if not chosen:
        return "nodes/too-few-gpus", {"wanted": str(wanted), "have": len(have)}
    node.num_ranks, node.devices = len(chosen), chosen
    return None


def _resize(run: RunDir, ranks: int) -> str | None:
    """Write the run down for another number of ranks at the same batch; return why that cannot be."""
    job = read_job(run)  # as it is now: a batch that was too large has been written smaller
    if not isinstance(job.program, Training):
        return None  # a script that asks for its world size, as under an elastic launcher
    plan = Plan.from_json(dict(job.program.plan))
    try:
        from_now = keep_total(_batch_of(plan), world_size=ranks)
    except PlanError as err:
        return str(err)
    changed = replace(plan, world_size=ranks, micro_batch=from_now.per_device, accumulation=from_now.accumulation)
    program = replace(job.program, plan=changed.to_json())
    write_job(run, replace(job, program=program))
    write_json(run.plan, changed.to_json())
    return None


def _batch_of(plan: Plan) -> Batch:
    tokens = plan.batch_samples * plan.tokens_per_sample if plan.tokens_per_sample else None
    return Batch(per_device=plan.micro_batch, accumulation=plan.accumulation, samples=plan.batch_samples, tokens=tokens)
