"""GPUs by name: data sheets, and measured rates beside them, of models that need not be here (models.json)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from headway.errors import UsageError
from headway.machine.record import Gpu

_MAKERS = re.compile(r"\b(?:nvidia|geforce|tesla|quadro|amd|instinct|huawei|generation|gpu|graphics|device)\b")
_FORMS = ("pcie", "sxm", "nvl", "laptop", "max-q")
_STATED_SIZE = re.compile(r"-?\b(\d{1,3})-?g(?:i?b)?$")
"""Memory at the end of a wish: `80G`, `80GB`, `-24gib`."""
_SIZE_SLACK = 0.1
"""Share by which the memory a framework sees may differ from the one a card is sold with."""
BF16_SINCE = (8, 0)
"""Compute capability from which bf16 runs on tensor cores (Ampere)."""
_NODES = re.compile(r"\s*(\d{1,5})\s*[x×*]\s*(\d{1,4}\s*[x×*]\s*\S.*)")
_WANTED = re.compile(r"\s*(?:(\d{1,4})\s*[x×*]\s*)?(\S.*?)\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuModel:
    """One model of GPU. What its data sheet does not say is None."""

    name: str
    aliases: tuple[str, ...]
    vendor: str
    """`nvidia`, `amd` or `ascend`."""
    memory_gib: float
    """Memory as a framework sees it."""
    bf16: bool
    """Whether bf16 runs on its matrix units."""
    fp8: bool
    capability: str | None = None
    """Compute capability, `9.0`; AMD: its gfx name."""
    bandwidth_gb_s: float | None = None
    tflops_half: float | None = None
    """Dense peak in bf16, or fp16 where there is no bf16, with fp32 accumulation."""
    tflops_tf32: float | None = None
    tflops_fp32: float | None = None
    tflops_fp8: float | None = None
    link: str | None = None
    """What joins it to its neighbours; none: PCIe alone."""
    link_gb_s: float | None = None
    """Both directions together, a GPU."""
    pcie_gb_s: float | None = None
    p2p: bool | None = None
    """Whether GPUs may read each other's memory over PCIe."""
    power_w: float | None = None
    gemm_half: float | None = None
    """TFLOPS that large matrix products were measured at, in the format of `tflops_half`."""
    gemm_tf32: float | None = None
    gemm_fp32: float | None = None
    gemm_fp8: float | None = None
    gemm_bf16: float | None = None
    """The same in bf16 where the card has no units for it."""
    gemm_source: str | None = None
    """Key of the public source of these measurements (`gemm_sources`)."""
    gemm_of: str | None = None
    """The board that was measured, where it is another one with the same chip and power."""
    gemm_caveat: str | None = None
    """Why the measurement cannot be compared with those of other cards."""
    devices: int = 1
    """Devices a framework sees in one board; the numbers are of one of them."""

    @property
    def has_bridge(self) -> bool:
        """Whether its link joins two boards only."""
        return "pairs" in (self.link or "")

    @property
    def compute_capability(self) -> tuple[int, int] | None:
        """Return (9, 0) for `9.0`; none for other makers."""
        found = re.fullmatch(r"(\d+)\.(\d+)", self.capability or "")
        return (int(found[1]), int(found[2])) if found else None


def gemm_sources() -> dict[str, str]:
    """Return the addresses of the public measurements, by the key in `gemm_source`."""
    data = json.loads(Path(__file__).with_name("cards.json").read_text(encoding="utf-8"))
    return dict(data["sources"])


@cache
def gpu_models() -> tuple[GpuModel, ...]:
    """Return every model we have facts of."""
    data = json.loads(Path(__file__).with_name("cards.json").read_text(encoding="utf-8"))
    names = {one.name for one in fields(GpuModel)}
    rows = ({key: value for key, value in row.items() if key in names} for row in data["gpus"])
    return tuple(GpuModel(**{**row, "aliases": tuple(row["aliases"])}) for row in rows)


_SERIES: tuple[tuple[str, tuple[int, int]], ...] = (
    (r"Tesla K80", (3, 7)),
    (r"Tesla K\d|GTX 6\d\d|GTX 7[0-46-9]\d|GT 7\d\d|Quadro K[3-6]\d00", (3, 5)),
    (r"GTX 75\d|GTX 8\d\dM|GTX 9[56]0M|Quadro K(?:620|1200|2200)|9[34]0MX?", (5, 0)),
    (r"Tesla M\d|GTX 9\d|GTX TITAN X|Quadro M\d", (5, 2)),
    (r"P100|GP100", (6, 0)),
    (r"GTX 10|GT 10|Tesla P\d|Quadro P\d|TITAN X|MX[123]\d0", (6, 1)),
    (r"V100|GV100|TITAN V", (7, 0)),
    (r"Quadro RTX|RTX 20|GTX 16|TITAN RTX|\bT4\b|\bT[1-9]\d{2,3}\b", (7, 5)),
    (r"\bA(?:100|800|30)\b", (8, 0)),
    (r"\bA(?:2|10|10G|16|40)\b|RTX A\d|RTX 30", (8, 6)),
    (r"Orin", (8, 7)),
    (r"RTX 40|RTX \d000 Ada|\bL(?:2|4|20|40|40S)\b", (8, 9)),
    (r"\bG?H(?:20|100|200|800)\b", (9, 0)),
    (r"\bG?B(?:100|200)\b", (10, 0)),
    (r"\bG?B300\b", (10, 3)),
    (r"RTX 50|RTX PRO \d000", (12, 0)),
)
"""What the names of a generation have in common, for boards without a row and for names an old table cuts short."""


