"""The shapes that progress has in the lines of trainers: a bar, a count, an epoch, a loss, a learning rate."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_NUMBER: Final = r"[-+]?(?:\d{1,18}\.?\d{0,30}|\.\d{1,30})(?:[eE][-+]?\d{1,4})?|nan|-?inf"
_INT: Final = r"\d{1,12}(?!\.?\d)"

# What comes before the message: times, levels, files, ranks.
_PREFIX: Final = re.compile(
    r"\s*(?:\[[^\]]{0,60}\]:?|\([^)]{0,60}\)|<[^>]{0,40}>:?|\d{2,4}[-/.]\d\d(?:[-/.]\d{2,4})?(?=\D)|\d\d:\d\d:\d\d[\d.,Z]*"
    r"|[IWE]?\d{4} \d\d:\d\d\S{0,16} \d+|(?:INFO|DEBUG|WARN|WARNING|LOGS?|DLL)\b(?::\w[\w.]{0,40}:)?"
    r"|rank ?\d+:?|worker-\d+:"
    r"|\d{1,4}:(?= )|[\w.]{1,60}\.py:\d+\]?|[\w.]{1,40}(?= - )|[-|:>*=#✅]+)\s*",
    re.I,
)
_EVALUATES: Final = (
    r"(?:val(?:id(?:at(?:e|ing|ion))?)?|test(?:ing|_?set)?|eval(?:s|uat(?:e|ing|ion|or))?|dev|infer\w{0,5}|predict\w{0,5}"
    r"|sanity)"
)
_EVAL_WORD: Final = re.compile(rf"(?<![a-z]){_EVALUATES}(?![a-z])|验证|测试|评估|评测|推理", re.I)
_EVAL_FIRST: Final = re.compile(rf"\W{{0,8}}(?:{_EVALUATES}(?![a-z])(?![ _/]*(?:loss|acc))|验证|测试|评估|评测)", re.I)
# A mode, not the name of a value: [eval]  Epoch(val)  valid on 'valid' subset  Test: [  0/29]  Validation | epoch 3
_EVAL_MODE: Final = re.compile(
    rf"[\[(]\s?(?:{_EVALUATES}|验证\w?|测试\w?|评估\w?)\s?[\])]"
    rf"|(?<![a-z]){_EVALUATES}(?:\s{{0,4}}:\s{{0,4}}[\[\d]\d{{0,9}}[ /\]%]|\s{{0,4}}\|"
    r"|\s{1,4}(?:on|results?|summary|dataloader|epoch|step|iter|batch)\b)",
    re.I,
)

# tqdm:  12%|█▏   | 12/100 [00:05<   in a notebook:  12% 12/100 [   Ultralytics' own:  42% ━━━━──── 42/100 9.1it/s
_BAR: Final = re.compile(
    r"(?<![\d.])\d{1,3}% ?(?:\|[^|]{0,400}\||[━─╸╺ ]{0,200})? ?(\d{1,12})/(\d{1,12})(?= ?\[| \d|\s*$)"
)
_BARE_BAR: Final = re.compile(
    r"^\s{0,8}(\d{1,12})/(\d{1,12})(?= \[\d{1,4}:\d\d)"
)  # a notebook's, its name on the line above
_BAR_TIME: Final = re.compile(r" ?\[(?:(\d+) days?, )?(?:(\d+):)?(\d+):(\d\d)<")
_BAR_RATE: Final = re.compile(r"([\d.]+)\s?([A-Za-z]{1,12})/([A-Za-z]{1,12})\b")
_TRAINS: Final = re.compile(r"train|epoch|step|iter|fit|finetun|fine-tun|optimi[sz]|learning|训练|第\d+轮", re.I)
_PREPARES: Final = re.compile(
    r"dataset|split|shard|token(?:iz|ing)|template|cach|scan|load|sav|writ|read|map\b|filter|pack|trunc|extract|encod"
    r"|process|convert|prepar|creat|quanti|generat|rollout|fetch|push|\.(?:json|bin|pt|txt|parquet|safetensors)\b"
    r"|加载|处理|下载|保存|生成|数据",
    re.I,
)
_STEP_UNITS: Final = frozenset({"it", "iter", "iters", "batch", "batches", "ba", "step", "steps", "s"})
_BYTE_UNITS: Final = re.compile(r"[kKMGT]?i?B|examples?|files?|keys?|docs?")
_TOO_FAST: Final = 1000.0
"""Items a second: forward, backward and optimizer in Python take longer than a millisecond."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One state of a bar."""

    count: int
    of: int
    is_named: bool
    """Its name says that it trains."""
    name: str
    elapsed_s: int


