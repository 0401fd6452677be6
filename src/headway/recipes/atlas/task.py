"""Atlas' side of the bargain: its model, its samples, its loss and its measures. Imported by ranks only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor

from headway.config import RunConfig
from headway.engine.precision import Precision
from headway.engine.task import Batch, Ids, Loss, ParamGroup, Prediction, Task
from headway.errors import ConfigError, UsageError
from headway.recipes.atlas.data import Index, open_index
from headway.recipes.atlas.encoders import build_language, build_vision, is_frozen, vggt_size
from headway.recipes.atlas.features import feature_folder, make_features, open_features
from headway.recipes.atlas.frames import FrameData, Frames, Texts
from headway.recipes.atlas.language import encode_texts
from headway.recipes.atlas.model import Atlas, AtlasSize, gripper_loss, gripper_target, measure_spread, pose_loss, see
from headway.recipes.atlas.predict import write_actions
from headway.recipes.atlas.rollout import roll_out, start_attempts
from headway.recipes.atlas.section import AtlasSection, PredictOptions

_SPREAD_FRAMES = 2048
"""Training frames whose features show how they are spread."""


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
        self._features: dict[str, np.memmap] | None = None
        self._texts: Texts | None = None

    def size(self, token_dim: int, lang_dim: int) -> AtlasSize:
        """Return the shape of the trained part over encoders of these widths."""
        task = self.section
        return AtlasSize(
            token_dim=token_dim,
            lang_dim=lang_dim,
            token_features=task.token_features,
            pose_features=task.pose_features,
            point_features=task.point_features,
            geom_dim=task.geom_output_dim,
            fusion_dim=task.fusion_hidden_dim,
            fusion_layers=task.fusion_layers,
            fusion_heads=task.fusion_heads,
            head_dims=task.head_dims,
            dropout=task.dropout,
            use_pointnet=task.use_pointnet,
            use_pose=task.use_pose,
            masks_padding=not task.is_original,
            whiten=task.whiten,
        )

    def build_model(self) -> nn.Module:
        """Return encoders and trained part; what frozen encoders say of the data is read, or found out now.

        Here and not when the data is opened: afterwards the encoders may lie in slices over the ranks.
        """
        vision, language = build_vision(self.section), build_language(self.section)
        size = self.size(vision.size.token_dim, language.width)
        model = Atlas(size, vision, language, point_stride=self.section.point_stride)
        first = next(vision.parameters())
        # A planner's trace has shapes and no weights: there is nothing to run over the data.
        if not isinstance(first, FakeTensor) and first.device.type != "meta":
            self._run_encoders(model)
        return model

    def _run_encoders(self, model: Atlas) -> None:
        folder, index = self._prepared
        if self.section.freeze_vggt and self.section.cache_features:
            device = next(model.vision.parameters()).device
            kind = self.config.train.precision
            context = Precision("fp32" if kind == "auto" else kind, device).context
            where = feature_folder(self.section, content=index.content, vision=model.vision, precision=kind)
            stride, look = self.section.point_stride, self._frames.look
            frames = len(self._frames)
            if not where.is_dir():
                make_features(where, frames=frames, vision=model.vision, stride=stride, look=look, context=context)
            self._features = open_features(where)
        if is_frozen(model.language):
            values, real = encode_texts(model.language, self._frames.instructions)
            self._texts = Texts(values.cpu(), real.cpu(), is_encoded=True)
        else:
            self._texts = Texts(*model.language.tokenize(self._frames.instructions), is_encoded=False)
        if self.section.whiten:
            ids = np.unique(np.linspace(0, index.train_frames - 1, _SPREAD_FRAMES).astype(np.int64))
            model.set_whitening(*(part.to(model.token_map.device) for part in measure_spread(self._tokens(model, ids))))

    def _tokens(self, model: Atlas, ids: Ids) -> Tensor:
        """Return the pooled tokens of frames, from the cache or from the encoder."""
        if self._features is not None:
            return torch.from_numpy(np.array(self._features["tokens"][ids]))
        parts = []
        device = next(model.vision.parameters()).device
        for some in np.array_split(ids, -(-len(ids) // 64)):
            with torch.no_grad():
                parts.append(see(model.vision, self._frames.look(some).to(device), self.section.point_stride)["tokens"])
        return torch.cat(parts).cpu()

    def train_data(self) -> FrameData:
        """Return the frames of the training episodes."""
        return self._data(range(self._prepared[1].train_frames))

    def eval_data(self) -> FrameData:
        """Return the frames of the held-out episodes, each also with an instruction that is not its own."""
        index = self._prepared[1]
        return self._data(range(index.train_frames, index.train_frames + index.val_frames), has_wrong_texts=True)

    def _data(self, span: range, *, has_wrong_texts: bool = False) -> FrameData:
        if self._texts is None:
            self.build_model()
        assert self._texts is not None
        return FrameData(
            self._frames,
            span,
            folder=self._prepared[0],
            texts=self._texts,
            features=self._features,
            has_wrong_texts=has_wrong_texts,
        )

    def example(self, samples: int) -> Batch:
        """Return a batch of zeros of the right shapes: the true one may cost hours of encoding."""
        task = self.section
        views, side = task.num_views, task.image_size // task.point_stride
        length, wide = task.lang_max_length, task.lang_dim
        out = {"action": torch.zeros(samples, 7), "real": torch.ones(samples, length, dtype=torch.bool)}
        if task.freeze_lang_encoder:
            out["text"] = torch.zeros(samples, length, wide)
        else:
            out["words"] = torch.zeros(samples, length, dtype=torch.int64)
        if not (task.freeze_vggt and task.cache_features):
            images = torch.zeros(samples, views, task.image_size, task.image_size, 3, dtype=torch.uint8)
            return {**out, "images": images}
        tokens = torch.zeros(samples, views, vggt_size(task, task.image_size).token_dim)
        points = torch.zeros(samples, views, side * side, 3)
        return {**out, "tokens": tokens, "points": points, "pose": torch.zeros(samples, views, 9)}

    def data_id(self) -> dict[str, str]:
        """Return a hash of every byte of the episodes and of which are held out."""
        index = self._prepared[1]
        return {"content": index.content, "held_out": str(index.val_frames)}

    def frozen(self, model: nn.Module) -> Sequence[nn.Module]:
        """Return the encoders that do not train: `train()` must not wake them."""
        return [part for part in (model.get_submodule("vision"), model.get_submodule("language")) if is_frozen(part)]

    def param_groups(self, model: nn.Module) -> Sequence[ParamGroup]:
        """Return everything that trains, in one group."""
        own = self.config.optimizer
        if own.name == "muon":
            raise ConfigError("atlas/no-muon")
        params = {name: param for name, param in model.named_parameters() if param.requires_grad}
        numbers = {"beta1": own.beta1, "beta2": own.beta2, "eps": own.eps, "weight_decay": own.weight_decay}
        return [ParamGroup(params=params, optimizer=own.name, lr=self.config.lr.base, **numbers)]

    def blocks(self, model: nn.Module) -> Sequence[nn.Module]:
        """Return the fusion layers, and VGGT's blocks where they train."""
        vision = model.get_submodule("vision.aggregator")
        trained = [] if is_frozen(vision) else [*vision.get_submodule("frame_blocks").children()]
        trained += [] if is_frozen(vision) else [*vision.get_submodule("global_blocks").children()]
        return [*trained, *model.get_submodule("fusion.layers").children()]

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Return the summed loss of the frames."""
        return Loss(self._losses(model(batch), batch["action"]).sum(), len(batch["action"]))

    def _losses(self, answer_B7: Tensor, action_B7: Tensor) -> Tensor:
        task = self.section
        target_B = gripper_target(action_B7[:, 6], original=task.is_original)
        pose_B = pose_loss(answer_B7[:, :6], action_B7[:, :6], task.pose_loss_type)
        return task.pose_weight * pose_B + task.gripper_weight * gripper_loss(
            answer_B7[:, 6], target_B, task.gripper_loss_type
        )

    def measures(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Return the sums behind the measures; with another instruction too, where there is one."""
        action_B7 = batch["action"]
        answer_B7 = model(batch)
        away_B6 = (answer_B7 - action_B7)[:, :6].double()
        target_B = gripper_target(action_B7[:, 6], original=self.section.is_original)
        sums = {
            "frames": torch.tensor(float(len(action_B7)), dtype=torch.float64, device=action_B7.device),
            "loss": self._losses(answer_B7, action_B7).double().sum(),
            "pose_l1": away_B6.abs().mean(1).sum(),
            "pose_l2": away_B6.norm(dim=1).sum(),
            "gripper_error": (answer_B7[:, 6] - target_B).abs().double().sum(),
            "gripper_accuracy": ((answer_B7[:, 6] > 0.5) == (action_B7[:, 6] > 0)).double().sum(),
        }
        wrong = {name.removeprefix("wrong_"): value for name, value in batch.items() if name.startswith("wrong_")}
        if wrong:
            misled_B7 = model({**batch, **wrong})
            sums["wrong_instruction_l1"] = (misled_B7 - action_B7)[:, :6].double().abs().mean(1).sum()
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
        return {name: torch.tensor(float(value)) for name, value in facts.items()}

    def act(self, model: nn.Module, images_BSHW3: Tensor, instructions: Sequence[str]) -> Tensor:
        """Return the model's actions for live pictures and plain instructions."""
        device = next(model.parameters()).device
        words_BT, real_BT = model.get_submodule("language").tokenize(instructions)
        batch = {"images": images_BSHW3.to(device), "words": words_BT.to(device), "real": real_BT.to(device)}
        return model(batch)

    def summarize_trial(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return the share of episodes in which the named block was taken."""
        found = {"success_rate": sums["won"] / sums["episodes"], "episodes": sums["episodes"]}
        return {**found, "steps_to_success": sums["steps"] / sums["won"]} if sums["won"] else found

    def describe(self, step: int, measures: Mapping[str, float]) -> dict[str, Any]:
        """Return what the guide's own checkpoint says beside its weights."""
        return {"global_step": step, "best_val_loss": measures.get("loss"), "frozen": self.section.freeze_vggt}

    def predict(self, model: nn.Module, options: Mapping[str, Any], out: Path) -> Prediction:
        """Answer every frame of a held-out episode, and write the answers beside the teacher's."""
        asked, index = PredictOptions.model_validate(options), self._prepared[1]
        if asked.episode >= len(index.val):
            raise UsageError("atlas/no-such-episode", episode=asked.episode, last=len(index.val) - 1)
        before = index.train_frames + sum(episode["frames"] for episode in index.val[: asked.episode])
        own = index.val[asked.episode]
        ids = np.arange(before, before + min(own["frames"], asked.frames or own["frames"]))
        actions = np.load(self._prepared[0] / "actions.npy", mmap_mode="r", allow_pickle=False)[ids]
        said = asked.instruction or own["instruction"]
        with torch.no_grad():
            answers = self.act(model, self._frames.look(ids), [said] * len(ids)).cpu().numpy()
        return write_actions(out / f"episode_{asked.episode:06d}.csv", said, answers, actions)

    @cached_property
    def _prepared(self) -> tuple[Path, Index]:
        return open_index(self.section)

    @cached_property
    def _frames(self) -> Frames:
        return Frames(self.section, self._prepared[1])
