"""What a run may ask for: every key, its type, its default and the one sentence that describes it.

The string below a field is its only description; help, JSON Schema and docs are made from it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from headway.config.alert_values import as_list, check_addresses, check_conditions, check_quiet
from headway.config.describe import describe_fields
from headway.config.mirror_address import check_mirror
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
    """Samples per rank in one forward and backward pass (the micro-batch)."""
    total: Count | None = None
    """Samples or tokens (see `batch.unit`) of all ranks and micro-batches in one optimizer step."""
    accumulation: Count | None = None
    """Gradient accumulation: micro-batches per rank and optimizer step; derived when per_device and total are set."""
    all_devices: Count | None = None
    """Samples of all ranks in one micro-batch, which some guides call the total; sets per_device."""
    unit: Literal["samples", "tokens"] = "samples"
    """What `batch.total` counts."""


class LrConfig(Section):
    """The learning rate, its scaling with the batch size, and its schedule, counted in samples."""

    base: Positive = 1e-3
    """Learning rate at `lr.base_batch`; recipes with several parameter groups scale their own learning rates by it."""
    base_batch: Count | None = None
    """Total batch (in `batch.unit`) that `lr.base` was tuned for; none: the total batch of this run."""
    scaling: Literal["none", "linear", "sqrt"] = "none"
    """How the learning rate follows the ratio of total batch to `lr.base_batch`."""
    schedule: Literal["constant", "cosine", "linear", "multistep"] = "constant"
    """Learning-rate schedule after warm-up; `linear` falls to `lr.final` over the last `lr.decay` of the run."""
    warmup_samples: Whole = 0
    """Warm-up: samples over which the learning rate rises from zero."""
    warmup_steps: Whole | None = None
    """Warm-up in optimizer steps, as guides count it; none: `lr.warmup_samples` decides."""
    decay: Share = 1.0
    """Last share of the run over which `linear` falls; cosine and multistep use the entire run."""
    final: Share = 0.0
    """Share of the learning rate that remains at the end of cosine or linear."""
    min: Positive | None = None
    """Final learning rate as a value instead of a share, such as 1e-6 after 4e-4; none: `lr.final` decides."""
    milestones: tuple[Share, ...] = ()
    """Shares of the run at which `multistep` multiplies the learning rate by `lr.gamma`."""
    gamma: Positive = 0.1
    """Factor of `multistep`."""


class OptimizerConfig(Section):
    """The optimizer of every parameter group that the recipe does not set itself."""

    name: Literal["adamw", "adam", "muon", "sgd"] = "adamw"
    """Optimizer; muon updates matrices, AdamW the rest."""
    beta1: Share = 0.9
    """Decay of the first moment."""
    beta2: Share = 0.999
    """Decay of the second moment."""
    eps: Positive = 1e-8
    """Added to the square root of the second moment."""
    weight_decay: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Weight decay: decoupled for AdamW and Muon, L2 for Adam and SGD."""
    momentum: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] = 0.9
    """SGD: share of the last update that is kept; 0: no momentum and no optimizer state."""
    nesterov: bool = False
    """SGD: use Nesterov momentum."""
    clip: Positive | None = 1.0
    """Largest global gradient norm; none: no clipping."""


class TrainConfig(Section):
    """How long to train, and with which precision."""

    steps: Count | None = None
    """Optimizer steps of the entire run; set one of steps, samples, epochs."""
    samples: Count | None = None
    """Samples of the entire run."""
    epochs: Positive | None = None
    """Epochs: passes over the training set."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Compute precision; auto: bf16 on GPUs that support it, fp32 on CPU."""
    compile: bool = False
    """Compile the model with torch.compile."""
    activation_checkpoint: bool = False
    """Activation checkpointing: recompute activations block by block in the backward pass to save memory."""
    tf32: bool = True
    """On GPUs: compute products of fp32 numbers in TensorFloat-32, faster, with 10 bits of mantissa."""
    deterministic: bool = False
    """Use only deterministic GPU kernels, so that a resumed run is bit-equal: slower, and an operation without such a
    kernel ends the run. CPU ranks are bit-equal without it."""


class EvalConfig(Section):
    """Validation, the best model and early stop."""

    every: Whole = 0
    """Optimizer steps between validations; 0: only at the end."""
    every_epochs: Positive | None = None
    """Epochs between validations, as some guides count, in addition to `eval.every`."""
    samples: Count | None = None
    """Validation samples; none: the entire set."""
    trial_every: Whole = 0
    """Optimizer steps between trials (sampling, rollouts) of recipes that have them; 0: only at the end."""
    patience: Count | None = None
    """Validations in a row without improvement before the run stops early; none: never."""


