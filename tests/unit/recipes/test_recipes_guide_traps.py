"""The traps of the five guides: each is caught where it would be met, and explained in both languages.

A trap is met in a config file, in the numbers of a plan, or in a script or guide that `headway adopt` reads. Excerpts
are as the guides have them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from fakes.machines import eight_h100, four_4090, gpu, machine
from headway.adopt import check, read_guide, understand
from headway.config import ConfigErrors, load_config
from headway.errors import HeadwayError
from headway.messages import hint, say
from headway.planner import make_plan
from headway.task import find_recipe

Told = list[tuple[str, Mapping[str, object]]]
"""Message codes and their facts."""


def in_file(name: str, text: str) -> Callable[[Path], Told]:
    """What loading a config file says: its warnings, or its problems."""

    def tell(place: Path) -> Told:
        file = place / name
        file.write_text(text, encoding="utf-8")
        try:
            return list(load_config(file, recipe=find_recipe).warnings)
        except ConfigErrors as error:
            return [(problem.code, problem.facts) for problem in error.problems]

    return tell


def in_plan(recipe: str, *words: str, gpus: tuple = ()) -> Callable[[Path], Told]:
    """What the plan of a guide's settings says on a machine of its kind: warnings, or a refusal."""

    def tell(place: Path) -> Told:
        try:
            loaded = load_config(None, recipe=find_recipe(recipe), overrides=[*words, f"task.data_dir={place}"])
            made = make_plan(loaded, machine(gpus), loaded.recipe)
        except HeadwayError as error:
            return [(error.code, error.facts)]
        return [(warning.code, warning.facts) for warning in made.warnings]

    return tell


def in_script(text: str) -> Callable[[Path], Told]:
    """What `headway adopt` says of a script."""
    return lambda _: [(one.code, one.facts) for one in check(understand(text)) if one.verdict != "kept"]


def in_guide(text: str) -> Callable[[Path], Told]:
    """What `headway adopt` says of a guide."""
    return lambda _: [(one.code, one.facts) for one in read_guide(text).findings if one.verdict != "kept"]


@dataclass(frozen=True)
class Trap:
    tell: Callable[[Path], Told]
    code: str
    shown: tuple[str, ...] = ()
    """What the text or its hint must show in either language: both numbers."""


_LAYOUT_JSON = """{
  "recipe": "layoutmaster",
  "data": {
    "batch_size": 32,        // 总批次大小 (每GPU 4个样本)
  },
  "optimizer": {
    "lr": 4e-4              // 4x基础学习率 (适应多GPU)
  }
}
"""
_ONE_RANK = """export MASTER_ADDR=localhost
export WORLD_SIZE=8
export RANK=0  # 每个进程设置不同的RANK (0-7)
CUDA_VISIBLE_DEVICES=0 python atlas/train.py --config atlas/configs/train_config.yaml &
CUDA_VISIBLE_DEVICES=1 python atlas/train.py --config atlas/configs/train_config.yaml &
"""
_START = """#!/bin/bash
echo "🚀 启动8GPU训练..."
python train.py --config config_data_action_head.json{mode} 2>&1 | tee logs/training.log
"""
_SAME = """# 训练

```bash
torchrun --nproc_per_node=8 atlas/train.py
```

```yaml
data:
  batch_size: 4
training:
  gradient_accumulation_steps: 4  # 累积4步
  # 有效batch = 4 × 8 × 4 = 128 (和原来batch=8, 8GPU一样)
```

```python
effective_lr = base_lr * world_size
```
"""
_CARD = """# 训练

```bash
accelerate launch --num_processes 2 main.py --train_batch_size=16   # 总batch size (每GPU=8)
```

| 指标 | 单GPU (4090) | 2-GPU (4090x2) |
|------|------|------|
| **显存使用** | ~35GB | ~35GB (each) |
"""
_DIVIDES = """# 训练

```bash
export WORLD_SIZE=2
```

#### 平衡配置 (`balanced.py`)
```python
depth = 16
device_batch_size = 12
total_batch_size = 49152
max_seq_len = 2048
```

```bash
./train_dual_gpu_enhanced.sh --device_batch_size=16 --total_batch_size=49152 --config=configs/dual_gpu/balanced.py
```
"""
_RDT_ROUNDS = ("preset=rdt-1b", "task.rollout.unit=rounds", "task.rollout.max_steps=200", "exec_horizon=16")
_ATLAS_FOUR = ("preset=published", "data.batch_size=4", "training.gradient_accumulation_steps=4", "train.epochs=null")

