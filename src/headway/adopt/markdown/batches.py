"""Batch sizes and learning rates: do the numbers of a guide mean what it says they mean?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from headway.adopt.finding import Finding
from headway.adopt.markdown.blocks import Key
from headway.adopt.markdown.facts import Facts
from headway.adopt.record import Launch

_TOTAL = re.compile(r"总|total|global", re.IGNORECASE)
_EACH = re.compile(r"每(?:个|张|块)?\s*(?:GPU|卡)|per[- ](?:GPU|device|card)|each GPU", re.IGNORECASE)
_EACH_COUNT = re.compile(r"(?:每(?:个|张|块)?\s*(?:GPU|卡)|per[- ]GPU)\s*[=:：]?\s*(\d+)", re.IGNORECASE)
_BATCH = re.compile(r"(?:\w+_)?batch_size")
_PRODUCT = re.compile(
    r"(?<![\d.×*x])(\d{1,9}(?:\s*(?:GPUs?|张|个)?\s*[×*x]\s*\d{1,9}){1,8})(?:\s*GPUs?)?\s*=\s*(\d{1,12})(?![\d.e])"
)
_SAME_AS = re.compile(r"(?:和原来|same as|与原来).{0,12}?batch\D{0,8}(\d+)\D{1,4}(\d+)\s*GPU", re.IGNORECASE)
_TUNED_TOKENS = 524_288
"""Tokens in the batch that nanochat's learning rates were tuned for."""


def check_batches(facts: Facts) -> list[Finding]:
    """Return what the guide's batch arithmetic does not hold."""
    rules = (_divides, _tuned_rates, _per_device, _effective, _products, _meanings, _rate_by_ranks)
    return [finding for rule in rules for finding in rule(facts)]


def _presets(facts: Facts) -> dict[str, dict[str, int]]:
    """Return the numbers of each `name.py` that a heading names and a block shows."""
    presets: dict[str, dict[str, int]] = {}
    for key in facts.keys:
        names = re.findall(r"([\w-]+)\.(?:py|ya?ml|json)", key.block.heading.rpartition(" / ")[2])
        if names and key.number is not None:
            presets.setdefault(names[0], {})[key.name] = key.number
    return presets


def _flags_of(launch: Launch) -> dict[str, str]:
    found: dict[str, str] = {}
    for place, word in enumerate(launch.args):
        name, sign, value = word.lstrip("-").partition("=")
        if word.startswith("--") and sign:
            found[name.replace("-", "_")] = value
        elif word.startswith("--") and place + 1 < len(launch.args):
            found[name.replace("-", "_")] = launch.args[place + 1]
    return found


def _divides(facts: Facts) -> Iterator[Finding]:
    presets, ranks = _presets(facts), facts.ranks()
    for launch in facts.meaning.launches:
        flags = _flags_of(launch)
        preset = presets.get(re.sub(r".*/|\.\w+$", "", flags.get("config", "")), {})
        values: Mapping[str, int] = {**preset, **{key: int(one) for key, one in flags.items() if one.isdigit()}}
        total, each, length = (values.get(key) for key in ("total_batch_size", "device_batch_size", "max_seq_len"))
        if not (total and each and length and ranks) or total % (each * length * ranks) == 0:
            continue
        shown = f"device_batch_size={each} total_batch_size={total}"
        numbers = {"total": total, "each": each, "length": length, "ranks": ranks, "product": each * length * ranks}
        yield Finding("contradictory", "adopt/guide-batch-not-divisible", launch.line, shown, facts=numbers)


def _tuned_rates(facts: Facts) -> Iterator[Finding]:
    names = {"depth", "device_batch_size", "total_batch_size", "max_seq_len"}
    for preset, values in _presets(facts).items():
        total = values.get("total_batch_size", _TUNED_TOKENS)
        has_rate = any(key.name.endswith("_lr") for key in facts.keys)
        if names <= values.keys() and total < _TUNED_TOKENS and not has_rate:
            line = next(key.line for key in facts.keys if key.name == "total_batch_size" and key.number == total)
            factor = f"{math.sqrt(total / _TUNED_TOKENS):.2f}"
            numbers = {"total": total, "tuned": _TUNED_TOKENS, "factor": factor}
            yield Finding(
                "harmful", "adopt/guide-rate-of-large-batch", line, f"{preset}: total_batch_size={total}", facts=numbers
            )


