"""What is decided, written into a run directory: a new one, a resumed one, or a fork of another."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from headway.checkpoint import copy_checkpoint
from headway.config import dump_yaml, redact, redact_words
from headway.launch import Job, Lease, write_job
from headway.machine import MachineReport
from headway.process import make_lease
from headway.start.decide import Decision
from headway.start.decide_resume import ResumeWish
from headway.telemetry import EventLog, RunDir, new_run_dir, require_record, write_json, write_whole

_GIT_S: Final = 5.0
_RECORDED: Final = (
    "world_size",
    "device",
    "strategy",
    "precision",
    "micro_batch",
    "accumulation",
    "batch_samples",
    "total_samples",
    "total_steps",
    "lr_factor",
    "warmup_samples",
)
"""What a plan decides about the training itself."""


def write_run(decision: Decision, argv: Sequence[str] | None = None) -> tuple[RunDir, Job]:
    """Write everything that is decided into a new run directory; return it, and the job with the secrets of a line.

    Args:
        argv: the command that stands for a call; none: what was typed.
    """
    run = new_run_dir(decision.out, decision.name)
    job = decision.job
    if job.foreign is not None and not job.foreign.run_id:
        job = replace(job, program=replace(job.foreign, run_id=run.name))
    command = describe_command(argv)
    _write_decision(run, decision, job, command)
    log = EventLog(run.events)
    log.append("run_started", command=command["argv"], starter=make_lease())
    if decision.machine is not None:
        log.append("checked", findings=[finding.to_json() for finding in decision.machine.findings])
    if decision.late is not None:
        decision.late.add_done_callback(partial(_write_late, run))
    loaded, plan = decision.loaded, decision.plan
    if loaded is not None and plan is not None:
        log.append("planned", steps=plan.total_steps, world_size=plan.world_size)
        for code, facts in (*loaded.warnings, *((warning.code, warning.facts) for warning in plan.warnings)):
            log.append("warning", code=code, facts=facts)
        baselines = loaded.recipe.baselines(loaded.config.task) if loaded.recipe.baselines else {}
        if baselines:
            log.append("baseline", measures=baselines)
    log.close()
    return run, job


def note_run(file: Path | None, run: RunDir) -> None:
    """Write where a run is into a file that somebody has asked for: all of it, or nothing."""
    if file is None:
        return
    temp = file.with_name(f".{file.name}.{os.getpid()}")
    with temp.open("wb") as written:
        written.write(os.fsencode(run.root.absolute()))
        written.flush()
        os.fsync(written.fileno())
    temp.replace(file)


def _write_resumed(
    run: RunDir, decision: Decision, argv: Sequence[str] | None = None, *, from_scratch: bool = False
) -> None:
    """Write down how a run continues, and what is different from before: no value changes without a record."""
    assert decision.loaded is not None and decision.plan is not None, "a launch line is not resumed"
    before = require_record(run.job, lambda job: dict(job["config"]))
    now = decision.loaded.config.model_dump(mode="json")
    changes = {key: [old, new] for key, (old, new) in _differences(before, now).items()}
    planned, plan = require_record(run.plan, dict), decision.plan.to_json()
    changes |= {f"plan.{key}": [planned.get(key), plan[key]] for key in _RECORDED if planned.get(key) != plan[key]}
    command = describe_command(argv)
    log = EventLog(run.events)
    told = {"from_scratch": True} if from_scratch else {}
    log.append("run_resumed", command=command["argv"], changes=changes, starter=make_lease(), **told)
    log.close()
    _write_decision(run, decision, decision.job, command)


def write_continued(
    run: RunDir, lease: Lease, decision: Decision, wish: ResumeWish, argv: Sequence[str] | None = None
) -> tuple[RunDir, Lease]:
    """Write down how a run continues, in its own directory or in that of a fork; return the one with its lease."""
    if wish.step is not None:
        assert decision.checkpoint is not None
        run = _fork(run, decision.checkpoint, argv)
        lease.release()
        lease = Lease(run)
    try:
        lease.prove()
        _write_resumed(run, decision, argv, from_scratch=wish.from_scratch)
    except BaseException:
        lease.release()
        raise
    return run, lease


def _fork(run: RunDir, checkpoint: Path, argv: Sequence[str] | None = None) -> RunDir:
    """Begin a new run at an older checkpoint; what the old run did after it stays as it is."""
    _, _, name = run.name.partition("_")
    fork = new_run_dir(run.root.parent, name.rpartition("_")[0] or name)
    copy_checkpoint(checkpoint, fork.checkpoints)
    for path in (run.config, run.job, run.plan):
        shutil.copyfile(path, fork.root / path.name)
    log = EventLog(fork.events)
    log.append("run_started", command=describe_command(argv)["argv"], parent=run.name, checkpoint=checkpoint.name)
    log.close()
    return fork


def _write_late(run: RunDir, look: Future[MachineReport]) -> None:
    """Write a machine whose look came after the decision; the report shows it."""
    with contextlib.suppress(Exception):  # border: beside the run, which continues without
        write_json(run.machine, look.result().to_json())


def _write_decision(run: RunDir, decision: Decision, job: Job, command: dict[str, Any]) -> None:
    """Write config, origins, machine, plan, command and job, as far as there are any."""
    if decision.loaded is not None:
        write_whole(run.config, dump_yaml(decision.loaded.config).encode("utf-8"))
        write_json(run.origins, decision.loaded.origins)
    if decision.machine is not None:
        write_json(run.machine, decision.machine.to_json())
    if decision.plan is not None:
        write_json(run.plan, decision.plan.to_json())
    write_json(run.command, command)
    write_job(run, job)


def _differences(before: object, now: object, key: str = "") -> dict[str, tuple[object, object]]:
    if not isinstance(before, dict) or not isinstance(now, dict):
        return {} if before == now else {key: (before, now)}
    found: dict[str, tuple[object, object]] = {}
    for name in sorted({*before, *now}):
        found.update(_differences(before.get(name), now.get(name), f"{key}.{name}".lstrip(".")))
    return found


def _own_words(argv: Sequence[str]) -> list[str]:
    """Return the words without the option behind which a guide's script says how it was called."""
    return [word for word in argv if not word.startswith("--typed-as=")]


def describe_command(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Return what was typed, where, with which code; of the environment only the names."""
    return {
        "schema": "command/1",
        "argv": redact_words(["headway", *_own_words(sys.argv[1:])] if argv is None else argv),
        "cwd": os.getcwd(),
        "env": sorted(os.environ),
        "git": _git(Path.cwd()),
    }


def _git(place: Path) -> dict[str, str] | None:
    """Return commit and uncommitted diff of the folder, or None outside of a checkout or without git."""
    answers = {}
    for name, words in (("commit", ["rev-parse", "HEAD"]), ("diff", ["diff", "HEAD"])):
        try:
            done = subprocess.run(
                ["git", "-C", str(place), *words],
                capture_output=True,
                timeout=_GIT_S,
                check=False,
                encoding="utf-8",
                errors="replace",  # a diff holds the files' own bytes: GBK, Latin-1, whatever they are written in
            )
        except (FileNotFoundError, subprocess.TimeoutExpired):
            return None
        if done.returncode != 0:
            return None
        answers[name] = redact(done.stdout.strip()[:1_000_000])
    return answers