TRAPS = {
    "// in JSON: the file": Trap(in_file("c.json", _LAYOUT_JSON), "config/json-comment", ("c.json:4:30",)),
    "# in JSON: the file": Trap(
        in_file("c.json", '{"recipe": "layoutmaster",\n"batch_size": 16  # 从32减少到16\n}'), "config/json-comment"
    ),
    "// in JSON: the guide": Trap(in_guide(f"# x\n\n```json\n{_LAYOUT_JSON}```\n"), "adopt/guide-json-comment"),
    "1e-4 as text: the file": Trap(
        in_file("c.yaml", 'recipe: atlas\ntraining:\n  learning_rate: "1e-4"\n'), "config/quoted", ("1e-4",)
    ),
    "1e-4 as text: the guide": Trap(
        in_guide("# x\n\n```yaml\ntraining:\n  learning_rate: 1e-4\n```\n"), "adopt/guide-yaml-number", ("1.0e-4",)
    ),
    "total batch: LayoutMaster": Trap(
        in_plan("layoutmaster", "data.batch_size=32", "train.steps=9", gpus=eight_h100()),
        "layoutmaster/batch-meaning",
        ("32", "4", "256"),
    ),
    "total or per-device batch: RDT": Trap(
        in_plan("rdt", "preset=guide-2gpu", "train_batch_size=16", gpus=(gpu(0), gpu(1))),
        "rdt/batch-meaning",
        ("16", "8", "32"),
    ),
    "total or per-device batch: the guide": Trap(in_guide(_CARD), "adopt/guide-batch-each-device", ("16", "32")),
    "LR by effective batch: the plan": Trap(
        in_plan("atlas", *_ATLAS_FOUR, "train.steps=9", gpus=eight_h100()), "atlas/batch-meaning", ("128",)
    ),
    "LR by effective batch: the guide": Trap(in_guide(_SAME), "adopt/guide-rate-by-ranks", ("4",)),
    "4 x 8 x 4 is not 64: the plan": Trap(
        in_plan("atlas", *_ATLAS_FOUR, "train.steps=9", gpus=eight_h100()), "atlas/batch-meaning", ("128", "64")
    ),
    "4 x 8 x 4 is not 64: the guide": Trap(in_guide(_SAME), "adopt/guide-not-the-same", ("128", "64")),
    "RANK once for all": Trap(in_script(_ONE_RANK), "adopt/env-one-rank-for-all", ("RANK=0", "2")),
    "35 GB on a 24 GB card: the plan": Trap(
        in_plan("rdt", "preset=guide-2gpu", gpus=four_4090()[:2]), "rdt/does-not-fit", ("24.0 GiB",)
    ),
    "35 GB on a 24 GB card: the guide": Trap(in_guide(_CARD), "adopt/guide-card-memory", ("35", "24")),
    "200 x 16 steps: the plan": Trap(
        in_plan("rdt", *_RDT_ROUNDS, gpus=(gpu(0),)), "rdt/past-horizon", ("3200", "1000")
    ),
    "a start script that predicts": Trap(
        in_script(_START.format(mode=" --mode predict")), "adopt/launch-predicts", ("--mode train",)
    ),
    "a start script without a mode": Trap(
        in_script(_START.format(mode="") + _START.format(mode=" --mode train")),
        "adopt/launch-no-mode",
        ("--mode train",),
    ),
    "presets that do not divide: the plan": Trap(
        in_plan("nanochat", "preset=balanced", "device_batch_size=16", "total_batch_size=49152", gpus=eight_h100()[:2]),
        "plan/batch-does-not-divide",
        ("49152", "65536", "--device_batch_size=12"),
    ),
    "presets that do not divide: the guide": Trap(
        in_guide(_DIVIDES), "adopt/guide-batch-not-divisible", ("49,152", "65,536")
    ),
}


@pytest.mark.parametrize("name", TRAPS)
def test_a_trap_is_caught_and_explained_in_both_languages(name, tmp_path):
    trap = TRAPS[name]
    told = trap.tell(tmp_path)
    found = [facts for code, facts in told if code == trap.code]
    assert found, f"{trap.code} is not among {[code for code, _ in told]}"
    for lang in ("en", "zh"):
        words = f"{say(trap.code, lang, **found[0])}\n{hint(trap.code, lang, **found[0])}"
        assert [one for one in trap.shown if one not in words] == [], words
        assert bool(re.search(r"[\u4e00-\u9fff]", words)) == (lang == "zh")


@pytest.mark.parametrize("mode", [" --mode train", " --mode=train"])
def test_a_start_script_that_trains_is_left_alone(mode):
    codes = [code for code, _ in in_script(_START.format(mode=mode))(Path())]
    assert not {"adopt/launch-predicts", "adopt/launch-no-mode"} & set(codes)


def test_predicting_where_nobody_says_training_is_left_alone():
    line = "python train.py --config config_data_action_head.json --mode predict --checkpoint best_model.pth"
    assert "adopt/launch-predicts" not in [code for code, _ in in_script(line)(Path())]


def test_a_number_with_an_exponent_is_a_number_in_every_format(tmp_path):
    (tmp_path / "c.yaml").write_text("recipe: atlas\ntraining:\n  learning_rate: 1e-4\n", encoding="utf-8")
    assert load_config(tmp_path / "c.yaml", recipe=find_recipe).config.lr.base == 1e-4


def test_comments_in_a_file_whose_name_allows_them_are_no_news(tmp_path):
    assert [code for code, _ in in_file("c.jsonc", _LAYOUT_JSON)(tmp_path) if code == "config/json-comment"] == []


def test_the_guides_three_presets_divide_on_its_two_gpus():
    for preset in ("conservative", "balanced", "aggressive"):
        told = in_plan("nanochat", f"preset={preset}", gpus=eight_h100()[:2])(Path("nowhere"))
        assert "plan/batch-does-not-divide" not in [code for code, _ in told]
