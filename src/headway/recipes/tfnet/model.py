"""TFNet in PyTorch: a residual frame network with motion attention, a time branch and a frequency branch.

B clips, T frames, C channels, H W height and width, L outputs of T frames, V words and the blank.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from headway.recipes.tfnet.ctc import ctc_nats
from headway.recipes.tfnet.section import TfnetSection
from headway.recipes.tfnet.weights import start_weights


def _norm(kind: type[nn.Module], channels: int) -> Any:  # BatchNorm1d and 2d share no public parent
    norm: Any = kind(channels)
    # Counts batches only for an averaging mode that is not used; MindSpore's checkpoints have no such number.
    norm.num_batches_tracked = None
    return norm


class MotionAttention(nn.Module):
    """Four convolutions over time say how much each value of each frame counts."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        sizes = (channels, hidden, hidden, hidden, channels)
        self.convs = nn.ModuleList(nn.Conv2d(a, b, (3, 1), padding=(1, 0)) for a, b in itertools.pairwise(sizes))

    def forward(self, x_NCHW: Tensor, clips: int) -> Tensor:
        """Weigh frames that lie clip after clip."""
        N, C, H, W = x_NCHW.shape
        x_BCTP = x_NCHW.view(clips, N // clips, C, H * W).transpose(1, 2)
        y = x_BCTP
        for at, conv in enumerate(self.convs):
            y = conv(y)
            y = F.leaky_relu(y, 0.01) if at < 3 else torch.sigmoid(y)
        return (x_BCTP * y).transpose(1, 2).reshape(N, C, H, W)


class Block(nn.Module):
    """Two 3x3 convolutions around a shortcut."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 3, stride, 1, bias=False)
        self.bn1 = _norm(nn.BatchNorm2d, width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = _norm(nn.BatchNorm2d, width)
        self.down = (
            nn.Sequential(nn.Conv2d(before, width, 1, stride, bias=False), _norm(nn.BatchNorm2d, width))
            if stride > 1 or before != width
            else None
        )

    def forward(self, x: Tensor) -> Tensor:
        """Add the residual."""
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.down is None else self.down(x)))


class FrameNet(nn.Module):
    """ResNet-34 with motion attention: frames in, one vector a frame out."""

    def __init__(self, section: TfnetSection) -> None:
        super().__init__()
        widths, hidden = section.channels, section.attention
        self.attention = nn.ModuleList(MotionAttention(c, h) for c, h in zip((3, *widths[:3]), hidden, strict=True))
        self.conv1 = nn.Conv2d(3, widths[0], 7, 2, 3, bias=False)
        self.bn1 = _norm(nn.BatchNorm2d, widths[0])
        self.stages = nn.ModuleList()
        before = widths[0]
        for stage, (width, blocks) in enumerate(zip(widths, section.blocks, strict=True)):
            strides = [2 if stage else 1, *[1] * (blocks - 1)]
            inputs = [before, *[width] * (blocks - 1)]
            self.stages.append(nn.Sequential(*(Block(i, width, s) for i, s in zip(inputs, strides, strict=True))))
            before = width

    def forward(self, frames_BTCHW: Tensor) -> Tensor:
        """Return features (B, C, T)."""
        B, T = frames_BTCHW.shape[:2]
        x = self.attention[0](frames_BTCHW.flatten(0, 1), B)
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        for stage, blocks in enumerate(self.stages):
            x = self.attention[stage](x, B) if stage else x
            x = blocks(x)
        return x.mean((2, 3)).view(B, T, -1).transpose(1, 2)


@dataclass(frozen=True, slots=True)
class Rows:
    """How long each clip is, the longest first: what a packed sequence is made from.

    Torch's own functions find the order themselves and read it back from the device, twice in each branch.
    """

    lengths: Tensor
    """Sorted, on the host."""
    order: Tensor
    """Which row comes when, on the device."""
    inverse: Tensor

    def pack(self, x_LBH: Tensor) -> PackedSequence:
        """Return rows without their padding."""
        data, sizes = torch._VF._pack_padded_sequence(x_LBH.index_select(1, self.order), self.lengths, False)
        return PackedSequence(data, sizes, self.order, self.inverse)

    def unpack(self, packed: PackedSequence, steps: int) -> Tensor:
        """Return rows in their own order, with padding."""
        padded, _ = torch._VF._pad_packed_sequence(packed.data, packed.batch_sizes, False, 0.0, steps)
        return padded.index_select(1, self.inverse)


def sort_rows(lengths: Tensor, device: torch.device) -> Rows:
    """Return the order of clips by their lengths, which are on the host; nothing is waited for."""
    ordered, order = lengths.sort(descending=True)
    inverse = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device="cpu"))
    return Rows(ordered, _sent(order, device), _sent(inverse, device))


def _sent(values: Tensor, device: torch.device) -> Tensor:
    """Return a few numbers on a device; from pinned memory the copy is not waited for."""
    return (values.pin_memory() if device.type == "cuda" else values).to(device, non_blocking=True)


class Branch(nn.Module):
    """K5-P2-K5-P2 over time, then a bidirectional LSTM."""

    def __init__(self, features: int, hidden: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv1d(features, hidden, 5), _norm(nn.BatchNorm1d, hidden)
        self.conv2, self.bn2 = nn.Conv1d(hidden, hidden, 5), _norm(nn.BatchNorm1d, hidden)
        self.lstm = nn.LSTM(hidden, hidden // 2, num_layers=2, bidirectional=True)

    def forward(self, x_BCT: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        """Return what the convolutions and the LSTM say, both (L, B, H)."""
        x = F.max_pool1d(F.relu(self.bn1(self.conv1(x_BCT))), 2)
        x = F.max_pool1d(F.relu(self.bn2(self.conv2(x))), 2)
        conv_LBH = x.permute(2, 0, 1)
        # In fp32: autocast has no LSTM on the CPU, and on a GPU it would copy all its weights at each call.
        with torch.autocast(conv_LBH.device.type, enabled=False):
            lstm_LBH = rows.unpack(self.lstm(rows.pack(conv_LBH.float()))[0], conv_LBH.shape[0])
        return conv_LBH, lstm_LBH


class Heads(nn.Module):
    """Output matrices whose columns have length one; a branch's LSTM and convolutions share theirs."""

    def __init__(self, hidden: int, outputs: int, *, has_frequency: bool) -> None:
        super().__init__()
        names = ("time", "frequency", "fused") if has_frequency else ("time",)
        for name in names:
            self.register_parameter(name, nn.Parameter(torch.empty(hidden, outputs)))

    def forward(self, x_LBH: Tensor, name: str) -> Tensor:
        """Return logits (L, B, V)."""
        return x_LBH @ F.normalize(self.get_parameter(name), dim=0)


class Tfnet(nn.Module):
    """The whole network; `forward` returns the logits of all heads by name."""

    def __init__(self, section: TfnetSection, vocabulary: int) -> None:
        super().__init__()
        self.frames = FrameNet(section)
        self.time = Branch(section.feature_size, section.hidden_size)
        self.frequency = Branch(section.feature_size, section.hidden_size) if section.frequency else None
        self.heads = Heads(section.hidden_size, vocabulary + 1, has_frequency=section.frequency)
        self._frames_file = section.frames_file

    def init_weights(self, seed: int) -> None:
        """Set the weights that this seed means in any framework, and those of a file where one is given."""
        state = self.state_dict()
        shapes = {name: tuple(value.shape) for name, value in state.items()}
        start = start_weights(shapes, seed=seed, frames_file=self._frames_file)
        with torch.no_grad():
            for name, value in start.items():
                state[name].copy_(torch.from_numpy(value))

    def forward(self, frames: Tensor, lengths: Tensor) -> Mapping[str, Tensor]:
        """Read uint8 frames (B, T, 3, H, W); logits are (L, B, V). `fused` is for inference. Lengths: on the host."""
        features_BCT = self.frames(frames.to(self.heads.get_parameter("time").dtype) / 127.5 - 1)
        rows = sort_rows(lengths, features_BCT.device)
        conv, lstm = self.time(features_BCT, rows)
        out = {"time_lstm": self.heads(lstm, "time"), "time_conv": self.heads(conv, "time")}
        if self.frequency is None:
            return {**out, "fused": out["time_lstm"]}
        # Over the channels of each frame, as published, and in fp32: half precision has no complex numbers.
        spectrum = torch.fft.fft(features_BCT.float(), dim=1, norm="forward").abs()
        conv_f, lstm_f = self.frequency(spectrum, rows)
        return {
            **out,
            "frequency_lstm": self.heads(lstm_f, "frequency"),
            "frequency_conv": self.heads(conv_f, "frequency"),
            "fused": self.heads(lstm + lstm_f, "fused"),
        }


def ctc_sum(logits_LBV: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
    """Return the nats of all sentences; one that cannot be read from its frames counts 0."""
    log_probs = logits_LBV.float().log_softmax(-1)
    if not log_probs.is_cpu:
        return ctc_nats(log_probs, batch["labels"], batch["lengths"], batch["label_lengths"]).sum()
    nats: Tensor = F.ctc_loss(
        log_probs, batch["labels"], batch["lengths"], batch["label_lengths"], reduction="none", zero_infinity=True
    )
    return nats.sum()


def distill_sum(student_LBV: Tensor, teacher_LBV: Tensor, lengths: Tensor, *, temperature: float, mode: str) -> Tensor:
    """Return each clip's mean divergence over its outputs, added up; the blank does not take part.

    `original` lets the gradient into the teacher and counts padding, as the published code does.
    """
    student = (student_LBV[..., 1:].float() / temperature).log_softmax(-1)
    teacher = (teacher_LBV[..., 1:].float() / temperature).log_softmax(-1)
    if mode == "repaired":
        teacher = teacher.detach()
    rows_LB = (teacher.exp() * (teacher - student)).sum(-1) * temperature**2
    if mode == "original":
        return rows_LB.mean(0).sum()
    is_real = torch.arange(len(rows_LB), device=lengths.device)[:, None] < lengths
    return ((rows_LB * is_real).sum(0) / lengths).sum()
