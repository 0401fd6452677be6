"""Words we do not write, each with what to write instead. One list for messages, help, docs and docstrings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class Rule(NamedTuple):
    """A pattern and what to write in its place."""

    pattern: re.Pattern[str]
    write: str


_UNITS = "rank|GPU|NPU|card|device|process|node|step|epoch|parameter|second|minute|hour|frame|file|line|poster|sample"
_COUNTED = "memory|time|threads?|tokens|samples|workers|processes|posters|pictures|one|two|rows?|batch|size|copies"


def _rule(pattern: str, write: str) -> Rule:
    return Rule(re.compile(pattern), write)


ENGLISH = (
    _rule(rf"(?i)(?:\b(?:{_COUNTED}|\d+)|\}}) an? (?:{_UNITS})\b(?! of)", "'per', not 'a': memory per rank"),
    _rule(
        r"(?i)(?<!there )\b(?:is|are|was|were) no (?!longer|more|better|worse|faster|slower|larger|smaller|such)[a-z]",
        "X is not a Y",
    ),
    _rule(r"(?i)\b(?:stands?|stood|standing)\b(?! for\b)(?!alone)", "is, is in, has stopped"),
    _rule(r"(?i)\b(?:go|goes|going|went) on\b(?! to\b)", "continues, resumes"),
    _rule(r"(?i)\bwhole\b(?! numbers?\b)", "intact (a checkpoint), full, complete, entire, all of"),
    _rule(r"(?i)\bthat verif(?:y|ies)\b|\bcheckpoints? verif(?:y|ies)\b", "that passes verification"),
    _rule(r"(?i)\b(?:told|anew|for ever|mended|mend|upon|whoever|for good)\b", "reported, again, forever, fixed"),
    _rule(r"(?i)\bthe rate\b(?! (?:of|at)\b)", "the learning rate"),
    _rule(r"(?i)\b(?:driver|it|which|that) serves\b", "supports"),
    _rule(
        r"(?i)\bwho holds\b|\bstretched\b|\bno word why\b|\bnobody could\b", "memory breakdown, extrapolated, no error"
    ),
    _rule(
        r"(?i)\bthe shelf\b|\bwhat reads\b|\bwhat it brought\b|\bno use for\b", "runs, commands that read, the result"
    ),
    _rule(r"(?i)\b(?:undertaker|leash|keepsafe|disguise|tellings?)\b", "what the thing does"),
    _rule(
        r"(?i)\bas it should\b|\bnext to nothing\b|\ball the same\b|\bwill do\b",
        "plain words: correctly, almost no, anyway",
    ),
    _rule(r"(?i)\bin all\b(?=[:,;.)]|$)|\bas often as\b", "in total"),
    _rule(r"(?i)(?:^|[.,;:] )here (?:are|is)\b", "there are"),
    _rule(r"(?i)\bunless (?:said|told)\b|\bsaid otherwise\b", "by default"),
    _rule(r"(?:\d|\}) %", "65%, without a space"),
)
"""English: plain words in the usual order, and the field's own terms."""

CHINESE = (
    _rule("设备内存|系统内存", "显存，或内存（主机内存）"),
    _rule(
        "总批次|有效批次|有效批大小|单设备批次|单卡批次|每卡批次|微批次", "总批大小、每卡批大小、微批（micro-batch）"
    ),
    _rule("批次(?:为|只有|变小|从|增)|[小大]批次|批次的?大小", "批大小"),
    _rule("(?<!梯度)累积(?!误差)", "梯度累积 N 次"),
    _rule("优化器步|轮次", "步、轮（epoch）"),
    _rule("速率|学习率曲线|调度曲线", "学习率、学习率调度"),
    _rule("(?<!学习率)预热", "学习率预热"),
    _rule("存档|恢复训练|续上|断点(?!续训)|(?<!断点)(?<!继)续训", "检查点、断点续训、继续训练"),
    _rule("评估", "评测"),
    _rule("试跑", "试测（probe）、效果测试（trial）"),
    _rule("推演|模拟器|演示", "rollout（仿真测试）、仿真器、示范"),
    _rule("双进程|工作进程|(?<!数据)加载进程", "rank、数据加载进程"),
    _rule("监管|管理(?!员|服务|程序|器)", "监控"),
    _rule("(?<!整)个训练(?!样本|回合|片段|任务|步|集|海报|分片|进程|数据)", "次训练"),
    _rule("运行目录|文件夹|本次运行|该运行", "训练目录、目录、本次训练"),
    _rule("小节|教程|方案", "配置段、指南、计划"),
    _rule(r"[个块] ?(?:空闲 ?|其他 ?)?(?:GPU|NPU|显卡|卡)", "张"),
    _rule("有限数|有限的数|非有限", "出现 NaN/Inf"),
    _rule("重算激活", "激活重计算"),
    _rule("停滞|杀|残余", "卡死、强制终止、残留"),
    _rule("有害", "有风险"),
    _rule("您", "你，或不写主语"),
    _rule(r"(?:\d|\}) %", "65%，不留空格"),
    _rule(
        "词元|训练进程|批量|次尝试|步长|学习速率|缺省|无效|非法", "token、rank、批大小、次启动、步、默认；说出哪里不对"
    ),
)
"""Chinese: one term for one thing, as in the glossary."""

KEY = _rule("(?<!关)键(?![值盘])", "配置项（“键”只用于 YAML、JSON、TOML 和 .py 的语法）")
"""A key of the config; the word for a key of a file's syntax is allowed where the syntax is the subject."""


def find_words(text: str, rules: tuple[Rule, ...]) -> Iterator[str]:
    """Yield what is wrong with a text, each with the rule it breaks."""
    text = re.sub(r"\{[^{}]*\}", "{}", text)  # the names of facts are not words
    for rule in rules:
        if found := rule.pattern.search(text):
            yield f"{found[0]!r}: write {rule.write}: … {text[max(0, found.start() - 30) : found.end() + 30]!r}"


_VERBS = "may|might|has|had|could|can|takes|needs|uses|keeps|holds|is|was|sends|sees"

PROSE = (
    _rule(rf"(?i)\b(?:{_COUNTED}) an? (?:{_UNITS})\b(?! of|'s| (?:{_VERBS})\b)", "'per', not 'a': memory per rank"),
    _rule(
        r"(?<![Hh]ere )\b(?:is|are|was|were) no (?!longer|more|better|worse|faster|slower|larger|smaller|such)[a-z]",
        "X is not a Y",
    ),
    _rule(r"(?i)\b(?:stands?|stood|standing)\b(?! for\b| in for\b)(?!-|alone)", "is, is in; a rank hangs"),
    _rule(r"(?i)\b(?:go|goes|went) on\b(?! to\b)", "continue, resume"),
    _rule(r"(?i)\b(?:anew|for ever|for good|mend(?:ed|s)?|upon)\b", "again, forever, permanently, fixed"),
    _rule(r"(?i)\bthat verif(?:y|ies)\b|\bdriver serves\b", "that passes verification; supports"),
    _rule(r"(?i)\b(?:undertaker|leash|keepsafe|disguise)\b", "what the thing does"),
    _rule(r"(?i)\bnext to nothing\b|\ball the same\b|\bno use for\b", "almost no, anyway, no need for"),
    _rule(r"\d %", "65%, without a space"),
)
"""English prose around the messages: documents, docstrings, comments. The words that mislead, not every taste."""
