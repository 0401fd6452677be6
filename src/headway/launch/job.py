"""The job: what the ranks of a run execute and how they are supervised. `start` writes it, the supervisor reads it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, Literal

from headway.redact import redact, redact_words
from headway.telemetry import RunDir, require_record, section, write_json

if TYPE_CHECKING:  # pydantic takes half a second that no supervisor and no foreign rank has
    from headway.config import RunConfig
    from headway.planner import Plan

OnHang = Literal["wait", "restart", "stop"]
Mode = Literal["native", "original"]
HANG_S: Final = 10.0
"""Shortest silence that is looked into, unless the user says otherwise."""
_SCHEMA: Final = "job/2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """A recipe on our own engine. The ranks read it from `job.json`."""

    recipe: str
    task: str
    """Module of the recipe's task."""
    config: Mapping[str, Any]
    plan: Mapping[str, Any]
    probe: Mapping[str, Any] | None = None
    """What a probe of `headway tune` measures; None: a whole training."""
    shrunk: Mapping[str, Any] | None = None
    """After an attempt that was out of memory (`shrink`): the attempt whose ranks prove that the smaller micro-batch is
    the same training, the micro-batch before, and whether the user takes one that is not."""
    lost: Mapping[str, Any] | None = None
    """After ranks were lost (`lost_ranks`): which of the planned ones, and the plan and devices with all of them."""

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        found = {"recipe": self.recipe, "task": self.task, "config": dict(self.config), "plan": dict(self.plan)}
        extra = {"probe": self.probe, "shrunk": self.shrunk, "lost": self.lost}
        return found | {name: dict(value) for name, value in extra.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignLine:
    """A launch line of the user's own."""

    argv: tuple[str, ...]
    """What a rank executes, or in `original` mode the launcher itself."""
    cwd: str
    mode: Mode = "native"
    launcher: str = "python"
    """Launcher of the line, one of `adopt.LAUNCHERS`."""
    is_distributed: bool = False
    """The ranks are told RANK, WORLD_SIZE and where to meet; a plain `python x.py` is not."""
    has_macros: bool = False
    """The arguments are torchrun's: `${local_rank}` in them becomes the number, `$$` a dollar, as torch does it."""
    spans_nodes: bool = False
    """The line is a launcher of one node, started once on each; `${node}`, `${address}` and `${port}` become values."""
    run_id: str = "headway"
    role: str = "default"
    has_hook: bool = True
    must_train: bool = True
    """A run that makes an optimizer and never steps it has failed."""
    line: str = ""
    """As it was typed."""
    oom_knob: str = ""
    """Which of its numbers make the batch smaller (`knobs.read_knobs`); empty: out of memory is its end."""
    resume_with: str = ""
    """Words that make it continue (`resume_words.add_words`); empty: a restart is the same line again."""
    on_nan: Literal["warn", "stop"] = "warn"
    """What follows a loss that is not finite."""

    @property
    def makes_ranks(self) -> bool:
        """The one process we start may start its ranks by itself, as launchers do, and Lightning."""
        return not self.is_distributed

    def to_json(self) -> dict[str, Any]:
        """Return the plain form, as it may be written down: secrets among the arguments are left out."""
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        return {**plain, "argv": redact_words(self.argv), "line": redact(self.line)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ForeignLine:
        """Read the plain form; job/1 kept devices and the watch for hangs in it too."""
        known = {one.name: data[one.name] for one in fields(cls) if one.name in data}
        return cls(**{**known, "argv": tuple(data["argv"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is run and how it is supervised."""

    program: Training | ForeignLine
    world_size: int
    threads: int | None
    """Per rank; None: left as it is."""
    devices: tuple[str, ...] | None
    """Indexes or UUIDs for CUDA_VISIBLE_DEVICES; empty: no GPU; None: left as it is."""
    restarts: int
    grace_s: float
    """How long ranks may take to stop when asked."""
    on_hang: OnHang = "wait"
    hang_s: float = HANG_S
    """Shortest silence that is looked into."""
    environment: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    """Set for the ranks over the supervisor's own; None: removed. In memory only, for values may be secrets."""
    env_names: tuple[str, ...] = ()
    """Variables that a foreign line sets, for people who read the file."""
    beside: Mapping[str, Any] = field(default_factory=dict)
    """The sections `alert` and `track` of a foreign line; a recipe's are in its config. Any: plain JSON."""

    @property
    def foreign(self) -> ForeignLine | None:
        """The line that is not ours; None: a recipe on our own engine."""
        return self.program if isinstance(self.program, ForeignLine) else None

    def to_json(self) -> dict[str, Any]:
        """Return what may be written down."""
        launch = {
            "world_size": self.world_size,
            "threads": self.threads,
            "devices": None if self.devices is None else list(self.devices),
            "restarts": self.restarts,
            "grace_s": self.grace_s,
            "on_hang": self.on_hang,
            "hang_s": self.hang_s,
        }
        program = self.program.to_json()
        if isinstance(self.program, ForeignLine):
            program = {"kind": "foreign", "foreign": program, "env_names": list(self.env_names)}
            program |= {"beside": dict(self.beside)} if self.beside else {}
        return {"schema": _SCHEMA, "launch": launch, **program}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Job:
        """Read what was written down, by this version or by one that wrote job/1."""
        launch = data["launch"] if "launch" in data else _launch_of_job_1(data)
        devices = launch["devices"]
        program: Training | ForeignLine
        if data.get("kind") == "foreign":
            program = ForeignLine.from_json(data["foreign"])
        else:
            names = ("recipe", "task", "config", "plan", "probe", "shrunk", "lost")
            program = Training(**{name: data[name] for name in names if name in data})
        return cls(
            program=program,
            world_size=int(launch["world_size"]),
            threads=None if launch["threads"] is None else int(launch["threads"]),
            devices=None if devices is None else tuple(map(str, devices)),
            restarts=int(launch["restarts"]),
            grace_s=float(launch["grace_s"]),
            on_hang=launch["on_hang"],
            hang_s=float(launch["hang_s"]),
            env_names=tuple(data.get("env_names", ())),
            beside=section(data.get("beside")),
        )


def _launch_of_job_1(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the launch section of a file that had none: job/1 kept it in plan, config and line."""
    plan, asked = data["plan"], data["config"]["launch"]
    watched = data["foreign"] if data.get("kind") == "foreign" else {"devices": plan.get("gpus", ()), **asked}
    return {
        "world_size": plan["world_size"],
        "threads": plan["threads"],
        "devices": watched["devices"],
        "restarts": asked["restarts"],
        "grace_s": asked["grace_s"],
        "on_hang": watched.get("on_hang", "wait"),
        "hang_s": watched.get("hang_s", HANG_S),
    }


def training_job(task: str, config: RunConfig, plan: Plan, probe: Mapping[str, Any] | None = None) -> Job:
    """Return the job of a recipe on our own engine.

    Args:
        task: module of the recipe's task.
        config: with the section of the recipe.
        plan: how it is laid out.
        probe: what a probe of `headway tune` measures.
    """
    from headway.planner import grace_s  # as above: whoever has a plan has paid for it

    training = Training(
        recipe=config.recipe, task=task, config=config.model_dump(mode="json"), plan=plan.to_json(), probe=probe
    )
    return Job(
        program=training,
        world_size=plan.world_size,
        threads=plan.threads,
        # By name where the driver tells one: numbers change when a GPU is lost or another is switched on.
        devices=plan.gpu_uuids or tuple(map(str, plan.gpus)),
        restarts=config.launch.restarts,
        grace_s=grace_s(config.launch, plan),
        on_hang=config.launch.on_hang,
    )


def write_job(run: RunDir, job: Job) -> None:
    """Write a run's job; secrets among arguments and all values of the environment are left out."""
    write_json(run.job, job.to_json())


def read_job(run: RunDir) -> Job:
    """Read a run's job; one that is damaged is refused by name."""
    return require_record(run.job, Job.from_json)


def ranks_environ(job: Job) -> dict[str, str]:
    """Return the environment that the ranks' own names are set over."""
    found: dict[str, str | None] = {**os.environ, **job.environment}
    return {name: value for name, value in found.items() if value is not None}
