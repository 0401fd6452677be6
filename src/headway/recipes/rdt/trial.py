"""What a trained model is worth: chunks against held-out demonstrations, and episodes in the scripted world."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headway.errors import CheckError, ConfigError
from headway.messages import say
from headway.recipes.rdt import slots
from headway.recipes.rdt.policy import Policy
from headway.recipes.rdt.rollout import Episode, Limits, run_episodes, wilson, write_video
from headway.recipes.rdt.samples import ChunkData
from headway.recipes.rdt.section import PredictOptions, RdtSection, RolloutSection
from headway.recipes.rdt.world import TASKS, TRIAL_SCENES
from headway.task import Prediction


def sample_chunks(
    policy: Policy, data: ChunkData, statistics: Mapping[str, Any], *, part: int, parts: int
) -> dict[str, float]:
    """Draw chunks for held-out steps, evenly spread; return the sums behind mean square and relative error."""
    asked = policy.section.sample
    most = len(data) if asked.batches is None else min(len(data), asked.batches * asked.batch)
    ids = (np.arange(most) * len(data) // max(1, most))[part::parts]
    live = torch.from_numpy(slots.ACTION_SLOTS)
    # The published relative error divides by the state's spread, though it is actions that are compared.
    spread = torch.tensor(statistics["state_std"], dtype=torch.float64)[live] + 1e-3
    found = dict.fromkeys(("squares", "relative", "numbers"), 0.0)
    for start in range(0, len(ids), asked.batch):
        some = ids[start : start + asked.batch]
        batch = data.batch(some, np.zeros_like(some))
        drawn = policy.draw({name: part for name, part in batch.items() if name != "actions"}, some.tolist())
        error = (drawn.float().cpu() - batch["actions"])[..., live].double()
        found["squares"] += float(error.square().sum())
        found["relative"] += float((error.abs() / spread).sum())
        found["numbers"] += error.numel()
    return found


def try_episodes(policy: Policy, *, part: int, parts: int) -> dict[str, float]:
    """Run this rank's episodes; return how many of each task there were and how many were solved."""
    asked, tasks = policy.section.rollout, sorted(policy.sentences)
    num = asked.episodes if tasks else 0
    episodes = [Episode(task=tasks[n % len(tasks)], seed=TRIAL_SCENES + n) for n in range(part, num, parts)]
    filmed = [one for one in episodes if one.seed < TRIAL_SCENES + len(tasks)] if asked.record_video else []
    run_episodes(policy.act, episodes, _limits(policy.section, asked), filmed=filmed)
    for one in filmed:
        write_video(one, Path(asked.video_dir).expanduser())
    found: dict[str, float] = {}
    for task in range(len(TASKS)):
        mine = [one.is_solved for one in episodes if one.task == task]
        found |= {f"solved_{task}": float(sum(mine)), f"episodes_{task}": float(len(mine))}
    return found


def summarize_sums(sums: Mapping[str, float]) -> dict[str, float]:
    """Return the measures of a trial from its sums."""
    found = {}
    if sums["numbers"]:
        found["overall_avg_sample_mse"] = sums["squares"] / sums["numbers"]
        found["overall_avg_sample_l2err"] = sums["relative"] / sums["numbers"]
    solved, num = (sum(sums[f"{what}_{task}"] for task in range(len(TASKS))) for what in ("solved", "episodes"))
    if num:
        low, high = wilson(solved, num)
        found |= {"success_rate": solved / num, "success_low": low, "success_high": high, "episodes": num}
        each = [task for task in range(len(TASKS)) if sums[f"episodes_{task}"]]
        found |= {f"success_rate_task{task}": sums[f"solved_{task}"] / sums[f"episodes_{task}"] for task in each}
    return found


def watch(policy: Policy, asked: PredictOptions, out: Path) -> Prediction:
    """Run episodes, film them, and write `results.json`; the text says how sure the rate is."""
    tasks = sorted(policy.sentences)[: asked.num_tasks]
    if not tasks:
        raise CheckError("rdt/no-world", tasks=", ".join(TASKS))
    changes = {key: getattr(asked, key) for key in ("max_steps", "unit", "exec_horizon")}
    rollout = policy.section.rollout.model_copy(update={k: v for k, v in changes.items() if v is not None})
    chunk = policy.section.action_chunk_size
    if rollout.exec_horizon > chunk:
        raise ConfigError("rdt/exec-horizon", asked=rollout.exec_horizon, chunk=chunk)
    first = asked.seed * 10_000
    episodes = [Episode(task=task, seed=first + n) for n in range(asked.episodes) for task in tasks]
    run_episodes(policy.act, episodes, _limits(policy.section, rollout), filmed=episodes if asked.record_video else ())
    folder = Path(asked.video_output_dir).expanduser() if asked.video_output_dir else out
    files = [write_video(one, folder) for one in episodes] if asked.record_video else []
    out.mkdir(parents=True, exist_ok=True)
    past = rollout.past_horizon()
    lines = [] if past is None else [say("rdt/past-horizon", **past)]
    results = out / "results.json"
    record = _record(episodes, rollout)
    results.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    for task in tasks:
        mine = [one for one in episodes if one.task == task]
        lines.append(_say_rate("rdt/task-rate", mine, task=TASKS[task]))
    lines.append(_say_rate("rdt/all-rate", episodes, tasks=len(tasks)))
    return Prediction(text="\n".join(lines), files=(results, *files))


def _limits(section: RdtSection, rollout: RolloutSection) -> Limits:
    return Limits(
        env_steps=rollout.env_steps,
        exec_horizon=rollout.exec_horizon,
        env_horizon=rollout.env_horizon,
        history=section.img_history_size,
    )


def _say_rate(code: str, episodes: list[Episode], **facts: object) -> str:
    solved = sum(one.is_solved for one in episodes)
    low, high = wilson(solved, len(episodes))
    rate = f"{solved / len(episodes):.0%}"
    return say(code, solved=solved, num=len(episodes), rate=rate, low=f"{low:.0%}", high=f"{high:.0%}", **facts)


def _record(episodes: list[Episode], rollout: RolloutSection) -> dict[str, Any]:
    """Return what `results.json` holds."""
    solved = sum(one.is_solved for one in episodes)
    low, high = wilson(solved, len(episodes))
    return {
        "schema": "rdt-rollout/1",
        "success_rate": solved / len(episodes),
        "success_interval_95": [low, high],
        "num_episodes": len(episodes),
        "env_steps": rollout.env_steps,
        "exec_horizon": rollout.exec_horizon,
        "episodes": [
            {"task": TASKS[one.task], "seed": one.seed, "success": one.is_solved, "steps": one.steps}
            for one in episodes
        ],
    }
