"""What is wrong with a launch itself: ports, rendezvous, restarts, secrets, numbers that do not agree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from headway.adopt.finding import Finding, Verdict
from headway.adopt.lint.context import TORCHRUN_LIKE, Context
from headway.adopt.record import Launch
from headway.adopt.secrets import find_exposed

_TRAINING = re.compile(r"训练|\btrain", re.IGNORECASE)
_NOT_TRAINING = frozenset({"predict", "eval", "evaluate", "infer", "inference", "test", "val"})


def judge_launch(launch: Launch, context: Context) -> list[Finding]:
    """Return everything to say about one launch; one that nothing is wrong with is kept."""
    found = [*_problems(launch, context)]
    if all(one.verdict == "kept" for one in found):
        found.insert(0, _find(launch, "kept", "adopt/launch-kept"))
    return found


def _find(launch: Launch, verdict: Verdict, code: str, **facts: object) -> Finding:
    return Finding(verdict, code, launch.line, subject_of(launch), {"launcher": launch.launcher, **facts})


def subject_of(launch: Launch) -> str:
    """Return a launch in a few words."""
    entry = launch.entry.name if launch.entry else "?"
    return f"{launch.launcher} {entry}" if launch.launcher not in ("python", "other") else entry


def _problems(launch: Launch, context: Context) -> Iterator[Finding]:
    yield from _port(launch, context)
    yield from _layout(launch)
    if launch.launcher == "torch.distributed.launch":
        yield _find(launch, "kept", "adopt/launch-deprecated")
    if launch.launcher in TORCHRUN_LIKE and "nohup" in launch.wrappers:
        yield _find(launch, "harmful", "adopt/launch-nohup")
    is_one = launch.launcher == "accelerate" and "cpu" in launch.options and "mpirun_hostfile" not in launch.options
    if is_one and (launch.world_size or 1) > 1:
        yield _find(launch, "no_effect", "adopt/launch-accelerate-cpu", count=str(launch.world_size))
    restarts = launch.options.get("max_restarts", "0")
    if launch.launcher in TORCHRUN_LIKE and restarts.isdigit() and int(restarts[:6]) > 0:
        yield _find(launch, "harmful", "adopt/launch-restarts", count=restarts)
    yield from _mode(launch, context)
    yield from _secrets(launch)
    if launch.unresolved:
        yield _find(launch, "kept", "adopt/launch-open", names=", ".join(sorted(launch.unresolved)))


def _port(launch: Launch, context: Context) -> Iterator[Finding]:
    port = launch.master_port
    by_flag = (
        "master_port" in launch.options or "rdzv_endpoint" in launch.options or "main_process_port" in launch.options
    )
    if not port or not by_flag:
        return
    # Two nodes of one run share a port and are told apart by their rank.
    rivals = [one for one in context.launches if one is not launch and one.master_port == port]
    is_same_node = any(one.node_rank == launch.node_rank and one.nnodes == launch.nnodes for one in rivals)
    if port < 1024:
        yield _find(launch, "harmful", "adopt/port-reserved", port=port)
    elif is_same_node and launch.nnodes in (None, 1) and any(one.line != launch.line for one in rivals):
        yield _find(launch, "harmful", "adopt/port-shared", port=port)
    elif launch.nnodes in (None, 1):
        yield _find(launch, "harmful", "adopt/fixed-port", port=port)


def _layout(launch: Launch) -> Iterator[Finding]:
    several = launch.nnodes not in (None, 1)
    has_address = any(name in launch.options for name in ("rdzv_endpoint", "master_addr"))
    is_whole = launch.entry is not None and "..." not in launch.options
    if several and is_whole and launch.launcher in TORCHRUN_LIKE and not has_address:
        yield _find(launch, "harmful", "adopt/no-rendezvous", nodes=launch.nnodes)
    if several and "standalone" in launch.options:
        yield _find(launch, "contradictory", "adopt/standalone-nodes", nodes=launch.nnodes)
    total, ranks, count = launch.world_size, launch.nproc_per_node, launch.nnodes
    if isinstance(total, int) and isinstance(ranks, int) and isinstance(count, int) and ranks * count != total:
        yield _find(launch, "contradictory", "adopt/total-disagrees", total=total, ranks=ranks, nodes=count)


def _mode(launch: Launch, context: Context) -> Iterator[Finding]:
    """A training script that is started to do something else, under a banner that says training."""
    mode = _mode_of(launch)
    entry = launch.entry.name.rpartition("/")[2] if launch.entry else ""
    if "train" not in entry:
        return
    says_training = any(_TRAINING.search(text) for text in context.announced)
    if mode in _NOT_TRAINING and says_training:
        yield _find(launch, "contradictory", "adopt/launch-predicts", mode=mode, entry=entry)
    elif mode is None and any(
        _mode_of(one) == "train" and one.entry == launch.entry for one in context.launches if one is not launch
    ):
        yield _find(launch, "contradictory", "adopt/launch-no-mode", entry=entry)


def _mode_of(launch: Launch) -> str | None:
    words = [part for word in launch.args for part in word.split("=", 1)]
    return next((after for word, after in pairwise(words) if word == "--mode"), None)


def _secrets(launch: Launch) -> Iterator[Finding]:
    for one in find_exposed(launch.args):
        subject = f"{one.name} …" if one.name else "…"
        facts = {"name": one.name or "…", "variable": one.variable}
        yield Finding("harmful", "adopt/secret-in-args", launch.line, subject, facts=facts)
