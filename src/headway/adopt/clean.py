"""The clean file: the launch with what has an effect, and a comment for everything that was left out."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headway.adopt.exact import find_command
from headway.adopt.finding import Finding
from headway.adopt.record import Launch
from headway.adopt.secrets import hide_secrets
from headway.config import mask_secrets
from headway.messages import say

_ALWAYS = ("launcher", "entry", "args")
_NUMBERS = ("nproc_per_node", "nnodes", "node_rank", "world_size")
_ADDRESS = ("master_addr", "master_port")
_REST = ("cuda_visible_devices", "mixed_precision", "launcher_config", "hostfile", "sbatch", "slurm")


_RUNNABLE = ("python", "torchrun")
_ACTIVE = re.compile(r"[$`*?\[~{\\]")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_SINGLE = re.compile(r"'[^']*'")
_HELD_NAMES = (
    "nproc_per_node nnodes standalone module m no_python node_rank master_addr master_port rdzv_endpoint rdzv_backend"
    " rdzv_id"
)
_HELD = frozenset(_HELD_NAMES.split())
"""Flags of torchrun that the fields hold, or that the supervisor chooses for every attempt."""


def write_clean(
    launch: Launch, findings: Sequence[Finding], *, one_line: str = "", defaulted: Iterable[str] = ()
) -> str:
    """Return the launch as YAML. What has no effect or harms is left out, and a comment says so.

    Args:
        one_line: the text it came from, where that is one line. If fields cannot hold what it says (a variable of
            the environment, a glob, a flag of a wrapper, a redirect), the file holds the line, and bash runs it.
        defaulted: variables for which the text had a default.
    """
    record = hide_secrets(launch).to_json()
    env, left_out = _clean_env(launch, findings)
    is_shown_whole = hide_secrets(launch) == launch and mask_secrets(one_line) == one_line
    if one_line and not left_out and is_shown_whole and _only_bash_knows(launch, one_line):
        return "\n".join(["schema: launch/1", f"# {say('adopt/clean-bash')}", *_yaml({"bash": one_line})]) + "\n"
    kept = {key: record[key] for key in (*_ALWAYS, *_NUMBERS) if record.get(key) is not None}
    if launch.nnodes not in (None, 1):
        # Only several nodes need an address to meet at; on one, a free port is found for every attempt.
        kept |= {key: record[key] for key in _ADDRESS if record.get(key) is not None}
    kept |= {key: record[key] for key in _REST if record.get(key) not in (None, {}, "")}
    if env:
        kept["env"] = env
    if launch.unresolved:
        kept["unresolved"] = sorted(launch.unresolved)
    patterns = launch.patterns.intersection(launch.args)
    if patterns:
        kept["patterns"] = sorted(patterns)
    lines = ["schema: launch/1", *_yaml(kept)]
    if defaulted:
        left_out.append(say("adopt/clean-defaulted", names=", ".join(sorted(defaulted))))
    lines += [f"# {_one_line(text)}" for text in left_out]
    return "\n".join(lines) + "\n"


def _only_bash_knows(launch: Launch, line: str) -> bool:
    """Say whether a line holds more than the fields of the file: then only the line itself is the same."""
    if find_command(line) is None or launch.wrappers or _ACTIVE.search(_SINGLE.sub("", line)):
        return True
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return True
    entry = launch.entry
    if launch.launcher not in _RUNNABLE or entry is None or launch.nnodes not in (None, 1, "1", "1:1"):
        return True
    while words and _ASSIGNMENT.match(words[0]):
        words.pop(0)
    if launch.launcher == "torchrun":
        return words[:1] != ["torchrun"] or not _HELD.issuperset(launch.options)
    return words != ["python", *(["-m"] if entry.kind == "module" else []), entry.name, *launch.args]


def _clean_env(launch: Launch, findings: Sequence[Finding]) -> tuple[dict[str, str], list[str]]:
    env: dict[str, str] = {}
    left_out: list[str] = []
    verdicts = {(one.facts.get("name"), one.subject.partition("=")[2]): one for one in findings if "name" in one.facts}
    for name, value in launch.env.items():
        found = verdicts.get((name, value)) or verdicts.get((name, "…"))
        if name == "CUDA_VISIBLE_DEVICES" and launch.cuda_visible_devices is not None:
            continue
        if found is not None and found.code in ("adopt/env-allocator-mixed", "adopt/env-two-allocators"):
            env[name] = _best_allocator(value)
            left_out.append(say("adopt/clean-changed", name=name, why=found.text()))
        elif found is not None and found.verdict != "kept" and not _is_needed(launch, found):
            left_out.append(say("adopt/clean-left-out", name=name, why=found.text()))
        else:
            env[str(found.facts.get("new", name)) if found is not None else name] = value
    return env, left_out


def _is_needed(launch: Launch, found: Finding) -> bool:
    """Say whether the program reads what a launcher would have replaced: nobody chooses a port for plain Python."""
    return launch.launcher == "python" and found.code == "adopt/fixed-port"


def _best_allocator(value: str) -> str:
    """Keep the growing segments; with them a split size is of little use."""
    parts = [part for part in value.split(",") if not part.startswith("max_split_size_mb")]
    return ",".join(parts) if any("expandable_segments" in part for part in parts) else value


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _yaml(record: Mapping[str, Any], indent: str = "") -> list[str]:
    """Return block YAML; scalars are written as JSON, which YAML 1.2 reads. Any: plain values of many types."""
    lines: list[str] = []
    for key, value in record.items():
        name = (
            key
            if re.fullmatch(r"[A-Za-z_][\w-]*", key) and key.lower() not in ("y", "n", "yes", "no", "on", "off")
            else _scalar(key)
        )
        if isinstance(value, dict) and value:
            lines += [f"{indent}{name}:", *_yaml(value, f"{indent}  ")]
        elif isinstance(value, list) and value and key != "cuda_visible_devices":
            lines += [f"{indent}{name}:", *(f"{indent}  - {_scalar(one)}" for one in value)]
        else:
            lines.append(f"{indent}{name}: {_scalar(value)}")
    return lines


def _scalar(value: Any) -> str:
    """Any: a plain value."""
    if isinstance(value, str):
        value = mask_secrets(value)
        # JSON leaves these as they are; YAML takes them for line ends or refuses them.
        text = json.dumps(value, ensure_ascii=False)
        return re.sub(
            "[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]", lambda one: f"\\u{ord(one[0]):04x}", text
        )
    return json.dumps(value, ensure_ascii=False)
