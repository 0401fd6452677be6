"""The last lines of a run: how it ended, where things are and what to type next."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

from headway.checkpoint import list_checkpoints
from headway.launch import Outcome
from headway.messages import say
from headway.start.supervise import Conclusion
from headway.task import find_recipe
from headway.telemetry import RunDir, read_record, run_state
from headway.ui.retype import find_program
from headway.ui.terminal.failure import failure_text
from headway.ui.text import clean_text
from headway.units import ABSENT

_FRAME: Final = re.compile(r'^\s*File "([^"]+)", line (\d+), in (.+)$', re.MULTILINE)
_LIBRARY: Final = re.compile(r"/(?:site|dist)-packages/|/lib/python3\.\d+/|^<|/headway/launch/hook/site/")


def ending_lines(run: RunDir, outcome: Outcome, conclusion: Conclusion) -> list[str]:
    """Return what to say at the end of a run; after a failure the traceback comes last."""
    state = run_state(run)
    lines = [""]
    if outcome.state == "done":
        lines.append(say("console/end-done", steps=outcome.steps, total=state.total_steps))
    if state.best is not None:
        paths = [info.path for info in list_checkpoints(run.checkpoints) if info.step == state.best.step]
        path = paths[-1] if paths else ABSENT
        lines.append(say("console/end-best", name=state.best.name, value=f"{state.best.value:.4f}", path=path))
        for gain in conclusion.gains:
            code = "console/end-gain" if gain["share"] > 0 else "console/end-loss"
            base = {"baseline": gain["baseline"], "baseline_value": f"{gain['value']:.4f}"}
            value, share = f"{state.best.value:.4f}", f"{abs(gain['share']):.1%}"
            lines.append(say(code, name=state.best.name, value=value, share=share, **base))
    if run.report.exists():
        lines.append(say("console/end-report", path=run.report))
    if outcome.state == "done":
        can_predict = find_recipe(str(read_record(run.job)["recipe"])).predict is not None
        lines.append(say("cli/next", command=typed("predict" if can_predict else "eval", run)))
    else:
        lines += [say("cli/next", command=typed("resume", run)), "", *failure_text(outcome, run=_named(run))]
    return lines


def line_ending_lines(run: RunDir, outcome: Outcome) -> list[str]:
    """Return what to say at the end of a launch line; after a failure the user's own place in the code comes last."""
    report = [say("console/end-report", path=run.report)] if run.report.exists() else []
    if outcome.state == "done":
        return [say("run/done" if outcome.steps else "run/done-unseen", steps=outcome.steps, log=run.log), *report]
    lines = ["", say("run/log", log=run.log), *report, *failure_text(outcome, run=_named(run))]
    own = _own_place(outcome.incident.traceback) if outcome.incident is not None else None
    return lines if own is None else [*lines, say("run/own-place", place=clean_text(own))]


def _own_place(traceback: str) -> str | None:
    """Return the last frame of the user's own code in a Python traceback, as `file:line in function`."""
    frames = [frame for frame in _FRAME.findall(traceback) if not _LIBRARY.search(frame[0])]
    return None if not frames else f"{frames[-1][0]}:{frames[-1][1]} in {frames[-1][2]}"


def typed(command: str, run: RunDir) -> str:
    """Return a command about a run, ready to type."""
    return f"{find_program()} {command} {shlex.quote(_named(run))}"


def _named(run: RunDir) -> str:
    """Return how a command is told which run is meant: by its name where that is enough."""
    is_usual = run.root.parent.resolve() == Path("runs").resolve()
    return run.name if is_usual else str(run.root)
