"""What readings of devices mean: a GPU that stops answering, heat, power, errors, a disk that fills.

In: readings in order. Out: what is seen now, for `OpenFindings`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from headway.telemetry.lines import number
from headway.telemetry.open_findings import OpenFindings, Sighting
from headway.telemetry.reading import section
from headway.units import size

Reading = dict[str, Any]
_HOT: Final = ("SW Thermal Slowdown", "HW Thermal Slowdown")
_BRAKE: Final = ("HW Slowdown", "HW Power Brake Slowdown")
_CAP: Final = "SW Power Cap"
_CAP_SLOWER: Final = 0.25
"""Every card that works hard meets its power limit and lowers its clock a little; more than this is worth a word."""
_LASTS_S: Final = 20.0
"""A slow-down that is over sooner is not worth a word."""
_DISK_BYTES: Final = 2 << 30
_MEMORY_SHARE: Final = 0.04


@dataclass(slots=True)
class DeviceFindings:
    """Remembers what is going on."""

    about: Reading = field(default_factory=dict)
    _open: OpenFindings = field(default_factory=OpenFindings)
    _ecc: dict[int, float] = field(default_factory=dict)

    def take(self, reading: Reading, left_s: float | None = None) -> list[Reading]:
        """Return the events that a reading gives rise to.

        Args:
            reading: one line of `devices.jsonl`.
            left_s: how long the run has to go; None: not known.
        """
        return self._open.take(number(reading.get("t")), [*self._gpus(reading), *self._host(reading)], left_s)

    def close(self) -> list[Reading]:
        """Return the events of the end of a run."""
        return self._open.close()

    def codes(self) -> set[str]:
        """Return the codes of what is going on."""
        return self._open.codes()

    def _gpus(self, reading: Reading) -> list[Sighting]:
        found: list[Sighting] = []
        for gpu in reading.get("gpus") or ():
            index = int(gpu["i"])
            if gpu.get("lost"):
                facts = {"gpu": index, "why": str(gpu.get("why", "n/a"))}
                # Its return is seen at once; half a run may have waited for it.
                found.append(Sighting(code="devices/gpu-silent", key=str(index), facts=facts, slower=1.0, calm_s=0.0))
                continue
            found += [*self._slow(index, gpu), *self._errors(index, gpu)]
        return found

    def _slow(self, index: int, gpu: Reading) -> list[Sighting]:
        reasons = gpu.get("throttle") or []
        known: list[Reading] = [one for one in self.about.get("gpus") or () if one.get("i") == index]
        about = known[0] if known else {}
        clock, most = gpu.get("clock"), about.get("clock")
        slower = max(0.0, 1 - clock / most) if clock and most else 0.0
        facts = {"gpu": index, "temp": gpu.get("temp", "n/a"), "percent": f"{100 * slower:.0f}"}
        if any(one in _HOT for one in reasons):
            code, lasts_s = "devices/gpu-hot", _LASTS_S
        elif any(one in _BRAKE for one in reasons):
            code, lasts_s = "devices/gpu-brake", _LASTS_S
            facts["why"] = ", ".join(reasons)
        elif _CAP in reasons and slower > _CAP_SLOWER:
            cap = about.get("power_cap")
            code, lasts_s = "devices/gpu-power-cap", 3 * _LASTS_S
            facts["cap"] = f"{cap:.0f} W" if cap else "n/a"
        else:
            return []
        return [Sighting(code=code, key=str(index), facts=facts, slower=slower, lasts_s=lasts_s)]

    def _errors(self, index: int, gpu: Reading) -> list[Sighting]:
        found: list[Sighting] = []
        if gpu.get("xid") is not None:
            facts = {"gpu": index, "xid": gpu["xid"]}
            found.append(Sighting(code="devices/xid", key=f"{index}:{gpu['xid']}", facts=facts))
        if gpu.get("ecc") is not None:
            before = self._ecc.setdefault(index, gpu["ecc"])
            if gpu["ecc"] > before:
                facts = {"gpu": index, "num": int(gpu["ecc"] - before)}
                found.append(Sighting(code="devices/ecc", key=str(index), facts=facts))
        return found

    def _host(self, reading: Reading) -> list[Sighting]:
        host, total = section(reading.get("host")), number(self.about.get("mem"))
        found: list[Sighting] = []
        if host.get("disk_free") is not None and host["disk_free"] < _DISK_BYTES:
            found.append(Sighting(code="devices/disk-low", facts={"free": size(host["disk_free"])}))
        if host.get("mem") is not None and host["mem"] > (1 - _MEMORY_SHARE) * total:
            facts = {"free": size(total - host["mem"]), "total": size(total)}
            found.append(Sighting(code="devices/memory-low", facts=facts))
        return found
