"""What commands that compute on the CPU ask of it first."""

from __future__ import annotations

import click

from headway.config import LoadedConfig
from headway.machine import CpuAnswers, find_cpu, has_devices
from headway.messages import say


def cpu_settings(loaded: LoadedConfig) -> dict[str, str]:
    """Return the environment the ranks need besides ours, so that the CPU runs every instruction it is given."""
    found = cpu_of(loaded)
    return dict(found.settings) if found else {}


def cpu_of(loaded: LoadedConfig, *, is_asked: bool = False) -> CpuAnswers | None:
    """Return what the CPU computes for a config that trains on it; none: nobody had to look, or it has devices."""
    if loaded.config.parallel.gpus != 0 and has_devices():
        return None
    return look_at_cpu(loaded.config.env.python, loaded.framework, is_asked=is_asked)


def look_at_cpu(python: str | None, framework: str, *, is_asked: bool) -> CpuAnswers | None:
    """Return what the CPU computes, and say so before it takes seconds to find out."""
    return find_cpu(
        python, framework, is_asked=is_asked, before=lambda: click.echo(say("machine/cpu-trying"), err=True)
    )
