"""What a guide wants checked before it trains: devices, their memory and the port."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

from headway.guide.log import GuideLog
from headway.machine import inspect_machine, list_visible
from headway.messages import say
from headway.units import size

_PORTS = 10
"""How many ports the guide tries."""


def check_devices(log: GuideLog, *, want: int, want_bytes: int) -> None:
    """Say how many GPUs there are, and whether each has the memory the guide asks for."""
    log.write(say("guide/check-devices"))
    gpus = [gpu for gpu in inspect_machine(Path.cwd()).gpus if not gpu.lost]
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    if shown is not None and len(list_visible(shown)) < want:
        log.write(say("guide/check-hidden", shown=shown or '""', want=want), "WARN")
    if len(gpus) < want:
        code = "guide/check-few-gpus" if gpus else "guide/check-no-gpu"
        log.write(say(code, have=len(gpus), want=want), "WARN")
    for number, gpu in enumerate(gpus):
        free = gpu.free_bytes if gpu.free_bytes is not None else gpu.total_bytes
        facts = {"number": number, "name": gpu.name or "GPU", "want": size(want_bytes)}
        is_enough = free is not None and free >= want_bytes
        text = say("guide/check-gpu", have=size(free), **facts)
        log.write(text, "SUCCESS" if is_enough else "WARN")


def check_port(log: GuideLog, usual: int = 12355) -> None:
    """Say whether the guide's port is free, and else which of the next ones is; ranks get one of their own."""
    asked = os.environ.get("MASTER_PORT", "")
    first = int(asked) if asked.isdigit() and 0 < int(asked) < 65536 - _PORTS else usual
    free = next((port for port in range(first, first + _PORTS) if _is_free(port)), None)
    if free == first:
        log.write(say("guide/check-port", port=first))
    elif free is not None:
        log.write(say("guide/check-port-busy", port=first, free=free), "WARN")
    else:
        log.write(say("guide/check-ports-busy", port=first, last=first + _PORTS - 1), "WARN")


def check_variables(log: GuideLog, wanted: Mapping[str, str]) -> None:
    """Say which variables are set to something else than the guide's own value; one that is not set does no harm."""
    for name, value in wanted.items():
        have = os.environ.get(name)
        if have is not None and have != value:
            log.write(say("guide/check-variable", name=name, have=have[:60], want=value), "WARN")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
