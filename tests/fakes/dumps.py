"""What the rules say of a recorded text by itself: not what is well, where it came from, or which GPUs a run takes."""

from __future__ import annotations

from headway.machine import Finding, MachineReport, read_machine

APART = ("machine/stands-in", "machine/no-free-gpu")


def judge_text(text: str, checkpoint_bytes: int | None = None) -> list[Finding]:
    """Return the findings about what a text tells; a text that tells nothing is refused elsewhere."""
    report = machine_of(text, checkpoint_bytes)
    return [one for one in report.findings if one.level != "ok" and one.code not in APART]


def machine_of(text: str, checkpoint_bytes: int | None = None) -> MachineReport:
    """Return the machine a text tells of."""
    return read_machine(text, checkpoint_bytes=checkpoint_bytes)
