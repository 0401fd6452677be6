"""What an Atlas run may ask for beside the general keys."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from headway.errors import ConfigError
from headway.task import Count, PathText, Section, Share, Whole

Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class AtlasSection(Section):
    """Encoders, widths, loss and data of Atlas; the defaults are the published model."""

    mode: Literal["fixed", "original"] = "fixed"
    """original: keeps the published defects (a gripper target outside the head's range, padding treated as text)."""
    freeze_vggt: bool = True
    """Do not train VGGT."""
    freeze_lang_encoder: bool = True
    """Do not train the language encoder."""
    vggt_checkpoint: PathText | None = None
    """File or folder with VGGT's safetensors weights, or a hub name that is in the local hub cache; none: built in."""
    lang_encoder_name: str | None = None
    """Folder of a transformer in the hub's format, or a hub name that is in the local hub cache; none: built in."""
    builtin_encoders: bool = False
    """Use the small built-in encoders when the weights named above are not on this machine."""
    cache_features: bool = True
    """Run frozen encoders once over the data and keep their output on disk; training then reads it."""
    image_size: Count = 518
    """Side length of VGGT's input images, a multiple of its patch size."""
    use_wrist_camera: bool = True
    """Take the wrist camera as a second view."""
    vggt_patch: Count = 14
    """Side length of a patch."""
    vggt_width: Count = 1024
    """Width of VGGT; its aggregated tokens are twice as wide."""
    vggt_heads: Count = 16
    """Attention heads of VGGT."""
    vggt_vit_depth: Count = 24
    """Blocks of VGGT's patch encoder."""
    vggt_depth: Count = 24
    """Alternating pairs of VGGT: attention within a view, then over all views."""
    vggt_dense_width: Count = 256
    """Features of VGGT's depth and point heads."""
    point_stride: Count = 1
    """PointNet gets one point every this many pixels, across and down."""
    lang_dim: Count = 4096
    """Width of the built-in language encoder; an encoder loaded from disk has its own width."""
    lang_max_length: Count = 128
    """Longest instruction in tokens; longer ones are truncated."""
    vision_features: Count = 256
    """Number of features computed from VGGT's tokens."""
    point_features: tuple[Count, Count, Count] = (64, 128, 256)
    """Widths of PointNet."""
    pose_features: Count = 128
    """Number of features computed from the camera's pose."""
    geom_output_dim: Count = 512
    """Width of the geometry features of a view."""
    fusion_hidden_dim: Count = 1024
    """Width of the fusion."""
    fusion_layers: Count = 4
    """Layers of the fusion."""
    fusion_heads: Count = 16
    """Attention heads of the fusion."""
    head_dims: tuple[Count, Count] = (512, 256)
    """Widths of the action head."""
    dropout: Share = 0.1
    """Dropout of fusion and head."""
    use_pointnet: bool = True
    """Read VGGT's point map."""
    use_pose: bool = True
    """Read VGGT's camera poses."""
    whiten: bool = False
    """Whiten VGGT's features: equal variance in all directions, measured on the training set."""
    pose_weight: Weight = 1.0
    """Weight of the pose in the loss."""
    gripper_weight: Weight = 0.5
    """Weight of the gripper in the loss."""
    pose_loss_type: Literal["smooth_l1", "l1", "l2"] = "smooth_l1"
    """Loss of the six numbers of the pose."""
    gripper_loss_type: Literal["l1", "bce"] = "l1"
    """Loss of the gripper."""
    data_dir: PathText = "~/.cache/headway/atlas/dataset"
    """Folder with train/episode_000000 and so on, or with LIBERO's *.hdf5 files."""
    cache_dir: PathText = "~/.cache/headway/atlas"
    """Folder for the index and the features made from the data."""
    synthetic: bool = False
    """If data_dir has no episodes, create a small synthetic set instead of stopping."""
    train_split: str = "train"
    """Folder of the training episodes in data_dir."""
    val_split: str | None = None
    """Folder of the held-out episodes in data_dir; none: val_share of the training episodes."""
    val_share: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """Share of episodes held out when there is no folder of them; entire episodes, never single frames."""
    flip_hdf5: bool = True
    """Flip the images of LIBERO's HDF5 files, which are stored upside down."""
    trial_episodes: Whole = 20
    """Episodes of the scripted reach environment in a trial; 0: none. Only the synthetic set has one."""
    trial_steps: Count = 30
    """Most actions in one episode of a trial."""

    @property
    def is_original(self) -> bool:
        """Whether the published defects are wanted."""
        return self.mode == "original"

    @property
    def num_views(self) -> int:
        """Images of one sample."""
        return 2 if self.use_wrist_camera else 1

    @model_validator(mode="after")
    def _widths_divide(self) -> Self:
        if self.image_size % self.vggt_patch:
            near = max(1, round(self.image_size / self.vggt_patch)) * self.vggt_patch
            raise ConfigError("atlas/patches", size=self.image_size, patch=self.vggt_patch, near=near)
        if self.vggt_dense_width % 8:
            near = -(-self.vggt_dense_width // 8) * 8
            raise ConfigError("atlas/dense-width", width=self.vggt_dense_width, near=near)
        for key, width, heads, unit in (
            ("task.vggt_heads", self.vggt_width, self.vggt_heads, 4),
            ("task.fusion_heads", self.fusion_hidden_dim, self.fusion_heads, 1),
        ):
            if width % (heads * unit):
                ways = [str(n) for n in range(1, 33) if width % (n * unit) == 0]
                raise ConfigError("atlas/heads", key=key, width=width, heads=heads, ways=", ".join(ways) or "n/a")
        return self


class PredictOptions(Section):
    """What `headway predict` may ask of a trained model."""

    episode: Whole = 0
    """Which held-out episode."""
    instruction: str = ""
    """Another instruction for it; empty: its own."""
    frames: Count | None = None
    """Most frames to answer; none: all."""
