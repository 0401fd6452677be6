"""What an RDT run may ask for beside the general keys, and the sizes that follow."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from headway.errors import ConfigError
from headway.task import Count, PathText, Positive, Section, Share, Whole

Adaptor = Annotated[str, Field(pattern=r"^(linear|mlp[1-9]\d?x_gelu)$")]
Even = Annotated[int, Field(ge=4, multiple_of=4)]


class SampleSection(Section):
    """Sampling evaluation: whole chunks are drawn for held-out steps and compared with the demonstration."""

    batch: Count = 16
    """Chunks sampled at once on each device; fewer if they exceed `task.sample.memory_gib`."""
    batches: Count | None = None
    """Batches of one evaluation, over all devices, spread evenly over the held-out steps; none: all of them."""
    memory_gib: Positive = 2.0
    """Memory per device for sampling and rollouts, in addition to training."""
    steps: Count = 5
    """Steps of the solver."""


class RolloutSection(Section):
    """Rollouts: the model drives the arm in the scripted environment."""

    episodes: Whole = 20
    """Episodes of one trial, over all tasks and devices; 0: none."""
    exec_horizon: Count = 8
    """Actions of a chunk that are executed before the next chunk is sampled."""
    max_steps: Count = 150
    """Longest episode, in `task.rollout.unit`; the environment's own horizon ends it in any case."""
    unit: Literal["steps", "rounds"] = "steps"
    """Unit of max_steps: environment steps, or sampled chunks, as in the published evaluation script."""
    env_horizon: Count = 200
    """Steps after which the environment always ends an episode (LIBERO's simulator: 1000)."""
    record_video: bool = False
    """Write the first episode of each task of a trial as a GIF."""
    video_dir: PathText = "videos"
    """Folder of a trial's videos."""

    @property
    def asked_steps(self) -> int:
        """Environment steps that max_steps asks for."""
        return self.max_steps * (self.exec_horizon if self.unit == "rounds" else 1)

    @property
    def env_steps(self) -> int:
        """Environment steps of the longest episode."""
        return min(self.asked_steps, self.env_horizon)

    def past_horizon(self) -> dict[str, str] | None:
        """Return the facts of `rdt/past-horizon` where episodes should continue past the environment's own end."""
        if self.asked_steps <= self.env_horizon:
            return None
        factor = self.asked_steps // self.max_steps
        facts = {"asked": self.asked_steps, "horizon": self.env_horizon, "max_steps": self.max_steps, "factor": factor}
        return {name: str(value) for name, value in facts.items()}


