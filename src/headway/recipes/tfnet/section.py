"""What a TFNet run may ask for beside the general keys, and the sizes that follow."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from headway.errors import ConfigError
from headway.task import Count, PathText, Positive, Section, Share, Whole

Memory = Annotated[str, Field(pattern=r"^\d+(\.\d+)?(GB|MB)$")]
Stages = Annotated[tuple[Count, Count, Count, Count], Field()]
_EDGES = 12
"""Frames by which a clip is padded at both ends together; see clips.py."""


def _level(value: object) -> object:
    """Read the guide's switch enable_auto_mixed_precision as a level: on is O2, off is O0."""
    return {True: "O2", False: "O0"}[value] if isinstance(value, bool) else value


Level = Annotated[Literal["O0", "O1", "O2", "O3"], BeforeValidator(_level)]


class TfnetSection(Section):
    """Framework, model size, data and augmentation of TFNet."""

    framework: Literal["mindspore", "torch"] = "mindspore"
    """Framework for training; both have the same checkpoint format."""
    data_dir: PathText = "~/.cache/headway/tfnet"
    """Folder CE-CSL with video/{train,dev,test}/<signer>/<number> and label/{train,dev,test}.csv."""
    train_data_path: PathText | None = None
    """Folder of the training clips; none: video/train of data_dir."""
    valid_data_path: PathText | None = None
    """Folder of the validation clips; none: video/dev of data_dir."""
    test_data_path: PathText | None = None
    """Folder of the test clips; none: video/test of data_dir."""
    train_label_path: PathText | None = None
    """Training labels; none: label/train.csv of data_dir."""
    valid_label_path: PathText | None = None
    """Validation labels; none: label/dev.csv of data_dir."""
    test_label_path: PathText | None = None
    """Test labels; none: label/test.csv of data_dir."""
    synthetic: bool = False
    """If data_dir has no labels, create a small synthetic set in the same layout instead of stopping."""
    short_clips: Literal["stop", "skip"] = "stop"
    """What to do with training clips too short for their labels: list them and stop, or list and skip them."""
    text_cleanup: Literal["original", "no_punct"] = "original"
    """Clean-up of gloss words; no_punct also drops punctuation, so its WER is not comparable with published ones."""
    frame_size: Count = 256
    """Height and width of the frames before the crop."""
    crop_size: Annotated[int, Field(ge=16)] = 224
    """Height and width of the model's input."""
    min_frames: Count = 32
    """Fewest frames per clip after rescaling in time."""
    max_frames: Count = 230
    """Most frames per clip; longer clips are sampled evenly."""
    bucket: Count = 4
    """Batches are padded to a multiple of this many frames; larger values mean fewer graphs to compile."""
    time_rescale: Share = 0.2
    """Training clips are slowed down or sped up by up to this share."""
    thin_eval: bool = False
    """Sample validation and test clips down to max_frames too; the original reads them in full."""
    flip: Share = 0.5
    """Share of training clips that are mirrored; all frames of a clip in the same way."""
    cache_bytes: Whole = 256 << 20
    """Bytes of decoded clips that each rank keeps in memory."""
    hidden_size: Annotated[int, Field(ge=2, multiple_of=2)] = 1024
    """Channels of both sequence branches."""
    channels: Stages = (64, 128, 256, 512)
    """Channels of the four stages of the frame network."""
    blocks: Stages = (3, 4, 6, 3)
    """Residual blocks of the four stages."""
    attention: Stages = (16, 64, 64, 64)
    """Hidden channels of the motion attention before the stem and before stages 2 to 4."""
    frames_file: PathText | None = None
    """ResNet-34 weights of ImageNet (resnet34-333f7ec4.pth or resnet34-b627a593.pth) that the frame network starts
    from, as the original does; none: drawn from the seed."""
    frequency: bool = True
    """Train the second branch on the spectrum of each frame's features."""
    distill: Literal["repaired", "original", "off"] = "repaired"
    """Distillation from the LSTM to the convolutions; original: the teacher is also updated and padding counts."""
    kd_temperature: Positive = 8.0
    """Softmax temperature of the distillation."""
    kd_weight: Positive = 25.0
    """Weight of each distillation term."""
    decoder: Literal["greedy", "beam"] = "greedy"
    """How glosses are decoded from the logits in evaluation."""
    merge_equal: bool = False
    """Read two equal glosses in a row as one, as the original's decoder does."""
    beam_width: Count = 10
    """Number of sentences that beam search keeps."""
    device_target: Literal["auto", "CPU", "GPU", "Ascend"] = "auto"
    """MindSpore: device to train on; auto: what the plan found."""
    device_id: Whole | None = None
    """MindSpore: number of the device; none: the rank's own."""
    graph_mode: bool = True
    """MindSpore: compile the entire step (GRAPH_MODE); false: run it line by line (PYNATIVE_MODE)."""
    force_pynative: bool = False
    """MindSpore: always run line by line, regardless of task.graph_mode."""
    amp_level: Level = "O0"
    """MindSpore: mixed precision level; O0 is fp32, true is O2."""
    loss_scale: Positive = 1.0
    """MindSpore: loss scale at amp_level O1 to O3, removed from the gradients again; the loss is a sum."""
    graph_kernel: bool = False
    """MindSpore: fuse operators (enable_graph_kernel), on GPU and Ascend."""
    max_device_memory: Memory | None = None
    """MindSpore: most device memory, such as 8GB."""
    mempool_block_size: Memory | None = None
    """MindSpore: size of each device memory allocation, such as 512MB; at least 1GB is used."""
    memory_offload: bool = False
    """MindSpore: keep idle tensors in the memory of the host."""
    prefetch: Whole = 2
    """MindSpore: batches loaded ahead."""
    data_sink: bool = False
    """MindSpore: send batches to a queue on the device (GPU and Ascend); all must have one shape, see bucket."""
    profiling: bool = False
    """MindSpore: write a profile of the run into the run directory."""
    dump: bool = False
    """MindSpore: write the compiled graphs into the run directory."""

    @property
    def feature_size(self) -> int:
        """Channels of one frame's features."""
        return self.channels[3]

    def num_params(self, vocabulary: int) -> int:
        """Parameters of the model, in closed form."""
        hidden, features, half = self.hidden_size, self.feature_size, self.hidden_size // 2
        conv = 5 * features * hidden + 5 * hidden**2 + 6 * hidden
        lstm = 4 * (4 * half * hidden + 4 * half**2 + 8 * half)
        heads = hidden * (vocabulary + 1)
        branches = 2 if self.frequency else 1
        return self._frame_params() + branches * (conv + lstm) + (2 * branches - 1) * heads

    def _frame_params(self) -> int:
        total = _attention_params(3, self.attention[0]) + 49 * 3 * self.channels[0] + 2 * self.channels[0]
        before = self.channels[0]
        for stage, (width, blocks) in enumerate(zip(self.channels, self.blocks, strict=True)):
            total += _attention_params(before, self.attention[stage]) if stage else 0
            total += 9 * before * width + (2 * blocks - 1) * 9 * width**2 + 4 * blocks * width
            # The first block of a later stage brings its input to the new size by a 1x1 convolution.
            total += before * width + 2 * width if stage else 0
            before = width
        return total

    @model_validator(mode="after")
    def _sizes_agree(self) -> Self:
        if self.crop_size > self.frame_size:
            raise ConfigError("tfnet/crop", crop=self.crop_size, frame=self.frame_size)
        if self.min_frames > self.max_frames:
            raise ConfigError("tfnet/frames", low=self.min_frames, high=self.max_frames)
        longest = 4 * -(-self.max_frames // 4) + _EDGES
        if self.data_sink and self.bucket < longest:
            raise ConfigError("tfnet/sink-shape", bucket=self.bucket, want=longest)
        return self


def _attention_params(channels: int, hidden: int) -> int:
    """Weights and biases of four temporal convolutions of width 3."""
    return 3 * (channels * hidden + 2 * hidden**2 + hidden * channels) + 3 * hidden + channels


def framework_of(section: Any) -> str:
    """Return the framework a section asks for."""
    name: str = section.framework
    return name


class PredictOptions(Section):
    """What `headway predict` may ask of a trained model."""

    clip: PathText = ""
    """Folder of frames or video file; empty: clips of the test set."""
    split: Literal["dev", "test"] = "test"
    """Where clips come from when none is named."""
    samples: Count = 5
    """How many clips of the split."""
    decoder: Literal["greedy", "beam"] = "beam"
    """How glosses are read from the logits."""