def is_evaluation(text: str) -> bool:
    """Say whether a line is about validation or testing as a whole, not only one of its values."""
    if not _EVAL_WORD.search(text):
        return False
    return bool(_EVAL_MODE.search(text) or _EVAL_FIRST.match(text, behind_prefix(text)))


def behind_prefix(text: str) -> int:
    """Return where the message begins behind times, levels and ranks."""
    at = 0
    for _ in range(8):
        found = _PREFIX.match(text, at)
        if found is None or found.end() == at:
            break
        at = found.end()
    return at


def find_bar(text: str, *, has_loss: bool) -> Bar | None:
    """Return the last bar in a line that can be one of training."""
    begins, found = 0, None
    for bar in _BAR.finditer(text) if "%" in text else ():
        begins, found = (found.end() if found else 0), bar
    found = found or _BARE_BAR.match(text)
    if found is None:
        return None
    name = text[max(begins, found.start() - 300) : found.start()]
    name = name[behind_prefix(name) :]
    count, of = int(found[1]), int(found[2])
    if of <= 1 or count > of or _PREPARES.search(name) or _EVAL_WORD.search(name):
        return None
    rest = text[found.end() : found.end() + 80]
    rate = _BAR_RATE.search(rest)
    if rate is not None and (_BYTE_UNITS.fullmatch(rate[2]) or _BYTE_UNITS.fullmatch(rate[3])):
        return None
    is_named = bool(_TRAINS.search(name))
    if not is_named and not has_loss and (re.search(r"[^\W\d_]", name) or _is_foreign(rate)):
        return None
    return Bar(count, of, is_named, name, _elapsed_s(rest))


def _is_foreign(rate: re.Match[str] | None) -> bool:
    """A bar without a name and a loss: of other things than steps, or too fast for training."""
    if rate is None:
        return False
    try:
        per_s = float(rate[1]) if rate[3] == "s" else 0.0
    except ValueError:
        return True
    return rate[2] not in _STEP_UNITS or per_s > _TOO_FAST


