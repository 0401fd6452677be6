"""Checks what the five guides claim about memory, time and batches, and writes docs/claims.md and its Chinese twin.

    python scripts/check_claims.py [--check]

Every number on the right is computed by the planner for the guide's own settings: the recipe's published size,
traced on fake tensors where it can be built here, else by formula. Nothing is typed in by hand. With --check nothing
is written; exit code 1 says that the files are not what the planner says today.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headway.config import LoadedConfig, load_config
from headway.errors import HeadwayError, PlanError
from headway.machine import MachineReport, find_machine
from headway.planner import Forecast, Model, Plan, find_card, foresee, make_plan, recipe_trace, speed_up, study_model
from headway.task import find_recipe
from headway.units import duration, short, size

ROOT = Path(__file__).resolve().parent.parent
HEAD = {
    "en": (
        "# The guides' claims, checked",
        "Made by `python scripts/check_claims.py`: the claim as the guide writes it, and what `headway plan` computes\n"
        "for the same settings. *trace*: the real model's step on fake tensors; *formula*: from its shape;\n"
        "*arithmetic*: from the batch alone. Memory is what the driver would show on each GPU; no GPU was measured\n"
        "for this page. Times are those of the GPUs' own work: where reading data is slow, epochs take longer and\n"
        "speed-ups are nearer to the number of GPUs. The memory of TFNet is computed for the longest clips\n"
        "(`task.max_frames`), because they must fit.",
        "| guide | settings | claim | computed | verdict |",
    ),
    "zh": (
        "# 指南中的说法，逐条核对",
        "由 `python scripts/check_claims.py` 生成：指南原文的说法，以及 `headway plan` 对同样设置算出的结果。\n"
        "*试算*：在不占内存的张量上执行真实模型的一步；*公式*：由模型结构按公式算出；*算术*：只由批大小算出。\n"
        "显存是每张 GPU 上驱动会显示的数值；本页没有用 GPU 实测。\n"
        "时间只算 GPU 自身的计算与通信：读数据慢时，每轮更久，加速比更接近 GPU 数。\n"
        "TFNet 按最长的片段（`task.max_frames`）计算，因为显存必须容得下它们。",
        "| 指南 | 设置 | 说法 | 算得 | 结论 |",
    ),
}
WORDS = {
    "holds": ("holds", "成立"),
    "low": ("too low", "偏低"),
    "high": ("too high", "偏高"),
    "cannot": ("cannot be: more than the card has", "不可能：超过显卡容量"),
    "unknown": ("not checked: {why}", "未核对：{why}"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One plan that a guide speaks of."""

    guide: str
    words: tuple[str, ...]
    on: str

    def load(self) -> tuple[LoadedConfig, MachineReport, Plan]:
        """Return its config, machine and plan."""
        loaded = load_config(None, recipe=find_recipe, overrides=[f"recipe={self.guide}", *self.words], environ={})
        machine = find_machine(ROOT, loaded.config, wanted=self.on)
        return loaded, machine, make_plan(loaded, machine, loaded.recipe)

    def study(self) -> tuple[LoadedConfig, MachineReport, Plan, Model]:
        """Return all that is known of it."""
        loaded, machine, plan = self.load()
        here = find_machine(ROOT, loaded.config)
        if loaded.recipe.prepare is not None and loaded.config.task.synthetic:
            __import__(loaded.recipe.prepare, fromlist=["prepare"]).prepare(loaded.config.task, lambda _: None)
        # Other micro-batches lie on the line through two traces, so one study serves them all.
        key = (self.guide, *(word for word in self.words if not word.startswith("batch.")))
        if key not in _STUDIED:
            trace = loaded.recipe.shape is None and not _ONLY_KEPT
            _STUDIED[key] = study_model(plan, loaded.config, here, loaded.recipe, trace=trace)
        model = _STUDIED[key]
        if model is None:
            raise PlanError("plan/trace-failed", why="no trace is kept here; run without --kept")
        return loaded, machine, plan, model

    @property
    def setting(self) -> str:
        """What was planned, in one cell."""
        return f"`{' '.join(self.words)}` · {self.on}"