def series_capability(name: str | None) -> tuple[int, int] | None:
    """Return the compute capability of the generation a name belongs to, or None."""
    return next((capability for pattern, capability in _SERIES if re.search(pattern, name or "")), None)


def find_model(name: str | None, memory_gib: float | None = None) -> GpuModel | None:
    """Return the model a driver's name stands for, or None. Memory decides between sizes of one model."""
    if not name or name.endswith("..."):  # old tables cut names, and half a name is another card's
        return None
    wanted = _words(name)
    found = [(model, _words(model.name)) for model in gpu_models()]
    same = [(model, words) for model, words in found if _key(words) == _key(wanted)]
    if not same:
        return None
    size = memory_gib if memory_gib is not None else _size(name)
    forms = {word for word in wanted if word.startswith(_FORMS)}

    def distance(entry: tuple[GpuModel, list[str]]) -> tuple[float, float]:
        model, words = entry
        other = {word for word in words if word.startswith(_FORMS)}
        # A driver names the board only when it is not the common one: plain "H100 80GB HBM3" is the SXM board.
        apart = 0.0 if {form[:3] for form in forms} == {form[:3] for form in other} else 1.0
        if not forms and any(form.startswith("sxm") for form in other):
            apart = 0.0
        return (abs((size if size is not None else model.memory_gib) - model.memory_gib) // 4, apart)

    return min(same, key=distance)[0]


def has_bf16(gpu: Gpu) -> bool | None:
    """Return whether a GPU multiplies bf16 on its matrix units, by its capability or by its name; None: not known."""
    if gpu.capability is not None:
        return gpu.capability >= BF16_SINCE
    model = find_model(gpu.name, gpu.total_bytes / (1 << 30) if gpu.total_bytes else None)
    return model.bf16 if model else None


def _words(name: str) -> list[str]:
    plain = _MAKERS.sub(" ", name.lower().replace("(", " ").replace(")", " "))
    return [word for word in re.split(r"[\s_/-]+", plain) if word]


def _key(words: list[str]) -> tuple[str, ...]:
    """Return what tells one model from another: `h100`, `rtx 3080 ti`; board, memory and its kind do not."""
    kept = []
    for word in words:
        if re.fullmatch(
            r"\d+gb|hbm\w*|\d+w|w|modified|blackwell|server|workstation|edition|sxm\d*|pcie|nvl|laptop", word
        ):
            continue
        kept.append(word)
    return tuple(kept)


def _size(name: str) -> float | None:
    found = re.search(r"(\d+)\s*GB", name, re.I)
    return float(found[1]) if found else None


def split_nodes(text: str) -> tuple[int, str]:
    """Return (nodes, rest) of `2x8xH20`; one node where the text names GPUs only."""
    found = _NODES.fullmatch(text)
    if found is None:
        return 1, text
    if int(found[1]) < 1:
        raise UsageError("machine/on-no-node", given=text, rest=found[2])
    return int(found[1]), found[2]


def parse_wanted(text: str) -> tuple[int, GpuModel]:
    """Return (number, model) of `8xH20`, `2x4090` or `A100-40GB`, or refuse with the nearest names."""
    found = _WANTED.fullmatch(text)
    count, name = (int(found[1] or 1), found[2]) if found else (1, text)
    key = re.sub(r"[\s_]+", "-", name.strip().lower())
    stated = _STATED_SIZE.search(key)
    models = _named(key) or (_named(key[: stated.start()]) if stated else []) or _by_driver_name(name)
    if not models:
        aliases = [alias for model in gpu_models() for alias in model.aliases]
        near = get_close_matches(key, aliases, n=3, cutoff=0.4) or ["h100", "a100", "4090"]
        nearest = [f"{max(count, 1)}x{one}" for one in near]
        raise UsageError("machine/on-unknown", given=text, near=", ".join(nearest), first=nearest[0])
    if count < 1:
        raise UsageError("machine/on-none", given=text)
    if stated is None:
        return count, models[0]
    fitting = [model for model in models if abs(model.memory_gib / float(stated[1]) - 1) < _SIZE_SLACK]
    if not fitting:
        known = ", ".join(f"{count}x{model.aliases[0]} ({model.memory_gib:g} GiB)" for model in models)
        raise UsageError("machine/on-size", given=text, stated=stated[1], known=known)
    return count, fitting[0]


def _named(key: str) -> list[GpuModel]:
    """Return the model with this alias, and after it its sisters with other memory."""
    models = gpu_models()
    named = [model for model in models if {key, key.replace("-", "")} & set(model.aliases)]
    sisters = [model for model in models if named and _key(_words(model.name)) == _key(_words(named[0].name))]
    return list(dict.fromkeys([*named, *sisters]))


def _by_driver_name(name: str) -> list[GpuModel]:
    model = find_model(name)
    return [model] if model else []


def make_gpus(count: int, model: GpuModel) -> tuple[Gpu, ...]:
    """Return that many idle GPUs of a model, as a driver would list them."""
    total = int(model.memory_gib * (1 << 30))
    prefix = "NVIDIA " if model.vendor == "nvidia" else ""
    return tuple(
        Gpu(
            index=index,
            physical=index,
            name=f"{prefix}{model.name}",
            total_bytes=total,
            free_bytes=total,
            capability=model.compute_capability,
            utilisation=0,
        )
        for index in range(count * model.devices)
    )
