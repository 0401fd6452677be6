"""nanochat's side of the bargain: its model, its samples, its loss and its measures. Imported by ranks only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from headway.errors import ConfigError
from headway.recipes.nanochat.data import Index, count_samples, open_index
from headway.recipes.nanochat.export import meta_json
from headway.recipes.nanochat.model import IGNORED, Gpt, GptSize, draw_token, generate
from headway.recipes.nanochat.section import NanochatSection, PredictOptions
from headway.task import Batch, Ids, Loss, ParamGroup, Prediction, RunConfig, Task

_TUNED_WIDTH = 768
"""Width at which the AdamW rates were tuned; others take them times the root of the ratio."""
_MUON_MOMENTUM, _MUON_MOMENTUM_START, _MUON_RAMP_STEPS = 0.95, 0.85, 300


def make_task(config: RunConfig) -> NanochatTask:
    """Return the task of a resolved config."""
    if config.task.wte_bf16 and config.parallel.strategy == "fsdp":
        # FSDP2 takes one parameter type a group, and the embedding shares its group with the output matrix.
        raise ConfigError("nanochat/bf16-fsdp")
    return NanochatTask(config)


class TokenData:
    """Samples cut from one memory-mapped token file: sample i is tokens[i*T : i*T+T+1]."""

    def __init__(self, path: Path, dtype: str, seq_len: int, limit: int | None = None) -> None:
        self._tokens = np.memmap(path, dtype=dtype, mode="r")
        self._seq_len = seq_len
        samples = count_samples(len(self._tokens), seq_len)
        self._samples = samples if limit is None else min(samples, limit)

    def __len__(self) -> int:
        return self._samples

    def batch(self, ids: Ids, epochs: Ids) -> dict[str, Tensor]:
        """Return inputs and the tokens that follow them; text has no augmentation, so epochs change nothing."""
        places = np.asarray(ids, np.int64)[:, None] * self._seq_len + np.arange(self._seq_len + 1)
        rows = torch.from_numpy(self._tokens[places].astype(np.int64))
        # Copies: two views of one memory would make a change of targets a change of inputs.
        return {"tokens": rows[:, :-1].contiguous(), "targets": rows[:, 1:].contiguous()}


class NanochatTask(Task):
    """The recipe, for one resolved config."""

    best: tuple[str, Literal["min", "max"]] = ("bpb", "min")

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.section: NanochatSection = config.task

    def size(self) -> GptSize:
        """Return the model's shape."""
        task = self.section
        return GptSize(
            seq_len=task.max_seq_len,
            vocab_size=task.vocab_size,
            n_layer=task.depth,
            n_head=task.n_head,
            n_kv_head=task.kv_heads,
            width=task.width,
            rope_base=task.rope_base,
            softcap=task.softcap,
            loss_chunk=task.loss_chunk,
            wte_bf16=task.wte_bf16,
        )

    def build_model(self) -> Gpt:
        """Return the model with its initial weights; on the meta device, its shape alone."""
        model = Gpt(self.size())
        if not model.lm_head.weight.is_meta:
            model.init_weights(self.config.seed)
        return model

    def train_data(self) -> TokenData:
        """Return all shards but the last."""
        folder, index = self._prepared
        return TokenData(folder / "train.bin", index.dtype, self.section.max_seq_len)

    def eval_data(self) -> TokenData:
        """Return the last shard, or the part of it that `task.eval_tokens` asks for."""
        folder, index = self._prepared
        tokens, seq_len = self.section.eval_tokens, self.section.max_seq_len
        limit = None if tokens is None else max(1, tokens // seq_len)
        return TokenData(folder / "val.bin", index.dtype, seq_len, limit)

    def example(self, samples: int) -> Batch:
        """Return tokens of the right shape; their values do not matter to a trace."""
        tokens_BT = torch.zeros(samples, self.section.max_seq_len, dtype=torch.int64)
        return {"tokens": tokens_BT, "targets": tokens_BT}

    def param_groups(self, model: nn.Module) -> list[ParamGroup]:
        """Return Muon's matrices and the two vocabulary matrices of AdamW; `lr.base` multiplies all three rates."""
        matrices: dict[str, nn.Parameter] = {}
        lm_head: dict[str, nn.Parameter] = {}
        wte: dict[str, nn.Parameter] = {}
        for name, param in model.named_parameters():
            home = wte if name.endswith("wte.weight") else lm_head if name.endswith("lm_head.weight") else matrices
            home[name] = param
        task, base, own = self.section, self.config.lr.base, self.config.optimizer
        narrow = (task.width / _TUNED_WIDTH) ** -0.5
        vocabulary = ((lm_head, task.unembedding_lr), (wte, task.embedding_lr))
        adamw = partial(ParamGroup, beta1=own.beta1, beta2=own.beta2, eps=own.eps, weight_decay=own.weight_decay)
        name_of_the_rest: Literal["adamw", "adam"] = "adam" if own.name == "adam" else "adamw"
        rest = [adamw(params=params, optimizer=name_of_the_rest, lr=lr * narrow * base) for params, lr in vocabulary]
        if own.name != "muon":
            return [adamw(params=matrices, optimizer=own.name, lr=task.matrix_lr * base), *rest]
        muon = ParamGroup(
            params=matrices,
            optimizer="muon",
            lr=task.matrix_lr * base,
            momentum=_MUON_MOMENTUM,
            momentum_start=_MUON_MOMENTUM_START,
            momentum_ramp_steps=_MUON_RAMP_STEPS,
        )
        return [muon, *rest]

    def blocks(self, model: nn.Module) -> Sequence[nn.Module]:
        """Return the transformer blocks."""
        return list(model.get_submodule("transformer.h").children())

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Return the nats of all targets and how many there are."""
        nats_BT = model(batch["tokens"], batch["targets"])
        return Loss(nats_BT.sum(), (batch["targets"] != IGNORED).sum())

    def measures(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Return the sums behind bits per byte, in fp64; special and ignored targets have no bytes and do not count."""
        targets_BT = batch["targets"]
        nats_BT = model(batch["tokens"], targets_BT).double()
        self._token_bytes = self._token_bytes.to(targets_BT.device)
        is_target = targets_BT != IGNORED
        bytes_BT = self._token_bytes[targets_BT.clamp(min=0)] * is_target
        return {
            "nats": (nats_BT * (bytes_BT > 0)).sum(),
            "bytes": bytes_BT.sum().double(),
            "loss": nats_BT.sum(),
            "tokens": is_target.sum().double(),
        }

    def summarize(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return bits per byte and the mean loss a token."""
        return {"bpb": sums["nats"] / (math.log(2) * sums["bytes"]), "loss": sums["loss"] / sums["tokens"]}

    def baselines(self) -> dict[str, float]:
        """Return what constant answers score."""
        return {"unigram_bpb": self._prepared[1].unigram_bpb}

    def data_id(self) -> dict[str, str]:
        """Return a hash of the tokens themselves: equal where, and only where, the data is equal."""
        return dict(self._prepared[1].content)

    def describe(self, step: int, measures: Mapping[str, float]) -> dict[str, Any]:
        """Return what nanochat's own loader reads beside the weights."""
        return meta_json(self.config, step, measures)

    def predict(self, model: nn.Module, options: Mapping[str, Any], out: Path) -> Prediction:
        """Return the prompt and its continuation; a document's end ends it."""
        # Only here: training never needs it, and ranks start faster without.
        from headway.recipes.nanochat.tokenizer import load_tokenizer

        asked = PredictOptions.model_validate(options)
        tokenizer = load_tokenizer(self._prepared[0])
        dice = torch.Generator(next(model.parameters()).device).manual_seed(asked.seed)
        draw = partial(draw_token, temperature=asked.temperature, top_k=asked.top_k, dice=dice)
        # Ids from bos on are special or not in use: a document ends there.
        window = self.section.max_seq_len
        more = generate(model, tokenizer.encode(asked.prompt), asked.max_tokens, window=window, draw=draw)
        return Prediction(
            text=asked.prompt + tokenizer.decode(list(takewhile(lambda token: token < tokenizer.bos, more)))
        )

    @cached_property
    def _prepared(self) -> tuple[Path, Index]:
        return open_index(self.section)

    @cached_property
    def _token_bytes(self) -> Tensor:
        return torch.from_numpy(np.load(self._prepared[0] / "token_bytes.npy", allow_pickle=False)).long()