_ONLY_KEPT: list[bool] = []
"""Not empty: no new trace is made."""
_STUDIED: dict[tuple[str, ...], Model | None] = {}

Row = tuple[str, str, str, str, str, str]
"""Guide, settings, claim in English and Chinese, computed, verdict's key with its reason."""


def memory_row(case: Case, claim: tuple[float, float], card_gb: float | None = None) -> Row:
    """Compare a range of GB with the forecast."""
    low, high = claim
    text = _range(claim)
    loaded, machine, plan, model = case.study()
    found: Forecast = foresee(plan, loaded.config, machine, model)
    used = found.used_bytes / 1e9
    computed = f"{size(found.used_bytes)} ({used:.1f} GB, {found.source}): {found.verdict}"
    if card_gb is not None and low > card_gb:
        verdict = "cannot"
    else:
        verdict = "holds" if 0.85 * low <= used <= 1.15 * high else "low" if used > high else "high"
    return case.guide, case.setting, f"{text} per GPU", f"每张 GPU {text}", computed, verdict


def _range(claim: tuple[float, float]) -> str:
    low, high = claim
    return f"≤ {high:g} GB" if not low else f"{low:g} GB" if low == high else f"{low:g}–{high:g} GB"


def speed_up_row(case: Case, claim: tuple[float, float]) -> Row:
    """Compare a speed-up of two GPUs with the forecast."""
    loaded, machine, plan, model = case.study()
    card = find_card(machine.gpus[0])
    assert card is not None
    rates = speed_up(plan, loaded.config, model, card, ranks=(1, plan.world_size))
    got = rates[plan.world_size] / rates[1]
    verdict = "holds" if claim[0] - 0.05 <= got <= claim[1] + 0.05 else "low" if got > claim[1] else "high"
    text = f"{claim[0]}–{claim[1]}×"
    return case.guide, case.setting, f"{text} on 2 GPUs", f"2 GPU 加速 {text}", f"{got:.2f}× ({model.source})", verdict


def epoch_row(case: Case, samples: int, claim_s: tuple[float, float]) -> Row:
    """Compare the time of an epoch with the forecast; decoding data and the guide's DataParallel are not in it."""
    loaded, machine, plan, model = case.study()
    speed = foresee(plan, loaded.config, machine, model).speed
    assert speed is not None
    took = samples / speed.samples_s
    text = f"{claim_s[0] / 60:g}–{claim_s[1] / 60:g} min"
    verdict = "holds" if claim_s[0] * 0.85 <= took <= claim_s[1] * 1.15 else "low" if took > claim_s[1] else "high"
    computed = f"{duration(took)} ({short(speed.samples_s)} samples/s, {model.source})"
    return (
        case.guide,
        case.setting,
        f"{text} per epoch of {samples}",
        f"每轮（{samples} 样本）{text}",
        computed,
        verdict,
    )


def batch_row(case: Case, claim: int) -> Row:
    """Compare an effective batch."""
    _, _, plan = case.load()
    computed = f"{plan.world_size} × {plan.micro_batch} × {plan.accumulation} = {plan.batch_samples} (arithmetic)"
    verdict = "holds" if plan.batch_samples == claim else "low" if plan.batch_samples > claim else "high"
    return case.guide, case.setting, f"effective batch {claim}", f"有效批次 {claim}", computed, verdict