class SaveConfig(Section):
    """Checkpoints and which of them stay."""

    every: Whole = 0
    """Optimizer steps between checkpoints; 0: only at the end and when asked to stop."""
    every_epochs: Positive | None = None
    """Epochs between checkpoints, as some guides count, in addition to `save.every`."""
    every_s: Positive | None = None
    """Seconds between checkpoints, in addition to `save.every`."""
    in_memory: Literal["auto"] | Whole = "auto"
    """Steps between copies of the training state in host memory, from which a run continues when a rank is killed,
    crashes or hangs; auto: every step, or less often where that would cost more than 5% of the training time; 0: none,
    such a run continues from its last checkpoint."""
    keep_last: Count = 2
    """How many of the newest checkpoints to keep."""
    keep_every: Count | None = None
    """Keep every checkpoint whose step is a multiple of this."""
    keep_best: bool = True
    """Keep the checkpoint with the best validation result."""
    mirror: Annotated[str, AfterValidator(check_mirror)] | None = None
    """Where committed checkpoints are copied while training continues: `s3://bucket/folder`, `ssh://host/folder` or a
    folder on another disk; `headway ckpt fetch` brings a run back from there."""
    mirror_keep_last: Count = 2
    """How many of the newest checkpoints to keep in the mirror; `save.keep_every` and `save.keep_best` apply too."""
    mirror_wait_s: Positive = 600.0
    """Seconds for which a finished run waits at most until its last checkpoint is in the mirror."""


class EmaConfig(Section):
    """An exponential moving average of the weights, moved once an optimizer step."""

    decay: Share | None = None
    """Decay of the average; none: no average is kept."""
    power: Positive | None = None
    """Rise to the decay as 1 - (1 + step / ema.inv_gamma) ** -power, as RDT does; none: as (1 + step) / (10 + step)."""
    inv_gamma: Positive = 1.0
    """With ema.power: spreads the rise over more steps."""
    update_after: Whole = 0
    """With ema.power: steps during which the average equals the weights."""
    min: Share = 0.0
    """With ema.power: smallest decay during the rise."""


class GuardConfig(Section):
    """What to do when a loss or gradient is not a finite number."""

    policy: Literal["stop", "skip", "rollback"] = "stop"
    """Stop the run, skip that step's update, or roll back to the last checkpoint and skip that step's samples."""
    limit: Count = 10
    """Number of skips or rollbacks after which the run stops."""


class ParallelConfig(Section):
    """Which devices, how many ranks, how the model is laid over them."""

    gpus: Literal["auto"] | Whole | tuple[Whole, ...] = "auto"
    """GPUs to use: all free ones, a number, or their indexes; 0: train on CPU."""
    cpus: Count = 2
    """CPU ranks when no GPU is used."""
    strategy: Literal["auto", "single", "ddp", "fsdp"] = "auto"
    """One process, replicas that sum gradients once per step (DDP), or sharded parameters (FSDP2)."""
    offload: bool = False
    """With fsdp: keep weights, gradients and optimizer state in host memory and update them there; each block is moved
    to the GPU when it is needed. Slower, for models whose state does not fit."""
    workers: Whole = 0
    """Data loader workers per rank; 0: the rank loads its own batches."""
    all_workers: Count | None = None
    """Data loader workers of all ranks together, as single-process guides count them; sets workers."""
    prefetch: Count = 2
    """Micro-batches that each data loader worker keeps ready."""
    threads: Count | None = None
    """CPU threads per rank; none: the cores divided evenly."""
    timeout_s: Positive = 1800.0
    """Seconds after which ranks give up an exchange with the others (NCCL, gloo); hung ranks are found much sooner, by
    their heartbeats."""


class LaunchConfig(Section):
    """Supervision of the ranks."""

    grace_s: Positive = 30.0
    """Seconds the ranks get to save and exit after a stop signal before they are killed; unless set, more where the
    planned checkpoint is so large that two of them take longer."""
    restarts: Whole = 3
    """Restarts in a row without progress before the run stops permanently (exit code 93)."""
    on_hang: Literal["wait", "restart", "stop"] = "restart"
    """What to do about a rank that hangs or that a signal has paused: report and wait, restart all ranks from the last
    state that was kept, or stop the run."""
    on_oom: Literal["shrink", "always", "stop"] = "shrink"
    """What to do when memory runs out: `shrink` continues with a smaller micro-batch and more gradient accumulation
    (the same total batch) where that is proven not to change the training, `always` continues in any case, `stop` ends
    the run."""
    on_lost: Literal["continue", "stop"] = "continue"
    """What to do about a rank or GPU that is lost permanently: `continue` trains the same total batch on the remaining
    ranks and takes the lost ones back when they return, `stop` ends the run. Recipes on PyTorch, on one machine."""
    lost_after: Count = 2
    """How many times in succession the same rank may fail again, before it takes a step, until it counts as lost."""
    return_s: Positive = 60.0
    """Seconds until lost ranks are tried again; twice as long after each attempt that fails, up to an hour."""


