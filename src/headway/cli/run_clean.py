"""The clean file that `headway adopt` wrote, as a launch line again."""

from __future__ import annotations

import shlex
from pathlib import Path

from headway.adopt import Launch, read_bash, read_clean
from headway.config.files import read_file
from headway.errors import UsageError

_TORCHRUN = ("torchrun", "torch.distributed.launch")


def is_clean_file(word: str) -> bool:
    """Say whether a word names a file that may be one of ours."""
    return word.endswith((".yaml", ".yml")) and Path(word).is_file()


def read_clean_file(path: Path) -> str:
    """Return the line its launch stands for.

    Raises:
        UsageError: it is another file, leaves something open, or is for a launcher whose flags it does not hold.
    """
    text = read_file(path).decode("utf-8", "replace")
    command = read_bash(text)
    if command is not None:
        return command
    launch = read_clean(text)
    if launch is None or launch.entry is None:
        raise UsageError("run/not-clean", path=path)
    if launch.unresolved:
        raise UsageError("run/clean-open", path=path, names=", ".join(sorted(launch.unresolved)))
    if launch.patterns:
        raise UsageError("run/clean-patterns", path=path, words=", ".join(sorted(launch.patterns)))
    if launch.launcher not in ("python", *_TORCHRUN) or launch.nnodes not in (None, 1, "1", "1:1"):
        raise UsageError("run/clean-launcher", path=path, launcher=launch.launcher)
    return " ".join([*_environment(launch), shlex.join([*_start(launch), *launch.args])])


def _environment(launch: Launch) -> list[str]:
    env = dict(launch.env)
    if launch.cuda_visible_devices is not None:
        env["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, launch.cuda_visible_devices))
    return [f"{name}={shlex.quote(str(value))}" for name, value in env.items()]


def _start(launch: Launch) -> list[str]:
    assert launch.entry is not None
    kind, name = launch.entry.kind, launch.entry.name
    if launch.launcher == "python":
        return ["python", *(["-m"] if kind == "module" else []), name]
    # Its addresses and ports were those of one day; the supervisor chooses anew.
    flags = [f"--nproc_per_node={launch.nproc_per_node}"] if launch.nproc_per_node is not None else []
    flags += {"module": ["-m"], "command": ["--no-python"]}.get(kind, [])
    head = ["torchrun"] if launch.launcher == "torchrun" else ["python", "-m", "torch.distributed.launch"]
    return [*head, *flags, name]