class RdtSection(Section):
    """Model size, data, diffusion and evaluation of RDT."""

    hidden_size: Even = 2048
    """Width of the transformer."""
    depth: Count = 28
    """Number of blocks; even ones attend to the sentence, odd ones to the images."""
    num_heads: Count = 32
    """Attention heads."""
    action_chunk_size: Count = 64
    """Actions per chunk."""
    img_history_size: Count = 2
    """Number of frames per camera: the current one and those before it."""
    num_cameras: Annotated[int, Field(ge=1, le=3)] = 3
    """Cameras, in the order exterior, right wrist, left wrist; LIBERO has the first two."""
    img_patches: Count = 729
    """Tokens per image."""
    img_token_dim: Count = 1152
    """Width of an image's tokens."""
    tokenizer_max_length: Count = 1024
    """Longest sentence in tokens."""
    lang_token_dim: Count = 4096
    """Width of a sentence's tokens."""
    lang_adaptor: Adaptor = "mlp2x_gelu"
    """Network between the sentence's tokens and the transformer: linear, or mlpNx_gelu."""
    img_adaptor: Adaptor = "mlp2x_gelu"
    """Network between the image tokens and the transformer."""
    state_adaptor: Adaptor = "mlp3x_gelu"
    """Network between state and action vectors and the transformer; both share it."""
    vision_encoder: PathText = "patches"
    """Frozen image encoder: `patches` (built in), or the folder of a SigLIP model (needs transformers)."""
    text_encoder: PathText = "words"
    """Frozen sentence encoder: `words` (built in), or the folder of a T5 model (needs transformers)."""
    lang_embed: PathText | None = None
    """A safetensors file with one tensor per sentence, encoded beforehand; no text encoder is then loaded."""
    pretrained: PathText | None = None
    """Initial weights with the published names: a .safetensors, .bin or .pt file, DeepSpeed's mp_rank_00 file, or a
    folder that contains one of them."""
    norm: Literal["auto", "rms", "timm_var"] = "auto"
    """Divisor of the norms: rms: the root mean square; timm_var: the root of the variance, as timm 1.0.3 has it, with
    which the published weights were trained; auto: timm_var where `task.pretrained` is set, else rms."""
    num_train_timesteps: Annotated[int, Field(ge=2)] = 1000
    """Noise levels of the diffusion (squared cosine); the model always predicts the clean chunk."""
    loss: Literal["masked", "original"] = "masked"
    """Mean squared error over the slots this robot uses; `original`: over all 128, of which 118 are always zero."""
    rotation: Literal["axis_angle", "original"] = "axis_angle"
    """How the data's orientations are read; `original` takes the axis-angle vector for Euler angles."""
    tail: Literal["pad", "original"] = "pad"
    """Chunks near the end repeat the last action; `original` never starts one there, so endings are not learnt."""
    position_scale: Positive = 1.2
    """Centimetres that the arm moves for an action of 1."""
    rotation_scale: Positive = 0.5
    """Radians that the arm rotates for an action of 1."""
    control_hz: Positive = 20.0
    """Actions per second."""
    data_dir: PathText = "~/.cache/headway/rdt"
    """Folder with one <TASK>_demo.hdf5 per task, as LIBERO publishes them."""
    synthetic: bool = False
    """If data_dir has no demonstrations, create small ones with two scripted tasks instead of stopping."""
    dataset: str = "libero_single_task"
    """Name under which the statistics of this data are kept."""
    statistics: str | None = None
    """Name of the statistics to use, from data_dir's dataset_stat.json or this data's own; none: task.dataset."""
    holdout: Share = 0.1
    """Share of each task's demonstrations that is kept for validation, at least one."""
    cond_mask_prob: Share = 0.1
    """Probability of hiding each condition in training: frequency, state, mask, every image, sentence."""
    cam_ext_mask_prob: Share | None = None
    """The same probability for the exterior camera only; none: task.cond_mask_prob."""
    state_noise_snr: float | None = None
    """Signal-to-noise ratio, in decibels, of the noise added to the state in training; none: no noise."""
    image_aug: bool = False
    """Change brightness, contrast, saturation and hue of half of the training images."""
    sample: SampleSection = Field(default_factory=SampleSection)
    """Sampling evaluation."""
    rollout: RolloutSection = Field(default_factory=RolloutSection)
    """Rollouts."""

    @property
    def used_norm(self) -> Literal["rms", "timm_var"]:
        """The norm that `auto` stands for."""
        if self.norm != "auto":
            return self.norm
        return "rms" if self.pretrained is None else "timm_var"

    @property
    def img_cond_len(self) -> int:
        """Picture tokens of one sample."""
        return self.img_history_size * self.num_cameras * self.img_patches

    @property
    def num_params(self) -> int:
        """Trainable parameters, in closed form."""
        H, head = self.hidden_size, self.hidden_size // self.num_heads
        block = 10 * H * H + 13 * H + 4 * head
        tokens = self.action_chunk_size + 3 + self.tokenizer_max_length + self.img_cond_len
        final = 2 * H + H * H + 128 * H + 128
        adaptors = (
            _adaptor_params(self.lang_adaptor, self.lang_token_dim, H)
            + _adaptor_params(self.img_adaptor, self.img_token_dim, H)
            + _adaptor_params(self.state_adaptor, 256, H)
        )
        return self.depth * block + 2 * (258 * H + H * H) + tokens * H + final + adaptors

    @model_validator(mode="after")
    def _sizes_agree(self) -> Self:
        if self.hidden_size % self.num_heads:
            ways = [n for n in range(1, self.hidden_size + 1) if self.hidden_size % n == 0 and n <= 64]
            raise ConfigError("rdt/heads", width=self.hidden_size, heads=self.num_heads, ways=", ".join(map(str, ways)))
        if self.rollout.exec_horizon > self.action_chunk_size:
            raise ConfigError("rdt/exec-horizon", asked=self.rollout.exec_horizon, chunk=self.action_chunk_size)
        # The solver goes from one noise level to a lower one; with as many steps as levels it would not move.
        if self.sample.steps >= self.num_train_timesteps:
            most, levels = self.num_train_timesteps - 1, self.num_train_timesteps
            raise ConfigError("rdt/too-many-steps", steps=self.sample.steps, most=most, levels=levels)
        return self


def adaptor_layers(kind: str) -> int:
    """Return the linear layers of an adaptor."""
    return 1 if kind == "linear" else int(kind.removeprefix("mlp").removesuffix("x_gelu"))


def _adaptor_params(kind: str, width: int, hidden: int) -> int:
    return (width + 1) * hidden + (adaptor_layers(kind) - 1) * (hidden + 1) * hidden


class PredictOptions(Section):
    """What `headway predict` may ask of a trained model: rollouts, watched."""

    num_tasks: Count = 2
    """Tasks, from the first on."""
    episodes: Count = 5
    """Episodes of each task."""
    max_steps: Count | None = None
    """Longest episode, in `unit`; none: task.rollout.max_steps."""
    unit: Literal["steps", "rounds"] | None = None
    """What max_steps counts: environment steps or chunks drawn; none: task.rollout.unit."""
    exec_horizon: Count | None = None
    """Actions carried out before the next chunk is drawn; none: task.rollout.exec_horizon."""
    record_video: bool = True
    """Write every episode as a GIF."""
    video_output_dir: PathText | None = None
    """Folder of the videos; none: the folder of predictions."""
    seed: Whole = 1
    """Seed of the scenes and of the draws; demonstrations and trials have seeds of their own."""