def _accelerate_ranks(facts: Facts) -> int | None:
    ranks = [one.world_size for one in facts.meaning.launches if one.launcher == "accelerate" and one.world_size]
    return ranks[0] if ranks else None


def _per_device(facts: Facts) -> Iterator[Finding]:
    ranks = _accelerate_ranks(facts)
    for key in facts.keys if ranks and ranks > 1 else ():
        if key.name == "dataloader_num_workers" and key.number:
            numbers = {"value": key.number, "ranks": ranks, "real": key.number * (ranks or 1)}
            yield Finding("kept", "adopt/guide-workers-each", key.line, f"{key.name}={key.value}", facts=numbers)
        elif _BATCH.fullmatch(key.name) and key.number and ranks:
            each = _EACH_COUNT.search(key.comment)
            if _TOTAL.search(key.comment) or (each and int(each[1]) * ranks == key.number):
                numbers = {"value": key.number, "ranks": ranks, "real": key.number * ranks}
                yield Finding(
                    "contradictory", "adopt/guide-batch-each-device", key.line, f"{key.name}={key.value}", facts=numbers
                )


def _effective(facts: Facts) -> Iterator[Finding]:
    ranks = _accelerate_ranks(facts)
    for number, match in facts.find(r"(?:有效|effective)\s*batch\s*(?:size)?\s*=\s*(\d+)\s*[*×x]\s*(\d+)\s*=\s*(\d+)"):
        if ranks and ranks > 1 and int(match[1]) * int(match[2]) == int(match[3]):
            numbers = {"said": int(match[3]), "real": int(match[3]) * ranks, "ranks": ranks}
            yield Finding("contradictory", "adopt/guide-effective-batch", number, match[0], facts=numbers)


def _products(facts: Facts) -> Iterator[Finding]:
    for number, line in facts.lines():
        for match in _PRODUCT.finditer(line):
            factors = [int(one) for one in re.findall(r"\d+", match[1])]
            if math.prod(factors) != int(match[2][:12]):
                numbers = {"said": match[2], "real": math.prod(factors)}
                yield Finding("contradictory", "adopt/guide-product", number, match[0], facts=numbers)
            same = _SAME_AS.search(line)
            if same and int(same[1]) * int(same[2]) != int(match[2][:12]):
                numbers = {"said": match[2], "real": int(same[1]) * int(same[2])}
                yield Finding("contradictory", "adopt/guide-not-the-same", number, line.strip(" #"), facts=numbers)


def _meanings(facts: Facts) -> Iterator[Finding]:
    for key in _first_of_each(facts.keys):
        subject = f"{key.name}: {key.value}"
        if key.name == "batch_size" and _TOTAL.search(key.comment) and key.number:
            yield Finding("kept", "adopt/guide-batch-total", key.line, subject, facts={"value": key.number})
        elif key.name == "batch_size" and _EACH.search(key.comment) and key.number:
            yield Finding("kept", "adopt/guide-batch-each", key.line, subject, facts={"value": key.number})
    for number, match in facts.find(r"批(?:处理)?(?:大小|次)增加\s*(\d+)\s*倍\D{1,6}学习率增加\s*(\d+)\s*倍"):
        batch, rate = int(match[1][:6]), int(match[2][:6])
        rule = "linear" if rate == batch else "sqrt" if rate * rate == batch else ""
        if rule:
            yield Finding("kept", "adopt/guide-rate-rule", number, match[0], facts={"rule": rule})


def _first_of_each(keys: Sequence[Key]) -> list[Key]:
    return list({(key.name, key.value): key for key in reversed(keys)}.values())


def _rate_by_ranks(facts: Facts) -> Iterator[Finding]:
    steps = [key.number for key in facts.keys if key.name == "gradient_accumulation_steps" and key.number]
    if not steps or max(steps) < 2:
        return
    for block in facts.blocks:
        for number, line in enumerate(block.text.splitlines(), start=block.first_line):
            if block.language in ("python", "py") and re.search(r"lr\s*=\s*\w*lr\s*\*\s*world_size", line):
                yield Finding("harmful", "adopt/guide-rate-by-ranks", number, line.strip(), facts={"steps": max(steps)})
                return
