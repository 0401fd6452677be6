"""Makes scripted demonstrations and reads any: lengths, split, statistics, baselines. Imported only when needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
from blake3 import blake3

from headway.errors import CheckError
from headway.messages import say
from headway.recipes.rdt import slots, world
from headway.recipes.rdt.data import SYNTHETIC_MARK, Demo, Index, starts_of
from headway.recipes.rdt.reader import CAMERAS, LOW, DemoFiles, open_demos
from headway.recipes.rdt.section import RdtSection

DEMOS, HOLD_STEPS, LONGEST = 200, 8, 160
_HASHED_PICTURES = 64

Array = npt.NDArray[np.float64]


def write_synthetic(folder: Path, *, demos: int = DEMOS, first: int = world.DEMO_SCENES) -> None:
    """Write both scripted tasks in LIBERO's own format, of the scenes from one on."""
    for task, name in enumerate(world.NAMES):
        with h5py.File(folder / f"{name}_demo.hdf5", "w") as file:
            data = file.create_group("data")
            total = sum(_write_demo(data, f"demo_{i}", task, first + i) for i in range(demos))
            data.attrs["problem_info"] = json.dumps({"language_instruction": world.TASKS[task]})
            data.attrs["num_demos"], data.attrs["total"] = demos, total
            data.attrs["env_name"], data.attrs["bddl_file_name"] = "headway.TableWorld", f"{name}.bddl"
    mark = {"tasks": len(world.TASKS), "demos": demos}
    (folder / f"{SYNTHETIC_MARK}").write_text(json.dumps(mark) + "\n", encoding="utf-8")


def _write_demo(data: Any, name: str, task: int, seed: int) -> int:  # Any: h5py has no types
    """Record one demonstration, a few steps beyond success, as a person who lets go of the stick would."""
    episode = world.TableWorld(task, seed, is_midway=seed % 2 == 1)
    scenes: list[world.Scene] = []
    actions: list[Array] = []
    rewards: list[int] = []
    left = HOLD_STEPS
    while left and len(actions) < LONGEST:
        scenes.append(episode.scene)
        actions.append(world.show_way(episode))
        solved = episode.step(actions[-1])
        rewards.append(int(solved))
        left -= solved
    seen = episode.describe(scenes)
    group = data.create_group(name)
    group.attrs["num_samples"] = len(actions)
    group.attrs["init_state"] = _flat(scenes[0])
    group.attrs["model_file"] = ""
    group.create_dataset("actions", data=np.stack(actions))
    group.create_dataset("rewards", data=np.asarray(rewards, np.uint8))
    group.create_dataset("dones", data=np.asarray(rewards, np.uint8))
    obs = group.create_group("obs")
    for key, values in seen.items():
        obs.create_dataset(key, data=values)
    robot = np.concatenate([seen["gripper_states"], seen["ee_states"]], axis=1)
    group.create_dataset("robot_states", data=robot)
    group.create_dataset("states", data=np.stack([_flat(scene) for scene in scenes]))
    return len(actions)


def _flat(scene: world.Scene) -> Array:
    return np.array([*scene.hand, scene.yaw, scene.opening, scene.cabinet_y, scene.drawer, *scene.bowl])


