"""Faults of a run on two nodes: two network namespaces joined by a cable, gloo ranks, one supervisor in each.

Every fault strikes a run of its own; right is one that ends as designed, bit-equal to an undisturbed run of the same
four ranks on one node where it ends at all, and leaves no process in either namespace. Needs root and iproute2.

    python bench/nodes_faults.py [--steps 400] [--only link-down leader-killed]
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from headway.telemetry import RunDir, read_events

HERE = Path(__file__).resolve().parent
MARK = "NODES_FAULTS_MARK"
FOUR = ("parallel.threads=1", "parallel.workers=0", "save.every=50", "task.pause_s=0.02")
PATIENCE_S = 180.0
ADDRESSES = ("10.77.0.1", "10.77.0.2")


class Cable:
    """Two namespaces with one address each."""

    def __init__(self) -> None:
        tag = secrets.token_hex(2)
        self.spaces = [f"hw{tag}a", f"hw{tag}b"]
        self.ends = [f"hv{tag}a", f"hv{tag}b"]
        for space in self.spaces:
            ip("netns", "add", space)
        ip("link", "add", self.ends[0], "type", "veth", "peer", "name", self.ends[1])
        for space, end, address in zip(self.spaces, self.ends, ADDRESSES, strict=True):
            ip("link", "set", end, "netns", space)
            ip("-n", space, "addr", "add", f"{address}/24", "dev", end)
            ip("-n", space, "link", "set", "lo", "up")
            ip("-n", space, "link", "set", end, "up")

    def pull(self) -> None:
        ip("-n", self.spaces[1], "link", "set", self.ends[1], "down")

    def plug(self) -> None:
        ip("-n", self.spaces[1], "link", "set", self.ends[1], "up")

    def swallow(self) -> None:
        """Let packets to the leader vanish without a word."""
        ip("-n", self.spaces[1], "route", "replace", "blackhole", f"{ADDRESSES[0]}/32")

    def spit(self) -> None:
        ip("-n", self.spaces[1], "route", "del", "blackhole", f"{ADDRESSES[0]}/32")

    def close(self) -> None:
        for space in self.spaces:
            ip("netns", "del", space)


class Pair:
    """A leader and a follower in their namespaces."""

    def __init__(self, place: Path, cable: Cable, steps: int, *more: str) -> None:
        self.place, self.cable, self.mark, self.began = place, cable, secrets.token_hex(8), time.time()
        words = [str(HERE / "tiny"), "parallel.cpus=2", *FOUR, f"train.steps={steps}", f"out={place}"]
        nodes = ["--nodes", "2", "--nodes-address", ADDRESSES[0], "--meet", str(place / "meet.json")]
        self.leader = self._start(0, "train", *words, *nodes, *more)
        self.follower = self.follow()

    def _start(self, node: int, *words: str) -> subprocess.Popen[bytes]:
        out = (self.place / f"node{node}.out").open("ab")
        inside = ["ip", "netns", "exec", self.cable.spaces[node], sys.executable, "-m", "headway", *words]
        return subprocess.Popen(inside, env={**os.environ, MARK: self.mark}, stdout=out, stderr=out)

    def follow(self) -> subprocess.Popen[bytes]:
        return self._start(1, "node", "--meet", str(self.place / "meet.json"))

    @property
    def run(self) -> RunDir:
        return RunDir(next(self.place.glob("*/job.json")).parent)

    def events(self, kind: str) -> list[dict[str, Any]]:
        with contextlib.suppress(StopIteration):
            return [event for event in read_events(self.run.events) if event["kind"] == kind]
        return []

    def end(self) -> tuple[int, int]:
        codes = self.leader.wait(PATIENCE_S), self.follower.wait(PATIENCE_S)
        wait_until(lambda: not marked(self.mark), f"the end of {marked(self.mark)}", 10.0)
        return codes

    def close(self) -> None:
        for pid in marked(self.mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.leader.wait()
        self.follower.wait()


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def wait_until(is_so: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if found := is_so():
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited in vain for {what}")


def marked(mark: str) -> list[int]:
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError):
                if f"{MARK}={mark}".encode() in (place / "environ").read_bytes().split(b"\0"):
                    found.append(int(place.name))
    return found


def state_of(run: RunDir) -> dict[str, str]:
    """Return the hash of every tensor in the last checkpoint; the files also say in which attempt they were written."""
    last = max(run.checkpoints.glob("step-*"))
    found = {}
    for place in sorted(last.glob("*.safetensors")):
        whole = place.read_bytes()
        begin = 8 + int.from_bytes(whole[:8], "little")
        for name, tensor in json.loads(whole[8:begin]).items():
            if name != "__metadata__":
                low, high = tensor["data_offsets"]
                found[f"{place.name}:{name}"] = hashlib.sha256(whole[begin + low : begin + high]).hexdigest()
    assert found, "a checkpoint has tensors"
    return found


def undisturbed(place: Path, steps: int) -> dict[str, str]:
    place.mkdir()
    words = [str(HERE / "tiny"), "parallel.cpus=4", *FOUR, f"train.steps={steps}", f"out={place}"]
    subprocess.run([sys.executable, "-m", "headway", "train", *words], check=True, capture_output=True)
    return state_of(RunDir(next(place.glob("*/job.json")).parent))


def detected_s(pair: Pair, struck: float) -> float:
    """Return how long after the fault the leader knew of it."""
    seen = [event["t"] for event in [*pair.events("node_lost"), *pair.events("incident")] if event["t"] >= struck]
    return min(seen) - struck if seen else 0.0


def kill_rank(pair: Pair) -> None:
    os.kill(pair.events("attempt_started")[-1]["pids"][3], signal.SIGKILL)


def kill_follower(pair: Pair) -> None:
    kill_below(pair.follower)
    wait_until(lambda: pair.events("node_lost"), "the loss of the node")
    pair.follower = pair.follow()


def kill_leader(pair: Pair) -> None:
    kill_below(pair.leader)


def pull_cable(pair: Pair) -> None:
    pair.cable.pull()
    wait_until(lambda: pair.events("node_lost"), "the loss of the node")
    time.sleep(3.0)
    pair.cable.plug()


def swallow_packets(pair: Pair) -> None:
    pair.cable.swallow()
    wait_until(lambda: pair.events("node_lost"), "the loss of the node")
    time.sleep(3.0)
    pair.cable.spit()


def stop_follower(pair: Pair) -> None:
    kill_below(pair.follower, signal.SIGTERM)


def kill_below(process: subprocess.Popen[bytes], signum: int = signal.SIGKILL) -> None:
    """Signal the supervisor itself: `ip netns exec` has become it."""
    os.kill(process.pid, signum)


FAULTS: dict[str, tuple[Callable[[Pair], None], tuple[int, ...]]] = {
    "rank-killed": (kill_rank, (0, 0)),
    "follower-killed": (kill_follower, (0, 0)),
    "link-down": (pull_cable, (0, 0)),
    "black-hole": (swallow_packets, (0, 0)),
    "leader-killed": (kill_leader, (-9, 6)),
    "follower-asked-to-stop": (stop_follower, (143, 143)),
}


def strike(name: str, place: Path, steps: int, right: dict[str, str]) -> dict[str, Any]:
    """Return how one run took one fault."""
    place.mkdir()
    act, codes = FAULTS[name]
    cable = Cable()
    pair = Pair(place, cable, steps)
    row: dict[str, Any] = {"fault": name, "right": False}
    try:
        wait_until(lambda: pair.events("checkpoint_committed"), "a checkpoint")
        struck = time.time()
        act(pair)
        found = pair.end()
        row["detect_s"] = round(detected_s(pair, struck), 2)
        row["codes"] = found
        begun = [event["resume_step"] or 0 for event in pair.events("attempt_started")[1:]]
        row["lost_steps"] = (
            max((max(0, one["step"] - begun[0]) for one in pair.events("incident")), default=0) if begun else 0
        )
        is_same = codes != (0, 0) or state_of(pair.run) == right
        row["bit_equal"] = is_same
        row["right"] = found == codes and is_same
    except (AssertionError, subprocess.TimeoutExpired, StopIteration) as err:
        row["why"] = str(err)[:200]
    finally:
        pair.close()
        cable.close()
    return row


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def main() -> None:
    """Print the table and, last, the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--only", nargs="+", choices=list(FAULTS), default=list(FAULTS))
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("nodes_faults: needs root, for network namespaces")
    rows = []
    with folder() as place:
        right = undisturbed(place / "quiet", args.steps)
        for name in args.only:
            rows.append(strike(name, place / name, args.steps, right))
            print(json.dumps(rows[-1]), flush=True)
    figures = {
        "faults": len(rows),
        "right": sum(row["right"] for row in rows),
        "detect_s_worst": max(row.get("detect_s", 0.0) for row in rows),
        "lost_steps_worst": max(row.get("lost_steps", 0) for row in rows),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
