"""Headway from Python: start a run, follow it, plan and check, as the commands do.

A run is started by a supervisor in a session of its own; this process only follows the run directory. So it works in a
notebook cell, in a thread and in a test, and the run continues when this process ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from headway.adopt import read_line
from headway.bridges import refuse_unset
from headway.bridges.mirror import refuse_mirror
from headway.config import LoadedConfig
from headway.diagnosis import Diagnosis, diagnose_log, diagnose_run, load_rules, user_rules_folder
from headway.errors import UsageError
from headway.launch import Claims, Job, Lease, request_stop
from headway.machine import MachineReport, find_machine
from headway.planner import Plan, fit_preset, look_ahead, make_plan
from headway.start.decide import decide
from headway.start.decide_line import LineWish, decide_line
from headway.start.decide_resume import ResumeWish, decide_resume
from headway.start.detach import Orders, detach_run
from headway.start.source import load_words, refuse_foreign
from headway.start.write import write_continued, write_run
from headway.telemetry import (
    ENDED,
    Measure,
    RunDir,
    RunState,
    find_run,
    is_supervised,
    list_runs,
    read_log_tail,
    run_state,
)

__all__ = ["RunHandle", "check", "diagnose", "plan", "resume", "run", "runs", "train"]

_POLL_S: Final = 0.1
_LOG_BYTES: Final = 1 << 20
_PLAIN: Final = re.compile(r"[A-Za-z/~.][\w./~-]*")
_OTHER_MEANING: Final = frozenset(["true", "false", "yes", "no", "on", "off", "null", "none", "nan", "inf"])
"""Words that a config would not read as text."""


@dataclass(frozen=True, slots=True)
class RunHandle:
    """One run, as its directory tells it."""

    path: Path
    """The run directory."""
    _pid: int | None = field(default=None, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The name under which every command knows it."""
        return self.path.name

    @property
    def status(self) -> RunState:
        """Everything the directory tells now."""
        if self._pid is not None:
            # The supervisor is a child of the process that started it, until that process takes note of its end.
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, os.WNOHANG)
        return run_state(self._run)

    @property
    def state(self) -> str:
        """`running`, `done`, `stopped`, `failed`, `interrupted`, or `lost`: nobody supervises it any more."""
        return self.status.state

    @property
    def step(self) -> int:
        """Steps finished."""
        return self.status.step

    @property
    def loss(self) -> float | None:
        """The last training loss; None: no step has reported one."""
        return self.status.loss

    @property
    def best(self) -> Measure | None:
        """The best validation: its `name`, `value` and `step`; None: there was none yet."""
        return self.status.best

    @property
    def exit_code(self) -> int | None:
        """How it ended, as in the table of exit codes; None: it has not."""
        return self.status.exit_code

    @property
    def logs(self) -> str:
        """The end of what all ranks have printed, up to 1 MiB."""
        with contextlib.suppress(OSError):
            return read_log_tail(self._run.log, _LOG_BYTES).decode("utf-8", "replace")
        return ""

    def wait(self, timeout_s: float | None = None) -> RunHandle:
        """Wait until the run is over and return it.

        Raises:
            TimeoutError: it still runs after `timeout_s` seconds.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._is_over():
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"{self.name} still runs after {timeout_s:g} s")
            time.sleep(_POLL_S)
        return self

    def stop(self, *, now: bool = False) -> None:
        """Ask it to save and stop, or to stop now; `wait` then waits for its end.

        Raises:
            UsageError: nobody supervises it on this machine.
        """
        request_stop(self._run, now)

    @property
    def _run(self) -> RunDir:
        return RunDir(self.path)

    def _is_over(self) -> bool:
        state = self.status.state
        return state == "lost" or (state in ENDED and not is_supervised(self._run))


class _Silent:
    """Nobody reads what is found on the way; it is in the run directory."""

    def tell(self, text: str) -> None:
        """Show one line on the way."""

    def machine(self, report: MachineReport) -> None:
        """Show the machine and its findings."""

    def plan(self, loaded: LoadedConfig, plan: Plan) -> None:
        """Show the plan."""


def train(what: str | Path | None = None, settings: Mapping[str, Any] | None = None, /, **more: Any) -> RunHandle:
    """Start a training in the background and return at once.

    Args:
        what: a recipe, its folder, or a config file; none: the default recipe.
        settings: values by their dotted keys, `{"train.steps": 100}`. Any: whatever a config can hold.
        more: the same for keys without a dot, and sections: `depth=4`, `train={"steps": 100}`.

    Raises:
        HeadwayError: the config, the machine or the plan refuses it.
    """
    words = _words(what, settings, more)
    loaded = load_words(words, is_order=True)
    refuse_unset(loaded.config.alert.to, os.environ)
    refuse_mirror(loaded.config.save.mirror)
    claims = Claims(loaded.config.name or loaded.recipe.name)
    try:
        decision = decide(loaded, _Silent(), claims)
        run, job = write_run(decision, ["headway", "train", *words])
        return _detach(run, job, claims)
    finally:
        claims.release()


def resume(
    run: str | Path | RunHandle,
    settings: Mapping[str, Any] | None = None,
    /,
    *,
    step: int | None = None,
    from_scratch: bool = False,
    out: str | Path = "runs",
    **more: Any,
) -> RunHandle:
    """Continue a run in the background, with changed values if there are any; return at once.

    Args:
        run: a handle, a path, a name or a part of one that fits only one run.
        settings: as of `train`.
        step: begin a new run at this checkpoint instead.
        from_scratch: begin again although checkpoints are lost.
        out: folder of runs.
        more: as of `train`.
    """
    place = _find(run, out)
    refuse_foreign(place)
    words = _words(None, settings, more)
    wish = ResumeWish(words=words, step=step, from_scratch=from_scratch)
    claims, lease = Claims(place.name), Lease(place)
    try:
        decision = decide_resume(place, wish, _Silent(), claims)
        assert decision.loaded is not None
        refuse_unset(decision.loaded.config.alert.to, os.environ)
        refuse_mirror(decision.loaded.config.save.mirror)
        place, lease = write_continued(place, lease, decision, wish, ["headway", "resume", place.name, *words])
        return _detach(place, decision.job, claims, lease)
    finally:
        claims.release()
        lease.release()


def run(
    line: str | Sequence[str],
    /,
    *,
    gpus: str | int | None = None,
    cpus: int | None = None,
    restarts: int | None = None,
    launcher: str | None = None,
    must_train: bool = True,
    out: str | Path = "runs",
) -> RunHandle:
    """Start a launch line of your own in the background, supervised, and return at once.

    Args:
        line: words, `["torchrun", "--nproc_per_node=2", "train.py"]`, or one text as a shell would read it.
        gpus: that many free ones, or `"0,1"` and UUIDs.
        cpus: ranks on CPU.
        restarts: times that a failed attempt is started again.
        launcher: `native` or `original`; none: native where the line allows it.
        must_train: a line that makes an optimizer and never steps it has failed.
        out: folder of runs.
    """
    words = (line,) if isinstance(line, str) else tuple(line)
    if not words:
        raise UsageError("run/no-program", program="")
    read = read_line(words, launcher)
    wanted = None if gpus is None else str(gpus)
    wish = LineWish(gpus=wanted, cpus=cpus, restarts=restarts, must_train=must_train, out=Path(out))
    claims = Claims(read.name)
    try:
        decision = decide_line(read, wish, claims, _Silent().tell)
        place, job = write_run(decision, ["headway", "run", *words])
        return _detach(place, job, claims)
    finally:
        claims.release()


def plan(
    what: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    /,
    *,
    on: str | None = None,
    trace: bool = False,
    **more: Any,
) -> Plan:
    """Return how a training would be laid out here, or on a machine that you name.

    Args:
        what: as of `train`.
        settings: as of `train`.
        on: another machine, `"8xH20"`.
        trace: forecast memory by a trace where the recipe has no formula; it takes seconds.
        more: as of `train`.

    Raises:
        PlanError: it does not fit.
    """
    loaded = load_words(_words(what, settings, more))
    machine = find_machine(Path(loaded.config.out), loaded.config, wanted=on)
    loaded = fit_preset(loaded, machine)
    made = make_plan(loaded, machine, loaded.recipe)
    return look_ahead(made, loaded, machine, loaded.recipe, trace=trace)[0]


def check(
    what: str | Path | None = None, settings: Mapping[str, Any] | None = None, /, *, on: str | None = None, **more: Any
) -> MachineReport:
    """Return what this machine offers and what is wrong with it: `can_run`, `findings`, `gpus` and the rest.

    Args:
        what: as of `train`; none: for any run.
        settings: as of `train`.
        on: another machine, `"8xH20"`.
        more: as of `train`.
    """
    words = _words(what, settings, more)
    config = load_words(words).config if words else None
    return find_machine(Path(config.out if config else "runs"), config, wanted=on)


def diagnose(path: str | Path | RunHandle, /, *, out: str | Path = "runs") -> Diagnosis | None:
    """Return why a run or the program behind a log has failed; None: it has not, or nothing tells.

    Args:
        path: a run, by handle, path or name; or a log file.
        out: folder of runs.
    """
    book = load_rules(user_rules_folder())
    if not isinstance(path, RunHandle) and Path(path).is_file():
        with Path(path).open("rb") as file:
            return diagnose_log(file, book).cause
    return diagnose_run(_find(path, out), book).cause


def runs(out: str | Path = "runs") -> list[RunHandle]:
    """Return the runs of a folder, the newest first."""
    return [RunHandle(place.root) for place in list_runs(Path(out))]


def _detach(place: RunDir, job: Job, claims: Claims, lease: Lease | None = None) -> RunHandle:
    """Hand the run to a supervisor of its own session."""
    started = detach_run(place, Orders.of(job, claims), claims, wait_s=0.0, lease=lease)
    return RunHandle(place.root.absolute(), started.pid)


def _find(run: str | Path | RunHandle, out: str | Path) -> RunDir:
    return RunDir(run.path) if isinstance(run, RunHandle) else find_run(str(run), Path(out))


def _words(what: str | Path | None, settings: Mapping[str, Any] | None, more: Mapping[str, Any]) -> list[str]:
    """Return settings as the words of a command line. Any: whatever a config can hold."""
    words = [] if what is None else [str(what)]
    return words + [f"{key}={_text(value)}" for key, value in _flat({**(settings or {}), **more})]


def _flat(settings: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{before}{key}.")
        else:
            found.append((f"{before}{key}", value))
    return found


def _text(value: object) -> str:
    """Return a value as a config reads it back; a path or a name stays as it is, for typing it is consent."""
    text = str(value) if isinstance(value, Path) else value
    if isinstance(text, str) and _PLAIN.fullmatch(text) and text.lower() not in _OTHER_MEANING:
        return text
    return json.dumps(list(text) if isinstance(text, tuple | set) else text, ensure_ascii=False)
