"""Our mathematics against somebody else's: a library made for it, or arithmetic written here from the definition."""

from __future__ import annotations

import random
from collections import Counter

import jiwer
import numpy as np
import pytest
import torch
from diffusers.schedulers.scheduling_ddim import DDIMScheduler
from diffusers.schedulers.scheduling_dpmsolver_multistep import DPMSolverMultistepScheduler
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker

from headway.engine.optim import make_optimizers
from headway.engine.parallel import Ranks, Replicated
from headway.recipes.layoutmaster.diffusion import Diffusion
from headway.recipes.rdt.diffusion import alphas_cumprod, solve
from headway.recipes.tfnet.measure import rates, sum_errors
from headway.task import ParamGroup
from headway.task.order import Ledger, Order, expected_ledger, ledger_of
from headway.trace.storages import Tracker

ALONE = Ranks(0, 1, 0, torch.device("cpu"))
MASK = (1 << 64) - 1


def newton_schulz(matrix: np.ndarray) -> np.ndarray:
    """Five quintic steps towards the nearest semi-orthogonal matrix, by its singular values alone, in fp64.

    The iteration only ever maps singular values s to 3.4445 s - 4.7750 s^3 + 2.0315 s^5, so no matrix product of ours
    is repeated here.
    """
    left, values, right = np.linalg.svd(matrix / np.linalg.norm(matrix), full_matrices=False)
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    return left @ np.diag(values) @ right


@pytest.mark.parametrize("shape", [(6, 6), (9, 4), (4, 9), (5, 3, 2, 2)])
def test_muon_moves_weights_as_the_definition_says(shape):
    torch.manual_seed(1)
    weight = nn.Parameter(torch.randn(shape))
    group = ParamGroup(params={"w": weight}, optimizer="muon", lr=0.03, momentum=0.9, weight_decay=0.1)
    (optimizer,) = make_optimizers([group], Replicated(ALONE, [weight]))
    rows, columns = shape[0], int(np.prod(shape[1:]))
    wanted = weight.detach().double().numpy().reshape(rows, columns).copy()
    buffer = np.zeros_like(wanted)
    for step in range(4):
        grad = torch.randn(shape)
        weight.grad.copy_(grad)
        optimizer.step(0.03, step)
        flat = grad.double().numpy().reshape(rows, columns)
        buffer = 0.9 * buffer + 0.1 * flat
        update = newton_schulz(0.1 * flat + 0.9 * buffer)
        wanted = wanted * (1 - 0.03 * 0.1) - 0.03 * max(1.0, rows / columns) ** 0.5 * update
    np.testing.assert_allclose(weight.detach().double().numpy().reshape(rows, columns), wanted, atol=2e-5)


@given(
    size=st.integers(1, 40),
    seed=st.integers(0, 2**31),
    count=st.integers(0, 150),
    repeated=st.integers(0, 149),
    dropped=st.integers(0, 149),
)
@settings(max_examples=60, deadline=None)
def test_the_ledger_is_right_exactly_when_every_sample_was_taken_once(size, seed, count, repeated, dropped):
    order, chance = Order(size, seed), random.Random(seed)
    ids, epochs = order.samples(np.arange(count, dtype=np.int64))
    seen = [(int(epoch), int(one)) for one, epoch in zip(ids, epochs, strict=True)]
    whole, rest = divmod(count, size)
    by_epoch = Counter(epoch for epoch, _ in seen)
    assert by_epoch == Counter({**dict.fromkeys(range(whole), size), **({whole: rest} if rest else {})})
    assert max(Counter(seen).values(), default=1) == 1
    chance.shuffle(seen)
    assert ledger(seen, chance) == expected_ledger(order, count, [])
    if count > max(repeated, dropped) and seen[repeated] != seen[dropped]:
        wrong = [one for at, one in enumerate(seen) if at != dropped] + [seen[repeated]]
        assert Counter(wrong) != Counter(seen)
        assert ledger(wrong, chance) != expected_ledger(order, count, [])


def ledger(samples: list[tuple[int, int]], chance: random.Random) -> int:
    """Note samples on three ranks in micro-batches of any size, as a run does."""
    ranks = [Ledger() for _ in range(3)]
    at = 0
    while at < len(samples):
        part = samples[at : at + chance.randint(1, 7)]
        at += len(part)
        chance.choice(ranks).add(
            np.array([one for _, one in part], np.int64), np.array([epoch for epoch, _ in part], np.int64)
        )
    return sum(rank.settle() for rank in ranks) & MASK


def test_samples_of_two_epochs_that_add_up_to_the_same_are_told_apart():
    """A plain sum of ids would call these equal: 1 and 4 for 2 and 3, and an epoch for another."""
    zeros = np.zeros(2, np.int64)
    assert ledger_of(np.array([1, 4]), zeros) != ledger_of(np.array([2, 3]), zeros)
    assert ledger_of(np.array([1, 2]), np.array([0, 1])) != ledger_of(np.array([1, 2]), np.array([1, 0]))


