"""What the ranks of a config need before they start: imports, and settings for this CPU."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, Protocol

from headway.config import LoadedConfig
from headway.launch import EXEC_ENTRY, Job, Nursery, start_nursery
from headway.machine import CpuAnswers, find_cpu, has_devices
from headway.messages import say

_ENTRIES: Final = {"torch": "headway.engine.rank:main", "mindspore": "headway.engine.mindspore.rank:main"}
"""What a rank of each framework is started with."""
Tell = Callable[[str], None]
"""Shows the user one line."""


def nursery_for(loaded: LoadedConfig, tell: Tell, *, entry: str | None = None) -> Nursery:
    """Start importing what the ranks of this config need.

    Args:
        entry: what a rank is started with; none: the engine's own.
    """
    modules = preload_of(loaded) if entry is None else [*preload_of(loaded), entry.partition(":")[0]]
    found = cpu_of(loaded, tell)
    settings = dict(found.settings) if found else {}
    return start_nursery(loaded.config.env.python, modules, entry or _ENTRIES[loaded.framework], env=settings)


class Preparable(Protocol):
    """Other nodes, which are to import the same."""

    def prepare(self, nursery: Nursery) -> None:
        """Let them begin."""


class EarlyNursery:
    """Starts to import the framework as soon as a config is known, which takes longer than all that is decided."""

    def __init__(self, tell: Tell, *, is_wanted: bool, nodes: Preparable | None = None) -> None:
        self.nursery: Nursery | None = None
        """None: nobody wants one, or no config is known yet."""
        self._tell, self._is_wanted, self._nodes = tell, is_wanted, nodes

    def __enter__(self) -> EarlyNursery:
        return self

    def __exit__(self, *_: object) -> None:
        if self.nursery is not None:
            self.nursery.close()

    def begin(self, loaded: LoadedConfig) -> None:
        """Start it for this config."""
        if self._is_wanted:
            self.nursery = nursery_for(loaded, self._tell)
            if self._nodes is not None:
                self._nodes.prepare(self.nursery)


def nursery_for_line(job: Job) -> Nursery:
    """Start what forks the ranks of a launch line, in the line's environment."""
    return start_nursery(entry=EXEC_ENTRY, env=job.environment, stdin=_own_stdin())


def _own_stdin() -> int | None:
    """Return our own input for the program; None where it is closed, or the terminal's and we are in the background."""
    try:
        is_foreign = os.isatty(0) and os.tcgetpgrp(0) != os.getpgrp()
        os.fstat(0)
    except OSError:
        return None
    return None if is_foreign else 0


def preload_of(loaded: LoadedConfig) -> list[str]:
    """Return the modules worth importing once, with what a first step would import lazily."""
    if loaded.framework == "mindspore":
        own = loaded.recipe.task_mindspore
        return ["headway.engine.mindspore.rank", "headway.task", *([own] if own else [])]
    modules = ["headway.engine.rank", "headway.task", *loaded.recipe.preload]
    if loaded.recipe.task.startswith("headway."):  # a folder's own modules are known to the rank that opens it
        modules.append(loaded.recipe.task)
    if loaded.config.parallel.strategy == "fsdp":
        modules.append("headway.engine.fsdp")
    if loaded.config.train.compile:
        modules.append("torch._dynamo")
    return modules


def cpu_of(loaded: LoadedConfig, tell: Tell, *, is_asked: bool = False) -> CpuAnswers | None:
    """Return what the CPU computes for a config that trains on it; none: nobody had to look, or it has devices."""
    if loaded.config.parallel.gpus != 0 and has_devices():
        return None
    return look_at_cpu(loaded.config.env.python, loaded.framework, tell, is_asked=is_asked)


def look_at_cpu(python: str | None, framework: str, tell: Tell, *, is_asked: bool) -> CpuAnswers | None:
    """Return what the CPU computes, and say so before it takes seconds to find out."""
    return find_cpu(python, framework, is_asked=is_asked, before=lambda: tell(say("machine/cpu-trying")))
