"""The MindSpore checkpoint, read back by its own format; tests/procs reads it with MindSpore itself."""

import pytest

from headway.checkpoint.export_ckpt import _head, _varint, mindspore_name
from headway.errors import CheckpointError
from headway.weights.layout import Span


def _fields(data):
    """Yield (number, value) of a protobuf message."""
    at = 0
    while at < len(data):
        key, at = _number(data, at)
        value, at = _number(data, at)
        if key & 7 == 2:
            value, at = data[at : at + value], at + value
        yield key >> 3, value


def _number(data, at):
    shift = value = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 1 << 31])
def test_a_number_survives_its_seven_bit_pieces(number):
    assert _number(_varint(number), 0) == (number, len(_varint(number)))


def test_a_message_holds_name_shape_type_and_bytes():
    content = bytes(range(256)) * 3
    ((one, value),) = _fields(_head("heads.time", Span("F32", (64, 3), 0, 768), 768) + content)
    (tag, tensor) = dict(_fields(value)).values()
    parts = list(_fields(tensor))
    assert (one, tag) == (1, b"heads.time")
    assert parts == [(1, 64), (1, 3), (2, b"Float32"), (3, content)]


def test_a_norms_parts_have_mindspores_names_and_nothing_else_is_renamed():
    names = {"bn1.weight", "bn1.bias", "bn1.running_mean", "bn1.running_var", "conv1.weight", "heads.time"}
    found = {mindspore_name(name, names) for name in names}
    assert found == {"bn1.gamma", "bn1.beta", "bn1.moving_mean", "bn1.moving_variance", "conv1.weight", "heads.time"}


def test_a_type_mindspore_does_not_know_is_refused():
    with pytest.raises(CheckpointError) as refused:
        _head("w", Span("F8_E4M3", (1,), 0, 1), 1)
    assert refused.value.code == "checkpoint/export-type"
