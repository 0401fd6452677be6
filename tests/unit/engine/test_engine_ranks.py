from __future__ import annotations

import threading

import torch
import torch.distributed as dist

from headway.engine.parallel import Ranks

CPU = torch.device("cpu")


def test_a_word_of_rank_0_reaches_the_others_without_a_collective_that_could_time_out():
    # Reading a large checkpoint takes rank 0 longer than NCCL's ten minutes; there is no process group here at all.
    store, heard = dist.HashStore(), []
    first, other = Ranks(0, 2, 0, CPU, store), Ranks(1, 2, 1, CPU, store)
    waiting = threading.Thread(target=lambda: heard.append(other.hear_from_first(None)))
    waiting.start()
    assert first.hear_from_first("step-00000004") == "step-00000004"
    waiting.join(30)
    assert heard == ["step-00000004"]
    # A roll-back, or another run of the same ranks, asks again and must not hear the old word.
    assert [ranks.hear_from_first(None) for ranks in (first, other)] == ["", ""]
    assert Ranks(0, 1, 0, CPU).hear_from_first("step-00000002") == "step-00000002"
