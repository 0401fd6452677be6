import pytest
import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from headway.recipes.nanochat.model import IGNORED, Gpt, GptSize, draw_token, generate, norm, rotary_tables, rotate
from headway.recipes.nanochat.section import NanochatSection


def _size(**changes):
    sizes = {"seq_len": 16, "vocab_size": 40, "n_layer": 2, "n_head": 2, "n_kv_head": 2, "width": 16}
    return GptSize(**{**sizes, **changes})


def _model(**changes):
    model = Gpt(_size(**changes))
    model.init_weights(seed=1)
    with torch.no_grad():  # off the zero start, so that every path carries something
        for param in model.parameters():
            param.add_(0.1 * torch.randn(param.shape, generator=torch.Generator().manual_seed(2)))
    return model


def _tokens(batch=2, length=16, seed=0):
    rows = torch.randint(40, (batch, length + 1), generator=torch.Generator().manual_seed(seed))
    return rows[:, :-1], rows[:, 1:].clone()


@pytest.mark.parametrize("depth", [4, 6, 12, 16, 20, 26, 32])
def test_the_model_has_exactly_the_parameters_of_the_closed_form(depth):
    section = NanochatSection(depth=depth)
    with torch.device("meta"):
        model = Gpt(
            GptSize(
                seq_len=2048,
                vocab_size=65_536,
                n_layer=depth,
                n_head=section.n_head,
                n_kv_head=section.kv_heads,
                width=section.width,
            )
        )
    assert sum(param.numel() for param in model.parameters()) == section.num_params


def test_parameter_names_are_those_of_the_original():
    names = set(dict(Gpt(_size(n_layer=1)).named_parameters()))
    block = {"attn.c_q", "attn.c_k", "attn.c_v", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"}
    assert names == {"transformer.wte.weight", "lm_head.weight", *(f"transformer.h.0.{name}.weight" for name in block)}
    assert set(Gpt(_size()).state_dict()) == set(dict(Gpt(_size()).named_parameters()))


def test_initial_weights_are_zero_where_the_original_has_zeros_and_scaled_elsewhere():
    model = Gpt(_size(width=64, n_layer=1))
    model.init_weights(seed=0)
    weights = dict(model.named_parameters())
    assert all(not w.any() for name, w in weights.items() if "c_proj" in name or "lm_head" in name)
    assert weights["transformer.wte.weight"].std().item() == pytest.approx(1.0, rel=0.1)
    assert weights["transformer.h.0.mlp.c_fc.weight"].std().item() == pytest.approx(1 / 8, rel=0.05)
    tokens, targets = _tokens()
    assert model(tokens, targets).detach().mean().item() == pytest.approx(torch.log(torch.tensor(40.0)).item())


def test_the_same_seed_gives_the_same_weights_and_leaves_the_global_dice_alone():
    first, second = Gpt(_size()), Gpt(_size())
    first.init_weights(seed=5)
    torch.manual_seed(9)
    expected = torch.rand(1)
    torch.manual_seed(9)
    second.init_weights(seed=5)
    assert torch.equal(torch.rand(1), expected)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_rotation_turns_by_minus_the_angle_and_keeps_lengths():
    cos, sin = rotary_tables(_size(width=4, n_head=2, n_kv_head=2))
    x = torch.tensor([[[[1.0, 0.0]], [[1.0, 0.0]]]])  # one pair at positions 0 and 1
    y = rotate(x, cos[:2], sin[:2])
    one = torch.tensor(1.0)
    assert torch.allclose(y[0, :, 0], torch.stack([torch.tensor([1.0, 0.0]), torch.stack([one.cos(), -one.sin()])]))


def test_scores_depend_on_the_distance_of_positions_alone():
    cos, sin = rotary_tables(_size())
    q, k = torch.randn(2, 1, 1, 2, 8, generator=torch.Generator().manual_seed(0))
    near = (rotate(q, cos[5:6], sin[5:6]) * rotate(k, cos[2:3], sin[2:3])).sum(-1)
    far = (rotate(q, cos[13:14], sin[13:14]) * rotate(k, cos[10:11], sin[10:11])).sum(-1)
    assert torch.allclose(near, far, atol=1e-5)


def test_no_logit_depends_on_a_later_token():
    model, (tokens, _) = _model(), _tokens(batch=1)
    changed = tokens.clone()
    changed[0, 9:] = (changed[0, 9:] + 1) % 40
    before, after = model(tokens), model(changed)
    assert torch.equal(before[:, :9], after[:, :9]) and not torch.allclose(before[:, 9:], after[:, 9:])


def test_logits_match_the_published_formulas_written_out_plainly():
    model, (tokens, _) = _model(n_kv_head=1), _tokens(batch=1)
    w = dict(model.named_parameters())
    x = norm(w["transformer.wte.weight"][tokens[0]])
    T, heads, dim = len(x), 2, 8
    angle = torch.arange(T)[:, None] * 10_000.0 ** (-torch.arange(0, dim, 2) / dim)

    def turned(h):
        a, b = h[:, :4], h[:, 4:]
        return norm(torch.cat([a * angle.cos() + b * angle.sin(), -a * angle.sin() + b * angle.cos()], 1))

    for layer in range(2):
        at = f"transformer.h.{layer}."
        h = norm(x)
        k, v = turned(h @ w[at + "attn.c_k.weight"].T), h @ w[at + "attn.c_v.weight"].T
        outs = []
        for head in range(heads):
            q = turned((h @ w[at + "attn.c_q.weight"].T)[:, head * dim : head * dim + dim])
            scores = (q @ k.T / dim**0.5).masked_fill(torch.ones(T, T).triu(1).bool(), -torch.inf)
            outs.append(scores.softmax(-1) @ v)
        x = x + torch.cat(outs, 1) @ w[at + "attn.c_proj.weight"].T
        x = x + (norm(x) @ w[at + "mlp.c_fc.weight"].T).relu() ** 2 @ w[at + "mlp.c_proj.weight"].T
    logits = 15 * torch.tanh(norm(x) @ w["lm_head.weight"].T / 15)
    assert torch.allclose(model(tokens)[0], logits, atol=1e-4)


@pytest.mark.parametrize("chunk", [1, 5, 8, 31])
def test_a_chunked_loss_has_the_value_and_gradient_of_the_whole_one(chunk):
    whole, chunked = _model(), _model(loss_chunk=chunk)
    tokens, targets = _tokens()
    targets[0, :3] = IGNORED
    a, b = whole(tokens, targets), chunked(tokens, targets)
    assert torch.allclose(a, b, atol=1e-6) and not a[0, :3].any()
    a.sum().backward()
    b.sum().backward()
    for p, q in zip(whole.parameters(), chunked.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad, rtol=1e-5, atol=1e-6)


class _Largest(TorchDispatchMode):
    """Remembers the largest tensor any operation made."""

    elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        made = [leaf for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)]
        self.elements = max([self.elements, *(tensor.numel() for tensor in made)])
        return out


