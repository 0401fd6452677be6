"""One MindSpore rank, from its job to its last word. Started by module name from the launch stage."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import mindspore as ms

from headway.config import RunConfig
from headway.engine.mindspore.checkpoint_arrays import ArraySaver
from headway.engine.mindspore.context import set_up
from headway.engine.mindspore.explain import explain
from headway.engine.mindspore.loop import train
from headway.engine.mindspore.meter import Meter
from headway.engine.mindspore.optim import Adam
from headway.engine.mindspore.rank_state import MindRun, resume
from headway.engine.mindspore.ranks import join
from headway.engine.policy import owe_last, refuse_empty
from headway.engine.reporter import Reporter, report_saves
from headway.engine.wishes import listen_for_save, listen_for_stacks, listen_for_stop
from headway.errors import TrainError
from headway.messages import set_language
from headway.planner import Plan, make_schedule
from headway.task import find_recipe
from headway.task.mindspore import MindTask
from headway.telemetry import PHASES, HeartbeatWriter, MetricsWriter, RunDir, require_record


def main(job: dict[str, Any]) -> int:
    """Train one rank of a run; return its exit code."""
    set_language(job["lang"])
    reporter = Reporter(job["report_fd"])
    run: MindRun | None = None
    beat: HeartbeatWriter | None = None
    try:
        place = RunDir(Path(job["run_dir"]))
        beat = HeartbeatWriter(place.heartbeat(job["rank"]), job["attempt"])
        run = prepare(job, reporter, beat)
        if run.ranks.rank == 0:
            event = {"kind": "training_started", "attempt": job["attempt"], "step": run.progress.step}
            params = sum(param.size for param in run.params)
            reporter.event({**event, "samples": run.progress.position, "params": params})
        profiler = _profiler(run, place)
        state = train(run)
        if profiler is not None:
            profiler.analyse()
        beat.beat(PHASES.index("ended"))
        reporter.finished(state, run.progress.step)
        run.ranks.leave()
    except Exception as error:  # border: whatever ends a rank is reported to the supervisor, then it ends
        reporter.error(explain(error), run.progress.step if run else 0)
        return 1
    return 0


def prepare(job: dict[str, Any], reporter: Reporter, beat: HeartbeatWriter) -> MindRun:
    """Build everything the loop needs and bring it to where the run is."""
    place = RunDir(Path(job["run_dir"]))
    stored: dict[str, Any] = require_record(place.job, dict)  # gone or damaged: a word, and no traceback of ours
    plan = Plan.from_json(stored["plan"])
    config, task = load_task(stored)
    _refuse_unsupported(config, plan)
    _refuse_unproven(stored.get("shrunk"), plan)
    is_stop_wanted, save_asked_at = listen_for_stop(), listen_for_save()
    listen_for_stacks(place.rank(job["rank"]))
    os.environ.setdefault("GLOG_v", "3")
    graphs = place.metrics(job["rank"]).parent / "graphs"
    set_up(task.settings, device=plan.device, local_rank=job["local_rank"], threads=plan.threads, graphs=graphs)
    held_out = task.eval_data()
    refuse_empty(held_out)
    ranks = join(job)
    loss = task.build_loss()
    params = list(loss.trainable_params())
    run = MindRun(
        config=config,
        plan=plan,
        task=task,
        ranks=ranks,
        loss=loss,
        names=task.names(loss),
        params=params,
        adam=Adam(params, config.optimizer),
        schedule=make_schedule(config.lr, plan),
        data=task.train_data(),
        eval_data=held_out,
        checkpoints=place.checkpoints,
        events=place.events,
        saver=ArraySaver(
            place.checkpoints,
            rank=ranks.rank,
            world_size=ranks.world_size,
            attempt=job["attempt"],
            retention=config.save,
            report=report_saves(reporter, run=place.name, grace_s=config.launch.grace_s),
        ),
        meter=Meter(beat),
        metrics=MetricsWriter(place.metrics(ranks.rank), job["attempt"]),
        reporter=reporter,
        is_stop_wanted=is_stop_wanted,
        save_asked_at=save_asked_at,
    )
    for path, why in resume(run):
        reporter.event({"kind": "checkpoint_skipped", "path": str(path), "why": why})
    owe_last(run)
    return run


def load_task(stored: dict[str, Any]) -> tuple[RunConfig, MindTask]:
    """Return the config with its typed task section, and the recipe's MindSpore task, both found by name."""
    recipe = find_recipe(stored["recipe"])
    values = dict(stored["config"])
    section = recipe.section.model_validate(values.pop("task"))
    config = RunConfig.model_validate(values).model_copy(update={"task": section})
    if recipe.task_mindspore is None:
        raise TrainError("mindspore/no-task", recipe=recipe.name)
    return config, importlib.import_module(recipe.task_mindspore).make_task(config)


def _refuse_unproven(shrunk: dict[str, Any] | None, plan: Plan) -> None:
    """Refuse a micro-batch that was made smaller: nobody has compared its gradients (engine/neutral.py is torch's)."""
    if shrunk is not None and not shrunk["is_agreed"]:
        raise TrainError("engine/batch-not-proven", before=shrunk["before"], after=plan.micro_batch)


def _refuse_unsupported(config: RunConfig, plan: Plan) -> None:
    """Say no to what this half of the engine cannot do, rather than leave it out."""
    asked = {
        "parallel.strategy=fsdp": plan.strategy == "fsdp",
        "ema.decay": config.ema.decay is not None,
        f"optimizer.name={config.optimizer.name}": config.optimizer.name not in ("adam", "adamw"),
        "train.compile=true": config.train.compile,
        "train.activation_checkpoint=true": config.train.activation_checkpoint,
    }
    for key, is_asked in asked.items():
        if is_asked:
            raise TrainError("mindspore/not-supported", key=key)


def _profiler(run: MindRun, place: RunDir) -> Any:  # MindSpore's own, untyped
    if not run.task.settings.is_profiled:
        return None
    return ms.Profiler(output_path=str(place.root / "profile" / f"rank-{run.ranks.rank}"))
