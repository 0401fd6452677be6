"""The last lines of a run: how it ended, where things are and what to type next."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from headway.checkpoint import list_checkpoints
from headway.launch import Outcome
from headway.messages import say
from headway.start.supervise import Conclusion
from headway.task import find_recipe
from headway.telemetry import RunDir, read_record, run_state
from headway.ui.terminal.failure import failure_text


def ending_lines(run: RunDir, outcome: Outcome, conclusion: Conclusion) -> list[str]:
    """Return what to say at the end of a run; after a failure the traceback comes last."""
    state = run_state(run)
    lines = [""]
    if outcome.state == "done":
        lines.append(say("console/end-done", steps=outcome.steps, total=state.total_steps))
    if state.best is not None:
        paths = [info.path for info in list_checkpoints(run.checkpoints) if info.step == state.best.step]
        path = paths[-1] if paths else "n/a"
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
        lines += [say("cli/next", command=typed("resume", run)), "", *failure_text(outcome)]
    return lines


def typed(command: str, run: RunDir) -> str:
    """Return a command ready to type: by its path where `headway` alone would not be found."""
    program = "headway"
    if not shutil.which(program):
        place = Path(sys.executable).parent / program
        program = str(place.relative_to(Path.cwd()) if place.is_relative_to(Path.cwd()) else place)
    is_usual = run.root.parent.resolve() == Path("runs").resolve()
    return f"{program} {command} {run.name if is_usual else run.root}"
