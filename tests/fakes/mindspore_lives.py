"""Lives of a MindSpore run, where it is installed: `python mindspore_lives.py FOLDER`; the answer is JSON."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
TINY = str(Path(__file__).parent / "tiny")
MSE = {2: 1.0, 4: 0.5, 6: 0.7, 8: 0.9}


class Killed(BaseException):
    """The process is gone."""


def make_run(place: Path, *words: str, attempt: int = 1):
    """Return a single rank that is where the run directory says."""
    from headway.config import load_config
    from headway.engine.mindspore import rank
    from headway.engine.reporter import Reporter
    from headway.machine import inspect_machine
    from headway.planner import make_plan
    from headway.task import find_recipe
    from headway.telemetry import HeartbeatWriter, RunDir, write_json

    fixed = [f"recipe={TINY}", f"out={place}", "parallel.cpus=1", "task.samples=4999"]
    loaded = load_config(None, recipe=find_recipe, overrides=[*fixed, *words])
    plan = make_plan(loaded, inspect_machine(place, config=loaded.config), loaded.recipe)
    run = RunDir(place)
    for folder in (run.checkpoints, place / "ranks" / "0"):
        folder.mkdir(parents=True, exist_ok=True)
    config = loaded.config.model_dump(mode="json")
    write_json(run.job, {"recipe": loaded.config.recipe, "config": config, "plan": plan.to_json()})
    fd = os.open(place / "reports", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    job = {"run_dir": str(place), "rank": 0, "local_rank": 0, "world_size": 1, "attempt": attempt, "lang": "en"}
    beat = HeartbeatWriter(run.heartbeat(0), attempt)
    made = rank.prepare({**job, "report_fd": fd, "listen_fd": None, "master_port": 0}, Reporter(fd), beat)
    rank.set_up = lambda *settings, **more: "CPU"  # MindSpore takes its settings once a process
    return made


def live(place: Path, words, hit: tuple[str, int], attempt: int):
    """Train one attempt that is stopped at a step, or killed in a phase of it; return the run and how it ended."""
    from headway.engine.mindspore import loop

    run = make_run(place, *words, attempt=attempt)
    evaluate, save = loop.evaluate, loop.save

    def strike(phase: str) -> None:
        if hit == (phase, run.progress.step):
            raise Killed

    def measured(own):
        strike("validation")
        return evaluate(own)

    def saved(own):
        strike("save")
        save(own)
        own.saver.wait()
        strike("saved")

    run.task.summarize = lambda sums: {"mse": MSE.get(run.progress.step, 0.0)}
    run.is_stop_wanted = lambda: hit[0] == "stop" and run.progress.step + 1 >= hit[1]
    loop.evaluate, loop.save = measured, saved
    try:
        return run, loop.train(run)
    except Killed:
        return run, "killed"
    finally:
        loop.evaluate, loop.save = evaluate, save
        run.saver.wait()


def outcome(place: Path, words, hits) -> dict:
    """Return what must not depend on the stops and kills."""
    from headway.checkpoint import list_checkpoints
    from headway.telemetry import RunDir, read_metrics

    ends = [live(place, words, hit, number)[1] for number, hit in enumerate([*hits, ("", 0)], 1)]
    lines = [json.loads(line) for line in (place / "reports").read_text().splitlines()]
    found = [line["event"] for line in lines if line["kind"] == "event" and line["event"]["kind"] == "validation"]
    steps = [info.step for info in list_checkpoints(RunDir(place).checkpoints)]
    run, _ = live(place, words, ("", 0), len(ends) + 1)
    return {
        "end": ends[-1],
        "validations": {event["step"]: [event["measures"], event["best"]] for event in found},
        "best": [run.progress.best_step, run.progress.stale, run.progress.step, run.progress.ledger],
        "is_best_there": run.config.save.keep_best and run.progress.best_step in steps,
        "last": steps[-1],
        "losses": read_metrics(RunDir(place).metrics(0))["loss"].tolist(),
    }


def lives(place: Path) -> dict:
    """Live through the same disturbances as a PyTorch run, and tell which made a difference."""
    wrong, num = [], 0
    configs = {
        "patience": ("train.steps=12", "eval.every=2", "eval.patience=2", "save.keep_best=false"),
        "best": ("train.steps=8", "eval.every=2", "save.every=3"),
    }
    hits = [[("stop", 4)], [("stop", 8)], [("validation", 8)], [("saved", 4)], [("saved", 8)], [("save", 8)]]
    hits += [[("stop", 8), ("validation", 8)], [("validation", 4), ("stop", 4)]]
    for name, words in configs.items():
        peace = outcome(place / name, words, [])
        for own in hits:
            num += 1
            found = outcome(place / f"{name}-{num}", words, own)
            wrong += [[name, own, key, peace[key], found[key]] for key in peace if found[key] != peace[key]]
    return {"num": num, "peace": peace["best"][:3], "wrong": wrong}


def manifests(place: Path) -> dict:
    """Tell the measures of each checkpoint: of those saved before their validation, none."""
    from headway.checkpoint import list_checkpoints, read_manifest
    from headway.telemetry import RunDir

    live(place, ("train.steps=5", "eval.every=2", "save.every=3", "save.keep_last=9"), ("", 0), 1)
    found = [read_manifest(info.path) for info in list_checkpoints(RunDir(place).checkpoints)]
    return {
        "measures": {one.step: dict(one.measures) for one in found},
        "described": {one.step: one.meta["export"]["measures"] for one in found},
        "factor": found[-1].tensors["model/factor"].shape,
    }


def filled(place: Path) -> dict:
    """Measure 6 samples in batches of 4, and each alone."""
    from headway.engine.mindspore.loop import sum_measures

    run = make_run(place, "task.held_out=6", "train.steps=1")
    run.loss.set_train(False)
    sums = [sum_measures(run.task, run.loss, run.eval_data, ranks=run.ranks, size=n, total=None) for n in (4, 1)]
    return {"filled": run.task.summarize(sums[0]), "alone": run.task.summarize(sums[1])}


def guarded(place: Path) -> dict:
    """Meet two bad samples under each policy; tell what was said and done."""
    from headway.engine.mindspore import loop
    from headway.errors import TrainError

    def names(own: Path) -> list:
        lines = [json.loads(line) for line in (own / "reports").read_text().splitlines()]
        return [line["event"] for line in lines if line["kind"] == "event" and line["event"]["kind"] == "guard"]

    from headway.task.order import Order

    ids, _ = Order(4999, 0).samples(np.arange(40))
    bad = [int(ids[17]), int(ids[26])]
    words = ("train.steps=8", f"task.nan_samples={bad}", "save.every=2", "save.keep_last=9")
    told = {}
    for name, norm in (("stop", "false"), ("norm", "true")):
        run = make_run(place / name, *words, f"task.norm={norm}")
        try:
            loop.train(run)
        except TrainError as error:
            told[name] = {key: str(value) for key, value in error.facts.items()}
    back, end = live(place / "back", (*words, "guard.policy=rollback", "lr.schedule=linear"), ("", 0), 1)
    normed, _ = live(place / "normed", (*words, "guard.policy=skip", "task.norm=true"), ("", 0), 1)
    on, _ = live(place / "on", (*words, "guard.policy=skip"), ("", 0), 1)
    from headway.checkpoint import list_checkpoints, read_manifest
    from headway.telemetry import RunDir, read_metrics

    rows = read_metrics(RunDir(place / "back").metrics(0))
    rates = dict(zip((int(step) for step in rows["step"]), rows["lr"], strict=True))
    suspects = {
        name: [info.step for info in list_checkpoints(one.checkpoints) if read_manifest(info.path).suspect]
        for name, one in (("back", back), ("on", on))
    }
    return {
        "bad": bad,
        "told": told,
        "samples": [event["samples"] for event in names(place / "on")],
        "skips": back.progress.skips,
        "end": end,
        "updates": on.progress.updates,
        "rates": rates,
        "statistics": len(normed.statistics),
        "is_finite": all(bool(np.isfinite(one).all()) for one in normed.keep_statistics()),
        "suspects": suspects,
    }


def blamed(place: Path) -> dict:
    """Look for the culprit among two ranks, of which the second has it."""
    from headway.engine.mindspore import guard, loop
    from headway.engine.mindspore.rank_state import Loaded

    class Two:
        """One of two ranks, with what the other has sent."""

        def __init__(self, rank, other) -> None:
            self.rank, self.world_size, self.other, self.sent = rank, 2, other, None

        def sum(self, values):
            self.sent = values
            return values + self.other

    run = make_run(place, "task.nan_samples=[4321]", "train.steps=1")
    gradient, found, sent = loop.Stepper(run).gradient, [], 0
    for rank, ids in ((1, [3, 4321, 5, 6]), (0, [7, 8, 9, 10])):
        run.ranks = Two(rank, sent)
        found.append(guard._culprits(run, gradient, [Loaded({}, np.array(ids), np.zeros(4, np.int64))]))
        sent = run.ranks.sent
    return {"found": found}


def shared(place: Path) -> dict:
    """Validate and save as rank 1 of two, to which rank 0 sends statistics of one."""
    from headway.checkpoint import list_checkpoints, read_manifest
    from headway.engine.mindspore import loop
    from headway.engine.mindspore.checkpoint_arrays import read_arrays
    from headway.engine.mindspore.rank_state import save

    class Second:
        """Rank 1 of two."""

        rank, world_size = 1, 2

        def sum(self, values):
            return values

        def from_first(self, values):
            return np.ones_like(values)

    run = make_run(place, "task.norm=true", "train.steps=1")
    run.ranks = Second()
    own = [np.full(param.shape, 5, np.float32) for param in run.statistics]
    loop.evaluate(run)
    validated = [value.tolist() for value in run.keep_statistics()]
    run.put_statistics_back(own)
    save(run)
    run.saver.wait()
    path = list_checkpoints(run.checkpoints)[-1].path
    names = [name for name, param in run.state().items() if any(param is one for one in run.statistics)]
    saved = read_arrays(path, read_manifest(path), dict.fromkeys(names, (4,)))
    return {"validated": validated, "saved": [value.tolist() for value in saved.values()]}


def empty(place: Path) -> dict:
    """Begin with no validation samples."""
    from headway.errors import TrainError

    try:
        make_run(place, "task.held_out=0")
    except TrainError as error:
        return {"code": error.code}
    return {"code": None}


if __name__ == "__main__":
    place = Path(sys.argv[1])
    ways = (lives, manifests, filled, guarded, blamed, shared, empty)
    print(json.dumps({way.__name__: way(place / way.__name__) for way in ways}))
