"""TFNet in MindSpore: the same network as model.py, weight for weight and name for name.

Convolutions over time are 2-D ones of width one: on CPU they compile faster than products over shifted slices.
B clips, T frames, C channels, P pixels of a frame, L outputs of T frames, V words and the blank.
"""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from headway.recipes.tfnet.section import TfnetSection

_NAMES = {"gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var"}


def portable_names(model: nn.Cell) -> dict[str, Parameter]:
    """Return every weight and running statistic by the name it has in any framework."""
    named = {}
    for parameter in model.get_parameters():
        place, _, leaf = parameter.name.rpartition(".")
        named[f"{place}.{_NAMES.get(leaf, leaf)}"] = parameter
    return named


def _weight(*shape: int) -> Parameter:
    return Parameter(Tensor(np.zeros(shape, np.float32)))


def _conv(before: int, width: int, side: int, stride: int) -> nn.Cell:
    return nn.Conv2d(
        before, width, side, stride, pad_mode="pad", padding=side // 2, has_bias=False, weight_init="zeros"
    )


def _norm(width: int) -> nn.Cell:
    return nn.BatchNorm2d(width, eps=1e-5, momentum=0.9)


class OverTime(nn.Cell):
    """A convolution over the first of two trailing axes: moments, and the values of one moment."""

    def __init__(self, before: int, width: int, kernel: tuple[int, ...], padding: int) -> None:
        super().__init__()
        self.weight, self.bias = _weight(width, before, *kernel), _weight(width)
        self.shape = (width, before, kernel[0], 1)
        self.conv = ops.Conv2D(width, (kernel[0], 1), pad_mode="pad", pad=(padding, padding, 0, 0))

    def construct(self, x_BCTP: Tensor) -> Tensor:
        """Return (B, width, moments, P)."""
        weight = self.weight.reshape(self.shape).astype(x_BCTP.dtype)
        return self.conv(x_BCTP, weight) + self.bias.reshape(1, -1, 1, 1).astype(x_BCTP.dtype)


class MotionAttention(nn.Cell):
    """Four convolutions over time say how much each value of each frame counts."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        sizes = (channels, hidden, hidden, hidden, channels)
        self.convs = nn.CellList([OverTime(sizes[i], sizes[i + 1], (3, 1), 1) for i in range(4)])

    def construct(self, x_NCHW: Tensor, clips: int) -> Tensor:
        """Weigh frames that lie clip after clip."""
        frames, channels, height, width = x_NCHW.shape
        moments = frames // clips
        x = x_NCHW.reshape(clips, moments, channels, height * width).transpose(0, 2, 1, 3)
        y = x
        for conv in self.convs[:3]:
            y = conv(y)
            y = ops.maximum(y, 0.01 * y)
        x = x * ops.sigmoid(self.convs[3](y))
        return x.transpose(0, 2, 1, 3).reshape(frames, channels, height, width)


class Block(nn.Cell):
    """Two 3x3 convolutions around a shortcut."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = _conv(before, width, 3, stride), _norm(width)
        self.conv2, self.bn2 = _conv(width, width, 3, 1), _norm(width)
        self.has_down = stride > 1 or before != width
        if self.has_down:
            self.down = nn.SequentialCell(_conv(before, width, 1, stride), _norm(width))

    def construct(self, x: Tensor) -> Tensor:
        """Add the residual."""
        y = self.bn2(self.conv2(ops.relu(self.bn1(self.conv1(x)))))
        return ops.relu(y + (self.down(x) if self.has_down else x))


