"""Why a guide's command ended badly: the cause, what proves it, and the guide's own advice with the current numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headway.config import RunConfig
from headway.errors import HeadwayError
from headway.guide.log import GuideLog
from headway.messages import fill, find_text, language, say
from headway.telemetry import RunDir, read_events

_TOPICS: Sequence[tuple[str, str]] = (
    ("wandb", r"\bwandb\b"),
    ("libuv", r"libuv|USE_LIBUV"),
    ("memory", r"out-of-memory|oom-kill|does-not-fit|over-memory|OutOfMemoryError|[Oo]ut of (?:GPU )?memory"),
    ("device", r"GPU not available|[Nn]o CUDA GPUs|CUDA is not available|no-gpu|too-few-gpus|device-error"),
    ("environment", r"import-error|no-mindspore|no-torch|ModuleNotFoundError|Not in mindspore-gpu"),
    ("data", r"/no-(?:posters|shards|episodes|demos|labels|clips)|only-synthetic|few-|missing-file|FileNotFoundError"),
    ("port", r"port-in-use|EADDRINUSE|Address already in use|connection-lost"),
    ("disk", r"disk-full|No space left"),
    ("config", r"\b(?:config|plan)/|guide/no-config"),
    ("done", r"resume-done"),
)
"""Topics of the guides' tables of troubles, and by what they are known; the first that is found decides."""
Advice = Mapping[str, str]
"""Topic to the message code of a guide's advice, one line for each thing to do."""
_ADVICE: Advice = {
    "memory": "guide/advice-memory",
    "data": "guide/advice-data",
    "device": "guide/advice-device",
    "environment": "guide/advice-environment",
    "port": "guide/advice-port",
    "disk": "guide/advice-disk",
    "config": "guide/advice-config",
    "done": "guide/advice-done",
}
_CODE = re.compile(r"\[([a-z]+/[a-z0-9-]+)\]\s*$")
_LEVEL = re.compile(r"^\[\w+\] \d{4}-\d\d-\d\d \d\d:\d\d:\d\d ")
_ERROR = re.compile(r"^(?:error: |错误：)")
_EVIDENCE = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What went wrong."""

    topic: str
    """`memory`, `data`, … or `other`."""
    cause: str
    evidence: str


def find_trouble(lines: Sequence[str], run: RunDir | None) -> Trouble:
    """Return what a run's history says of its end; where there is no run, what its command printed last."""
    incidents = [event for event in read_events(run.events) if event["kind"] == "incident"] if run else []
    if incidents:
        last = incidents[-1]
        cause, evidence = str(last.get("text") or last["class"]), str(last.get("evidence") or "")
        return Trouble(topic=_topic(f"{last['class']} {evidence} {cause}"), cause=cause, evidence=evidence[:_EVIDENCE])
    told = [line for line in lines if _CODE.search(line)]
    # Of a config with several problems the first one is the cause; the last line only counts them.
    errors = [line for line in told if _ERROR.match(_LEVEL.sub("", line))]
    if told:
        line = (errors or told)[-1]
        return Trouble(topic=_topic(line), cause=_bare(line), evidence=_explained(_CODE.findall(line)[0]))
    text = [line for line in lines if line.strip()]
    return Trouble(topic=_topic("\n".join(text[-20:])), cause=say("guide/cause-unknown"), evidence=(text or [""])[-1])


def trouble_of(error: HeadwayError) -> Trouble:
    """Return what a refusal says."""
    text, first = error.text(), error.text().split("\n", 1)[0]
    codes = _CODE.findall(first)  # each problem of a config has its own
    cause, code = (_bare(first), codes[0]) if codes else (text, error.code)
    return Trouble(topic=_topic(f"{code} {cause}"), cause=cause, evidence=_explained(code))


def _explained(code: str) -> str:
    """Return a code with the command that explains it."""
    return say("guide/evidence-code", code=code)


def write_trouble(log: GuideLog, own: Advice, trouble: Trouble, facts: Mapping[str, object]) -> None:
    """Write cause, evidence and advice into the log."""
    log.write(say("guide/analysis", cause=trouble.cause), "ERROR")
    if trouble.evidence:
        log.write(say("guide/evidence", evidence=trouble.evidence), "ERROR")
    advice = advise(own, trouble.topic, facts)
    if advice:
        log.write(say("guide/advice"), "INFO")
        for number, line in enumerate(advice, 1):
            log.write(f"  {number}. {line}", "INFO")


def advise(own: Advice, topic: str, facts: Mapping[str, object]) -> list[str]:
    """Return the guide's advice on a topic; where it has none, the one that holds for all guides."""
    code = own.get(topic) or _ADVICE.get(topic)
    if code is None:
        return []
    text = find_text(code)
    return fill(text.zh if language() == "zh" else text.en, _Known(facts), language()).split("\n")


class _Known(dict[str, object]):
    """Facts; one that is not known is a dash."""

    def __missing__(self, _: str) -> str:
        return "-"


def facts_of(config: RunConfig) -> dict[str, object]:
    """Return the numbers that the guides' advice is about."""
    task = config.task.model_dump(mode="json")
    return {
        "per_device": config.batch.per_device or "-",
        "total": config.batch.total or config.batch.all_devices or "-",
        "accumulation": config.batch.accumulation or 1,
        "workers": config.parallel.workers if config.parallel.workers is not None else config.parallel.all_workers,
        "lr": f"{config.lr.base:g}",
        "hidden": task.get("hidden_size") or task.get("hidden_dim") or "-",
        "data": task.get("data_dir", "-"),
    }


def _topic(text: str) -> str:
    return next((topic for topic, pattern in _TOPICS if re.search(pattern, text)), "other")


def _bare(line: str) -> str:
    """Return a printed error without its level, its `error:` and its code."""
    return _CODE.sub("", _ERROR.sub("", _LEVEL.sub("", line))).strip()
