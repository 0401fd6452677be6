import importlib.util
import math
from pathlib import Path

import pytest
import torch

from headway.recipes.layoutmaster.losses import Answer, fixed_terms, iou, original_terms
from headway.recipes.layoutmaster.metrics import alignment, metric_sums, overlap, summarize_metrics

NAMES = ["noise", "position", "layer", "confidence", "aesthetic", "overlap", "alignment"]


@pytest.fixture(scope="module")
def loops():
    file = Path(__file__).parents[3] / "bench" / "layout_losses.py"
    spec = importlib.util.spec_from_file_location("layout_losses", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _answer(layout, target, mask=None, said=None, wanted=None, layers=25):
    zeros = torch.zeros_like(target)
    return Answer(
        said=zeros if said is None else said,
        wanted=zeros if wanted is None else wanted,
        layout=layout,
        target=target,
        mask=torch.ones(target.shape[:2], dtype=torch.bool) if mask is None else mask,
        canvas=(1024, 1024),
        layers=layers,
    )


def _poster():
    """A background and three elements on it."""
    boxes = [[0, 0, 1024, 1024], [100, 60, 800, 120], [120, 300, 760, 400], [50, 900, 900, 90]]
    return torch.tensor([[[*box, layer, 1] for layer, box in enumerate(boxes)]], dtype=torch.float32)


@pytest.mark.parametrize("seed", range(3))
def test_all_pairs_at_once_give_what_double_loops_give(loops, seed):
    answer, leaf = loops.make_answer(3, 7, seed=seed)
    at_once, looped = original_terms(answer), loops.looped_terms(answer)
    assert list(at_once) == list(looped) == NAMES
    for name in NAMES:
        torch.testing.assert_close(at_once[name], looped[name], rtol=1e-4, atol=1e-5)
    grads = [torch.autograd.grad(torch.stack(list(t.values())).sum(), leaf)[0] for t in (at_once, looped)]
    torch.testing.assert_close(*grads, rtol=1e-3, atol=1e-4)


def test_every_fixed_term_is_zero_at_the_truth_and_the_originals_are_not():
    answer = _answer(_poster(), _poster())
    assert max(float(term) for term in fixed_terms(answer).values()) < 1e-6
    found = original_terms(answer)
    assert min(float(found[name]) for name in ("layer", "aesthetic", "overlap", "alignment")) > 0.01


def test_fixed_terms_ignore_what_stands_in_padded_slots():
    target, mask = torch.cat((_poster(), torch.zeros(1, 3, 6)), 1), torch.arange(7)[None] < 4
    near = target + torch.randn(1, 7, 6, generator=torch.Generator().manual_seed(1)) * 3
    other = torch.where(mask[..., None], near, near + 500)
    for name, term in fixed_terms(_answer(near, target, mask)).items():
        assert torch.equal(term, fixed_terms(_answer(other, target, mask))[name]), name
    alone = fixed_terms(_answer(near[:, :4], target[:, :4]))
    for name, term in fixed_terms(_answer(near, target, mask)).items():
        torch.testing.assert_close(term, alone[name])


def test_each_fixed_term_rises_with_its_own_mistake():
    truth = _poster()
    changes = {
        "position": (1, 0, 300.0),
        "layer": (1, 4, 2.5),
        "confidence": (1, 5, -0.5),
        "aesthetic": (3, 3, -80.0),
        "overlap": (1, 1, 300.0),
        "alignment": (3, 0, 55.0),
    }
    for name, (place, number, change) in changes.items():
        wrong = truth.clone()
        wrong[0, place, number] += change
        assert float(fixed_terms(_answer(wrong, truth))[name]) > 0, name


def test_fixed_gradients_are_finite_where_boxes_are_equal_empty_or_negative():
    truth = _poster()
    for boxes in (truth, torch.zeros_like(truth), -truth):
        leaf = boxes.clone().requires_grad_()
        torch.stack(list(fixed_terms(_answer(leaf, truth)).values())).sum().backward()
        assert torch.isfinite(leaf.grad).all()


def test_iou_of_known_boxes():
    one = torch.tensor([[[0.0, 0, 2, 2], [0, 0, 2, 2], [0, 0, 1, 1]]])
    other = torch.tensor([[[0.0, 0, 2, 2], [1, 0, 2, 2], [5, 5, 1, 1]]])
    assert iou(one, other)[0].tolist() == pytest.approx([1, 1 / 3, 0])


def _metrics(layout, target=None, backdrop=None):
    target = _poster() if target is None else target
    mask = torch.ones(target.shape[:2], dtype=torch.bool)
    backdrop = torch.zeros_like(mask) if backdrop is None else backdrop
    sums = metric_sums(layout, target, target, mask, backdrop, (1024, 1024))
    return summarize_metrics({name: float(value) for name, value in sums.items()})


def test_the_truth_scores_best_and_has_not_moved():
    found = _metrics(_poster())
    assert found["mean_iou"] == pytest.approx(1) and found["order"] == 1 and found["displacement"] == 0


def test_order_is_kendalls_tau():
    layout = _poster()
    layout[0, :, 4] = torch.tensor([1.0, 0, 2, 3])
    assert _metrics(layout)["order"] == pytest.approx((5 - 1) / 6)
    layout[0, :, 4] = torch.tensor([3.0, 2, 1, 0])
    assert _metrics(layout)["order"] == -1


def test_displacement_is_the_mean_way_of_the_centres():
    layout = _poster()
    layout[0, 1, 0] += 30
    layout[0, 1, 1] += 40
    assert _metrics(layout)["displacement"] == pytest.approx(50 / 4)


def test_overlap_leaves_backdrops_out():
    backdrop = torch.tensor([[True, False, False, False]])
    assert _metrics(_poster(), backdrop=backdrop)["overlap"] == 0
    # Each of the three lies wholly on the background; the background shares its own part with them.
    shares = (800 * 120 + 760 * 400 + 900 * 90) / 1024**2
    assert _metrics(_poster())["overlap"] == pytest.approx(3 + shares)
    box = torch.tensor([[[0.0, 0, 2, 2], [1, 0, 2, 2]]])
    assert float(overlap(box, torch.ones(1, 2, dtype=torch.bool))) == pytest.approx(1.0)


def test_alignment_is_the_log_of_the_nearest_edge():
    box = torch.tensor([[[0.1, 0.1, 0.2, 0.2], [0.15, 0.6, 0.33, 0.1], [9.0, 9, 9, 9]]])
    mask = torch.tensor([[True, True, False]])
    assert float(alignment(box, mask)) == pytest.approx(-math.log(1 - 0.05), rel=1e-4)
    assert float(alignment(box, torch.tensor([[True, False, False]]))) == 0


def test_the_published_losses_see_whole_layers_and_a_confidence_from_0_to_1():
    from headway.recipes.layoutmaster.diffusion import as_published, in_pixels
    from headway.recipes.layoutmaster.section import LayoutMasterSection

    section = LayoutMasterSection(head_mode="original")
    layout = (torch.randn(2, 5, 6) * 100).requires_grad_()
    seen, raw = as_published(layout, section), in_pixels(layout, section)
    assert torch.equal(seen[..., :4], raw[..., :4]) and torch.equal(seen[..., 4], raw[..., 4].round())
    assert seen[..., 5].min() >= 0 and seen[..., 5].max() <= 1
    seen.sum().backward()
    assert (layout.grad[..., 4] == 0).all() and (layout.grad[..., 0] != 0).all()
