"""The default model and data, trained by a plain torch loop: learning does not depend on the engine."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from headway.config import load_config
from headway.recipes.nanochat.data import prepare
from headway.recipes.nanochat.preset import RECIPE
from headway.recipes.nanochat.task import make_task

pytestmark = pytest.mark.slow


@pytest.fixture
def one_thread():
    """Two threads on busy cores wait for each other most of the time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nanochat-learns")
    made = load_config(recipe=RECIPE, overrides=[f"data_dir={folder}", "train.precision=fp32"]).config
    prepare(made.task, lambda line: None)
    return made


def _train(task, model, *, steps, batch):
    """AdamW on everything, at rates of its own for the matrices: Muon belongs to the engine."""
    matrices, lm_head, wte = task.param_groups(model)
    groups = [
        {"params": list(group.params.values()), "lr": lr}
        for group, lr in ((matrices, 3e-3), (lm_head, lm_head.lr), (wte, wte.lr))
    ]
    optimizer = torch.optim.AdamW(groups, betas=(0.8, 0.95), eps=1e-10, weight_decay=0.0)
    data = task.train_data()
    order = np.random.default_rng(0).permutation(len(data))
    for step in range(steps):
        ids = order[step * batch : (step + 1) * batch]
        loss = task.loss(model, data.batch(ids, np.zeros_like(ids)))
        (loss.total / loss.count).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


def _measure(task, model, *, samples):
    data, sums = task.eval_data(), {}
    with torch.no_grad():
        for start in range(0, samples, 16):
            ids = np.arange(start, start + 16)
            for name, value in task.measures(model, data.batch(ids, np.zeros_like(ids))).items():
                sums[name] = sums.get(name, 0.0) + float(value)
    return task.summarize(sums)


def test_the_default_model_learns_far_more_than_token_frequencies(config, one_thread):
    task = make_task(config)
    model = task.build_model()
    unigram = task.baselines()["unigram_bpb"]
    start = _measure(task, model, samples=32)["bpb"]
    _train(task, model, steps=80, batch=8)
    end = _measure(task, model, samples=32)["bpb"]
    # Below half the unigram level only context helps; without training it is far above.
    assert end < 0.5 * unigram < unigram < start


_SHARD = """
import os, sys
import torch, torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.device_mesh import init_device_mesh
from headway.recipes.nanochat.model import Gpt, GptSize

torch.set_num_threads(1)
rank, store_file, precision = int(sys.argv[1]), sys.argv[2], sys.argv[3]
dist.init_process_group("gloo", store=dist.FileStore(store_file, 2), rank=rank, world_size=2)
size = GptSize(seq_len=16, vocab_size=40, n_layer=2, n_head=2, n_kv_head=1, width=16, loss_chunk=8)
tokens = torch.randint(40, (4, 17), generator=torch.Generator().manual_seed(0))
losses = {}
for kind in ("whole", "sharded"):
    model = Gpt(size)
    model.init_weights(seed=3)
    with torch.no_grad():
        model.lm_head.weight.normal_(generator=torch.Generator().manual_seed(1))
    if kind == "sharded":
        mesh = init_device_mesh("cpu", (2,))
        kinds = MixedPrecisionPolicy(param_dtype=torch.bfloat16) if precision == "bf16" else MixedPrecisionPolicy()
        for block in model.blocks:
            fully_shard(block, mesh=mesh, mp_policy=kinds)
        fully_shard(model, mesh=mesh, mp_policy=kinds)
    loss = model(tokens[:, :-1], tokens[:, 1:]).sum()
    loss.backward()
    assert all(param.grad is not None for param in model.parameters())
    losses[kind] = loss.item()
dist.destroy_process_group()
allowed = 1e-5 if precision == "fp32" else 2e-2
assert abs(losses["whole"] / losses["sharded"] - 1) < allowed, losses
os._exit(0)  # threads of torch's process group may end an interpreter that shuts down with SIGABRT
"""


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_model_gives_the_same_loss_when_its_parameters_are_sharded(tmp_path, precision):
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen([sys.executable, "-c", _SHARD, str(rank), str(tmp_path / "store"), precision], env=env)
        for rank in range(2)
    ]
    assert [rank.wait(timeout=120) for rank in ranks] == [0, 0]
