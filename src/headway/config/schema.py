"""What a run may ask for: every key, its type, its default and the one sentence that describes it.

The string below a field is its only description; help, JSON Schema and docs are made from it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from headway.config.describe import describe_fields
from headway.config.paths import PathText

Count = Annotated[int, Field(ge=1)]
Whole = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class Section(BaseModel):
    """A part of the config: unknown keys are errors, values never change after loading."""

    # Validators are built when first used, and the strings below the fields are read when first shown (not with
    # pydantic's use_attribute_docstrings): together they were half of the time a small config took to load.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, validate_default=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Put the string below each field into the JSON Schema."""
        schema = handler.resolve_ref_schema(handler(core_schema))
        properties = schema.get("properties", {})
        for name, text in describe_fields(cls).items():
            if name in properties:
                properties[name].setdefault("description", text)
        return schema


class BatchConfig(Section):
    """How many samples make one optimizer step."""

    per_device: Count | None = None
    """Samples one rank takes through forward and backward at a time (the micro-batch)."""
    total: Count | None = None
    """Samples or tokens (see `batch.unit`) of all ranks and micro-batches in one optimizer step."""
    accumulation: Count | None = None
    """Micro-batches one rank adds up before an optimizer step; derived when per_device and total are given."""
    all_devices: Count | None = None
    """Samples of all ranks in one micro-batch, which some guides call the total; sets per_device by dividing."""
    unit: Literal["samples", "tokens"] = "samples"
    """What `batch.total` counts."""


class LrConfig(Section):
    """The learning rate, its rule for the batch, and its curve, counted in samples."""

    base: Positive = 1e-3
    """Learning rate at `lr.base_batch`; recipes with several parameter groups scale their own rates by it."""
    base_batch: Count | None = None
    """Effective batch (in `batch.unit`) that `lr.base` was tuned for; none: the batch of this run."""
    scaling: Literal["none", "linear", "sqrt"] = "none"
    """How the rate follows the ratio of effective batch to `lr.base_batch`."""
    schedule: Literal["constant", "cosine", "linear", "multistep"] = "constant"
    """Shape after warm-up; `linear` falls to `lr.final` over the last `lr.decay` of the run."""
    warmup_samples: Whole = 0
    """Samples over which the rate rises from zero."""
    warmup_steps: Whole | None = None
    """The same in optimizer steps, as guides count it; none: `lr.warmup_samples` decides."""
    decay: Share = 1.0
    """Last share of the run over which `linear` falls; cosine and multistep use the whole run."""
    final: Share = 0.0
    """Share of the rate that is left at the end of cosine or linear."""
    min: Positive | None = None
    """The same as a rate, as guides write it: 1e-6 of 4e-4; none: `lr.final` decides."""
    milestones: tuple[Share, ...] = ()
    """Shares of the run at which `multistep` multiplies the rate by `lr.gamma`."""
    gamma: Positive = 0.1
    """Factor of `multistep`."""


class OptimizerConfig(Section):
    """The optimizer of every parameter group that the recipe does not set itself."""

    name: Literal["adamw", "adam", "muon", "sgd"] = "adamw"
    """Optimizer; muon takes matrices and leaves the rest to AdamW."""
    beta1: Share = 0.9
    """Decay of the first moment."""
    beta2: Share = 0.999
    """Decay of the second moment."""
    eps: Positive = 1e-8
    """Added to the root of the second moment."""
    weight_decay: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Decoupled for AdamW and Muon, L2 for Adam and SGD."""
    momentum: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] = 0.9
    """SGD: share of the last move that is kept; 0: no momentum, and no optimizer state."""
    nesterov: bool = False
    """SGD: Nesterov's form of the momentum."""
    clip: Positive | None = 1.0
    """Largest global gradient norm; none: no clipping."""


class TrainConfig(Section):
    """How long and with what arithmetic."""

    steps: Count | None = None
    """Optimizer steps of the whole run; give one of steps, samples, epochs."""
    samples: Count | None = None
    """Samples of the whole run."""
    epochs: Positive | None = None
    """Passes over the training set."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Compute type; auto: bf16 on GPUs that have it, fp32 on CPU."""
    compile: bool = False
    """Run the model through torch.compile."""
    activation_checkpoint: bool = False
    """Recompute activations block by block in backward to save memory."""
    deterministic: bool = True
    """Ask the framework for deterministic kernels, so that a resumed run is bit-equal."""


class EvalConfig(Section):
    """Validation, the best model and early stop."""

    every: Whole = 0
    """Optimizer steps between validations; 0: only at the end."""
    every_epochs: Positive | None = None
    """Passes over the training set between validations, as some guides count, beside `eval.every`."""
    samples: Count | None = None
    """Validation samples; none: the whole set."""
    trial_every: Whole = 0
    """Optimizer steps between trials (sampling, rollouts) of recipes that have them; 0: only at the end."""
    patience: Count | None = None
    """Validations without a better result before the run stops early; none: never."""


