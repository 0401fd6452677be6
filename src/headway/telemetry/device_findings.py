"""What readings of devices mean: a GPU that stops answering, heat, errors, a disk that fills. Said once, and once over.

In: readings in order. Out: facts of events: `finding` when something begins, `finding_over` when it has ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from headway.telemetry.lines import number
from headway.telemetry.reading import section
from headway.units import size

Reading = dict[str, Any]
_HOT: Final = ("SW Thermal Slowdown", "HW Thermal Slowdown")
_BRAKE: Final = ("HW Slowdown", "HW Power Brake Slowdown")
_LASTS_S: Final = 20.0
"""A slow-down that is over sooner is not worth a word."""
_CALM_S: Final = 60.0
"""A finding is over when nothing was seen of it for so long; one that comes and goes is said once."""
_DISK_BYTES: Final = 2 << 30
_MEMORY_SHARE: Final = 0.04
_AT_ONCE: Final = ("devices/gpu-silent", "devices/ecc", "devices/xid", "devices/disk-low", "devices/memory-low")


@dataclass(slots=True)
class _Open:
    """Something that is seen now."""

    since: float
    last: float
    facts: Reading
    is_said: bool = False
    cost_s: float = 0.0
    """Time lost to a lowered clock: the share by which it is lower, over the time it lasts."""


@dataclass(slots=True)
class DeviceFindings:
    """Remembers what is going on."""

    about: Reading = field(default_factory=dict)
    _open: dict[tuple[str, str], _Open] = field(default_factory=dict)
    _ecc: dict[int, float] = field(default_factory=dict)
    _was: float | None = None

    def take(self, reading: Reading) -> list[Reading]:
        """Return the events that a reading gives rise to."""
        now = number(reading.get("t"))
        spent_s = 0.0 if self._was is None else max(0.0, now - self._was)
        self._was = now
        for code, key, facts in [*self._gpus(reading), *self._host(reading)]:
            one = self._open.setdefault((code, key), _Open(now, now, facts))
            one.last, one.facts = now, facts
            one.cost_s += spent_s * facts.pop("slower", 0.0)
        events = []
        for (code, key), one in list(self._open.items()):
            if not one.is_said and (code in _AT_ONCE or one.last - one.since >= _LASTS_S):
                one.is_said = True
                events.append({"kind": "finding", "code": code, "key": key, "facts": one.facts, "since": one.since})
            if now - one.last >= _CALM_S or (code == "devices/gpu-silent" and one.last < now):
                del self._open[(code, key)]
                if one.is_said:
                    over = {"code": code, "key": key, "seconds": round(one.last - one.since, 1)}
                    events.append({"kind": "finding_over", **over, "cost_s": round(one.cost_s, 1), "facts": one.facts})
        return events

    def _gpus(self, reading: Reading) -> list[tuple[str, str, Reading]]:
        found: list[tuple[str, str, Reading]] = []
        for gpu in reading.get("gpus") or ():
            index = int(gpu["i"])
            if gpu.get("lost"):
                found.append(("devices/gpu-silent", str(index), {"gpu": index, "why": str(gpu.get("why", "n/a"))}))
                continue
            reasons = gpu.get("throttle") or []
            most = next((one.get("clock") for one in self.about.get("gpus") or () if one.get("i") == index), None)
            clock = gpu.get("clock")
            slower = max(0.0, 1 - clock / most) if clock and most else 0.0
            facts = {"gpu": index, "temp": gpu.get("temp", "n/a"), "percent": f"{100 * slower:.0f}", "slower": slower}
            if any(one in _HOT for one in reasons):
                found.append(("devices/gpu-hot", str(index), facts))
            if any(one in _BRAKE for one in reasons):
                found.append(("devices/gpu-brake", str(index), {**facts, "why": ", ".join(reasons)}))
            found += self._errors(index, gpu)
        return found

    def _errors(self, index: int, gpu: Reading) -> list[tuple[str, str, Reading]]:
        found: list[tuple[str, str, Reading]] = []
        if gpu.get("xid") is not None:
            found.append(("devices/xid", f"{index}:{gpu['xid']}", {"gpu": index, "xid": gpu["xid"]}))
        if gpu.get("ecc") is not None:
            before = self._ecc.setdefault(index, gpu["ecc"])
            if gpu["ecc"] > before:
                found.append(("devices/ecc", str(index), {"gpu": index, "num": int(gpu["ecc"] - before)}))
        return found

    def _host(self, reading: Reading) -> list[tuple[str, str, Reading]]:
        host, total = section(reading.get("host")), number(self.about.get("mem"))
        found: list[tuple[str, str, Reading]] = []
        if host.get("disk_free") is not None and host["disk_free"] < _DISK_BYTES:
            found.append(("devices/disk-low", "", {"free": size(host["disk_free"])}))
        if host.get("mem") is not None and host["mem"] > (1 - _MEMORY_SHARE) * total:
            found.append(("devices/memory-low", "", {"free": size(total - host["mem"]), "total": size(total)}))
        return found