def list_rows() -> Iterator[Row]:
    """Yield every claim with what is computed for it."""
    presets = {"conservative": (12, 8, 24_576, 1536, (15, 16)), "balanced": (16, 12, 49_152, 2048, (20, 22))}
    presets["aggressive"] = (20, 14, 86_016, 3072, (28, 30))
    for depth, batch, total, length, claim in presets.values():
        for compiled in ("false", "true"):
            words = (f"preset={_name(presets, depth)}", f"batch.per_device={batch}", f"batch.total={total}")
            more = (f"task.max_seq_len={length}", f"train.compile={compiled}")
            yield _safe(memory_row, Case(guide="nanochat", words=(*words, *more), on="2x5090"), claim)
    rdt = Case(guide="rdt", words=("preset=guide-2gpu", "task.synthetic=true"), on="2x4090")
    yield _safe(memory_row, rdt, (35.0, 35.0), 24.0)
    yield _safe(speed_up_row, rdt, (1.8, 1.9))
    large = Case(guide="layoutmaster", words=("preset=large", "task.synthetic=true"), on="8xH20")
    base = Case(guide="layoutmaster", words=("preset=base", "task.synthetic=true"), on="8xH20")
    for case in (base, large):
        yield _safe(memory_row, case, (40.0, 60.0))
        yield _safe(epoch_row, case, 800, (300.0, 600.0))
    for batch, gib in ((4, 8), (6, 8), (6, 12), (10, 12), (8, 16), (16, 16)):
        words = ("preset=gpu", "task.framework=torch", "task.synthetic=true", f"batch.per_device={batch}")
        words += ("train.precision=fp32",)
        yield _safe(memory_row, Case(guide="tfnet", words=words, on="1x4090"), (0.0, float(gib)))
    for words, claim in (
        (("preset=published",), 64),
        (("preset=published", "batch.accumulation=4"), 256),
        (("preset=published", "batch.accumulation=2"), 128),
        (("preset=published", "batch.per_device=4", "batch.accumulation=4"), 128),
    ):
        yield _safe(
            batch_row, Case(guide="atlas", words=(*words, "train.epochs=null", "train.steps=1000"), on="8xA100"), claim
        )


def _name(presets: dict, depth: int) -> str:
    return next(name for name, values in presets.items() if values[0] == depth)


def _safe(make, case: Case, claim, *more) -> Row:  # a claim that cannot be computed here is listed with the reason
    try:
        return make(case, claim, *more)
    except HeadwayError as error:
        text = _range(claim) if make is memory_row else make.__name__.removesuffix("_row").replace("_", " ")
        return case.guide, case.setting, text, text, "n/a", f"unknown {error.text('en')}"


_CHINESE = {
    "formula": "公式",
    "trace": "试算",
    "arithmetic": "算术",
    "will-not-fit": "放不下",
    "fits": "放得下",
    "tight": "偏紧",
}
_CHINESE |= {"samples/s": "样本/秒", "n/a": "无"}


def _spoken(computed: str, lang: str) -> str:
    """Return what was computed in the language of the page."""
    if lang == "en":
        return computed.replace("will-not-fit", "will not fit")
    for english, chinese in _CHINESE.items():
        computed = computed.replace(english, chinese)
    return computed.replace("): ", "）：").replace(")", "）").replace(" (", "（").replace(", ", "，")


def write_page(rows: list[Row], lang: str) -> str:
    """Return the page in one language."""
    title, intro, head = HEAD[lang]
    place = 0 if lang == "en" else 1
    lines = [title, "", intro, "", head, "|---|---|---|---|---|"]
    for guide, setting, english, chinese, computed, verdict in rows:
        key, _, why = verdict.partition(" ")
        word = WORDS[key][place].format(why=why)
        lines.append(f"| {guide} | {setting} | {chinese if place else english} | {_spoken(computed, lang)} | {word} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument(
        "--kept", action="store_true", help="make no new traces; what has none is listed as not checked"
    )
    given = parser.parse_args()
    if given.kept:
        _ONLY_KEPT.append(True)
    recipe_trace.TIMEOUT_S = 1200.0  # published sizes, perhaps on a busy machine
    rows = []
    for row in list_rows():
        sys.stderr.write(" | ".join(row) + "\n")
        rows.append(row)
    is_same = True
    for lang, name in (("en", "claims.md"), ("zh", "claims.zh-CN.md")):
        path, text = ROOT / "docs" / name, write_page(rows, lang)
        is_same = is_same and path.exists() and path.read_text(encoding="utf-8") == text
        if not given.check:
            path.write_text(text, encoding="utf-8")
    return 0 if is_same or not given.check else 1


if __name__ == "__main__":
    sys.exit(main())
