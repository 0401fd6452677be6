import math

import pytest
import torch

from headway.recipes.rdt.diffusion import add_noise, alphas_cumprod, solve, solver_levels


def test_levels_follow_the_squared_cosine_and_its_cap():
    kept = alphas_cumprod(1000)
    assert len(kept) == 1000 and torch.all(kept[1:] < kept[:-1])
    bar = [math.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2 for t in (0.0, 0.5)]
    assert float(kept[499]) == pytest.approx(bar[1] / bar[0], rel=1e-6)
    assert float(kept[999] / kept[998]) == pytest.approx(1 - 0.999, rel=1e-9)


def test_five_steps_visit_the_published_levels():
    assert solver_levels(1000, 5) == [999, 799, 599, 400, 200]


def test_noise_keeps_the_variance():
    kept = alphas_cumprod(1000)
    clean, noise = torch.randn(64, 50, 8), torch.randn(64, 50, 8)
    noisy = add_noise(clean, noise, torch.arange(64) * 15, kept)
    assert noisy.var().item() == pytest.approx(1.0, abs=0.05)
    assert torch.allclose(add_noise(clean, noise, torch.zeros(64, dtype=torch.long), kept), clean, atol=0.05)


def test_a_model_that_knows_the_answer_is_believed_exactly():
    kept, want = alphas_cumprod(1000), torch.randn(3, 4, 5)
    assert torch.equal(solve(lambda x, level: want, torch.randn(3, 4, 5), kept=kept, steps=5), want)


def _gaussian_error(steps):
    """Return how far the solver ends from the known solution for data that is Gaussian."""
    kept, mean, spread = alphas_cumprod(1000), 0.7, 0.3
    noise = torch.randn(2000, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def denoise(x, level):
        share = float(kept[level])
        alpha, var = math.sqrt(share), share * spread**2 + 1 - share
        return mean + spread**2 * alpha / var * (x - alpha * mean)

    first = float(kept[solver_levels(1000, steps)[0]])
    z = (noise - math.sqrt(first) * mean) / math.sqrt(first * spread**2 + 1 - first)
    exact = mean + spread * z
    got = solve(denoise, noise, kept=kept, steps=steps).double()
    return float((got - exact).abs().mean())


def test_the_solver_nears_the_exact_solution_as_steps_grow():
    errors = [_gaussian_error(steps) for steps in (5, 10, 20, 40)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] < 0.1 and errors[3] < errors[1] / 6


def test_second_order_beats_first_order():
    def first_order(steps):
        kept = alphas_cumprod(1000)
        levels = solver_levels(1000, steps)
        noise = torch.randn(500, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
        x = noise
        for i, level in enumerate(levels):
            share = float(kept[level])
            var = share * 0.09 + 1 - share
            clean = 0.7 + 0.09 * math.sqrt(share) / var * (x - math.sqrt(share) * 0.7)
            if i + 1 < len(levels):
                after = float(kept[levels[i + 1]])
                noise_left = (x - math.sqrt(share) * clean) / math.sqrt(1 - share)
                x = math.sqrt(after) * clean + math.sqrt(1 - after) * noise_left
        z = (noise - math.sqrt(float(kept[levels[0]])) * 0.7) / math.sqrt(1 - 0.91 * float(kept[levels[0]]))
        return float((clean - 0.7 - 0.3 * z).abs().mean())

    # The last step, to no noise at all, is of first order in both.
    assert _gaussian_error(10) < 0.75 * first_order(10)


def test_the_most_steps_the_section_allows_are_solved():
    for levels in (2, 3, 10, 57, 1000):
        noise, kept = torch.randn(1, 2, 3), alphas_cumprod(levels)
        assert solve(lambda x, level: 0.9 * x, noise, kept=kept, steps=levels - 1).isfinite().all()
