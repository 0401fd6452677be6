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
_OF_A_DEVICE = re.compile(r"(?:per_device|per_gpu|micro)\w*batch_size|batch_size_per_(?:device|gpu)|device_batch_size")
_NOTE = r"(?:\s*[(（][^()（）\d]{1,12}[)）])?"
_PRODUCT = re.compile(
    rf"(?<![\d.×*x])(\d{{1,9}}{_NOTE}(?:\s*(?:GPUs?|张|个)?\s*[×*x]\s*\d{{1,9}}{_NOTE}){{1,8}})(?:\s*GPUs?)?\s*=\s*\**"
    r"(\d{1,12})(?![\d.e])(?!\s*[+\-*/×x]\s*\d)"
)
_SAME_AS = re.compile(r"(?:和原来|same as|与原来).{0,12}?batch\D{0,8}(\d+)\D{1,4}(\d+)\s*GPU", re.IGNORECASE)
_EFFECTIVE = re.compile(
    r"(?:有效|等效|effective)\s*(?:global\s*|train(?:ing)?\s*)?batch(?:[\s_]*size)?\**\s*[=:：]\s*"
    r"(\d{1,9})\s*[*×x]\s*(\d{1,9})\s*=\s*(\d{1,12})",
    re.IGNORECASE,
)
_RATE_RULE = re.compile(
    r"批(?:处理)?(?:大小|次)增加\s*(\d{1,6})\s*倍\D{1,6}学习率增加\s*(\d{1,6})\s*倍"
    r"|batch(?: size)?\s+(?:is |by |increases |grows )*(\d{1,6})\s*(?:x|×|times)\D{1,40}?(?:learning rate|lr)\D{0,20}?"
    r"(\d{1,6})\s*(?:x|×|times)",
    re.IGNORECASE,
)
_RATE = r"[\w.\[\]\"']*(?:lr|learning_rate)[\w.\]\"']*"
_RATE_BY_RANKS = re.compile(
    rf"{_RATE}\s*(?:=|\*=)\s*(?:{_RATE}\s*\*\s*)?[\w.]*(?:world_size|num_processes|n(?:um)?_?gpus?|hvd\.size)\b(?!\s*\*\*)"
)
_ACCUMULATION = re.compile(r"(?:gradient_)?accum\w*(?:_steps|_iter|_batches)?")
_TOTALS = ("total_batch_size", "global_batch_size", "effective_batch_size")
_EACHES = ("device_batch_size", "per_device_train_batch_size", "micro_batch_size", "batch_size_per_gpu")
_LENGTHS = ("max_seq_len", "seq_length", "seq_len", "sequence_length")
_SPLITS = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size")


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
        total, each, length = (_first(values, names) for names in (_TOTALS, _EACHES, _LENGTHS))
        own = launch.world_size or ranks
        if not (total and each and own) or any(values.get(name, 1) > 1 for name in _SPLITS):
            continue
        # A total of at least the tokens of one sequence counts tokens.
        factors = [each[1], *([length[1]] if length and total[1] >= each[1] * length[1] else []), own]
        product = math.prod(factors)
        if total[1] % product:
            shown = f"{each[0]}={each[1]} {total[0]}={total[1]}"
            numbers = {"total": total[1], "factors": " × ".join(map(str, factors)), "product": product}
            yield Finding("contradictory", "adopt/guide-batch-not-divisible", launch.line, shown, facts=numbers)


def _first(values: Mapping[str, int], names: Sequence[str]) -> tuple[str, int] | None:
    return next(((name, values[name]) for name in names if values.get(name)), None)


def _tuned_rates(facts: Facts) -> Iterator[Finding]:
    """Configs of several batches under one learning rate that none of them names."""
    if any(re.search(r"(?:^|_)lr$|learning_rate", key.name) for key in facts.keys):
        return
    totals = {name: total for name, values in _presets(facts).items() if (total := _total_of(values))}
    largest = max(totals.values(), default=0)
    for preset, total in totals.items():
        if total < largest:
            lines = [key.line for key in facts.keys if preset in key.block.heading and key.name in (*_TOTALS, *_EACHES)]
            numbers = {"total": total, "tuned": largest, "factor": f"{math.sqrt(total / largest):.2f}"}
            yield Finding("harmful", "adopt/guide-rate-of-large-batch", lines[-1], f"{preset}: {total}", facts=numbers)


