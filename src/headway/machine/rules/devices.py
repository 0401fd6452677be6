"""What is wrong with GPUs: errors, heat, brakes, splits, company. GPUs with the same fault share one finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from headway.machine.cards import find_model, series_capability
from headway.machine.devices import describe_holders, is_free, list_alike, list_gpus
from headway.machine.record import Finding, Gpu, GpuProcess, Level
from headway.units import size

HOT_C = 83
"""Consumer boards begin to lower their clock at 83 or 84 °C, data-centre boards a few degrees later."""
UNSEEN_BYTES = 1 << 30
"""In use without a visible owner. Drivers keep up to 0.6 GiB of a large GPU for themselves."""
_OLDEST = (5, 0)
"""Compute capability below which no build of torch 2 has kernels."""
_BF16 = (8, 0)
_SMALL_BYTES = 9 << 30
_CAP_SHARE = 0.97
_DESKTOP = (
    "xorg", "xwayland", "gnome-shell", "kwin", "plasmashell", "mutter", "sway", "hyprland", "weston", "explorer.exe",
    "dwm.exe", "x-server", "gdm", "sddm", "compiz", "cinnamon", "firefox", "chrome", "chromium", "wayland", "budgie",
)  # fmt: skip
_HARMLESS = {"idle", "gpu idle", "none", "applications clocks setting", "display clock setting", "sync boost"}


def judge_gpus(gpus: Sequence[Gpu], *, lists_processes: bool = True) -> Iterator[Finding]:
    """Yield what is wrong with these GPUs, whoever will use them.

    Args:
        lists_processes: whether the source tells of processes at all; only then can memory lack an owner.
    """
    here = [gpu for gpu in gpus if not gpu.lost]
    for level, code, say in _RULES:
        yield from _group(here, level, code, say)
    if lists_processes:
        yield from _group(here, "warn", "machine/gpu-memory-unseen", _unseen)
    small = [gpu for gpu in here if gpu.total_bytes is not None and gpu.total_bytes < _SMALL_BYTES]
    if small and len(here) == 1:
        facts = {"gpus": _list(small), "total": size(small[0].total_bytes)}
        yield Finding(code="machine/gpu-small", level="note", facts=facts)


def judge_use(gpus: Sequence[Gpu]) -> Iterator[Finding]:
    """Yield GPUs that nobody can talk to, and those somebody is on."""
    for gpu in gpus:
        if gpu.lost:
            yield Finding(code="machine/gpu-lost", level="warn", facts={"gpu": str(gpu.index)})
        elif not is_free(gpu):
            used, total = size(gpu.used_bytes), size(gpu.total_bytes)
            if gpu.used_bytes is None and gpu.used_percent is not None:
                used, total = f"{gpu.used_percent}%", "VRAM"
            facts = {"gpu": str(gpu.index), "holders": describe_holders(gpu), "used": used, "total": total}
            yield Finding(code="machine/gpu-busy", level="warn", facts=facts)


def judge_mix(gpus: Sequence[Gpu]) -> Iterator[Finding]:
    """Yield GPUs of several models; boards of one model may differ by some MiB."""
    if len({(gpu.name, (gpu.total_bytes or 0) >> 30) for gpu in gpus}) > 1:
        facts = {"list": list_gpus(gpus), "same": list_alike(gpus)}
        yield Finding(code="machine/gpus-differ", level="warn", facts=facts)


Say = Callable[[Gpu], dict[str, str] | None]


def _group(gpus: Sequence[Gpu], level: Level, code: str, say: Say) -> Iterator[Finding]:
    """Yield one finding for all GPUs about which the same is to be said."""
    alike: dict[tuple[tuple[str, str], ...], list[Gpu]] = {}
    for gpu in gpus:
        facts = say(gpu)
        if facts is not None:
            # The reading of the first one stands for all: eight lines that differ by a degree help nobody.
            key = tuple((name, value) for name, value in facts.items() if name in ("what", "name"))
            alike.setdefault(key, []).append(gpu)
    for same in alike.values():
        yield Finding(code=code, level=level, facts={**(say(same[0]) or {}), "gpus": _list(same)})


def _list(gpus: Sequence[Gpu]) -> str:
    # Without blanks: the same text follows `nvidia-smi -i`.
    return ",".join(str(gpu.index) for gpu in gpus)


def _hot(gpu: Gpu) -> dict[str, str] | None:
    hot = gpu.temperature_c is not None and gpu.temperature_c >= HOT_C
    return {"temp": str(gpu.temperature_c)} if hot else None


def _throttled(gpu: Gpu) -> dict[str, str] | None:
    reasons = [one for one in gpu.health.throttle if one.lower() not in _HARMLESS and "power cap" not in one.lower()]
    if not reasons:
        return None
    clock = f"{gpu.health.sm_clock_mhz or 'n/a'} / {gpu.health.max_sm_clock_mhz or 'n/a'} MHz"
    return {"what": ", ".join(reasons), "clock": clock}


def _power_capped(gpu: Gpu) -> dict[str, str] | None:
    power, cap = gpu.health.power_w, gpu.health.power_cap_w
    at_cap = power is not None and cap is not None and cap > 0 and power >= _CAP_SHARE * cap
    told = any("power cap" in one.lower() for one in gpu.health.throttle)
    if not (at_cap or told):
        return None
    return {"power": f"{power:.0f}" if power is not None else "n/a", "cap": f"{cap:.0f}" if cap is not None else "n/a"}


def _uncorrected(gpu: Gpu) -> dict[str, str] | None:
    now, ever = gpu.health.uncorrected, gpu.health.uncorrected_ever
    return {"num": str(now or 0), "ever": "n/a" if ever is None else str(ever)} if now or ever else None


def _corrected(gpu: Gpu) -> dict[str, str] | None:
    return {"num": str(gpu.health.corrected)} if gpu.health.corrected else None


def _retired(gpu: Gpu) -> dict[str, str] | None:
    return {"num": str(gpu.health.pages_retired)} if gpu.health.pages_retired else None


def _mig(gpu: Gpu) -> dict[str, str] | None:
    if not gpu.health.mig or gpu.health.mig_devices == 0:
        return None
    return {"num": "n/a" if gpu.health.mig_devices is None else str(gpu.health.mig_devices)}


def _too_old(gpu: Gpu) -> dict[str, str] | None:
    capability = capability_of(gpu)
    if capability is None or capability >= _OLDEST:
        return None
    least = ".".join(map(str, _OLDEST))
    return {"name": gpu.name or "n/a", "capability": ".".join(map(str, capability)), "least": least}


def _no_bf16(gpu: Gpu) -> dict[str, str] | None:
    capability = capability_of(gpu)
    if capability is None or not _OLDEST <= capability < _BF16:
        return None
    return {"name": gpu.name or "n/a", "capability": ".".join(map(str, capability))}


def capability_of(gpu: Gpu) -> tuple[int, int] | None:
    """Return the compute capability the driver reported, or the one its name stands for."""
    if gpu.capability is not None:
        return gpu.capability
    model = find_model(gpu.name, gpu.total_bytes / (1 << 30) if gpu.total_bytes else None)
    return (model.compute_capability if model else None) or series_capability(gpu.name)


def _exclusive(gpu: Gpu) -> dict[str, str] | None:
    mode = (gpu.health.compute_mode or "").lower().replace("_", " ")
    return {"what": gpu.health.compute_mode or ""} if mode.startswith(("exclusive", "e. ")) else None


def _prohibited(gpu: Gpu) -> dict[str, str] | None:
    return {} if (gpu.health.compute_mode or "").lower().startswith("prohibited") else None


def _desktop(gpu: Gpu) -> dict[str, str] | None:
    names = sorted({(one.name or "n/a").rsplit("/", 1)[-1] for one in gpu.processes if is_desktop(one)})
    return {"what": ", ".join(names[:3])} if names else None


def is_desktop(process: GpuProcess) -> bool:
    """Whether a process draws a screen rather than computes."""
    name = (process.name or "").lower()
    return process.kind == "G" or (process.kind != "C" and any(word in name for word in _DESKTOP))


def _unseen(gpu: Gpu) -> dict[str, str] | None:
    if gpu.health.mig or gpu.used_bytes is None or any(one.held_bytes is None for one in gpu.processes):
        return None
    held = sum(one.held_bytes or 0 for one in gpu.processes)
    unseen = gpu.used_bytes - held
    # Large GPUs keep a reserve for the driver and for ECC tables.
    if unseen <= max(UNSEEN_BYTES, (gpu.total_bytes or 0) // 50):
        return None
    return {"used": size(unseen), "total": size(gpu.total_bytes)}


def _vgpu_host(gpu: Gpu) -> dict[str, str] | None:
    lent = [one for one in gpu.processes if (one.name or "").lower() == "vgpu"]
    return {"num": str(len(lent))} if lent else None


def _when(flag: Callable[[Gpu], object]) -> Say:
    return lambda gpu: {} if flag(gpu) else None


def _narrow(gpu: Gpu) -> dict[str, str] | None:
    have, most = gpu.health.pcie_width, gpu.health.pcie_width_max
    # Generations fall when a GPU rests, lanes do not.
    return {"have": str(have), "most": str(most)} if have and most and have < most else None


def _fabric(gpu: Gpu) -> dict[str, str] | None:
    state = gpu.health.fabric
    return {"what": state} if state and state.lower() in ("in progress", "not started") else None


def _broken(gpu: Gpu) -> dict[str, str] | None:
    return {"what": ", ".join(gpu.health.broken)} if gpu.health.broken else None


def _recovery(gpu: Gpu) -> dict[str, str] | None:
    asked = gpu.health.recovery
    return {"what": asked} if asked and asked != "None" else None


_RULES: tuple[tuple[Level, str, Say], ...] = (
    ("warn", "machine/gpu-prohibited", _prohibited),
    ("warn", "machine/mig-empty", _when(lambda gpu: gpu.health.mig and gpu.health.mig_devices == 0)),
    ("warn", "machine/mig-on", _mig),
    ("warn", "machine/gpu-too-old", _too_old),
    ("warn", "machine/vgpu-host", _vgpu_host),
    ("warn", "machine/gpu-uncorrected", _uncorrected),
    ("warn", "machine/gpu-remap-failed", _when(lambda gpu: gpu.health.remap_failed)),
    ("warn", "machine/gpu-remap-pending", _when(lambda gpu: gpu.health.remap_pending)),
    ("warn", "machine/gpu-pages-pending", _when(lambda gpu: gpu.health.pages_pending)),
    ("warn", "machine/gpu-needs", _recovery),
    ("warn", "machine/gpu-fabric", _fabric),
    ("warn", "machine/gpu-sensor-broken", _broken),
    ("warn", "machine/gpu-throttled", _throttled),
    ("warn", "machine/gpu-hot", _hot),
    ("warn", "machine/gpu-exclusive", _exclusive),
    ("note", "machine/gpu-corrected", _corrected),
    ("note", "machine/gpu-pages-retired", _retired),
    ("note", "machine/gpu-power-capped", _power_capped),
    ("note", "machine/gpu-pcie-narrow", _narrow),
    ("note", "machine/gpu-ecc-pending", _when(lambda gpu: gpu.health.ecc_pending)),
    ("note", "machine/gpu-ecc-off", _when(lambda gpu: gpu.health.ecc is False)),
    ("note", "machine/gpu-no-bf16", _no_bf16),
    ("note", "machine/gpu-desktop", _desktop),
    ("note", "machine/gpu-persistence-off", _when(lambda gpu: gpu.health.persistence is False)),
    ("note", "machine/gpu-wddm", _when(lambda gpu: gpu.health.driver_model in ("WDDM", "MCDM"))),
)
