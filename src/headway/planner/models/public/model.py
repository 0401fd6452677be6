"""A public model by its name, and the step somebody has in mind for it: what that takes and gives on a machine.

No weights, no framework, no GPU: shapes are published, the rest is counted (`decoder.py`, `convnet.py`, `roofline.py`).
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

from headway.errors import UsageError
from headway.machine import MachineReport
from headway.planner.forecast import find_card, gpu_room, place_card
from headway.planner.memory import MemoryForecast, Verdict, weigh_decoder
from headway.planner.models.convnet import Tape, weigh_convnet
from headway.planner.models.decoder import Decoder
from headway.planner.models.known import DECODERS, VITS, find_decoder, find_vit, most_positions, read_shape
from headway.planner.models.public.step import Settings, describe_step, weigh_outside
from headway.planner.models.vision.names import EXAMPLES
from headway.planner.models.vision.networks import DETECTORS, SEGMENTERS, Network, find_network
from headway.planner.roofline import SpeedForecast, number_of, time_convnet, time_decoder

_LANGUAGE = ("seq", "method", "rank", "targets", "frozen", "tensor", "loss", "lengths", "allocator", "stack")
"""Settings without a meaning where samples are images."""
_BLOCKS = ("recompute", "attention", "compile")
"""Settings without a meaning where there are no blocks of a transformer."""
_RARE = ("frozen", "tensor", "compile", "loss", "attention", "lengths", "offload", "allocator", "samples", "epochs")
"""Settings that are shown only where somebody has set them."""
_MOST = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedModel:
    """What a name stands for: a transformer's shape, or a convolutional network as its forward pass."""

    name: str
    shape: Decoder | None = None
    patch: int | None = None
    """Side of a patch, of a vision transformer."""
    network: Network | None = None
    """A vision network that a tape walks."""

    @property
    def is_vision(self) -> bool:
        """Whether samples are images."""
        return self.shape is None or self.patch is not None

    @property
    def positions(self) -> int | None:
        """Most tokens of a sample, where the model's own table of positions sets a limit."""
        return most_positions(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedForecast:
    """How the model would do on the machine of the plan."""

    model: NamedModel
    settings: Settings
    params: int
    trained: int
    ranks: int
    device: str
    device_bytes: float
    memory: MemoryForecast
    speed: SpeedForecast | None

    @property
    def verdict(self) -> Verdict:
        """Whether it fits."""
        return self.memory.judge(self.device_bytes)

    @property
    def used_bytes(self) -> float:
        """What the driver would show.

        The caching allocator gives free segments back before it fails, so it holds no more than the card has, unless
        the tensors alone are more.
        """
        least = self.memory.least_bytes
        return self.memory.used_bytes if least > self.device_bytes else min(self.memory.used_bytes, self.device_bytes)

    @property
    def reserved_bytes(self) -> float:
        """What the caching allocator would hold on this card."""
        return self.memory.reserved_bytes - (self.memory.used_bytes - self.used_bytes)

    def to_json(self) -> dict[str, Any]:
        """Return the forecast as `--json` prints it."""
        speed = self.speed
        return {
            "schema": "plan-model/1",
            "model": self.model.name,
            **asdict(self.settings),
            "stack": self.settings.codebase,
            "params": self.params,
            "trained": self.trained,
            "ranks": self.ranks,
            "device": self.device,
            "verdict": self.verdict,
            "least_bytes": round(self.memory.least_bytes),
            "used_bytes": round(self.used_bytes),
            "device_bytes": round(self.device_bytes),
            "allocated_bytes": round(self.memory.allocated_bytes),
            "reserved_bytes": round(self.reserved_bytes),
            "parts": {name: round(held) for name, held in self.memory.parts.items() if held},
            "moment": self.memory.moment,
            "step_s": speed.step_s if speed else None,
            "samples_s": speed.samples_s if speed else None,
            "mfu": speed.mfu if speed else None,
            "run_s": self.run_s,
        }

    @property
    def run_s(self) -> float | None:
        """Seconds of the whole run, where somebody has said how many samples it has."""
        chosen = self.settings
        if self.speed is None or not chosen.samples:
            return None
        return chosen.samples * chosen.epochs / self.speed.samples_s


def find_named(name: str) -> NamedModel:
    """Return the model of a public name, or of a `config.json` in Hugging Face's form.

    Raises:
        UsageError: the name or the file says nothing here.
    """
    path = Path(name)
    if path.suffix == ".json" or (path / "config.json").is_file():
        path = path / "config.json" if path.is_dir() else path
        return NamedModel(name=name, shape=_read_config(path))
    if (shape := find_decoder(name)) is not None:
        return NamedModel(name=name, shape=shape)
    plain = name.lower()
    if (found := find_vit(plain)) is not None:
        return NamedModel(name=name, shape=found[0], patch=found[1])
    if (network := find_network(plain)) is not None:
        return NamedModel(name=plain, network=network)
    near = _near(plain)
    raise UsageError("plan/model-unknown", name=name, near=", ".join(near), first=near[0])


def list_models() -> dict[str, list[str]]:
    """Return the names that are understood, by family."""
    families: dict[str, list[str]] = {}
    for name in DECODERS:
        families.setdefault(_family(name), []).append(name)
    families["vit"] = list(VITS)
    families["image"] = list(EXAMPLES)
    families["detector"] = list(DETECTORS)
    families["segmenter"] = list(SEGMENTERS)
    return families


def _family(name: str) -> str:
    """Return the letters a name begins with: `qwen` of `qwen2.5-7b`."""
    found = re.match(r"[a-z]+", name)
    return found[0] if found else name


def _near(plain: str) -> list[str]:
    """Return up to four names for one that is not known: of its own family first, else by their letters."""
    families, wanted = list_models(), _family(plain[:80])
    for family, names in families.items():
        if wanted == family:
            return difflib.get_close_matches(plain[:80], names, n=4, cutoff=0.0)
    near = difflib.get_close_matches(
        plain[:80], [*DECODERS, *VITS, *EXAMPLES, *DETECTORS, *SEGMENTERS], n=4, cutoff=0.5
    )
    return near or ["llama-3.1-8b", "bert-base", VITS[0], EXAMPLES[0]]


def _read_config(path: Path) -> Decoder:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as err:
        raise UsageError("plan/model-unread", path=path, why=err) from err
    shape = read_shape(data) if isinstance(data, dict) else None
    if shape is None:
        kind = data.get("model_type") if isinstance(data, dict) else None
        raise UsageError("plan/model-other-kind", path=path, kind=kind or "?")
    return shape


def read_settings(words: Sequence[str], model: NamedModel) -> Settings:
    """Return what `key=value` words say about the step.

    Raises:
        UsageError: a key that has no meaning for this model, or a value that is none of its own.
    """
    foreign = _foreign(model)
    given = read_words(words, [one.name for one in fields(Settings) if one.name not in foreign])
    if not model.is_vision and model.positions is not None:
        given.setdefault("seq", min(Settings().seq, model.positions))
    if model.patch is not None and "image" not in given and (found := find_vit(model.name.lower())):
        given["image"] = found[2]
    if model.network is not None:
        given = {"image": model.network.image, "classes": model.network.classes, **given}
    return Settings(**given)


def read_words(words: Sequence[str], allowed: Sequence[str]) -> dict[str, Any]:
    """Return the values of `key=value` words. Any: of a setting's own type.

    Raises:
        UsageError: a key that is not allowed, or a value that is none of its own.
    """
    hints = get_type_hints(Settings)
    given: dict[str, Any] = {}
    for word in words:
        key, is_pair, value = word.removeprefix("--").partition("=")
        if key == "zero" and value in ("1", "2", "3"):
            key, value = "strategy", f"zero{value}"
        if not is_pair or key not in allowed:
            raise UsageError("plan/model-odd-key", word=word, known=", ".join(allowed))
        if hints[key] is int:
            most = 12 if key == "samples" else 6
            if not re.fullmatch(rf"[1-9][0-9]{{0,{most - 1}}}", value):
                raise UsageError("plan/model-odd-value", key=key, value=value, choices=f"1 … {'9' * most}")
            given[key] = int(value)
        elif hints[key] is bool:
            if value not in ("true", "false"):
                raise UsageError("plan/model-odd-value", key=key, value=value, choices="true, false")
            given[key] = value == "true"
        else:
            if value not in get_args(hints[key]):
                raise UsageError("plan/model-odd-value", key=key, value=value, choices=", ".join(get_args(hints[key])))
            given[key] = value
    return given


def _foreign(model: NamedModel) -> set[str]:
    """Return the settings that have no meaning for a model."""
    no_head = () if model.network and model.network.kind != "classifier" else ("classes",)
    return {*(_LANGUAGE if model.is_vision else ("image",)), *(_BLOCKS if model.shape is None else ()), *no_head}


def list_words(found: NamedForecast) -> list[str]:
    """Return the step as words of the command line: what a reader wants to see said, and what somebody has changed."""
    chosen, plain = found.settings, Settings()
    skipped = {"batch", "accumulation", "optimizer", *_foreign(found.model)}
    skipped |= {"rank", "targets"} if chosen.method == "full" else set()
    skipped |= {"strategy"} if found.ranks == 1 and not chosen.is_deepspeed else set()
    skipped |= {name for name in _RARE if getattr(chosen, name) == getattr(plain, name)}
    values = {**asdict(chosen), "stack": chosen.codebase}
    return [f"{key}={str(value).lower()}" for key, value in values.items() if key not in skipped]


def foresee_named(model: NamedModel, settings: Settings, machine: MachineReport) -> NamedForecast:
    """Return memory and time of one rank's step on every GPU of a machine.

    Raises:
        UsageError: the machine has no GPU.
    """
    gpus = [gpu for gpu in machine.gpus if not gpu.lost]
    if not gpus:
        raise UsageError("plan/model-needs-gpu", name=model.name)
    ranks = len(gpus) * machine.nodes
    card = place_card(find_card(gpus[0]), machine, ranks=ranks, local=len(gpus))
    if ranks % settings.tensor:
        choices = ", ".join(str(ways) for ways in range(1, min(ranks, 64) + 1) if ranks % ways == 0)
        raise UsageError("plan/model-odd-value", key="tensor", value=settings.tensor, choices=choices)
    number = number_of(settings.precision, card)
    shape, work = describe_step(settings, shape=model.shape, patch=model.patch, ranks=ranks)
    speed = None
    if shape is None:
        tape = Tape(wide=1.0 if number == "fp32" else 2.0, softmax=1.0)
        assert model.network is not None
        timed = model.network.walk(tape, settings.image, settings.classes)
        params = trained = round(tape.params)
        memory = weigh_convnet(tape, work, ranks=ranks)
        if card is not None and timed:
            speed = time_convnet(tape, work, card, ranks=ranks, number=number)
    else:
        params = shape.params
        trained = work.adapter.params if work.adapter else params
        memory = weigh_outside(settings, weigh_decoder(shape, work, ranks=ranks))
        if card is not None:
            speed = time_decoder(shape, work, card, ranks=ranks, number=number)
    return NamedForecast(
        model=model,
        settings=settings,
        params=params,
        trained=trained,
        ranks=ranks,
        device=gpus[0].name or "GPU",
        device_bytes=min(gpu_room(gpu) for gpu in gpus),
        memory=memory,
        speed=speed,
    )


def largest_batch(found: NamedForecast, machine: MachineReport, *, tight: bool = False) -> int:
    """Return the most samples a GPU could take at a time; 0: not one.

    Args:
        tight: count what might just fit, too.
    """
    low, high = 0, _MOST
    while low < high:
        middle = (low + high + 1) // 2
        tried = foresee_named(found.model, replace(found.settings, batch=middle), machine)
        is_enough = tried.verdict == "fits" or (tight and tried.verdict == "tight")
        low, high = (middle, high) if is_enough else (low, middle - 1)
    return low


def other_ways(found: NamedForecast, machine: MachineReport) -> Iterator[tuple[str, NamedForecast]]:
    """Yield changes that take less memory, as words of the command line, and how each would do."""
    now = asdict(found.settings)
    is_language = not found.model.is_vision
    changes: list[dict[str, str]] = [
        {"optimizer": "adamw-fused"},
        {"optimizer": "adamw-8bit"},
        {"precision": "bf16-pure"},
    ]
    if found.ranks > 1:
        changes += [{"strategy": "zero2"}, {"strategy": "fsdp"}]
    if found.model.shape is not None:
        changes += [{"recompute": "full"}]
    if is_language:
        changes += [{"loss": "cut"}, {"method": "lora"}, {"method": "qlora"}, {"method": "qlora", "recompute": "full"}]
    if found.ranks > 1 and is_language:
        changes += [{"strategy": "fsdp", "recompute": "full"}]
    seen: list[dict[str, str]] = []
    for change in changes:
        change = {key: value for key, value in change.items() if now[key] != value}
        if change in seen:
            continue
        seen.append(change)
        other = foresee_named(found.model, Settings(**{**now, **change}), machine)
        if other.memory.used_bytes < 0.98 * found.memory.used_bytes:
            yield " ".join(f"{key}={value}" for key, value in change.items()), other
