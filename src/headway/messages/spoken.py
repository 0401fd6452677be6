"""How a value is spoken inside a sentence. The text says it: `{names:list}`, `{what:word}`, `{why:said}`, `{num:,}`.

Facts are kept as data, in events and in JSON; the language is known only when a sentence is printed. So the text of
each language says what kind of value it shows, and this module puts the value into that language.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from string import Formatter
from typing import Literal

from headway.units import ABSENT, commas

WORDS = {
    # what a guard saw
    "gradient": "梯度",
    "loss": "损失",
    # parts of a training step
    "activations": "前向传播",
    "backward": "反向传播",
    "batch": "读取批次",
    "evaluation": "验证",
    "load": "加载",
    "moving-average": "更新 EMA",
    "optimizer-state": "创建优化器状态",
    "step": "更新参数",
    "validation": "验证",
    "weights": "加载权重",
    # how an attempt ended
    "crashed": "崩溃",
    "done": "完成",
    "failed": "失败",
    "hung": "卡死",
    "killed": "被强制终止",
    "lost": "失联",
    "preempted": "被抢占",
    "running": "训练中",
    "stopped": "已停止",
    # what Python calls a part of a .py file
    "Assert": "断言语句（assert）",
    "Attribute": "属性访问",
    "Await": "await 表达式",
    "BoolOp": "and/or 表达式",
    "Call": "函数调用",
    "ClassDef": "类定义",
    "Compare": "比较表达式",
    "Delete": "del 语句",
    "DictComp": "字典推导式",
    "For": "for 循环",
    "FunctionDef": "函数定义",
    "GeneratorExp": "生成器表达式",
    "If": "if 语句",
    "IfExp": "条件表达式",
    "Import": "import 语句",
    "ImportFrom": "import 语句",
    "JoinedStr": "f-string",
    "Lambda": "lambda 表达式",
    "ListComp": "列表推导式",
    "Set": "集合",
    "SetComp": "集合推导式",
    "Starred": "星号展开",
    "Subscript": "下标访问",
    "Try": "try 语句",
    "While": "while 循环",
    "With": "with 语句",
    # whose memory it is
    "gpu-memory": "显存",
    "host-memory": "内存",
    # units and kinds
    "native": "由 headway 直接启动",
    "original": "使用原启动器",
    "samples": "样本",
    "tokens": "token",
}
"""Words that the code knows by their English names, in Chinese. A word that is not here is shown as it is."""

PHASES = {
    "start": ("starting up", "启动"),
    "restore": ("loading the checkpoint", "恢复检查点"),
    "data": ("loading data", "读取数据"),
    "forward": ("the forward pass", "前向传播"),
    "backward": ("the backward pass", "反向传播"),
    "optimizer": ("the optimizer step", "更新参数"),
    "eval": ("validation", "验证"),
    "save": ("saving a checkpoint", "保存检查点"),
    "stopping": ("stopping", "停止"),
    "ended": ("nothing, it has ended", "已结束"),
}
"""What a rank is doing, by the phase of its heartbeat: English, Chinese."""

ENGLISH_WORDS = {
    "Attribute": "an attribute (a.b)",
    "BoolOp": "and, or",
    "Call": "a function call",
    "ClassDef": "a class",
    "Compare": "a comparison",
    "DictComp": "a comprehension",
    "For": "a for loop",
    "FunctionDef": "a function",
    "GeneratorExp": "a generator expression",
    "If": "an if statement",
    "IfExp": "a conditional expression",
    "Import": "an import",
    "ImportFrom": "an import",
    "JoinedStr": "an f-string",
    "Lambda": "a lambda",
    "ListComp": "a comprehension",
    "Set": "a set",
    "SetComp": "a comprehension",
    "Starred": "a starred expression",
    "Subscript": "a subscript (a[b])",
    "Try": "a try statement",
    "While": "a while loop",
    "With": "a with statement",
    "activations": "the forward pass",
    "backward": "the backward pass",
    "batch": "loading the batch",
    "evaluation": "validation",
    "gpu-memory": "GPU memory",
    "host-memory": "memory",
    "load": "loading",
    "moving-average": "the EMA update",
    "optimizer-state": "creating the optimizer state",
    "step": "the optimizer step",
    "weights": "loading the weights",
}
"""The same for English, where the name in the code is not what a sentence needs."""

SYSTEM_ERRORS = {
    "Address already in use": "地址已被占用",
    "Bad file descriptor": "文件描述符已失效",
    "Broken pipe": "管道已断开",
    "Cannot allocate memory": "内存不足",
    "Connection refused": "连接被拒绝",
    "Connection reset by peer": "连接被对方断开",
    "Connection timed out": "连接超时",
    "Device or resource busy": "设备或资源正忙",
    "Directory not empty": "目录不为空",
    "Disk quota exceeded": "超出磁盘配额",
    "File exists": "文件已存在",
    "File name too long": "文件名过长",
    "File too large": "文件过大",
    "Input/output error": "读写错误",
    "Is a directory": "是目录",
    "Name or service not known": "无法解析主机名",
    "No such file or directory": "文件或目录不存在",
    "No space left on device": "磁盘空间不足",
    "Not a directory": "不是目录",
    "Operation not permitted": "操作不被允许",
    "Permission denied": "没有权限",
    "Read-only file system": "文件系统为只读",
    "Stale file handle": "文件句柄已过期",
    "Too many levels of symbolic links": "符号链接层数过多",
    "Too many open files": "打开的文件过多",
    "Transport endpoint is not connected": "网络磁盘已断开",
    "timed out": "超时",
}
"""What the operating system says, in Chinese."""

_ABSENT = ("n/a", ABSENT)
"""How the code says that a value is not there."""
_HAN = re.compile("[\u4e00-\u9fff]")


def fill(text: str, facts: Mapping[str, object], lang: Literal["en", "zh"]) -> str:
    """Return a text with its facts, each spoken as the text asks for it."""
    return "".join(
        literal if name is None else literal + speak(facts[name], lang, spec, is_quoted=conversion == "r")
        for literal, name, spec, conversion in _parts(text)
    )


@functools.cache
def _parts(text: str) -> tuple[tuple[str, str | None, str, str | None], ...]:
    return tuple((literal, name, spec or "", conversion) for literal, name, spec, conversion in Formatter().parse(text))


def speak(value: object, lang: Literal["en", "zh"], kind: str = "", *, is_quoted: bool = False) -> str:
    """Return one value in a language; what is absent is said to be unknown, an empty list to hold none."""
    is_chinese = lang == "zh"
    if kind == "list":
        return _list(value, is_chinese=is_chinese)
    if value is None or value in _ABSENT:
        return "未知" if is_chinese else "n/a"
    if is_quoted:
        return repr(value)
    return _KINDS[kind](value, is_chinese) if kind in _KINDS else format(value, kind)


def _list(value: object, *, is_chinese: bool) -> str:
    if isinstance(value, str):  # read back from a file of a run, or joined already
        items = [] if value in ("", "-", *_ABSENT) else value.split(", ")
    else:
        items = [str(item) for item in value] if isinstance(value, Iterable) else [str(value)]
    return ("、" if is_chinese else ", ").join(items) or ("无" if is_chinese else "none")


def _word(value: object, is_chinese: bool) -> str:
    return (WORDS if is_chinese else ENGLISH_WORDS).get(str(value), str(value))


def _phase(value: object, is_chinese: bool) -> str:
    return PHASES[str(value)][is_chinese] if str(value) in PHASES else str(value)


def _said(value: object, is_chinese: bool) -> str:
    """Return the words of another program or library; in a Chinese sentence they are marked as its own."""
    said = str(value)
    if not is_chinese or _HAN.search(said) or not re.search("[A-Za-z]{2}", said):
        return said
    known = re.sub(r"^\[Errno -?\d+\] ", "", said)
    head, _, rest = known.partition(": ")
    if head in SYSTEM_ERRORS:
        return SYSTEM_ERRORS[head] + (f"（{rest}）" if rest else "")
    return f"“{said}”（原文）"


def _thousands(value: object, _: bool) -> str:
    return commas(str(value))


_KINDS: dict[str, Callable[[object, bool], str]] = {"word": _word, "phase": _phase, "said": _said, ",": _thousands}
