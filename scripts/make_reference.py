"""Write the reference, docs/reference/: the error book (one section per code), every config key, every command.

    python scripts/make_reference.py

It is made from the messages and from the source that raises them; a test compares the files with a fresh one.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections.abc import Callable
from pathlib import Path

from message_uses import SOURCE, Use, find_uses
from reference_pages import render_commands, render_config

import headway.errors as errors
import headway.messages as messages
from headway.messages import LANGUAGES, Language, Text, say
from headway.task import RECIPES

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
_RECIPES = SOURCE / "recipes"
SUFFIXES: dict[Language, str] = {"en": ".md", "zh": ".zh-CN.md"}

_STAGES = {
    "cli": ("The command line", "命令行"),
    "config": ("Config", "配置"),
    "recipes": ("Recipes", "配方"),
    "machine": ("Machine", "机器"),
    "adopt": ("Adopt", "读懂旧脚本"),
    "plan": ("Plan", "计划"),
    "tune": ("Tune", "调优"),
    "launch": ("Launch and supervision", "启动与监控"),
    "run": ("Other people's launch lines", "运行已有的启动命令"),
    "nodes": ("Several nodes", "多节点"),
    "cluster": ("Jobs of a cluster", "集群任务"),
    "engine": ("Training", "训练"),
    "mindspore": ("Training with MindSpore", "MindSpore 训练"),
    "checkpoint": ("Checkpoints", "检查点"),
    "mirror": ("Copies of checkpoints elsewhere", "检查点的异地副本"),
    "diagnose": ("Why a rank failed", "rank 失败的原因"),
    "telemetry": ("Runs", "训练目录"),
    "guide": ("The guides' own commands", "指南命令"),
    "devices": ("Readings of devices", "设备读数"),
    "live": ("Findings while a run trains", "训练中的发现"),
    "replay": ("`headway replay`", "`headway replay`"),
    "rehearse": ("`headway rehearse`", "`headway rehearse`"),
    "board": ("The board", "网页看板"),
    "alert": ("Alerts and trackers", "通知与实验跟踪"),
    "watch": ("The full-screen view", "全屏视图"),
    "ui": ("Screens and export", "界面与导出"),
}
"""Stages that can refuse something, in the order of a run, with their headings."""

_INTRO = {
    "en": """# Every error and finding

*[中文](errors.zh-CN.md)*

Each message carries a code in brackets. Find it here with what it says, what to do about it and the exit code of the
command. Words in braces are filled in at run time. Written by `scripts/make_reference.py`; do not edit.
""",
    "zh": """# 错误与检查结果一览

*[English](errors.md)*

每条消息末尾的方括号里是代码。在这里按代码查找它的含义、处理办法和命令的退出码。花括号中的内容在运行时填入。
本文件由 `scripts/make_reference.py` 生成，不要手工修改。
""",
}
_EXIT = {"en": "Exit code {exit}", "zh": "退出码 {exit}"}
_FROM = {"en": "said by {places}", "zh": "出自 {places}"}
_BETWEEN = {"en": "; ", "zh": "；"}
_NOTES = frozenset({"Finding", "PlanWarning", "append", "emit"})
"""Who carries a note about something that does not stop the command by itself; shown as `headway check` shows it."""
_COUNT = {"en": "| stage | codes |", "zh": "| 阶段 | 代码数 |"}


def read_texts() -> dict[str, Text]:
    """Return every message."""
    texts: dict[str, Text] = {}
    for name in [*(module.name for module in pkgutil.iter_modules(messages.__path__)), *RECIPES]:
        texts.update(getattr(importlib.import_module(messages.find_module(name)), "TEXTS", {}))
    return texts


def list_errors(texts: dict[str, Text], uses: list[Use]) -> list[str]:
    """Return the codes that are raised or found: those with a hint, those an error carries, those of a failed rank."""
    raised = {use.code for use in uses if _exit_code(use) is not None or use.speaker in _NOTES}
    found = [code for code, text in texts.items() if text.en_hint or code in raised or code.startswith("diagnose/")]
    order = list(list_stages(texts))
    return sorted(found, key=lambda code: (order.index(code.partition("/")[0]), code))


def list_stages(texts: dict[str, Text]) -> dict[str, tuple[str, str]]:
    """Return the stages with their headings; each recipe that has messages of its own is one, after all others."""
    recipes = sorted({code.partition("/")[0] for code in texts} & {path.name for path in _RECIPES.iterdir()})
    return _STAGES | {name: (f"Recipe {name}", f"配方 {name}") for name in recipes}


def render(lang: Language) -> str:
    """Return the whole book in one language."""
    texts = read_texts()
    uses = find_uses(frozenset(code.partition("/")[0] for code in texts))
    codes = list_errors(texts, uses)
    parts = [_INTRO[lang], _COUNT[lang], "|---|---:|"]
    stages = list_stages(texts)
    for stage, names in stages.items():
        num = sum(code.startswith(f"{stage}/") for code in codes)
        parts.append(f"| {names[LANGUAGES.index(lang)]} (`{stage}/…`) | {num} |")
    for stage, names in stages.items():
        parts.append(f"\n## {names[LANGUAGES.index(lang)]}")
        mine = [code for code in codes if code.startswith(f"{stage}/")]
        parts += [_section(code, texts[code], [use for use in uses if use.code == code], lang) for code in mine]
    return "\n".join(parts) + "\n"


def _section(code: str, text: Text, uses: list[Use], lang: Language) -> str:
    words, advice = (text.zh, text.zh_hint) if lang == "zh" else (text.en, text.en_hint)
    words, advice = _plain(words), _plain(advice)
    if uses and all(use.speaker in _NOTES for use in uses):
        lines = [f"! {words} [{code}]", f"→ {advice}"]
    else:
        lines = [say("cli/error", lang, text=words, code=code), say("cli/hint", lang, text=advice)]
    lines = lines if advice else lines[:1]
    exits = sorted({str(found) for use in uses if (found := _exit_code(use)) is not None})
    notes = [_EXIT[lang].format(exit=" / ".join(exits))] if exits else []
    places = sorted({f"`{use.file}`" for use in uses})
    notes += [_FROM[lang].format(places=", ".join(places))] if places else []
    note = _BETWEEN[lang].join(notes)
    body = "\n".join(lines)
    return f"\n### {code}\n\n```text\n{body}\n```" + (f"\n\n{note[:1].upper()}{note[1:]}" if note else "")


def _plain(text: str) -> str:
    """Return a text whose placeholders are names alone, without how each is spoken."""
    return re.sub(r"\{(\w+)(?:![rs])?:[^{}]*\}", r"{\1}", text)


def _exit_code(use: Use) -> int | None:
    """Return the exit code behind a use: of the error that carries the code, or of a config problem."""
    if use.speaker in {"add", "stop", "refuse"}:
        return errors.ConfigError.exit_code
    if re.fullmatch(r"[A-Z]\w*Error|StoppedForGood", use.speaker):
        return int(getattr(errors, use.speaker, errors.HeadwayError).exit_code)
    return None


PAGES: dict[str, Callable[[Language], str]] = {
    "errors": render,
    "config": render_config,
    "commands": render_commands,
}
"""What makes each page."""


def page_path(page: str, lang: Language) -> Path:
    """Return the file of a page."""
    return FOLDER / f"{page}{SUFFIXES[lang]}"


def main() -> None:
    """Write every page in both languages and say how large it is."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for page, make in PAGES.items():
        for lang in LANGUAGES:
            path, text = page_path(page, lang), make(lang)
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{path}: {text.count(chr(10))} lines\n")


if __name__ == "__main__":
    main()
