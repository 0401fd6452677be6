import torch

from headway.engine import parallel
from headway.engine.parallel import Ranks, share_buffers


def test_running_statistics_come_from_rank_0_in_one_message_for_each_type(monkeypatch):
    """Rank 1 of two, with rank 0's words played to it."""
    from_first = [torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), torch.tensor([7])]
    messages = iter(from_first)
    monkeypatch.setattr(parallel.dist, "broadcast", lambda flat, src: flat.copy_(next(messages)))
    buffers = [torch.zeros(2), torch.tensor(0), torch.zeros(2, 2)]
    share_buffers(buffers, Ranks(1, 2, 1, torch.device("cpu")))
    assert [buffer.tolist() for buffer in buffers] == [[1.0, 2.0], 7, [[3.0, 4.0], [5.0, 6.0]]]
    assert next(messages, None) is None


def test_one_rank_sends_nothing(monkeypatch):
    monkeypatch.setattr(parallel.dist, "broadcast", lambda flat, src: 1 / 0)
    buffer = torch.tensor([1.0, 2.0])
    share_buffers([buffer], Ranks(0, 1, 0, torch.device("cpu")))
    assert buffer.tolist() == [1.0, 2.0]
