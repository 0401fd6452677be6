"""The `#SBATCH` header of a batch script, and the variables Slurm makes of it."""

from __future__ import annotations

import re
from collections.abc import Mapping

_LINE = re.compile(r"[ \t]*#SBATCH[ \t]+(.*)")
_OPTION = re.compile(
    r"(?:--([A-Za-z][\w-]*)(?:=|[ \t]+(?!-)|$|(?=[ \t]))|-([A-Za-z])[ \t]*=?)"
    r"(\"[^\"]*\"|'[^']*'|\{[^{}]*\}|<[^<>]*>|[^\s#]*)"
)

LONG_NAMES = {
    "A": "account", "a": "array", "c": "cpus-per-task", "C": "constraint", "d": "dependency", "D": "chdir",
    "e": "error", "G": "gpus", "J": "job-name", "L": "licenses", "m": "distribution", "N": "nodes", "n": "ntasks",
    "o": "output", "p": "partition", "q": "qos", "t": "time", "w": "nodelist", "x": "exclude",
    "i": "input", "W": "wait",
}  # fmt: skip

_VARIABLES = {
    "nodes": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    "ntasks": ("SLURM_NTASKS", "SLURM_NPROCS"),
    "ntasks-per-node": ("SLURM_NTASKS_PER_NODE",),
    "cpus-per-task": ("SLURM_CPUS_PER_TASK",),
    "gpus-per-node": ("SLURM_GPUS_PER_NODE",),
    "gpus-per-task": ("SLURM_GPUS_PER_TASK",),
    "gpus": ("SLURM_GPUS",),
    "job-name": ("SLURM_JOB_NAME",),
}


def read_header(text: str) -> dict[str, str | bool]:
    """Return the options of a batch script's header by their long names; one without a value is True."""
    header: dict[str, str | bool] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if not match:
            continue
        for option in _OPTION.finditer(re.sub(r"\s#.*", "", match[1])):
            name = option[1] or LONG_NAMES.get(option[2], option[2])
            value = option[3].strip("\"'")
            header.setdefault(name, value or True)
    return header


def variables_of(header: Mapping[str, str | bool]) -> dict[str, str]:
    """Return what Slurm sets inside the job, as far as the header says it."""
    values: dict[str, str] = {}
    for option, names in _VARIABLES.items():
        value = header.get(option)
        # A range of nodes (`2-4`) is settled only when the job starts.
        if isinstance(value, str) and (re.fullmatch(r"\d+", value) or option == "job-name"):
            values.update(dict.fromkeys(names, value))
    return values