class FrameNet(nn.Cell):
    """ResNet-34 with motion attention: frames in, one vector a frame out."""

    def __init__(self, section: TfnetSection) -> None:
        super().__init__()
        widths = section.channels
        before = (3, *widths[:3])
        self.attention = nn.CellList([MotionAttention(before[i], section.attention[i]) for i in range(4)])
        self.conv1, self.bn1 = _conv(3, widths[0], 7, 2), _norm(widths[0])
        self.pool = nn.MaxPool2d(2, 2)
        stages, width_before = [], widths[0]
        for stage, (width, blocks) in enumerate(zip(widths, section.blocks, strict=True)):
            parts = [Block(width if at else width_before, width, 2 if stage and not at else 1) for at in range(blocks)]
            stages.append(nn.SequentialCell(*parts))
            width_before = width
        self.stages = nn.CellList(stages)

    def construct(self, frames_NCHW: Tensor, clips: int) -> Tensor:
        """Return features (B, C, T)."""
        x = self.attention[0](frames_NCHW, clips)
        x = self.pool(ops.relu(self.bn1(self.conv1(x))))
        x = self.stages[0](x)
        x = self.stages[1](self.attention[1](x, clips))
        x = self.stages[2](self.attention[2](x, clips))
        x = self.stages[3](self.attention[3](x, clips))
        features = x.mean((2, 3))
        return features.reshape(clips, features.shape[0] // clips, features.shape[1]).transpose(0, 2, 1)


class Lstm(nn.Cell):
    """A bidirectional LSTM over sequences of unequal length.

    The backward direction is a forward one over each sequence turned round within its own length, which is what
    packed sequences mean. Outputs past a sequence's end are zero.
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        half = hidden // 2
        for layer in range(2):
            width = hidden if layer else inputs
            for end in ("", "_reverse"):
                setattr(self, f"weight_ih_l{layer}{end}", _weight(4 * half, width))
                setattr(self, f"weight_hh_l{layer}{end}", _weight(4 * half, half))
                setattr(self, f"bias_ih_l{layer}{end}", _weight(4 * half))
                setattr(self, f"bias_hh_l{layer}{end}", _weight(4 * half))
        self.half = half
        self.first = ops.LSTM(inputs, half, 1, True, False, 0.0)
        self.second = ops.LSTM(hidden, half, 1, True, False, 0.0)

    def _one(self, lstm: nn.Cell, x_LBC: Tensor, weights: tuple[Tensor, ...]) -> Tensor:
        # The fused operator takes all weights as one column, with the two biases already added.
        columns = (weights[0].reshape(-1), weights[1].reshape(-1), weights[2] + weights[3])
        flat = ops.cat(columns).reshape(-1, 1, 1)
        start = ops.zeros((1, x_LBC.shape[1], self.half), x_LBC.dtype)
        return lstm(x_LBC, start, start, flat)[0]

    def construct(self, x_LBC: Tensor, lengths: Tensor, is_real_LB1: Tensor) -> Tensor:
        """Return (L, B, hidden)."""
        dtype = x_LBC.dtype
        x = x_LBC.astype(ms.float32)
        there = self._one(self.first, x, (self.weight_ih_l0, self.weight_hh_l0, self.bias_ih_l0, self.bias_hh_l0))
        back = self._one(
            self.first,
            ops.reverse_sequence(x, lengths, 0, 1),
            (self.weight_ih_l0_reverse, self.weight_hh_l0_reverse, self.bias_ih_l0_reverse, self.bias_hh_l0_reverse),
        )
        x = ops.cat((there, ops.reverse_sequence(back, lengths, 0, 1)), 2) * is_real_LB1
        there = self._one(self.second, x, (self.weight_ih_l1, self.weight_hh_l1, self.bias_ih_l1, self.bias_hh_l1))
        back = self._one(
            self.second,
            ops.reverse_sequence(x, lengths, 0, 1),
            (self.weight_ih_l1_reverse, self.weight_hh_l1_reverse, self.bias_ih_l1_reverse, self.bias_hh_l1_reverse),
        )
        x = ops.cat((there, ops.reverse_sequence(back, lengths, 0, 1)), 2) * is_real_LB1
        return x.astype(dtype)


class Branch(nn.Cell):
    """K5-P2-K5-P2 over time, then a bidirectional LSTM."""

    def __init__(self, features: int, hidden: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = OverTime(features, hidden, (5,), 0), _norm(hidden)
        self.conv2, self.bn2 = OverTime(hidden, hidden, (5,), 0), _norm(hidden)
        self.pool = nn.MaxPool2d((2, 1), (2, 1))
        self.lstm = Lstm(hidden, hidden)

    def construct(self, x_BCT: Tensor, lengths: Tensor, is_real_LB1: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the convolutions and the LSTM say, both (L, B, H)."""
        x = x_BCT.expand_dims(3)
        x = self.pool(ops.relu(self.bn1(self.conv1(x))))
        x = self.pool(ops.relu(self.bn2(self.conv2(x))))
        conv_LBH = x.squeeze(3).transpose(2, 0, 1)
        return conv_LBH, self.lstm(conv_LBH, lengths, is_real_LB1)


class Heads(nn.Cell):
    """Output matrices whose columns have length one."""

    def __init__(self, hidden: int, outputs: int, *, has_frequency: bool) -> None:
        super().__init__()
        self.time = _weight(hidden, outputs)
        if has_frequency:
            self.frequency, self.fused = _weight(hidden, outputs), _weight(hidden, outputs)

    def construct(self, x_LBH: Tensor, weight: Tensor) -> Tensor:
        """Return logits (L, B, V)."""
        length = ops.sqrt(ops.maximum((weight * weight).sum(0, keepdims=True), 1e-24))
        return ops.matmul(x_LBH, (weight / length).astype(x_LBH.dtype))


class Tfnet(nn.Cell):
    """The whole network; logits of time LSTM, time convolutions, frequency LSTM, frequency convolutions, both."""

    def __init__(self, section: TfnetSection, vocabulary: int) -> None:
        super().__init__()
        features = section.feature_size
        self.has_frequency = section.frequency
        self.frames = FrameNet(section)
        self.time = Branch(features, section.hidden_size)
        self.heads = Heads(section.hidden_size, vocabulary + 1, has_frequency=section.frequency)
        if section.frequency:
            self.frequency = Branch(features, section.hidden_size)
            # The transform of a few hundred channels is a matrix product, which every device has with its gradient.
            turns = np.outer(np.arange(features), np.arange(features)) % features * (2 * np.pi / features)
            self.cosine = Tensor((np.cos(turns) / features).astype(np.float32))
            self.sine = Tensor((np.sin(turns) / features).astype(np.float32))

    def _spectrum(self, features_BCT: Tensor) -> Tensor:
        wide = features_BCT.astype(ms.float32)
        real, imaginary = ops.matmul(self.cosine, wide), ops.matmul(self.sine, wide)
        # Without the small number the gradient of a zero would not be finite.
        return ops.sqrt(real * real + imaginary * imaginary + 1e-20).astype(features_BCT.dtype)

    def construct(self, frames: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        """Read uint8 frames (B, T, 3, H, W); logits are (L, B, V). The last ones are what inference uses."""
        clips, moments, channels, height, width = frames.shape
        x = frames.reshape(clips * moments, channels, height, width).astype(ms.float32) / 127.5 - 1
        features_BCT = self.frames(x, clips)
        outputs = ((moments - 4) // 2 - 4) // 2
        is_real_LB1 = (ops.arange(outputs).reshape(-1, 1, 1) < lengths.reshape(1, -1, 1)).astype(ms.float32)
        conv, lstm = self.time(features_BCT, lengths, is_real_LB1)
        time_lstm, time_conv = self.heads(lstm, self.heads.time), self.heads(conv, self.heads.time)
        if not self.has_frequency:
            return time_lstm, time_conv, time_lstm
        conv_f, lstm_f = self.frequency(self._spectrum(features_BCT), lengths, is_real_LB1)
        return (
            time_lstm,
            time_conv,
            self.heads(lstm_f, self.heads.frequency),
            self.heads(conv_f, self.heads.frequency),
            self.heads(lstm + lstm_f, self.heads.fused),
        )


class TfnetLoss(nn.Cell):
    """CTC of all heads and the distillation, added up over clips; and the logits inference uses."""

    def __init__(self, model: Tfnet, section: TfnetSection) -> None:
        super().__init__(auto_prefix=False)
        self.model = model
        self.distill, self.temperature, self.weight = section.distill, section.kd_temperature, section.kd_weight
        self.has_frequency = section.frequency

    def _ctc(self, logits_LBV: Tensor, labels: Tensor, lengths: Tensor, label_lengths: Tensor) -> Tensor:
        log_probs = ops.log_softmax(logits_LBV.astype(ms.float32), -1)
        return ops.ctc_loss(log_probs, labels, lengths, label_lengths, 0, "none", True)[0].sum()

    def _distilled(self, student_LBV: Tensor, teacher_LBV: Tensor, lengths: Tensor) -> Tensor:
        student = ops.log_softmax(student_LBV[:, :, 1:].astype(ms.float32) / self.temperature, -1)
        teacher = ops.log_softmax(teacher_LBV[:, :, 1:].astype(ms.float32) / self.temperature, -1)
        if self.distill == "repaired":
            teacher = ops.stop_gradient(teacher)
        rows_LB = (ops.exp(teacher) * (teacher - student)).sum(-1) * self.temperature**2
        if self.distill == "original":
            return rows_LB.mean(0).sum()
        is_real_LB = (ops.arange(rows_LB.shape[0]).reshape(-1, 1) < lengths.reshape(1, -1)).astype(ms.float32)
        return ((rows_LB * is_real_LB).sum(0) / lengths.astype(ms.float32)).sum()

    def construct(
        self, frames: Tensor, lengths: Tensor, labels: Tensor, label_lengths: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the sum of the loss over the clips, and the fused logits."""
        logits = self.model(frames, lengths)
        total = self._ctc(logits[0], labels, lengths, label_lengths)
        total = total + self._ctc(logits[1], labels, lengths, label_lengths)
        if self.has_frequency:
            total = total + self._ctc(logits[2], labels, lengths, label_lengths)
            total = total + self._ctc(logits[3], labels, lengths, label_lengths)
            total = total + self._ctc(logits[4], labels, lengths, label_lengths)
        if self.distill != "off":
            total = total + self.weight * self._distilled(logits[1], logits[0], lengths)
            if self.has_frequency:
                total = total + self.weight * self._distilled(logits[3], logits[2], lengths)
        return total, logits[-1]
