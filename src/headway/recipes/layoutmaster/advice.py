"""The guide's arithmetic, said before a run starts: what its batch is on the devices that are here."""

from __future__ import annotations

from headway.task import Situation

_NAMES = ("batch_size", "data.batch_size")

Warning = tuple[str, dict[str, str]]


def advise(here: Situation) -> list[Warning]:
    """Say what each device takes when the batch has the guide's name, which means one device's share elsewhere."""
    if here.guide_names.get("batch.total") not in _NAMES or here.world_size == 1:
        return []
    facts = {
        "total": str(here.config.batch.total),
        "ranks": str(here.world_size),
        "share": str(here.per_device * here.accumulation),
        "other": str((here.config.batch.total or 0) * here.world_size),
        "rate": f"{here.config.lr.base:g}",
    }
    return [("layoutmaster/batch-meaning", facts)]
