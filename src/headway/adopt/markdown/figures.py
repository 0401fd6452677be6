"""Figures of memory and speed that cannot all be true."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headway.adopt.finding import Finding
from headway.adopt.markdown.blocks import Table
from headway.adopt.markdown.facts import Facts

_CARDS_GB = {
    "4090": 24, "3090": 24, "4080": 16, "3080": 12, "3070": 8, "4070": 16, "5090": 32, "2080": 11, "H20": 96,
    "H100": 94, "H800": 80, "A100": 80, "A800": 80, "V100": 32, "A6000": 48, "L40": 48, "A10": 24, "T4": 16,
}  # fmt: skip
"""Largest memory a card of this name is sold with."""
_CARD = re.compile(r"(?<![\w])(?:RTX\s*)?(" + "|".join(_CARDS_GB) + r")(?![\d])")
_GB = re.compile(r"(\d{1,4})\s*(?:GB|G\b)", re.IGNORECASE)
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)\s*(?:秒|s\b|sec)", re.IGNORECASE)
_RANGE = r"(\d{1,9}(?:\.\d{1,9})?)\s*[-–~至到]\s*(\d{1,9}(?:\.\d{1,9})?)"
_EPOCH = rf"epoch\W{{0,6}}[~约]?\s*{_RANGE}\s*(?:分钟|min)[^\n]*?(\d+)\s*(?:个)?(?:训练)?\s*(?:样本|samples)"
_RATE = rf"{_RANGE}\s*(?:个)?\s*(?:样本|samples)\s*(?:/|每|per)\s*(?:秒|s)"


def check_figures(facts: Facts) -> list[Finding]:
    """Return figures that contradict each other or the hardware."""
    found = [*_speed(facts)]
    for table in facts.tables:
        found += [*_card_memory(table), *_step_time(table)]
    return found


def _card_memory(table: Table) -> Iterator[Finding]:
    for column, head in enumerate(table.header):
        card = _CARD.search(head)
        if not card:
            continue
        for line, row in table.rows:
            used = _GB.search(row[column]) if column < len(row) else None
            if used and re.search(r"显存|memory", row[0], re.IGNORECASE) and int(used[1]) > _CARDS_GB[card[1]]:
                numbers = {"used": int(used[1]), "card": card[1], "has": _CARDS_GB[card[1]]}
                yield Finding("contradictory", "adopt/guide-card-memory", line, " | ".join(row), facts=numbers)
                return


_WORK = re.compile(r"序列|分辨率|精度|编译|seq|length|resolution|precision|dtype|compile|model", re.IGNORECASE)
"""Rows that say why a step of a larger batch may be quicker."""


def _step_time(table: Table) -> Iterator[Finding]:
    if any(_WORK.search(row[0]) and len(set(row[1:3])) > 1 for _, row in table.rows):
        return
    batches = [row for _, row in table.rows if re.search(r"batch|批", row[0], re.IGNORECASE) and len(row) > 2]
    for line, row in table.rows:
        if (
            not re.search(r"步骤时间|step time|每步|time per step|sec(?:onds)?/step|s/step", row[0], re.IGNORECASE)
            or len(row) < 3
            or not batches
        ):
            continue
        times = [_SECONDS.search(cell) for cell in row[1:3]]
        sizes = [re.match(r"\d+", cell) for cell in batches[0][1:3]]
        if not (times[0] and times[1] and sizes[0] and sizes[1]):
            continue
        is_more_work = int(sizes[1][0][:9]) > int(sizes[0][0][:9])
        if is_more_work and float(times[1][1]) < float(times[0][1]):
            numbers = {"one": times[0][1], "many": times[1][1], "small": sizes[0][0], "large": sizes[1][0]}
            yield Finding("contradictory", "adopt/guide-step-time", line, " | ".join(row), facts=numbers)


def _speed(facts: Facts) -> Iterator[Finding]:
    """An epoch of so many samples at so many samples a second takes a time that can be worked out."""
    minutes = next((match for _, match in facts.find(_EPOCH)), None)
    line, rate = next(facts.find(_RATE), (0, None))
    if minutes is None or rate is None or float(rate[1]) <= 0 or float(rate[2]) <= 0:
        return
    samples = int(minutes[3][:9])
    quick, slow = samples / float(rate[2]) / 60, samples / float(rate[1]) / 60
    if abs(quick - float(minutes[1])) > 0.25 * quick or abs(slow - float(minutes[2])) > 0.25 * slow:
        numbers: dict[str, object] = {
            "samples": samples,
            "rate": f"{rate[1]}-{rate[2]}",
            "said": f"{minutes[1]}-{minutes[2]}",
        }
        numbers["real"] = f"{quick:.1f}-{slow:.1f}"
        yield Finding("contradictory", "adopt/guide-speed", line, rate[0], facts=numbers)
