"""The crew of node 0: it lets followers in, hands out seats, takes in what happens on their nodes, and tells them what
follows. Every rank of another node is one of the attempt's ranks here, so whoever judges need not know of nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

from headway.diagnosis import ExitStatus, Hang, RankView
from headway.launch.attempt import Attempt, RankProcess
from headway.launch.hearing import FIRST, NEXT, Hearing
from headway.launch.history import History
from headway.launch.nodes.link import Door, Link, Message
from headway.launch.nursery import Nursery
from headway.launch.outcome import Outcome
from headway.launch.program import Chief, Muster, Seat
from headway.launch.verdict import Stop, Verdict
from headway.telemetry import Beat

RETURN_S: Final = 60.0
"""How long a lost node is waited for, unless the run may continue without it."""
_SOON_S: Final = 3.0
"""The same where it may: a supervisor that was killed and started again is back by then."""
_GONE_S: Final = 8.0
"""Time for followers to clear up at the end of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What a follower says of its node."""

    index: int | None
    """Which one it is; None: the next free."""
    host: str
    version: str
    gpus: tuple[str, ...]
    """Indexes of the GPUs it may use."""
    cpus: int | None
    """CPU ranks it was told to start; None: as many as the leader."""
    token: str
    """Of this process: one that comes back is known by it."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Hello:
        """Read what came over a link."""
        index, cpus = data.get("index"), data.get("cpus")
        return cls(
            index=None if index is None else int(index),
            host=str(data["host"]),
            version=str(data["version"]),
            gpus=tuple(map(str, data["gpus"])),
            cpus=None if cpus is None else int(cpus),
            token=str(data["token"]),
        )


@dataclass(slots=True)
class Node:
    """A node of the run, seen from the leader."""

    index: int
    link: Link
    hello: Hello
    num_ranks: int = 0
    devices: tuple[str, ...] | None = None
    refusal: tuple[str, Mapping[str, object]] | None = None
    """Message code and facts of what it cannot do."""
    has_run: bool = False
    """It has been told of the run and is ready for attempts."""
    is_done: bool = False
    """Nothing of the run is left on it."""
    beats: dict[int, Beat] | None = None


Admit = Callable[[Node], tuple[str, Mapping[str, object]] | None]
"""Returns why a node cannot take part: message code and facts; None: it can, and its ranks are set."""


