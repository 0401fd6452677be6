import numpy as np
import pytest
import torch

from headway.config import RunConfig
from headway.recipes.tfnet.ctc import ctc_nats
from headway.recipes.tfnet.model import Tfnet, ctc_sum, distill_sum, sort_rows
from headway.recipes.tfnet.section import TfnetSection
from headway.recipes.tfnet.task import make_task
from headway.recipes.tfnet.weights import initial_weights

_SMALL = {
    "frame_size": 16, "crop_size": 16, "channels": (4, 4, 6, 8), "blocks": (1, 1, 1, 1),
    "attention": (2, 2, 2, 2), "hidden_size": 8,
}  # fmt: skip


def _model(**changes):
    model = Tfnet(TfnetSection(**{**_SMALL, **changes}), 5)
    model.init_weights(seed=1)
    return model


def _clips(frames=24, seed=0):
    video = np.random.default_rng(seed).integers(0, 256, (2, frames + 12, 3, 16, 16), np.uint8)
    return torch.from_numpy(video), torch.tensor([frames // 4, frames // 4 - 2])


@pytest.mark.parametrize("frequency", [True, False])
def test_the_published_size_has_the_published_parameters(frequency):
    section = TfnetSection(frequency=frequency)
    with torch.device("meta"):
        model = Tfnet(section, 3476)
    num = sum(param.numel() for param in model.parameters())
    assert num == section.num_params(3476)
    if frequency:
        assert num == 21_284_672 + 248_659 + 2 * 7_870_464 + 2 * 12_599_296 + 3 * 1024 * 3477


def test_all_heads_speak_at_a_quarter_of_the_frames():
    logits = _model()(*_clips(24))
    assert set(logits) == {"time_lstm", "time_conv", "frequency_lstm", "frequency_conv", "fused"}
    assert {tuple(value.shape) for value in logits.values()} == {(6, 2, 6)}
    assert set(_model(frequency=False)(*_clips(24))) == {"time_lstm", "time_conv", "fused"}


def test_output_matrices_count_by_direction_only():
    model, clips = _model().eval(), _clips()
    before = model(*clips)["fused"]
    with torch.no_grad():
        model.heads.get_parameter("fused").mul_(7)
    assert torch.allclose(before, model(*clips)["fused"], atol=1e-5)


def test_what_lies_past_a_clips_end_does_not_reach_its_lstm():
    model = _model().eval()
    x = torch.randn(2, 8, 36, generator=torch.Generator().manual_seed(0))
    lengths = torch.tensor([6, 4])
    other = x.clone()
    other[1, :, 28:] = 9.0  # past 4 * 4 + 12 frames
    rows = sort_rows(lengths, x.device)
    a, b = model.time(x, rows)[1], model.time(other, rows)[1]
    assert torch.equal(a[:4, 1], b[:4, 1]) and not a[4:, 1].any()


def test_the_spectrum_is_over_channels_not_over_time():
    model = _model().eval()
    frames, lengths = _clips()
    seen = []
    model.frequency.register_forward_hook(lambda module, given, out: seen.append(given[0]))
    features = model.frames(frames.float() / 127.5 - 1)
    model(frames, lengths)
    want = np.abs(np.fft.fft(features.detach().numpy(), axis=1, norm="forward"))
    assert np.allclose(seen[0].detach().numpy(), want, atol=1e-5)


def test_weights_depend_on_seed_and_name_alone():
    one = initial_weights({"time.conv1.weight": (4, 3, 5), "time.conv1.bias": (4,)}, seed=3)
    more = initial_weights({"a.weight": (2, 2), "time.conv1.weight": (4, 3, 5), "time.conv1.bias": (4,)}, seed=3)
    other = initial_weights({"time.conv1.weight": (4, 3, 5), "time.conv1.bias": (4,)}, seed=4)
    assert np.array_equal(one["time.conv1.weight"], more["time.conv1.weight"])
    assert not np.array_equal(one["time.conv1.weight"], other["time.conv1.weight"])
    assert np.abs(one["time.conv1.bias"]).max() <= 15**-0.5


def test_running_statistics_start_at_zero_and_one_and_are_all_that_is_kept_beside_weights():
    state = _model().state_dict()
    assert not state["time.bn1.running_mean"].any() and (state["time.bn1.running_var"] == 1).all()
    assert not [name for name in state if name.endswith("num_batches_tracked")]


def _loss_batch():
    return {
        "labels": torch.tensor([[1, 2, 0], [3, 3, 1]]),
        "lengths": torch.tensor([6, 6]),
        "label_lengths": torch.tensor([2, 3]),
    }


def test_ctc_is_a_sum_over_clips_not_divided_by_their_labels():
    logits = torch.zeros(6, 2, 6)
    each = [
        ctc_sum(logits[:, i : i + 1], {key: value[i : i + 1] for key, value in _loss_batch().items()}) for i in (0, 1)
    ]
    assert ctc_sum(logits, _loss_batch()).item() == pytest.approx(sum(each).item())


def test_a_clip_that_cannot_be_read_costs_nothing_instead_of_infinity():
    batch = {**_loss_batch(), "lengths": torch.tensor([6, 3])}  # 3, 3, 1 needs four outputs
    logits = torch.zeros(6, 2, 6, requires_grad=True)
    ctc_sum(logits, batch).backward()
    assert torch.isfinite(logits.grad).all() and not logits.grad[:, 1].any()


def test_the_repaired_distillation_leaves_the_teacher_and_padding_alone_and_the_original_does_not():
    dice = torch.Generator().manual_seed(0)
    found = {}
    for mode in ("repaired", "original"):
        student = torch.randn(5, 2, 6, generator=dice).requires_grad_()
        teacher = torch.randn(5, 2, 6, generator=dice).requires_grad_()
        distill_sum(student, teacher, torch.tensor([5, 3]), temperature=8.0, mode=mode).backward()
        found[mode] = (student.grad, teacher.grad)
    assert found["repaired"][1] is None and found["original"][1].abs().sum() > 0
    assert not found["repaired"][0][3:, 1].any() and found["original"][0][3:, 1].any()
    assert not found["repaired"][0][..., 0].any()  # the blank takes no part


def test_equal_logits_have_nothing_to_teach():
    logits = torch.randn(4, 2, 6)
    assert distill_sum(logits, logits, torch.tensor([4, 4]), temperature=8.0, mode="repaired").item() == 0


def test_the_default_section_stands_in_a_config():
    assert RunConfig(task=TfnetSection()).task.framework == "mindspore"


def test_muon_takes_the_kernels_of_the_residual_blocks():
    task = make_task(RunConfig(task=TfnetSection(**_SMALL), optimizer={"name": "muon"}))
    muon, rest = task.param_groups(_model())
    assert (muon.optimizer, rest.optimizer) == ("muon", "adamw")
    assert muon.params and all(
        name.startswith("frames.stages.") and param.ndim == 4 for name, param in muon.params.items()
    )


def test_ctc_of_plain_operations_is_torchs_with_its_gradient():
    dice = torch.Generator().manual_seed(3)
    logits = torch.randn(12, 6, 5, generator=dice, dtype=torch.float64).requires_grad_()
    labels = torch.tensor([[1, 2, 3, 4], [2, 2, 2, 0], [1, 1, 0, 0], [4, 0, 0, 0], [3, 3, 3, 3], [1, 2, 0, 0]])
    label_lengths, lengths = (
        torch.tensor([4, 3, 2, 1, 4, 2]),
        torch.tensor([12, 9, 5, 1, 6, 12]),
    )  # the fifth: too short
    want = torch.nn.functional.ctc_loss(
        logits.log_softmax(-1), labels, lengths, label_lengths, reduction="none", zero_infinity=True
    )
    have = ctc_nats(logits.log_softmax(-1), labels, lengths, label_lengths)
    assert torch.allclose(have, want, rtol=1e-9) and have[4] == 0
    weights = torch.arange(1.0, 7.0, dtype=torch.float64)
    slopes = [torch.autograd.grad((one * weights).sum(), logits, retain_graph=True)[0] for one in (have, want)]
    assert torch.allclose(*slopes, rtol=1e-7, atol=1e-9) and not slopes[0][:, 4].any()


def test_the_lstm_takes_what_autocast_gives_it():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert _model()(*_clips(24))["time_lstm"].isfinite().all()
