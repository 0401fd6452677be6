"""`headway replay`: the failing step alone, from the nearest checkpoint, down to the sample, the run untouched."""

from __future__ import annotations

import hashlib

import pytest

from fakes.engine_run import make_run
from headway.cli.replay import _lines, find_failed_step
from headway.engine.loop import train
from headway.engine.replay import _answer
from headway.errors import TrainError
from headway.messages import set_language
from headway.telemetry import RunDir

# One process plays several ranks: each takes over the file of stacks from the one before.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
WORDS = ("train.steps=12", "batch.per_device=4", "batch.total=8", "task.samples=96", "save.every=3", "eval.every=0")


def _digest(place):
    files = [path for path in sorted(place.rglob("*")) if path.is_file()]
    return [(str(path), path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files]


def _replay(tmp_path, run, step):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    before = _digest(run)
    found = _answer({"run_dir": str(run), "scratch": str(scratch), "step": step, "lang": "en"})
    assert _digest(run) == before
    return found


def test_the_sample_that_breaks_a_step_is_found_from_the_nearest_checkpoint(tmp_path):
    place = tmp_path / "run"
    run = make_run(place, *WORDS)
    run.open_data()
    taken = [next(run.batches) for _ in range(20)]
    bad = int(taken[14].ids[2])  # of the eighth step
    broken = make_run(tmp_path / "broken", *WORDS, f"task.nan_samples=[{bad}]")
    with pytest.raises(TrainError):
        train(broken)
    broken.saver.wait()
    found = _replay(tmp_path, tmp_path / "broken", 8)
    assert found["step"] == 8 and found["from_step"] in (3, 6)  # a save waits for none that is being written
    assert [(one["index"], one["kind"]) for one in found["samples"]] == [(bad, "nan-loss")]
    for lang in ("en", "zh"):
        set_language(lang)
        assert any(str(bad) in line for line in _lines(found))
    set_language("en")


def test_a_step_that_runs_names_nobody_and_a_raising_sample_is_named(tmp_path, monkeypatch):
    place = tmp_path / "run"
    run = make_run(place, *WORDS)
    train(run)
    run.saver.wait()
    assert _replay(tmp_path, place, 5)["parts"] == []
    import headway.engine.replay as replay

    kept = replay.run_pass

    def pass_or_raise(run, part):
        if 7 in part.ids:
            raise IndexError("index 9 is out of range")
        return kept(run, part)

    monkeypatch.setattr(replay, "run_pass", pass_or_raise)
    kinds = set()
    for step in range(1, 13):
        (tmp_path / f"s{step}").mkdir()
        found = _answer({"run_dir": str(place), "scratch": str(tmp_path / f"s{step}"), "step": step, "lang": "en"})
        kinds |= {(one["index"], one["kind"]) for one in found["samples"]}
    assert kinds == {(7, "exception")}


def test_the_failed_step_is_taken_from_the_history(tmp_path):
    run = RunDir(tmp_path)
    assert find_failed_step(run) is None
    run.events.write_text('{"kind":"incident","step":41}\n{"kind":"run_ended","steps":41}\n')
    assert find_failed_step(run) == 42
    with run.events.open("a") as file:
        file.write('{"kind":"guard","step":50}\n')
    assert find_failed_step(run) == 50
