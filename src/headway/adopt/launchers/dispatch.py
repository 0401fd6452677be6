"""Which launcher a command is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from headway.adopt.command import Command
from headway.adopt.launchers.accelerate import read_accelerate
from headway.adopt.launchers.deepspeed import read_deepspeed
from headway.adopt.launchers.mindspore import read_launcher_script, read_msrun
from headway.adopt.launchers.mm import read_dist, read_slurm
from headway.adopt.launchers.mpi import behind_mpirun, read_horovod, read_mpirun, words_behind
from headway.adopt.launchers.others import (
    make_ray,
    read_by_variables,
    read_colossal,
    read_composer,
    read_paddle,
    read_ray,
    read_srun,
)
from headway.adopt.launchers.parts import entry_of, is_python, is_shell, make, read_python
from headway.adopt.launchers.tools import TOOLS
from headway.adopt.launchers.torch import read_torchrun
from headway.adopt.record import Entry, Launch
from headway.adopt.shell.expand import Said

Reader = Callable[[Command], Launch | None]

_BY_NAME: Mapping[str, Reader] = {
    "torchrun": lambda command: read_torchrun(command, "torchrun"),
    "accelerate-launch": read_accelerate,
    "deepspeed": read_deepspeed,
    "deepspeed.pt": read_deepspeed,
    "ds": read_deepspeed,
    "composer": read_composer,
    "horovodrun": read_horovod,
    "mpirun": lambda command: _read_mpirun(command),
    "mpiexec": lambda command: _read_mpirun(command),
    "mpiexec.hydra": lambda command: _read_mpirun(command),
    "orterun": lambda command: _read_mpirun(command),
    "msrun": read_msrun,
    "fleetrun": read_paddle,
}
_BY_TWO: Mapping[tuple[str, str], Reader] = {
    ("accelerate", "launch"): read_accelerate,
    ("colossalai", "run"): read_colossal,
    ("torchpack", "dist-run"): lambda command: replace(read_horovod(command), launcher="other"),
}
_BY_MODULE: Mapping[str, Reader] = {
    "torch.distributed.run": _BY_NAME["torchrun"],
    "torch.distributed.launch": lambda command: read_torchrun(command, "torch.distributed.launch"),
    "torch.distributed.elastic.multiprocessing.run": _BY_NAME["torchrun"],
    "accelerate.commands.launch": read_accelerate,
    "deepspeed": read_deepspeed,
    "deepspeed.launcher.runner": read_deepspeed,
    "paddle.distributed.launch": read_paddle,
    "paddle.distributed.fleet.launch": read_paddle,
    "composer.cli.launcher": read_composer,
    "horovod.runner.launch": read_horovod,
    "horovod.run.run": read_horovod,
    "mindspore.parallel.cluster.run": read_msrun,
}
_BY_VARIABLES = {
    "llamafactory-cli": "llamafactory",
    "lmf": "llamafactory",
    "llamafactory": "llamafactory",
    "swift": "swift",
    "megatron": "swift",
}
_SWIFT = ("pt", "sft", "rlhf", "infer", "eval", "export", "deploy", "rollout", "sample", "merge-lora", "app", "web-ui")
_PROGRAMS = {
    "tune": ("run",),
    "xtuner": ("train", "eval", "chat"),
    "axolotl": ("train", "preprocess", "evaluate"),
    "trl": ("sft", "dpo", "grpo", "kto", "reward", "rloo", "vllm-serve"),
    "yolo": (),
    "lightning": ("run",),
    "fabric": ("run",),
    "mim": ("train", "test"),
    "autotrain": (),
    "nemo": ("llm",),
    "lm_eval": (),
    "fairseq-train": (),
    "fairseq-hydra-train": (),
    "litgpt": ("finetune", "finetune_lora", "finetune_full", "pretrain"),
    "oumi": ("train",),
    "vllm": ("serve",),
}
"""Programs that train or serve by themselves, with the sub-commands that do."""
_WRAPS_TORCHRUN = re.compile(r".*(?:torchrun|launch|distributed\.run|\brun$).*")
_STRANGE = re.compile(r"--(?!login|norc|noprofile|posix|verbose|restricted|$)")
_SCRIPT = re.compile(r"(?!\w+://).*\.(?:sh|bash|slurm|sbatch|qs|job)")


def recognise(command: Command) -> Launch | None:
    """Return what a command launches, or None for a command that launches nothing."""
    if not command.words:
        return None
    first = _command_name(command.words[0])
    launch = _by_name(command, first)
    if launch is not None:
        return launch
    if is_python(command.words[0]):
        return _read_python(command)
    if is_shell(command.words[0]):
        words = command.words[1:]
        while words and words[0].text.startswith("-"):
            words = words[1:]
        # A flag that no shell has belongs to an srun before it: `srun --pty bash --job-name x`.
        is_strange = any(_STRANGE.match(word.text) for word in command.words[: len(command.words) - len(words)])
        return _read_script(command.behind(len(command.words) - len(words))) if words and not is_strange else None
    if _SCRIPT.fullmatch(command.words[0].text):
        return _read_script(command)
    if command.srun is not None:
        return _read_srun(command, first)
    if re.fullmatch(r"\$\{?\w+\}?", command.words[0].text) and len(command.words) > 1:
        # `$BIN torchrun …`, where BIN may be srun or nothing at all.
        return recognise(command.behind(1))
    return _read_program(command, first)


def is_launcher(name: str) -> bool:
    """Return whether a program is a launcher by its name alone, or with a word of its own behind it."""
    return name in _BY_NAME or any(name == first for first, _ in _BY_TWO)


def _read_srun(command: Command, first: str) -> Launch | None:
    """Read a program behind srun; a tool is not a launch, and a program that only starts a launcher is a wrapper."""
    if first in TOOLS or (first == "ray" and len(command.words) > 1 and command.words[1].text in ("start", "stop")):
        return None
    for place, word in enumerate(command.words[1:], start=1):
        if _command_name(word) in ("torchrun", "accelerate", "deepspeed"):
            inner = recognise(command.behind(place))
            return None if inner is None else replace(inner, wrappers=(*inner.wrappers, first))
        if not word.text.startswith("-"):
            break
    program = _read_program(replace(command, srun=None), first)
    if program is None:
        return read_srun(command)
    if program.entry is not None and not program.entry.name.startswith(first):
        return program  # `tune run` makes its ranks itself, as torchrun does
    return replace(read_srun(command), entry=program.entry, args=program.args)


def _read_mpirun(command: Command) -> Launch | None:
    """Read mpirun; where it starts one launcher a node, as srun is used too, that launcher makes the ranks."""
    inner = behind_mpirun(command)
    words, between = words_behind(inner)
    if words and _command_name(words[0]) in TOOLS:
        return None
    launch = recognise(inner.with_words(words)) if words else None
    if launch is not None and launch.launcher in ("torchrun", "torch.distributed.launch", "accelerate", "deepspeed"):
        return replace(launch, wrappers=(*command.wrappers, "mpirun", *between))
    return read_mpirun(command)


def _command_name(word: Said) -> str:
    """Return the program's own name: of a path, or of `$(which torchrun)`."""
    match = re.fullmatch(r"(?:\$\(|`)\s*(?:which|command -v|type -p)\s+([\w.-]+)\s*(?:\)|`)", word.text)
    return match[1] if match else word.text.rpartition("/")[2]