@pytest.mark.parametrize(("chunk", "expected"), [(0, 32 * 600), (8, 600 * 16)])
def test_a_chunked_loss_never_holds_the_logits_of_all_tokens(chunk, expected):
    model, (tokens, targets) = _model(vocab_size=600, loss_chunk=chunk), _tokens()
    with _Largest() as largest:
        model(tokens, targets).sum().backward()
    assert largest.elements == expected  # all logits; with chunks, no more than the output matrix's gradient


def test_nats_are_cross_entropy_of_the_logits():
    model, (tokens, targets) = _model(), _tokens()
    expected = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten(), reduction="none")
    assert torch.allclose(model(tokens, targets).flatten(), expected)


def test_a_bf16_embedding_works_inside_and_outside_of_autocast():
    model, (tokens, targets) = _model(wte_bf16=True), _tokens()
    outside = model(tokens, targets).detach()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = model(tokens, targets)
    assert inside.dtype == outside.dtype == torch.float32
    assert torch.allclose(inside.detach(), outside, atol=0.2)


def test_generation_looks_back_no_further_than_its_window_and_stops_at_the_count():
    model = _model()
    likeliest = lambda logits: int(logits.argmax())  # noqa: E731
    tokens = _tokens(batch=1, length=30)[0][0].tolist()
    first = list(generate(model, tokens, 5, window=16, draw=likeliest))
    assert len(first) == 5
    assert first == list(generate(model, [0, *tokens[1:]], 5, window=16, draw=likeliest))


def test_drawing_keeps_to_the_likeliest_few_and_repeats_with_its_seed():
    logits = torch.tensor([0.0, 3.0, 2.9, -1.0])
    dice = torch.Generator().manual_seed(0)
    drawn = {draw_token(logits, temperature=1.0, top_k=2, dice=dice) for _ in range(50)}
    assert drawn == {1, 2}
    assert draw_token(logits, temperature=0.0, top_k=0, dice=dice) == 1