class SaveConfig(Section):
    """Checkpoints and which of them stay."""

    every: Whole = 0
    """Optimizer steps between checkpoints; 0: only at the end and when asked to stop."""
    every_epochs: Positive | None = None
    """Passes over the training set between checkpoints, as some guides count, beside `save.every`."""
    every_s: Positive | None = None
    """Seconds between checkpoints, beside `save.every`."""
    keep_last: Count = 2
    """Newest checkpoints to keep."""
    keep_every: Count | None = None
    """Keep every checkpoint whose step is a multiple of this."""
    keep_best: bool = True
    """Keep the checkpoint with the best validation."""


class EmaConfig(Section):
    """An exponential moving average of the weights, moved once an optimizer step."""

    decay: Share | None = None
    """Decay of the average; none: no average is kept."""
    power: Positive | None = None
    """Rise to the decay as 1 - (1 + step / ema.inv_gamma) ** -power, as RDT does; none: as (1 + step) / (10 + step)."""
    inv_gamma: Positive = 1.0
    """Stretches the rise with ema.power over more steps."""
    update_after: Whole = 0
    """Steps during which the average is just the weights; with ema.power."""
    min: Share = 0.0
    """Smallest decay of the rise with ema.power."""


class GuardConfig(Section):
    """What to do when a loss or gradient is not a finite number."""

    policy: Literal["stop", "skip", "rollback"] = "stop"
    """Stop the run, skip that step's update, or go back to the last checkpoint and skip the step's samples."""
    limit: Count = 10
    """Events after which skip and rollback stop the run."""


class ParallelConfig(Section):
    """Which devices, how many ranks, how the model is laid over them."""

    gpus: Literal["auto"] | Whole | tuple[Whole, ...] = "auto"
    """GPUs to use: all free ones, a number, or their indexes; 0: train on CPU."""
    cpus: Count = 2
    """CPU ranks when no GPU is used."""
    strategy: Literal["auto", "single", "ddp", "fsdp"] = "auto"
    """One process, replicas with one gradient sum a step, or sharded parameters (FSDP2)."""
    workers: Whole = 0
    """Data loader processes a rank; 0: the rank loads its own batches."""
    all_workers: Count | None = None
    """Data loader processes of all ranks together, as guides with one process count them; sets workers by dividing."""
    prefetch: Count = 2
    """Micro-batches each data loader process keeps ready."""
    threads: Count | None = None
    """CPU threads a rank; none: the cores shared out."""


class LaunchConfig(Section):
    """Supervision of the ranks."""

    grace_s: Positive = 30.0
    """Seconds ranks get to save and end after a stop signal before they are killed."""
    restarts: Whole = 3
    """Restarts in a row without progress before the run stops for good (exit 93)."""
    on_hang: Literal["wait", "restart", "stop"] = "wait"
    """What to do about a rank that a signal has stopped: tell and wait, restart all ranks from the last checkpoint, or
    stop the run."""
    on_oom: Literal["shrink", "always", "stop"] = "shrink"
    """What to do when memory runs out: `shrink` continues with a smaller micro-batch and more gradient accumulation
    (the same total batch) where that is proven not to change the training, `always` continues in any case, `stop` ends
    the run."""


class EnvConfig(Section):
    """The interpreter of the ranks."""

    python: PathText | None = None
    """Python of the ranks, when the framework lives in another environment; none: this one."""


class RunConfig(Section):
    """Everything one run asks for."""

    recipe: str = "nanochat"
    """Name of a built-in recipe, or a folder with preset.py and task.py."""
    preset: str | None = None
    """Preset of the recipe this config starts from."""
    name: Annotated[str, Field(max_length=80, pattern=r"^[\w.+-]*$")] | None = None
    """Name of the run in its folder name; none: the recipe's."""
    out: PathText = "runs"
    """Folder that holds the run directories."""
    lang: Literal["auto", "en", "zh"] = "auto"
    """Language of messages; auto: from the locale."""
    seed: Whole = 0
    """Seed of weights, data order and augmentation."""
    task: Any = None
    """The recipe's own section: model size, data paths; see `headway config explain task`."""
    batch: BatchConfig = Field(default_factory=BatchConfig)
    """How many samples make one optimizer step."""
    lr: LrConfig = Field(default_factory=LrConfig)
    """Learning rate, its rule for the batch, its curve."""
    optimizer: OptimizerConfig = Field(default_factory=OptimizerConfig)
    """Optimizer of the groups the recipe does not set itself."""
    train: TrainConfig = Field(default_factory=TrainConfig)
    """How long and with what arithmetic."""
    eval: EvalConfig = Field(default_factory=EvalConfig)
    """Validation, best model, early stop."""
    save: SaveConfig = Field(default_factory=SaveConfig)
    """Checkpoints and retention."""
    ema: EmaConfig = Field(default_factory=EmaConfig)
    """Moving average of the weights."""
    guard: GuardConfig = Field(default_factory=GuardConfig)
    """NaN and Inf."""
    parallel: ParallelConfig = Field(default_factory=ParallelConfig)
    """Devices and layout."""
    launch: LaunchConfig = Field(default_factory=LaunchConfig)
    """Supervision."""
    env: EnvConfig = Field(default_factory=EnvConfig)
    """Interpreter of the ranks."""