@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from("abcdef"), min_size=1, max_size=9), st.lists(st.sampled_from("abcdef"), max_size=9)
        ),
        min_size=1,
        max_size=6,
    )
)
@settings(max_examples=150, deadline=None)
def test_word_error_rates_are_those_of_jiwer(pairs):
    references, hypotheses = [list(pair[0]) for pair in pairs], [list(pair[1]) for pair in pairs]
    found = rates(sum_errors(references, hypotheses))
    texts = [" ".join(words) for words in references], [" ".join(words) for words in hypotheses]
    assert found["wer_corpus"] == pytest.approx(100 * jiwer.wer(*texts))
    each = [jiwer.wer(want, have) for want, have in zip(*texts, strict=True)]
    assert found["wer"] == pytest.approx(100 * sum(each) / len(each))


def toy_denoise(x: torch.Tensor, level: int) -> torch.Tensor:
    """A model that is not linear, knows its level, and stays inside -1 to 1."""
    return torch.tanh(0.8 * x + 0.3 * torch.sin(3 * x) - level / 2000)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("steps", [1, 2, 5, 10, 25])
def test_the_action_solver_is_the_one_of_diffusers(steps):
    theirs = DPMSolverMultistepScheduler(
        num_train_timesteps=1000, beta_schedule="squaredcos_cap_v2", prediction_type="sample"
    )
    theirs.set_timesteps(steps)
    noise = torch.randn(3, 8, 5, generator=torch.Generator().manual_seed(steps))
    x = noise
    for level in theirs.timesteps:
        x = theirs.step(toy_denoise(x, int(level)), level, x).prev_sample
    ours = solve(toy_denoise, noise, kept=alphas_cumprod(1000), steps=steps)
    torch.testing.assert_close(ours, x, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("steps", [2, 11, 50])
def test_the_layout_sampler_is_the_ddim_of_diffusers(steps):
    theirs = DDIMScheduler(
        num_train_timesteps=1000,
        beta_schedule="linear",
        beta_start=1e-4,
        beta_end=0.02,
        prediction_type="sample",
        timestep_spacing="linspace",
        set_alpha_to_one=True,
    )
    theirs.set_timesteps(steps)
    levels = [int(level) for level in theirs.timesteps]
    kept = theirs.alphas_cumprod
    noisy = torch.randn(2, 6, 6, generator=torch.Generator().manual_seed(steps))
    x = noisy
    # Diffusers' step takes the next level from an even spacing, which linspace is not; its formula is asked per step.
    for now, then in zip(levels, [*levels[1:], None], strict=True):
        theirs.num_inference_steps = 1000 // (now - then) if then is not None else 1000
        aim = now - 1000 // theirs.num_inference_steps
        clean = toy_denoise(x, now).clamp(-1, 1)
        if then is None:
            x = clean
        elif aim == then:
            x = theirs.step(clean, now, x).prev_sample
        else:
            noise = (x - kept[now].sqrt() * clean) / (1 - kept[now]).sqrt()
            x = theirs.add_noise(clean, noise, torch.tensor([then]))
    ours = Diffusion(kept.float()).sample(lambda y, t: toy_denoise(y, int(t[0])), noisy, steps)
    torch.testing.assert_close(ours, x, rtol=1e-5, atol=1e-5)


class Block(nn.Module):
    """Attention and a wide layer, so that views, reductions and saved activations all occur."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.qkv = nn.LayerNorm(width), nn.Linear(width, 3 * width)
        self.out, self.wide, self.back = (
            nn.Linear(width, width),
            nn.Linear(width, 4 * width),
            nn.Linear(4 * width, width),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        x = x + self.out(torch.softmax(q @ k.mT / 8, -1) @ v)
        return x + self.back(torch.nn.functional.gelu(self.wide(x)))


@pytest.mark.parametrize(("width", "tokens", "layers"), [(32, 64, 2), (64, 16, 3), (48, 128, 1)])
def test_the_traced_peak_of_a_step_is_that_of_torchs_memory_tracker(width, tokens, layers):
    def two_steps(track, between) -> None:
        model = nn.Sequential(*(Block(width) for _ in range(layers)))
        optimizer = torch.optim.AdamW(model.parameters(), foreach=False, fused=False)
        track(model, optimizer)
        for _ in range(2):
            between()
            model(torch.randn(4, tokens, width)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()

    with FakeTensorMode():
        ours = Tracker()
        with ours:
            two_steps(lambda *_: None, lambda: None)
        theirs = MemTracker()

        def register(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
            theirs.track_external(model, optimizer)
            theirs.__enter__()

        two_steps(register, theirs.reset_mod_stats)
        theirs.__exit__(None, None, None)
    (peak,) = theirs.get_tracker_snapshot("peak").values()
    # Each rounds a storage up in its own way: ours not at all, torch's as its allocator does.
    assert ours.most == pytest.approx(peak["Total"], rel=0.02)