def _by_name(command: Command, first: str) -> Launch | None:
    words = command.words
    if "." in first and first in _BY_MODULE:
        return _BY_MODULE[first](command.behind(1))  # `python -m` was left out
    if first in _BY_NAME and not (first == "ds" and len(words) == 1):
        return _BY_NAME[first](command.behind(1))
    if len(words) < 2:
        return None
    reader = _BY_TWO.get((first, words[1].text))
    if reader is not None:
        return reader(command.behind(2))
    launcher = _BY_VARIABLES.get(first)
    if launcher == "llamafactory" or (launcher == "swift" and words[1].text in _SWIFT):
        return read_by_variables(command.behind(2), launcher, f"{first} {words[1].text}")
    if (first, words[1].text) == ("ray", "job") and len(words) > 2 and words[2].text == "submit":
        return _read_ray(command.behind(3))
    return None


def _read_ray(command: Command) -> Launch | None:
    found, rest = read_ray(command)
    # An srun round it starts the submission, not the ranks.
    inner = replace(command.with_words(rest), srun=None)
    # Ray starts one process; where that is a launcher of its own, the launcher makes the ranks.
    launch = recognise(inner) if rest else None
    if launch is not None and launch.launcher not in ("python", "other"):
        return replace(launch, wrappers=(*command.wrappers, "ray job submit"))
    return make_ray(inner, found)