def read_demos(section: RdtSection, files: list[Path], *, mark: str) -> Index:
    """Read every file once and return its index."""
    instructions, demos = {}, []
    for path in files:
        with open_demos(path) as file:
            instructions[path.name] = _instruction(path, file)
            demos += _list_demos(path, file, section.holdout)
    reader = DemoFiles(files[0].parent)
    states, actions, digest = {}, {}, blake3()
    for demo in demos:
        low = reader.low(demo.file, demo.name)
        states[demo] = slots.pack_state(low, section.rotation)
        actions[demo] = pack(section, low["actions"])
        digest.update(np.ascontiguousarray(low["actions"]).tobytes())
        for camera in CAMERAS:
            shown = reader.pictures(demo.file, demo.name, camera)
            # Hashing a gigabyte of video at every start helps nobody; evenly spread frames show any exchange.
            digest.update(np.ascontiguousarray(shown[:: max(1, len(shown) // _HASHED_PICTURES)]).tobytes())
    reader.close()
    train = [demo for demo in demos if not demo.is_held_out]
    mean = np.concatenate([actions[demo] for demo in train]).mean(0)
    return Index(
        fingerprint=mark,
        instructions=instructions,
        demos=tuple(demos),
        statistics={section.dataset: _statistics(section.dataset, states, actions, train)},
        baselines=_baselines(section, mean, {demo: actions[demo] for demo in demos if demo.is_held_out}),
        content=digest.hexdigest(),
    )


def pack(section: RdtSection, actions: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Return the 10 live numbers of raw actions, at this section's scales."""
    return slots.pack_action(
        actions,
        position_scale=section.position_scale,
        rotation_scale=section.rotation_scale,
        rotation=section.rotation,
    )


def _instruction(path: Path, file: Any) -> str:
    try:
        told = json.loads(file["data"].attrs["problem_info"])["language_instruction"]
        # LIBERO's own files hold a list of letters, with quotes around the sentence.
        text = "".join(map(str, told)) if isinstance(told, list) else str(told)
        return text.strip().strip('"').strip().rstrip(".")
    except (KeyError, ValueError, TypeError) as err:
        raise CheckError("rdt/bad-file", file=path, why=f"data.attrs.problem_info: {err}") from err


def _list_demos(path: Path, file: Any, holdout: float) -> list[Demo]:
    """Return the demonstrations of a file in their own order; the last ones are held out, whole."""
    names = sorted(file["data"], key=lambda name: int(name.rpartition("_")[2]))
    kept = max(1, round(holdout * len(names)))
    if kept >= len(names):
        raise CheckError("rdt/few-demos", file=path, have=len(names), kept=kept)
    found = []
    for place, name in enumerate(names):
        group = file["data"][name]
        wanted = ("actions", *(f"obs/{part}" for part in (*CAMERAS, *LOW)))
        missing = [part for part in wanted if part not in group]
        if missing:
            raise CheckError("rdt/bad-file", file=path, why=say("rdt/why-missing", name=name, parts=missing))
        length = len(group["actions"])
        found.append(Demo(file=path.name, name=f"data/{name}", length=length, is_held_out=place >= len(names) - kept))
    return found


def _statistics(name: str, states: Any, actions: Any, train: list[Demo]) -> dict[str, Any]:
    """Return the published record of statistics, over the training demonstrations."""
    out: dict[str, Any] = {"dataset_name": name}
    for kind, values, places in (("state", states, slots.STATE_SLOTS), ("action", actions, slots.ACTION_SLOTS)):
        every = slots.spread(np.concatenate([values[demo] for demo in train]), places).astype(np.float64)
        for what, found in (
            ("mean", every.mean(0)),
            ("std", every.std(0)),
            ("min", every.min(0)),
            ("max", every.max(0)),
        ):
            out[f"{kind}_{what}"] = [float(value) for value in found]
    return out


def _baselines(section: RdtSection, mean: npt.NDArray[Any], held: dict[Demo, Any]) -> dict[str, float]:
    """Return the error of the mean training action on the held-out chunks."""
    total, num = 0.0, 0
    for demo, actions in held.items():
        for start in range(starts_of(demo, section)):
            chunk = cut_chunk(actions, start, section.action_chunk_size)
            total += float(((chunk - mean) ** 2).sum())
            num += chunk.size
    return {"mean_loss": total / num, "mean_overall_avg_sample_mse": total / num} if num else {}


def cut_chunk(actions: npt.NDArray[Any], start: int, length: int) -> npt.NDArray[Any]:
    """Return `length` actions from a step on; past the end the last one continues."""
    return actions[np.minimum(np.arange(start, start + length), len(actions) - 1)]