def _total_of(values: Mapping[str, int]) -> int:
    """The total batch that a config sets, by name or as batch times accumulation; 0: it sets none."""
    if total := _first(values, _TOTALS):
        return total[1]
    each = _first(values, (*_EACHES, "batch_size"))
    steps = [value for name, value in values.items() if _ACCUMULATION.fullmatch(name)]
    return each[1] * steps[0] if each and steps else 0


def _accelerate_ranks(facts: Facts) -> int | None:
    ranks = [one.world_size for one in facts.meaning.launches if one.launcher == "accelerate" and one.world_size]
    return ranks[0] if ranks else None


def _per_device(facts: Facts) -> Iterator[Finding]:
    ranks = _accelerate_ranks(facts)
    for key in facts.keys if ranks and ranks > 1 else ():
        if key.name in ("dataloader_num_workers", "num_workers") and key.number:
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
    """A batch per process times accumulation, called the whole although there are several processes."""
    ranks = _accelerate_ranks(facts) or facts.ranks() or 1
    steps = {key.number for key in facts.keys if _ACCUMULATION.fullmatch(key.name)}
    for number, match in facts.find(_EFFECTIVE) if ranks > 1 else ():
        first, second, said = (int(one) for one in match.groups())
        if first * second == said and second in steps and _is_of_a_device(facts, first):
            numbers = {"said": said, "real": said * ranks, "ranks": ranks}
            yield Finding("contradictory", "adopt/guide-effective-batch", number, match[0], facts=numbers)


def _is_of_a_device(facts: Facts, value: int) -> bool:
    """Whether a batch is each process's own: accelerate gives every batch size to each process."""
    return _accelerate_ranks(facts) is not None or any(
        _OF_A_DEVICE.fullmatch(key.name) and key.number == value for key in facts.keys
    )


def _products(facts: Facts) -> Iterator[Finding]:
    for number, line in facts.lines():
        for match in _PRODUCT.finditer(line):
            # `(1 + 2) / 3 * 4 = 4`: what comes before it is part of the sum.
            if line[: match.start()].rstrip()[-1:] in ("/", "+", "-", "^", "÷", ")"):
                continue
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
        if _BATCH.fullmatch(key.name) and _TOTAL.search(key.comment) and key.number:
            yield Finding("kept", "adopt/guide-batch-total", key.line, subject, facts={"value": key.number})
        elif _BATCH.fullmatch(key.name) and _EACH.search(key.comment) and key.number:
            yield Finding("kept", "adopt/guide-batch-each", key.line, subject, facts={"value": key.number})
    for number, match in facts.find(_RATE_RULE):
        batch, rate = (int(one) for one in match.groups() if one is not None)
        rule = "linear" if rate == batch else "sqrt" if rate * rate == batch else ""
        if rule:
            yield Finding("kept", "adopt/guide-rate-rule", number, match[0], facts={"rule": rule})


def _first_of_each(keys: Sequence[Key]) -> list[Key]:
    return list({(key.name, key.value): key for key in reversed(keys)}.values())


def _rate_by_ranks(facts: Facts) -> Iterator[Finding]:
    steps = [key.number for key in facts.keys if _ACCUMULATION.fullmatch(key.name) and key.number]
    if not steps or max(steps) < 2:
        return
    for block in facts.blocks:
        for number, line in enumerate(block.text.splitlines(), start=block.first_line):
            if block.language in ("python", "py", "") and _RATE_BY_RANKS.search(line) and "accum" not in line:
                yield Finding("harmful", "adopt/guide-rate-by-ranks", number, line.strip(), facts={"steps": max(steps)})
                return