class Leader:
    """Node 0 of several."""

    def __init__(self, door: Door, *, num_nodes: int, least: int, version: str) -> None:
        self.num_nodes, self.least = num_nodes, least
        self.address = door.address[0]
        self.nodes: dict[int, Node] = {}
        self.local_ranks = 0
        """Ranks of this node."""
        self.admit: Admit | None = None
        """Asked about every node that joins; None: not known yet what nodes must have."""
        self.network: Mapping[str, str] = {}
        """Variables for this node's ranks, as `Seat.network`."""
        self.return_s = RETURN_S
        self.call_back: Callable[[int], None] | None = None
        """Starts a node again that is lost; None: whoever has started it does."""
        self.resize: Callable[[int], str | None] | None = None
        """Makes the run one of another number of ranks; returns why it cannot, or None."""
        self._door, self._version = door, version
        self._greeted: list[Link] = []
        self._prepare: dict[str, Any] = {}
        self._order: dict[str, Any] = {}
        self._members: dict[int, int] = {}
        """Further nodes of the attempt under way or to come, with the number of their ranks."""
        self._lost: dict[int, str] = {}
        """Hosts of nodes that were members and are gone, by index."""
        self._lost_at = 0.0
        self._attempt: Attempt | None = None
        self._chief: Chief | None = None
        self._hearing: Hearing | None = None
        self._history: History | None = None

    # --- before the run ---

    @property
    def is_whole(self) -> bool:
        """Say whether all nodes are there."""
        return len(self.nodes) == self.num_nodes - 1

    def gather(self, timeout_s: float) -> list[Node]:
        """Let in who is at the door, for so long; return the nodes that are new."""
        until = time.monotonic() + timeout_s
        before = set(self.nodes)
        while time.monotonic() < until and set(self.nodes) == before:
            self._let_in()
            for link in list(self._greeted):
                self._hear_greeted(link)
            for node in list(self.nodes.values()):
                self._hear_early(node)
            time.sleep(0.01)
        return [node for index, node in self.nodes.items() if index not in before]

    def _hear_early(self, node: Node) -> None:
        node.link.tick(time.monotonic())
        for message in node.link.receive():
            if message.kind == "refused":
                node.refusal = str(message.facts["code"]), dict(message.facts["facts"])
        if node.link.is_gone:
            del self.nodes[node.index]

    def prepare(self, nursery: Nursery) -> None:
        """Let all nodes import what the ranks need, now and whenever one joins."""
        self._prepare = {
            "python": nursery.python,
            "preload": list(nursery.preload),
            "entry": nursery.entry,
            "env": nursery.env,
        }
        for node in self.nodes.values():
            node.link.send("prepare", **self._prepare)

    def brief(self, order: Mapping[str, Any]) -> None:
        """Tell all nodes of the run, now and whenever one joins."""
        self._order = dict(order)
        self._members = self._present()
        for node in self.nodes.values():
            self._brief(node)

    def _present(self) -> dict[int, int]:
        return {index: self.nodes[index].num_ranks for index in sorted(self.nodes)}

    def _brief(self, node: Node) -> None:
        devices = None if node.devices is None else list(node.devices)
        node.link.send("run", **self._order, devices=devices)
        node.has_run = True

    # --- the crew ---

    @property
    def world_size(self) -> int:
        """Ranks of all nodes."""
        return self.local_ranks + sum(self._members.values())

    def attach(self, chief: Chief, hearing: Hearing, history: History) -> None:
        """Begin to listen to the other nodes."""
        self._chief, self._hearing, self._history = chief, hearing, history
        hearing.listen(self._door.fileno(), NEXT, self._on_door)
        for link in self._greeted:
            hearing.listen(link.fileno(), NEXT, partial(self._on_greeted, link))
        for node in self.nodes.values():
            hearing.listen(node.link.fileno(), FIRST, partial(self._on_node, node))
            self._tell_joined(node)

    def muster(self) -> Muster:
        """Wait for lost nodes, and where they do not come continue without them, or end."""
        refused = next((node for node in self.nodes.values() if node.refusal is not None), None)
        if refused is not None and refused.refusal is not None:
            code, facts = refused.refusal
            facts = {**facts, "host": refused.hello.host}
            return Muster(is_ready=False, is_over=True, state="failed", exit_code=3, why=code, facts=facts)
        present = self._present()
        if all(index in self.nodes for index in self._members):
            if present != self._members and self._fits(present) is None:
                self._members = present  # a node that has come back
            return Muster()
        if self.call_back is not None:
            for index in self._lost:
                self.call_back(index)
        enough = len(present) + 1 >= self.least
        if time.monotonic() - self._lost_at < min(self.return_s, _SOON_S if enough else RETURN_S):
            return Muster(is_ready=False)
        hosts = ", ".join(self._lost[index] for index in sorted(self._lost))
        facts = {"hosts": hosts, "there": len(present) + 1, "least": self.least}
        why = self._fits(present) if enough else None
        if not enough or why is not None:
            code = "nodes/too-few" if why is None else "nodes/no-smaller"
            return Muster(is_ready=False, is_over=True, why=code, facts={**facts, "why": why or ""})
        self._members = present
        self._lost.clear()
        self._emit("warning", code="nodes/fewer", facts={**facts, "ranks": self.world_size})
        return Muster()

    def _fits(self, members: Mapping[int, int]) -> str | None:
        """Make the run one of these nodes; return why it cannot be."""
        ranks = self.local_ranks + sum(members.values())
        return None if ranks == self.world_size or self.resize is None else self.resize(ranks)

    def take_ranks(self, num_ranks: int) -> None:
        """Never asked for: the ranks of several nodes change with the nodes."""

    def seats(self, attempt: int, port: int) -> tuple[Seat, ...]:
        """Return the seats of all nodes, numbered one node after the other."""
        found: list[Seat] = []
        counts = [(0, self.local_ranks), *self._members.items()]
        for node, count in counts:
            found += [
                Seat(
                    attempt=attempt,
                    rank=len(found) + local,
                    local_rank=local,
                    world_size=self.world_size,
                    port=port,
                    node=node,
                    address=self.address,
                    local_size=count,
                    num_nodes=len(counts),
                    network=self.network if node == 0 else {},
                )
                for local in range(count)
            ]
        return tuple(found)

    def begin(self, attempt: Attempt) -> None:
        """Let every node start its ranks."""
        self._attempt = attempt
        for node in self._each():
            node.beats = {}
            seats = [asdict(seat) for seat in attempt.seats if seat.node == node.index]
            node.link.send("begin", attempt=attempt.number, seats=seats, store_key=attempt.store_key)

    def ask_to_stop(self, stop: Stop) -> None:
        """Pass the request on."""
        for node in self._each():
            node.link.send("stop", signum=int(stop.signum), is_command=stop.is_command)

    def ask_to_save(self, signum: int) -> None:
        """Pass a signal on, where it means something to ranks that are not our own."""
        for node in self._each():
            node.link.send("save", signum=int(signum))

    def kill(self) -> None:
        """End all ranks of other nodes."""
        for node in self._each():
            node.link.send("kill")

    def tick(self, now: float) -> None:
        """Keep links alive, and notice those that are not."""
        for node in list(self.nodes.values()):
            node.link.tick(now)
            if node.link.is_gone:
                self._lose(node)

    def beats(self, attempt: Attempt, here: list[Beat | None]) -> list[Beat | None]:
        """Return every rank's heartbeat: of other nodes what their followers have told, by our clock."""
        told = {index: node.beats or {} for index, node in self.nodes.items()}
        return [
            beat if rank.node == 0 else told.get(rank.node, {}).get(rank.rank)
            for rank, beat in zip(attempt.ranks, here, strict=True)
        ]

    def agree(self, local: Verdict) -> Verdict:
        """Return the leader's own: it has heard everybody."""
        return local

    def end(self, attempt: Attempt) -> None:
        """Let the nodes end what is left of the attempt."""
        for node in self._each():
            node.link.send("end", attempt=attempt.number)
        self._attempt = None

    def close(self, outcome: Outcome | None) -> None:
        """Tell all nodes how the run ended, and wait until nothing of it is left there."""
        self._attempt = None
        facts = {"state": "failed", "exit_code": 1} if outcome is None else _ending(outcome)
        for node in self.nodes.values():
            node.link.send("bye", **facts)
        until = time.monotonic() + _GONE_S
        while any(not node.is_done for node in self.nodes.values()) and time.monotonic() < until:
            for node in list(self.nodes.values()):
                self._hear(node)
                if node.link.is_gone:
                    node.is_done = True
            time.sleep(0.005)
        for link in (*self._greeted, *(node.link for node in self.nodes.values())):
            link.close()
        self.nodes.clear()
        self._door.close()

    # --- what arrives ---

    def _each(self) -> list[Node]:
        return [self.nodes[index] for index in self._members if index in self.nodes]

    def _on_door(self) -> None:
        for link in self._let_in():
            if self._hearing is not None:
                self._hearing.listen(link.fileno(), NEXT, partial(self._on_greeted, link))

    def _let_in(self) -> list[Link]:
        found = self._door.take()
        self._greeted += found
        return found

    def _on_greeted(self, link: Link) -> None:
        assert self._hearing is not None
        node = self._hear_greeted(link)
        if node is None and link not in self._greeted:
            self._hearing.forget(link.fileno())
            link.close()
        if node is None:
            return
        self._hearing.forget(link.fileno())
        self._hearing.listen(link.fileno(), FIRST, partial(self._on_node, node))
        self._lost.pop(node.index, None)
        if self._order:
            self._brief(node)
        self._tell_joined(node)

    def _hear_greeted(self, link: Link) -> Node | None:
        """Take the first word of a follower; return its node when it is let in."""
        for message in link.receive():
            if message.kind == "hello":
                self._greeted.remove(link)
                return self._join(link, Hello.from_json(message.facts))
        if link.is_gone:
            self._greeted.remove(link)
        return None

    def _join(self, link: Link, hello: Hello) -> Node | None:
        free = (index for index in range(1, self.num_nodes) if index not in self.nodes)
        index = hello.index if hello.index is not None else next(free, -1)
        before = self.nodes.get(index)
        if before is not None and before.hello.token == hello.token:
            self._lose(before)  # it has noticed before us that its link was gone
        node = Node(index, link, hello)
        why = self._why_not(node)
        if why is not None:
            link.send("refused", code=why[0], facts={name: str(fact) for name, fact in why[1].items()})
            link.drain(0.2)
            return None
        self.nodes[index] = node
        link.send("welcome", index=index)
        if self._prepare:
            link.send("prepare", **self._prepare)
        return node

    def _why_not(self, node: Node) -> tuple[str, Mapping[str, object]] | None:
        if node.hello.version != self._version:
            return "nodes/other-version", {"here": self._version, "there": node.hello.version, "host": node.hello.host}
        if not 0 < node.index < self.num_nodes:
            return "nodes/too-many", {"index": node.index, "nodes": self.num_nodes}
        if node.index in self.nodes:
            return "nodes/index-taken", {"index": node.index, "host": self.nodes[node.index].hello.host}
        return self.admit(node) if self.admit is not None else None

    def _tell_joined(self, node: Node) -> None:
        self._emit("node_joined", node=node.index, host=node.hello.host, address=node.link.peer, ranks=node.num_ranks)

    def _emit(self, kind: str, **facts: object) -> None:
        if self._history is not None:
            self._history.emit(kind, **facts)

    def _on_node(self, node: Node) -> None:
        self._hear(node)
        if node.link.is_gone:
            self._lose(node)

    def _lose(self, node: Node) -> None:
        """A node is gone: its ranks count as ended by that, whatever becomes of them."""
        if self.nodes.get(node.index) is not node:
            return
        del self.nodes[node.index]
        if self._hearing is not None:
            self._hearing.forget(node.link.fileno())
        node.link.close()
        silent_s = round(time.monotonic() - node.link.heard_at, 1)
        self._emit("node_lost", node=node.index, host=node.hello.host, silent_s=silent_s)
        if node.index in self._members:
            self._lost[node.index], self._lost_at = node.hello.host, time.monotonic()
        facts = {"host": node.hello.host, "node": str(node.index), "seconds": f"{silent_s:g}"}
        self._give_up_ranks(node, {"code": "diagnose/node-lost", "facts": facts, "text": "", "is_transient": True})

    def _give_up_ranks(self, node: Node, error: dict[str, Any]) -> None:
        """Count the ranks of a node as ended: nobody can tell any more how."""
        attempt = self._attempt
        if attempt is None or self._hearing is None or self._chief is None:
            return
        for rank in attempt.ranks:
            if rank.node == node.index and rank.status is None:
                rank.pid = rank.pid or -1
                rank.status = ExitStatus()
                self._hearing.hear_failure(rank, attempt, error, time.monotonic())
        attempt.away.discard(node.index)
        self._chief.on_far_ranks()

    def _hear(self, node: Node) -> None:
        for message in node.link.receive():
            self._take(node, message)

    def _take(self, node: Node, message: Message) -> None:
        """Act on what a follower says; words of an attempt that is over mean nothing any more."""
        facts, attempt = message.facts, self._attempt
        match message.kind:
            case "event" if self._hearing is not None:
                self._hearing.hear_event({**facts["event"], "node": node.index})
            case "signal" if self._chief is not None:
                self._chief.on_signal(int(facts["signum"]))
            case "refused":
                node.refusal = str(facts["code"]), dict(facts["facts"])
                told = {"host": node.hello.host, **facts["facts"]}
                self._give_up_ranks(node, {"code": str(facts["code"]), "facts": told, "text": ""})
            case "gone":
                node.is_done = True
            case _ if attempt is not None and facts.get("attempt") == attempt.number:
                self._take_of_attempt(node, attempt, message)

    def _take_of_attempt(self, node: Node, attempt: Attempt, message: Message) -> None:
        assert self._hearing is not None and self._chief is not None
        facts = message.facts
        rank = attempt.by_rank(int(facts["rank"])) if "rank" in facts else None
        if rank is not None and rank.node != node.index:
            return
        match message.kind:
            case "out" if rank is not None:
                rank.output.feed(message.blob)
            case "forked" if rank is not None:
                rank.pid, rank.far_pid = -1, int(facts["pid"])
                self._chief.on_far_ranks()
            case "failed" if rank is not None:
                at = time.monotonic() - float(facts["ago_s"])
                self._hearing.hear_failure(rank, attempt, facts["error"], at)
            case "ended" if rank is not None:
                self._hear_ended(rank, attempt, facts)
            case "over":
                attempt.away.discard(node.index)
            case "hang":
                hang = facts["hang"]
                views = tuple(RankView(**{**view, "stack": tuple(view["stack"])}) for view in hang["views"])
                self._chief.on_far_hang(Hang(**{**hang, "views": views}))
            case "beats":
                now = time.monotonic_ns()
                node.beats = {
                    int(number): Beat(**{**beat, "monotonic_ns": now - int(beat["monotonic_ns"])})
                    for number, beat in facts["beats"]
                }

    def _hear_ended(self, rank: RankProcess, attempt: Attempt, facts: Mapping[str, Any]) -> None:
        assert self._hearing is not None and self._chief is not None
        rank.finished, rank.is_stopped_by_us = facts["finished"], bool(facts["ours"])
        rank.seen_t = time.time()
        status = ExitStatus(**facts["status"])
        is_start_over = rank.pid == 0
        rank.pid = rank.pid or -1
        rank.status = status
        if rank.has_finished():
            rank.failed_at = None
        else:
            at = time.monotonic() - float(facts["ago_s"])
            self._hearing.hear_failure(rank, attempt, facts["error"], min(at, rank.failed_at or at))
        if is_start_over:
            self._chief.on_far_ranks()


def _ending(outcome: Outcome) -> dict[str, Any]:
    facts = {name: str(fact) for name, fact in outcome.facts.items()}
    return {"state": outcome.state, "exit_code": outcome.exit_code, "why": outcome.why, "facts": facts}
