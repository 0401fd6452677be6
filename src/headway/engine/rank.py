"""One rank, from its job to its last word. Started by module name from the launch stage; they meet in files."""

from __future__ import annotations

import functools
import importlib
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.checkpoint import checkpoint

from headway.checkpoint.torch_state import Saver
from headway.config import RunConfig
from headway.engine import neutral
from headway.engine.device import open_device
from headway.engine.ema import Ema
from headway.engine.last_step import Older, go_back
from headway.engine.loop import train
from headway.engine.meter import ENDED, Meter
from headway.engine.optim import make_optimizers
from headway.engine.parallel import Layout, Ranks, Replicated, join, share_weights
from headway.engine.policy import owe_last, refuse_empty
from headway.engine.precision import Precision
from headway.engine.rank_state import Run
from headway.engine.reporter import Reporter, report_saves
from headway.engine.snapshot import prepare_save, resume, seed_everything
from headway.engine.wishes import listen_for_save, listen_for_stacks, listen_for_stop
from headway.errors import CheckpointError
from headway.messages import set_language
from headway.planner import Plan, grace_s, make_schedule
from headway.task import Task, find_recipe, hash_frozen, refuse_other_optimizer
from headway.task.order import mix_one
from headway.telemetry import HeartbeatWriter, MetricsWriter, RunDir, require_record


def main(job: dict[str, Any]) -> int:
    """Train one rank of a run; return its exit code."""
    set_language(job["lang"])
    reporter = Reporter(job["report_fd"])
    run: Run | None = None
    try:
        run = prepare(job, reporter)
        if run.shrunk is not None and run.shrunk["attempt"] == job["attempt"]:
            neutral.prove(run, before=run.shrunk["before"], is_agreed=run.shrunk["is_agreed"])
        _say_started(run, job)
        state = train(run)
        run.meter.say(ENDED)
        reporter.finished(state, run.progress.step)
        if run.ranks.world_size > 1:
            # Rank 0 holds the store: it must not leave while others still talk to it.
            dist.barrier()
    except Exception as error:  # border: whatever ends a rank is reported to the supervisor, then it ends
        reporter.error(error, run.progress.step if run else 0)
        return 1
    return 0


def prepare(job: dict[str, Any], reporter: Reporter, plan: Plan | None = None) -> Run:
    """Build everything the loop needs and bring it to where the run is.

    Args:
        job: which rank this is, and where the run is.
        reporter: the line to whoever started this rank.
        plan: in place of the stored one, for a process that does not train.
    """
    place = RunDir(Path(job["run_dir"]))
    stored: dict[str, Any] = require_record(place.job, dict)  # gone or damaged: a word, and no traceback of ours
    plan = plan or Plan.from_json(stored["plan"])
    config, task = load_task(stored)
    is_stop_wanted, save_asked_at = listen_for_stop(), listen_for_save()
    listen_for_stacks(place.rank(job["rank"]))
    beat = HeartbeatWriter(place.heartbeat(job["rank"]), job["attempt"])
    device = open_device(plan, config.train, job["local_rank"], is_steady=task.is_steady)
    torch.set_num_threads(plan.threads)
    held_out = task.eval_data()
    refuse_empty(held_out)
    ranks = join(job, device=device, backend=plan.backend, timeout_s=config.parallel.timeout_s)
    seed_everything(config.seed)
    model, layout = build_model(task, config, plan, ranks)
    groups = task.param_groups(model)
    refuse_other_optimizer(groups, config.optimizer)
    seed_everything(mix_one(config.seed, 0, ranks.rank) >> 1)
    run = Run(
        config=config,
        plan=plan,
        task=task,
        ranks=ranks,
        model=model,
        buffers=[b for name, b in model.named_buffers() if name in model.state_dict()],
        layout=layout,
        optimizers=make_optimizers(groups, layout),
        schedule=make_schedule(config.lr, plan),
        precision=Precision(plan.precision, device),
        ema=Ema(model, layout, config.ema) if config.ema.decay else None,
        data=task.train_data(),
        eval_data=held_out,
        checkpoints=place.checkpoints,
        events=place.events,
        frozen_id=hash_frozen(model),
        saver=Saver(
            place.checkpoints,
            rank=ranks.rank,
            world_size=ranks.world_size,
            attempt=job["attempt"],
            retention=config.save,
            report=report_saves(reporter, run=place.name, grace_s=grace_s(config.launch, plan)),
        ),
        meter=Meter(beat, device),
        metrics=MetricsWriter(place.metrics(ranks.rank), job["attempt"]),
        reporter=reporter,
        is_stop_wanted=is_stop_wanted,
        save_asked_at=save_asked_at,
        shrunk=stored.get("shrunk"),
    )
    older = Older(job["memory_before_fd"], job["memory_before_ranks"]) if "memory_before_fd" in job else None
    if go_back(run, job.get("memory_fd"), job["attempt"], older):
        run.came_from = "memory"
    else:
        for path, why in resume(run):
            reporter.event({"kind": "checkpoint_skipped", "path": str(path), "why": why})
        if run.needs_checkpoint and run.saved_step is None:
            raise CheckpointError("checkpoint/memory-damaged", rank=job["rank"], what="state")
        run.came_from = "start" if run.saved_step is None else "checkpoint"
    owe_last(run)
    prepare_save(run)
    return run


def load_task(stored: dict[str, Any]) -> tuple[RunConfig, Task]:
    """Return the config with its typed task section, and the recipe's task, both found by name."""
    recipe = find_recipe(stored["recipe"])
    values = dict(stored["config"])
    section = recipe.section.model_validate(values.pop("task"))
    config = RunConfig.model_validate(values)
    # What the plan decided is in the config a task sees: no task has to know what `auto` became.
    arithmetic = config.train.model_copy(update={"precision": stored["plan"]["precision"]})
    config = config.model_copy(update={"task": section, "train": arithmetic})
    return config, importlib.import_module(recipe.task).make_task(config)


def build_model(task: Task, config: RunConfig, plan: Plan, ranks: Ranks) -> tuple[nn.Module, Layout]:
    """Return the model laid over the ranks; the model itself knows nothing of layout, recomputation or compiling."""
    with torch.device(ranks.device):
        model = task.build_model()
    share_weights(model, ranks)
    blocks = task.blocks(model)
    if config.train.activation_checkpoint:
        for block in blocks:
            block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)
    if config.train.compile:
        for block in blocks:
            block.compile()
    if plan.strategy == "fsdp":
        sharded = importlib.import_module("headway.engine.fsdp")
        return model, sharded.Sharded(ranks, model, blocks, plan.precision, is_offloaded=plan.is_offloaded)
    return model, Replicated(ranks, model.parameters())


def _say_started(run: Run, job: dict[str, Any]) -> None:
    """Tell from which step this attempt trains."""
    if run.ranks.rank == 0:
        event = {"kind": "training_started", "attempt": job["attempt"], "step": run.progress.step}
        params = sum(param.numel() for param in run.model.parameters())
        event |= {"samples": run.progress.position, "params": params}
        event |= {"source": run.came_from, "keeps_steps": run.last_step is not None}
        run.reporter.event(event)
