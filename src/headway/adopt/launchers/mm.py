"""OpenMMLab's scripts: `dist_train.sh CONFIG GPUS`, `slurm_train.sh PARTITION JOB CONFIG`."""

from __future__ import annotations

import re

from headway.adopt.command import Command
from headway.adopt.launchers.parts import make
from headway.adopt.options import known, number
from headway.adopt.record import Entry, Launch
from headway.adopt.shell.expand import Said

_CONFIG = re.compile(
    r".*\.(?:py|ya?ml|json|toml)|.*\$\{?\w*(?:CONF|CFG|配置)\w*\}?.*|[<{\[].*(?:conf|cfg|配置).*[>}\]]|\$\{?[1-9]\}?",
    re.IGNORECASE,
)
_COUNT = re.compile(r"\d+|\$\{?\w+\}?|[<{\[].*[>}\]]")


def read_dist(command: Command) -> Launch | None:
    """Read `dist_train.sh` and its words; None where they are in another project's order."""
    script, words = command.words[0].text, command.words[1:]
    is_test = script.endswith("dist_test.sh")
    count_at = 2 if is_test else 1
    if len(words) <= count_at or not _CONFIG.fullmatch(words[0].text) or not _COUNT.fullmatch(words[count_at].text):
        return None
    program = "test.py" if is_test else "train.py"
    args = [word.text for place, word in enumerate(words) if place != count_at]
    return make(
        command,
        "mm_dist_train",
        nproc_per_node=number(words[count_at]),
        nnodes=number(command.variable("NNODES")),
        node_rank=number(command.variable("NODE_RANK")),
        master_addr=known(command.variable("MASTER_ADDR")),
        master_port=number(command.variable("PORT")),
        entry=Entry("script", _beside(script, program)),
        args=tuple(args),
    )


def read_slurm(command: Command) -> Launch | None:
    """Read `slurm_train.sh` and its words."""
    script, words = command.words[0].text, command.words[1:]
    if len(words) < 3:
        return None
    total, per_node = number(command.variable("GPUS")), number(command.variable("GPUS_PER_NODE"))
    program = "test.py" if script.endswith("slurm_test.sh") else "train.py"
    return make(
        command,
        "mm_slurm_train",
        nproc_per_node=per_node,
        nnodes=total // per_node if total and per_node and total % per_node == 0 else None,
        master_addr=known(command.variable("MASTER_ADDR")),
        master_port=_port(command),
        entry=Entry("script", _beside(script, program)),
        args=tuple(word.text for word in words[2:]),
        world_size=total,
        slurm={"partition": words[0].text, "job_name": words[1].text},
    )


def _port(command: Command) -> int | None:
    found: Said | None = command.variable("MASTER_PORT")
    return number(found if found is not None else command.variable("PORT"))


def _beside(script: str, program: str) -> str:
    folder = script.rpartition("/")[0]
    folder = folder.removeprefix("./")
    return f"{folder}/{program}" if folder and folder != "." else program
