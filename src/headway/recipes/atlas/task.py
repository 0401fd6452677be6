"""Atlas' side of the bargain: its model, its samples, its loss and its measures. Imported by ranks only."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from headway.errors import ConfigError
from headway.recipes.atlas.data import Index, open_index
from headway.recipes.atlas.encoded import Encoded, encode_data
from headway.recipes.atlas.encoders import build_atlas, is_frozen, is_weightless
from headway.recipes.atlas.frames import FrameData, Frames, make_example
from headway.recipes.atlas.model import gripper_loss, gripper_target, pose_loss
from headway.recipes.atlas.predict import predict_episode
from headway.recipes.atlas.rollout import CLOSED, roll_out, start_attempts
from headway.recipes.atlas.section import AtlasSection, PredictOptions
from headway.task import Batch, Loss, ParamGroup, Prediction, RunConfig, Task, make_groups


def make_task(config: RunConfig) -> AtlasTask:
    """Return the task of a resolved config."""
    if config.task.whiten and not config.task.freeze_vggt:
        raise ConfigError("atlas/whiten-trained")
    return AtlasTask(config)


class AtlasTask(Task):
    """The recipe, for one resolved config."""

    best: tuple[str, Literal["min", "max"]] = ("pose_l1", "min")

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.section: AtlasSection = config.task
        self._encoded: Encoded | None = None

    def build_model(self) -> nn.Module:
        """Return encoders and trained part; what frozen encoders say of the data is read, or found out now.

        Here and not when the data is opened: afterwards the encoders may lie in slices over the ranks.
        """
        model = build_atlas(self.section)
        if not is_weightless():
            kind = self.config.train.precision
            self._encoded = encode_data(
                self.section, model, self._frames, self._prepared[1], precision="fp32" if kind == "auto" else kind
            )
        return model

    def train_data(self) -> FrameData:
        """Return the frames of the training episodes."""
        return self._data(range(self._prepared[1].train_frames))

    def eval_data(self) -> FrameData:
        """Return the frames of the held-out episodes, each also with an instruction that is not its own."""
        index = self._prepared[1]
        return self._data(range(index.train_frames, index.train_frames + index.val_frames), has_wrong_texts=True)

    def _data(self, span: range, *, has_wrong_texts: bool = False) -> FrameData:
        if self._encoded is None:
            self.build_model()
        assert self._encoded is not None
        texts, features = self._encoded.texts, self._encoded.features
        folder = self._prepared[0]
        return FrameData(
            self._frames, span, folder=folder, texts=texts, features=features, has_wrong_texts=has_wrong_texts
        )

    def example(self, samples: int) -> Batch:
        """Return a batch of the right shapes, without the data."""
        return make_example(self.section, samples)

    def data_id(self) -> dict[str, str]:
        """Return a hash of every byte of the episodes, and of which are held out."""
        index = self._prepared[1]
        names = "\n".join(f"{episode['path']}/{episode['demo']}" for episode in index.val)
        return {"content": index.content, "held_out": hashlib.sha256(names.encode()).hexdigest()[:16]}

    def frozen(self, model: nn.Module) -> Sequence[nn.Module]:
        """Return the encoders that do not train: `train()` must not wake them."""
        return [part for part in (model.get_submodule("vision"), model.get_submodule("language")) if is_frozen(part)]

    def param_groups(self, model: nn.Module) -> Sequence[ParamGroup]:
        """Return everything that trains; Muon takes the matrices of the blocks."""
        return make_groups(model, self.blocks(model), self.config.optimizer, lr=self.config.lr.base)

    def blocks(self, model: nn.Module) -> Sequence[nn.Module]:
        """Return the fusion layers, and VGGT's blocks where they train."""
        vision = model.get_submodule("vision.aggregator")
        lists = [] if is_frozen(vision) else ["patch_embed.blocks", "frame_blocks", "global_blocks"]
        trained = [block for name in lists for block in vision.get_submodule(name).children()]
        return [*trained, *model.get_submodule("fusion.layers").children()]

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Return the summed loss of the frames."""
        return Loss(self._losses(model(batch), batch["action"]).sum(), len(batch["action"]))

    def _losses(self, answer_B7: Tensor, action_B7: Tensor) -> Tensor:
        task = self.section
        target_B = gripper_target(action_B7[:, 6], original=task.is_original)
        pose_B = pose_loss(answer_B7[:, :6], action_B7[:, :6], task.pose_loss_type)
        gripper_B = gripper_loss(answer_B7[:, 6], target_B, task.gripper_loss_type)
        return task.pose_weight * pose_B + task.gripper_weight * gripper_B

    def measures(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Return the sums behind the measures; with another instruction too, where there is one."""
        action_B7, answer_B7 = batch["action"], model(batch)
        away_B6 = (answer_B7 - action_B7)[:, :6].double()
        target_B = gripper_target(action_B7[:, 6], original=self.section.is_original)
        sums = {
            "frames": torch.full((), len(action_B7), dtype=torch.float64, device=action_B7.device),
            "loss": self._losses(answer_B7, action_B7).double().sum(),
            "pose_l1": away_B6.abs().mean(1).sum(),
            "pose_l2": away_B6.norm(dim=1).sum(),
            "gripper_error": (answer_B7[:, 6] - target_B).abs().double().sum(),
            "gripper_accuracy": ((answer_B7[:, 6] > CLOSED) == (action_B7[:, 6] > 0)).double().sum(),
        }
        wrong = {name.removeprefix("wrong_"): value for name, value in batch.items() if name.startswith("wrong_")}
        if wrong:
            misled_B6 = (model({**batch, **wrong}) - action_B7)[:, :6].double()
            sums["wrong_instruction_l1"] = misled_B6.abs().mean(1).sum()
        return sums

    def summarize(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return means over the held-out frames."""
        return {name: value / sums["frames"] for name, value in sums.items() if name != "frames"}

    def trial(self, model: nn.Module, *, part: int, parts: int) -> dict[str, Tensor]:
        """Let the model act in the scripted world its synthetic data comes from; real data has no world here."""
        task = self.section
        if not self._prepared[1].is_synthetic or not task.trial_episodes:
            return {}
        attempts = start_attempts(range(part, task.trial_episodes, parts))

        def policy(pictures: np.ndarray, instructions: Sequence[str]) -> np.ndarray:
            return self.act(model, torch.from_numpy(pictures), instructions).double().cpu().numpy()

        roll_out(attempts, policy, pixels=task.image_size, views=task.num_views, max_steps=task.trial_steps)
        won = [attempt for attempt in attempts if attempt.is_success]
        facts = {"episodes": len(attempts), "won": len(won), "steps": sum(attempt.steps for attempt in won)}
        facts["misled"] = sum(attempt.is_over and not attempt.is_success for attempt in attempts)
        return {name: torch.tensor(float(value)) for name, value in facts.items()}

    def act(self, model: nn.Module, images_BSHW3: Tensor, instructions: Sequence[str]) -> Tensor:
        """Return the model's actions for live pictures and plain instructions."""
        device = next(model.parameters()).device
        words_BT, real_BT = model.get_submodule("language").tokenize(instructions)
        return model({"images": images_BSHW3.to(device), "words": words_BT.to(device), "real": real_BT.to(device)})

    def summarize_trial(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return the shares of episodes in which the named block was taken, and in which the other one was."""
        whole, won = sums["episodes"], sums["won"]
        found = {"success_rate": won / whole, "wrong_block_rate": sums["misled"] / whole, "episodes": whole}
        return {**found, "steps_to_success": sums["steps"] / won} if won else found

    def describe(self, step: int, measures: Mapping[str, float]) -> dict[str, Any]:
        """Return what the guide's own checkpoint says beside its weights."""
        return {"global_step": step, "best_val_loss": measures.get("loss")}

    def predict(self, model: nn.Module, options: Mapping[str, Any], out: Path) -> Prediction:
        """Answer every frame of a held-out episode, and write the answers beside the teacher's."""

        def act(images: Tensor, instructions: Sequence[str]) -> Tensor:
            return self.act(model, images, instructions)

        asked = PredictOptions.model_validate(options)
        return predict_episode(asked, act, self.section, prepared=self._prepared, frames=self._frames, out=out)

    @cached_property
    def _prepared(self) -> tuple[Path, Index]:
        return open_index(self.section)

    @cached_property
    def _frames(self) -> Frames:
        return Frames(self.section, self._prepared[1])
