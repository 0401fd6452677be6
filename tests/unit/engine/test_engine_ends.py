"""Stopped, killed and resumed at every phase of the end of a step, a run ends as if nothing had happened."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from fakes.engine_run import make_run, read_tensors, reports
from headway.checkpoint import list_checkpoints
from headway.engine import evaluate, loop
from headway.engine.loop import train
from headway.telemetry import RunDir, read_metrics

MSE = {2: 1.0, 4: 0.5, 6: 0.7, 8: 0.9}
"""What the validation of each step finds: with patience 2 the run is over at step 8, too."""
# One epoch and one batch of validation: the end of a step is looked at, not the data.
COMMON = ("eval.every=2", "eval.samples=4", "task.samples=4999")
CONFIGS = {
    "patience": ("train.steps=12", "eval.patience=2", "save.keep_best=false"),
    "patience-best": ("train.steps=12", "eval.patience=2", "save.every=4", "eval.trial_every=8"),
    "all-steps": ("train.steps=8", "save.every=3", "eval.trial_every=4"),
}


class Killed(BaseException):
    """The process is gone."""


@dataclass
class Life:
    """What one attempt does to itself: at which step it is stopped, or killed in which phase."""

    phase: str
    step: int


def live(place, monkeypatch, words, life: Life | None, attempt: int) -> str:
    """Train one attempt; return how it ended."""
    run = make_run(place, *COMMON, *words, attempt=attempt)

    def hit(phase):
        if life is not None and (life.phase, life.step) == (phase, run.progress.step):
            raise Killed

    def trial(model, *, part, parts):
        hit("trial")
        return {}

    def measured(task_run, *, plain=evaluate.evaluate):
        hit("validation")
        return plain(task_run)

    def saved(task_run, *, is_needed, plain=loop.save):
        hit("save")
        plain(task_run, is_needed=is_needed)
        task_run.saver.wait()
        hit("saved")

    run.task.trial = trial
    run.task.summarize = lambda sums: {"mse": MSE[run.progress.step]}
    run.is_stop_wanted = lambda: life is not None and life.phase == "stop" and run.progress.step + 1 >= life.step
    with monkeypatch.context() as patch:
        patch.setattr(loop, "evaluate", measured)
        patch.setattr(loop, "save", saved)
        try:
            return train(run)
        except Killed:
            return "killed"
        finally:
            run.saver.wait()


def outcome(place, monkeypatch, words, lives=()) -> dict:
    """Live the lives, then one in peace; return all that must not depend on them."""
    ends = [live(place, monkeypatch, words, life, number) for number, life in enumerate((*lives, None), 1)]
    assert ends[-1] == "done"
    run = make_run(place, *COMMON, *words, attempt=len(ends) + 1)
    found = {event["step"]: (event["measures"], event["best"]) for event in reports(place, "validation")}
    steps = [info.step for info in list_checkpoints(run.checkpoints)]
    # The last step was saved before it was validated; what its validation says is made up for by a resumed run.
    run.task.summarize = lambda sums: {"mse": MSE[run.progress.step]}
    assert train(run) == "done"
    progress = run.progress
    return {
        "validations": found,
        "best": (progress.best_step, progress.best_value, progress.stale),
        "is_best_there": progress.best_step in steps if run.config.save.keep_best else None,
        "last": (progress.step, progress.position, progress.ledger, steps[-1]),
        "losses": read_metrics(RunDir(place).metrics(0))["loss"].tolist(),
        "tensors": read_tensors(RunDir(place)),
    }


def lives_of_a_run() -> list[tuple[Life, ...]]:
    """Return stops and kills in the phases of the best and the last step, alone and one after the other."""
    single = [Life("stop", step) for step in (3, 4, 7, 8)] + [Life("validation", 6)]
    single += [Life(phase, step) for step in (4, 8) for phase in ("validation", "trial", "save", "saved")]
    double = [(Life("stop", 4), Life("validation", 4)), (Life("validation", 8), Life("trial", 8))]
    double += [(Life("stop", 8), Life("validation", 8)), (Life("saved", 4), Life("stop", 8))]
    return [*((life,) for life in single), *double]


@pytest.mark.parametrize("name", CONFIGS)
def test_a_disturbed_run_ends_like_an_undisturbed_one(tmp_path, monkeypatch, name):
    words = CONFIGS[name]
    peace = outcome(tmp_path / "peace", monkeypatch, words)
    assert peace["best"] == (4, 0.5, 2) and peace["last"][0] == 8
    for number, lives in enumerate(lives_of_a_run()):
        found = outcome(tmp_path / str(number), monkeypatch, words, lives)
        wrong = [key for key in peace if found[key] != peace[key]]
        assert not wrong, (lives, [(key, peace[key], found[key]) for key in wrong if key not in ("losses", "tensors")])
