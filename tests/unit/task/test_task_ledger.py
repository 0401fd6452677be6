"""The rank's ledger: bounded, and equal to the fingerprint of everything noted."""

from __future__ import annotations

import numpy as np

from headway.task.order import Ledger, Order, expected_ledger


def test_the_ledger_of_many_parts_is_that_of_the_whole():
    order, ledger = Order(41, 3), Ledger()
    ids, epochs = order.samples(np.arange(3000))
    for start in range(0, 3000, 3):
        ledger.add(ids[start : start + 3], epochs[start : start + 3])
    assert ledger.settle() == expected_ledger(order, 3000, [])
    assert ledger.settle() == 0


def test_the_ledger_does_not_grow():
    ledger = Ledger()
    for _ in range(2000):
        ledger.add(np.arange(4), np.zeros(4, np.int64))
    assert len(ledger._parts) < 256