class WatchConfig(Section):
    """From when on something that is found while a run trains is reported; the defaults are the guides' targets."""

    data_wait: Share = 0.1
    """Share of a step that a rank may wait for its data."""
    straggler: Positive = 0.25
    """How much longer than the others a rank may take for a step, as a share of their time."""
    plan_off: Positive = 0.5
    """How much more time and memory than planned a step may take, as a share of the plan."""
    save_share: Share = 0.3
    """Share of the time that saving may take from training."""
    gpu_busy: Share = 0.9
    """GPU utilisation to reach."""
    memory_least: Share = 0.7
    """Share of GPU memory to use at least, where the GPU is not busy."""
    memory_most: Share = 0.8
    """Share of GPU memory to use at most, unless the plan foresaw more."""
    temp_c: Positive = 80
    """Temperature of a GPU to stay below, in degrees Celsius."""
    quiet_s: Positive = 10
    """Seconds that ranks must have waited for another rank before this is reported."""


class EnvConfig(Section):
    """The interpreter of the ranks."""

    python: PathText | None = None
    """Python of the ranks, if the framework is installed in another environment; none: this one."""


AlertKind = Literal[
    "finished",
    "failed",
    "stopped",
    "restarted",
    "lost",
    "hang",
    "no-progress",
    "disk",
    "heat",
    "gpu",
    "memory",
    "finding",
    "metric",
]
Tracker = Literal["wandb", "swanlab", "tensorboard", "mlflow", "trackio"]


class AlertConfig(Section):
    """Messages about the run: where to, about what, how often."""

    to: Annotated[tuple[str, ...], BeforeValidator(as_list), AfterValidator(check_addresses)] = ()
    """Names of environment variables that hold the addresses; an address itself only if it contains no secret. The
    addresses in `HEADWAY_ALERT_TO` are always used. See docs/howto/alerts.md."""
    on: AlertKind | tuple[AlertKind, ...] = get_args(AlertKind)
    """Events to send a message about."""
    when: Annotated[tuple[str, ...], BeforeValidator(as_list), AfterValidator(check_conditions)] = ()
    """Conditions on metrics, such as `val.bpb > 1.2` or `loss > 5 and step > 1000`; one message each time one becomes
    true."""
    no_progress_s: Positive = 1800.0
    """Seconds without a new step after which a run counts as making no progress."""
    quiet: Annotated[str, AfterValidator(check_quiet)] | None = None
    """Local hours, such as `23:00-07:00`, in which only the end of the run is sent; other messages follow later."""
    repeat_s: Positive = 3600.0
    """Seconds before the same message is sent again; the next one says how many were not sent."""
    per_hour: Count = 12
    """Messages per hour at most; the end of the run is always sent."""


class TrackConfig(Section):
    """Experiment trackers that receive rank 0's numbers."""

    to: Tracker | tuple[Tracker, ...] = ()
    """Trackers to write to; their packages and accounts must be set up already."""
    project: Annotated[str, Field(max_length=120)] = "headway"
    """Project (experiment) in the tracker."""
    name: Annotated[str, Field(max_length=120)] | None = None
    """Name of the run in the tracker; none: that of the run directory."""


class RunConfig(Section):
    """Everything one run asks for."""

    recipe: str = "nanochat"
    """Name of a built-in recipe, or a folder with preset.py and task.py."""
    preset: str | None = None
    """Preset of the recipe this config starts from."""
    name: Annotated[str, Field(max_length=80, pattern=r"^[\w.+-]*$")] | None = None
    """Name of the run, used in its folder name; none: the recipe's name."""
    out: PathText = "runs"
    """Folder that contains the run directories."""
    lang: Literal["auto", "en", "zh"] = "auto"
    """Language of messages; auto: from the locale."""
    seed: Whole = 0
    """Seed of weights, data order and augmentation."""
    task: Any = None
    """The recipe's own section: model size, data paths; see `headway config explain task`."""
    batch: BatchConfig = Field(default_factory=BatchConfig)
    """How many samples make one optimizer step."""
    lr: LrConfig = Field(default_factory=LrConfig)
    """Learning rate, its scaling with the batch size, and its schedule."""
    optimizer: OptimizerConfig = Field(default_factory=OptimizerConfig)
    """Optimizer of the parameter groups that the recipe does not set itself."""
    train: TrainConfig = Field(default_factory=TrainConfig)
    """How long to train, and with which precision."""
    eval: EvalConfig = Field(default_factory=EvalConfig)
    """Validation, best model, early stop."""
    save: SaveConfig = Field(default_factory=SaveConfig)
    """Checkpoints and retention."""
    ema: EmaConfig = Field(default_factory=EmaConfig)
    """Moving average of the weights."""
    guard: GuardConfig = Field(default_factory=GuardConfig)
    """How NaN and Inf are handled."""
    parallel: ParallelConfig = Field(default_factory=ParallelConfig)
    """Devices and parallelism."""
    launch: LaunchConfig = Field(default_factory=LaunchConfig)
    """Supervision."""
    alert: AlertConfig = Field(default_factory=AlertConfig)
    """Messages to chat, e-mail or a webhook."""
    track: TrackConfig = Field(default_factory=TrackConfig)
    """Experiment trackers."""
    watch: WatchConfig = Field(default_factory=WatchConfig)
    """Limits beyond which a finding is reported during training."""
    env: EnvConfig = Field(default_factory=EnvConfig)
    """Interpreter of the ranks."""