def _read_python(command: Command) -> Launch | None:
    read = read_python(command.words)
    if read is None:
        return None
    is_module, rest = read
    name = rest[0].text
    inner = command.behind(len(command.words) - len(rest) + 1)
    if is_module and name in _BY_MODULE:
        return _BY_MODULE[name](inner)
    if is_module and name == "accelerate.commands.accelerate_cli" and len(rest) > 1 and rest[1].text == "launch":
        return read_accelerate(inner.behind(1))
    if is_module and name == "colossalai.cli" and len(rest) > 1 and rest[1].text == "run":
        return read_colossal(inner.behind(1))
    if is_module and name in ("llamafactory.cli", "swift.cli.main") and len(rest) > 1:
        launcher = name.partition(".")[0]
        return read_by_variables(inner.behind(1), launcher, f"{name} {rest[1].text}")
    if not is_module and _command_name(rest[0]) in _BY_NAME:
        return _BY_NAME[_command_name(rest[0])](inner)
    if not is_module and re.search(r"torch/distributed/(run|launch)\.py$", name):
        return read_torchrun(inner, "torchrun" if name.endswith("run.py") else "torch.distributed.launch")
    wrapped = _read_wrapped(inner, name) if is_module else None
    if wrapped is not None:
        return wrapped
    if command.srun is not None:
        return read_srun(command)
    entry, args = entry_of(rest, is_module=is_module)
    return make(command, "python", entry=entry, args=args)


def _read_wrapped(inner: Command, name: str) -> Launch | None:
    """Read a project's own module that takes torchrun's flags and then an entry, as torchrun does."""
    if not _WRAPS_TORCHRUN.fullmatch(name.rpartition(".")[2]) and ".distributed." not in name:
        return None
    launch = read_torchrun(inner, "other")
    return launch if "nproc_per_node" in launch.options and launch.entry is not None else None


def _read_script(command: Command) -> Launch | None:
    name = command.words[0].text.rpartition("/")[2]
    found: Launch | None = None
    if name in ("dist_train.sh", "dist_test.sh"):
        found = read_dist(command)
    elif name in ("slurm_train.sh", "slurm_test.sh"):
        found = read_slurm(command)
    elif name == "msrun_launcher.sh":
        found = read_launcher_script(command)
    if found is not None:
        return found
    if command.srun is not None:
        return read_srun(command)
    entry, args = entry_of(command.words)
    return make(command, "other", entry=entry, args=args)


def _read_program(command: Command, first: str) -> Launch | None:
    """Read a program that trains by itself: `tune run --nproc_per_node 2 RECIPE`, `yolo train …`."""
    if first not in _PROGRAMS:
        return None
    subs = _PROGRAMS[first]
    if subs and (len(command.words) < 2 or command.words[1].text not in subs):
        return None
    name = f"{first} {command.words[1].text}" if subs else first
    rest = command.behind(len(name.split()))
    if name == "tune run":
        launch = read_torchrun(rest, "other")
        if launch.entry is not None:
            return replace(launch, entry=Entry("command", launch.entry.name))
    if name == "xtuner train":
        return read_by_variables(rest, "other", name, address="ADDR", port="PORT")
    return make(command, "other", entry=Entry("command", name), args=tuple(word.text for word in rest.words))