def _elapsed_s(rest: str) -> int:
    took = _BAR_TIME.match(rest)
    if took is None:
        return 0
    days, hours, minutes, seconds = (int(part or 0) for part in took.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


@dataclass(frozen=True, slots=True)
class Count:
    """What a line counts. `of` is the end of an epoch, `total` that of the run; a kind is counted on its own."""

    kind: str
    n: int
    total: int | None = None
    of: int | None = None
    epoch: int | None = None
    epochs: int | None = None
    first: int | None = None
    """The number of the first epoch, where the shape tells."""


_EPOCH: Final = (
    r"(?:(?<![A-Za-z\d_])(?:epochs?(?:\(train\))?|ep)(?![A-Za-z])['\"]?[ \t]{0,3}[:=#]?[ \t]{0,6}"
    r"|(?<![A-Za-z])Train:[ \t]{0,6}"
    r"|第(?=[ \t]{0,3}\d{1,6}[ \t/\d]{0,12}(?:轮|个?epoch))[ \t]{0,3}|轮[次数]?[:： ]{1,3})[\[(]{0,2}[ \t]{0,8}"
    rf"(?P<epoch>{_INT})(?:[ \t]{{0,4}}/[ \t]{{0,4}}(?P<epochs>{_INT}))?"
)
_ONE_EPOCH: Final = re.compile(_EPOCH, re.I)
# ====> Epoch: 158, cost 90.36 s
_TIMED_EPOCH: Final = re.compile(
    r"\W{0,12}(?:end of )?epoch\W{0,3}\d{1,6}\b[^\d]{0,20}(?:cost|time|took|elapsed)\W{1,3}\d", re.I
)
# Epoch: [0][ 10/5005]   Epoch 011  3000 / 8223   Train:   11/20 ( 55%) [ 149/1935 (  8%)]   Epoch(train) [2][ 50/1000]
_IN_EPOCH: Final = re.compile(
    _EPOCH + r"\]?(?:[ \t]{1,3}\([ \t]{0,3}\d+%\))?[\]\s:,|]{1,8}"
    rf"[\[(]?[ \t]{{0,8}}(?P<n>{_INT})[ \t]{{0,4}}/[ \t]{{0,8}}(?P<of>{_INT})",
    re.I,
)
_STEP: Final = re.compile(
    r"(?<![A-Za-z/_\d])(?:(?:global|current|train(?:ing)?)[_ ]?)?(?:steps?|iter(?:ation)?s?(?: index)?"
    r"|batch(?:_step|_idx)?|updates?|episodes?|num_updates|步数?|批次|迭代次?数?)(?:\(train\))?"
    rf"(?![A-Za-z_/])['\"]?[ \t]{{0,3}}[:：=#]?[ \t]{{0,8}}[\[('\"]{{0,2}}[ \t]{{0,8}}(?P<n>{_INT})"
    rf"(?:[ \t]{{0,4}}/[ \t]{{0,8}}(?P<total>{_INT}))?",
    re.I,
)
_STEP_ZH: Final = re.compile(r"第 ?(?P<n>\d{1,12}) ?(?:/ ?(?P<total>\d{1,12}) ?)?(?:步|批|个?batch|次迭代)", re.I)
_NOT_STEP: Final = re.compile(
    r"(?:skipped|nan|per|max|total|warm-?up|number of|accumulation|optimization|save|every)\W?$", re.I
)
_SETTING: Final = re.compile(r"(?:\w{1,9}[_ ])?(?:steps|batch)", re.I)  # these are beside a rate in settings, too
_TOTAL: Final = re.compile(r"(?:total|max)_(?:steps|iters?)['\"]?\s{0,3}[:=]\s{0,3}(\d{1,12})")
_GLOBAL: Final = re.compile(rf"(?<![A-Za-z/])global[_ ]?step['\"]?[ \t]{{0,3}}[:=]?[ \t]{{0,3}}({_INT})", re.I)
_SHAPES: Final = (
    # swift:  'global_step/max_steps': '50/937'   fairseq:  num_updates=100   "num_updates": "100"   num_updates 100 |
    ("global", re.compile(rf"global_step/max_steps['\"]?:\s?['\"]?(?P<n>{_INT})/(?P<total>{_INT})")),
    ("global", re.compile(rf"num_updates['\"]?[ :=]{{1,3}}['\"]?(?P<n>{_INT})")),
    # composer:  [epoch=0][batch=20/4800]:
    ("batch", re.compile(rf"\[batch=(?P<n>{_INT})/(?P<total>{_INT})\]")),
    # Lightning's rich bar:  Epoch 0/4  ━━━━ 120/469 0:00:03
    (
        "rich",
        re.compile(rf"Epoch (?P<epoch>{_INT})/(?P<last>{_INT})\s{{1,4}}[━╸╺ ]{{1,200}}(?P<n>{_INT})/(?P<of>{_INT})"),
    ),
)
_LAST_SHAPES: Final = (
    # GANs:  [ 2/30][800/938] D_loss: 0.4
    (
        "epoch",
        re.compile(rf"\[\s{{0,4}}(?P<epoch>{_INT})/(?P<epochs>{_INT})\]\s?\[\s{{0,6}}(?P<n>{_INT})/(?P<of>{_INT})\]"),
    ),
    # torch's cifar tutorial:  [2,  4000] loss: 1.3   nvme example:  [2] loss: 10.9   clu:  [100] loss=4.6
    ("step", re.compile(rf"\[(?P<epoch>{_INT}),\s{{1,8}}(?P<n>{_INT})\]\s{{0,3}}(?=\w{{0,16}}[ _]?loss)", re.I)),
    ("step", re.compile(rf"(?:^|\]|:)\s?\[(?P<n>{_INT})\] (?=[a-z])", re.I)),
    # 4500/20000 train_loss: 2.8
    ("step", re.compile(rf"^\s{{0,4}}(?P<n>{_INT})/(?P<total>{_INT})\s{{1,4}}(?=\w{{0,16}}loss)", re.I)),
    # ESPnet:  1epoch:train:1-50batch:
    ("step", re.compile(r"\b(?P<epoch>\d{1,6})epoch:train:\d{1,9}-(?P<n>\d{1,9})batch")),
    ("step", re.compile(rf"after (?P<n>{_INT}) (?:batches|steps|iterations)\b")),
    # tqdm without an end:  120it [00:10, 11.9it/s, loss=0.5]
    ("step", re.compile(r"(?:^|\s)(?P<n>\d{1,12})it \[\d")),
)
# Below a line "Epoch 1/5":  12/1875 [.....] - ETA: 9s - loss: 2   12/1875 ━━━ 3s 2ms/step -   9/9 - 21s - loss: 1
_KERAS: Final = re.compile(
    rf"^\s{{0,8}}(?P<n>{_INT})/(?P<of>{_INT})\s{{1,4}}"
    r"(?:\[[=>.]{1,60}\]|[━╸╺ ]{1,60}\d{1,9}\w{0,2} |- \d{1,9}\w?s).{0,400} - "
)
_MEASURED: Final = re.compile(r"\d ?m?s\b|it/s|/sec|\btime\b|\beta\b|\blr\b|loss|\]:$", re.I)


def find_count(text: str, *, has_loss: bool, has_rate: bool) -> Count | None:
    """Return how far a line says the training is; prose such as "step 3" counts only beside a loss or a rate."""
    for kind, shape in _SHAPES:
        if (found := shape.search(text)) and (has_loss or has_rate or "total" in found.groupdict() or kind == "rich"):
            return _count(kind, found)
    if found := _IN_EPOCH.search(text):
        return _count("epoch", found) if has_loss or has_rate or _MEASURED.search(text, found.end()) else None
    if found := _find_step(text, has_loss=has_loss, has_rate=has_rate):
        return _with_epoch(text, found)
    if keras := _KERAS.search(text):
        return _count("keras", keras) if has_loss else None
    for kind, shape in _LAST_SHAPES:
        if (has_loss or has_rate) and (found := shape.search(text)):
            return _count(kind, found)
    return None


def ends_epoch(text: str) -> bool:
    """Say whether a line tells how long an epoch took."""
    return bool(_TIMED_EPOCH.match(text, behind_prefix(text)))


def find_epoch(text: str) -> tuple[int, int | None] | None:
    """Return the epoch a line names, and how many there are."""
    found = _ONE_EPOCH.search(text)
    return None if found is None else (int(found["epoch"]), _whole(found["epochs"]))


def _find_step(text: str, *, has_loss: bool, has_rate: bool) -> re.Match[str] | None:
    """Return the first count of steps that is one, not a setting and not prose."""
    for found in _STEP.finditer(text):
        if _NOT_STEP.search(text, max(0, found.start() - 24), found.start()):
            continue
        if has_loss or (has_rate and not _SETTING.match(found[0])):
            return found
        if found["total"] and _MEASURED.search(text, found.end()):
            return found
    return _STEP_ZH.search(text) if has_loss and "第" in text else None


def _with_epoch(text: str, found: re.Match[str]) -> Count:
    n, total = int(found["n"]), _whole(found["total"])
    if total is None and (told := _TOTAL.search(text)):
        total = int(told[1])
    epoch, epochs = find_epoch(text) or (None, None)
    if whole := _GLOBAL.search(text):
        n = int(whole[1])
        total = total * epochs if total is not None and epochs is not None else total
        return Count("global", n, total if total is not None and total >= n else None)
    if epoch is None or total is None:
        kind = "steps" if total is not None else "step" if epoch is None else "step in epoch"
        return Count(kind, n, total, epoch=epoch)
    if epochs is None:
        return Count("unsure", n, total, of=total, epoch=epoch)
    return Count("epoch", n, of=total, epoch=epoch, epochs=epochs)


def _count(kind: str, found: re.Match[str]) -> Count:
    parts = found.groupdict()
    last = _whole(parts.get("last"))
    return Count(
        kind,
        int(parts["n"]),
        _whole(parts.get("total")),
        _whole(parts.get("of")),
        _whole(parts.get("epoch")),
        last + 1 if last is not None else _whole(parts.get("epochs")),
        0 if last is not None else None,
    )


def _whole(text: str | None) -> int | None:
    return None if text is None else int(text)


_LOSS: Final = re.compile(
    r"(?<![\w.])((?:[A-Za-z][\w./]{0,40}[ _/])?[A-Za-z]{0,8}loss(?:/[\w/]{1,40}|_?\w{0,20})?)"
    rf"(?: train(?: \(\w{{1,9}}\))?)?['\"]?(?:\s{{0,4}}(?:is\b|[:=|])\s{{0,4}}|\s{{1,4}})['\"]?({_NUMBER})(?![\w/])",
    re.I,
)
_LOSS_ZH: Final = re.compile(rf"([一-龥]{{0,6}}损失[一-龥]{{0,2}})\s{{0,3}}[:：=]?\s{{0,3}}({_NUMBER})(?![\w/])")
_NOT_LOSS: Final = re.compile(
    rf"(?:^|[ _/])(?:{_EVALUATES})(?:$|[ _/])|验证|测试|评估|loss_(?:scale|weight|coef|fn|type)|best|min_|zero_one",
    re.I,
)
_WHOLE_LOSS: Final = frozenset({"loss", "loss_step", "训练损失", "损失"})
_NEARLY_WHOLE: Final = re.compile(r"(?:^|[ _/])(?:train\w{0,3}|total|batch|lm|avg|average|step|avr)(?:$|[ _/])", re.I)
_RATE: Final = re.compile(
    r"(?:(?<![A-Za-z])(?:\w{0,20}[_/])?(?:lr\d?|learning[_ ]rate)(?![A-Za-z_])|学习率)['\"]?\s{0,3}[:：=]?"
    rf"\s{{0,3}}[\['\"]{{0,2}}({_NUMBER})",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss, and how surely it is the one that is trained on."""

    value: float
    is_part: bool = False
    says_train: bool = False


def find_loss(text: str) -> Loss | None:
    """Return the loss trained on: the plain one before a total, a total before its parts, never validation's."""
    if "oss" not in text and "OSS" not in text and "损失" not in text:
        return None
    best: tuple[int, str, str] | None = None
    for pattern in (_LOSS, _LOSS_ZH):
        for name, value in pattern.findall(text):
            if _NOT_LOSS.search(name):
                continue
            plain = name.lower().rpartition(" ")[2]
            score = 0 if plain in _WHOLE_LOSS else 1 if _NEARLY_WHOLE.search(name) else 2
            if best is None or score < best[0]:
                best = score, name, value
    if best is None:
        return None
    score, name, value = best
    return Loss(float(value), is_part=score == 2, says_train="train" in name.lower() or "训练" in name)


def find_rate(text: str) -> float | None:
    """Return the learning rate."""
    found = _RATE.search(text)
    return float(found[1]) if found else None
