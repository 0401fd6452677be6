import math
from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from headway.config import RunConfig
from headway.errors import ConfigError
from headway.recipes.nanochat import build
from headway.recipes.nanochat.data import open_index, prepare
from headway.recipes.nanochat.model import IGNORED
from headway.recipes.nanochat.section import NanochatSection
from headway.recipes.nanochat.synthetic import write_documents
from headway.recipes.nanochat.task import make_task


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nanochat")
    (folder / "base_data").mkdir()
    texts = write_documents(40, seed=4)
    for number, part in enumerate((texts[:30], texts[30:])):
        build.write_shard(folder / "base_data" / f"shard_{number:05d}.parquet", part, row_group=100)
    return folder


def _task(data_dir, config=None, **changes):
    small = {"depth": 2, "aspect": 16, "head_dim": 16, "max_seq_len": 16, "vocab_size": 300}
    section = NanochatSection(**{**small, "data_dir": str(data_dir), **changes})
    prepare(section, lambda line: None)
    return make_task(RunConfig(task=section, **(config or {"optimizer": {"name": "muon"}})))


def test_a_sample_is_its_slice_of_the_tokens_and_targets_look_one_ahead(data_dir):
    task = _task(data_dir)
    folder, index = open_index(task.section)
    tokens = np.fromfile(folder / "train.bin", index.dtype).astype(np.int64)
    batch = task.train_data().batch(np.array([3, 0]), np.array([0, 7]))
    assert batch["tokens"].tolist() == [tokens[48:64].tolist(), tokens[:16].tolist()]
    assert batch["targets"].tolist() == [tokens[49:65].tolist(), tokens[1:17].tolist()]
    last = len(task.train_data()) - 1
    assert task.train_data().batch(np.array([last]), np.array([0]))["targets"].shape == (1, 16)


def test_one_row_group_serves_four_ranks_with_every_sample_once(data_dir):
    data = _task(data_dir).train_data()
    seen = [data.batch(np.arange(rank, len(data), 4), None)["tokens"] for rank in range(4)]
    assert sum(map(len, seen)) == len(data) > 8
    assert torch.equal(torch.cat([part[:1] for part in seen]), data.batch(np.arange(4), None)["tokens"])


def test_eval_tokens_cut_the_validation_set(data_dir):
    assert len(_task(data_dir, eval_tokens=100).eval_data()) == 6
    assert len(_task(data_dir).eval_data()) > 6


def test_the_loss_is_a_sum_over_targets_that_are_not_ignored(data_dir):
    task = _task(data_dir)
    model, batch = task.build_model(), task.train_data().batch(np.arange(4), None)
    batch["targets"][0, :5] = IGNORED
    with torch.no_grad():
        loss = task.loss(model, batch)
    assert int(loss.count) == 4 * 16 - 5
    # The output matrix starts at zero, so every token is equally likely.
    assert loss.total.item() == pytest.approx(int(loss.count) * math.log(300), rel=1e-6)


def test_micro_batches_add_up_to_the_whole(data_dir):
    task = _task(data_dir)
    model, data = task.build_model(), task.train_data()
    whole = task.loss(model, data.batch(np.arange(6), None))
    parts = [task.loss(model, data.batch(np.arange(i, i + 2), None)) for i in (0, 2, 4)]
    assert sum(int(part.count) for part in parts) == int(whole.count)
    assert sum(part.total.item() for part in parts) == pytest.approx(whole.total.item(), rel=1e-6)


def test_bits_per_byte_leave_special_tokens_out_of_both_sums(data_dir):
    task = _task(data_dir)
    model, data = task.build_model(), task.eval_data()
    folder, index = open_index(task.section)
    lengths = np.load(folder / "token_bytes.npy", allow_pickle=False)
    batch = data.batch(np.arange(len(data)), None)
    with torch.no_grad():
        sums = {name: float(value) for name, value in task.measures(model, batch).items()}
    targets = batch["targets"].numpy()
    counted = lengths[targets] > 0
    assert sums["bytes"] == lengths[targets].sum() and 0 < counted.sum() < targets.size
    measured = task.summarize(sums)
    assert measured["bpb"] == pytest.approx(counted.sum() * math.log2(300) / lengths[targets].sum())
    assert measured["loss"] == pytest.approx(math.log(300))
    assert (targets == index.bos).sum() == targets.size - counted.sum()


def test_measures_of_ignored_targets_are_zero(data_dir):
    task = _task(data_dir)
    batch = task.eval_data().batch(np.arange(2), None)
    batch["targets"][:] = IGNORED
    with torch.no_grad():
        sums = task.measures(task.build_model(), batch)
    assert {name: float(value) for name, value in sums.items()} == {"nats": 0, "bytes": 0, "loss": 0, "tokens": 0}


def test_every_parameter_is_in_one_group_with_the_published_rates(data_dir):
    task = _task(data_dir, {"lr": {"base": 1.0}, "optimizer": {"name": "muon"}})
    model = task.build_model()
    matrices, lm_head, wte = task.param_groups(model)
    names = [*matrices.params, *lm_head.params, *wte.params]
    assert sorted(names) == sorted(name for name, _ in model.named_parameters())
    narrow = (32 / 768) ** -0.5
    assert (matrices.optimizer, lm_head.optimizer, wte.optimizer) == ("muon", "adamw", "adamw")
    assert [group.lr for group in (matrices, lm_head, wte)] == pytest.approx([0.02, 0.004 * narrow, 0.2 * narrow])
    assert (matrices.momentum_start, matrices.momentum, matrices.momentum_ramp_steps) == (0.85, 0.95, 300)
    assert list(lm_head.params) == ["lm_head.weight"] and list(wte.params) == ["transformer.wte.weight"]


def test_the_general_rate_multiplies_all_three(data_dir):
    rates = [
        [group.lr for group in task.param_groups(task.build_model())]
        for task in (_task(data_dir, {"lr": {"base": base}, "optimizer": {"name": "muon"}}) for base in (1.0, 0.5))
    ]
    assert rates[1] == pytest.approx([rate / 2 for rate in rates[0]])


def test_the_embedding_is_bf16_exactly_when_asked_for(data_dir):
    kinds = [_task(data_dir, wte_bf16=want).build_model().transformer["wte"].weight.dtype for want in (False, True)]
    assert kinds == [torch.float32, torch.bfloat16]


def test_a_bf16_embedding_is_refused_where_parameters_are_sharded(data_dir):
    with pytest.raises(ConfigError) as refused:
        _task(data_dir, {"parallel": {"strategy": "fsdp"}}, wte_bf16=True)
    assert refused.value.code == "nanochat/bf16-fsdp"


def test_blocks_are_the_transformer_blocks(data_dir):
    task = _task(data_dir)
    model = task.build_model()
    assert task.blocks(model) == list(model.blocks) and len(model.blocks) == 2


def test_a_prediction_repeats_with_its_seed_and_is_text(data_dir):
    task = _task(data_dir)
    model = task.build_model()
    options = {"prompt": "Ada the owl", "max_tokens": 20, "temperature": 1.0, "seed": 3}
    one, again = (task.predict(model, options, Path("unused")) for _ in range(2))
    assert one == again
    assert one.text.startswith("Ada the owl")
    with pytest.raises(ValidationError):
        task.predict(model, {**options, "max_tokens": 0}, Path("unused"))


def test_the_data_id_is_of_the_tokens(data_dir):
    task = _task(data_dir)
    assert task.data_id() == open_index(task.section)[1].content
    assert task.data_id() != _task(data_dir, vocab_size=280).data_id()
    assert 0 < task.baselines()["unigram_bpb"] < math.log2(300)
