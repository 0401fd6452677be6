"""Counts that begin again in each epoch are added up; of several counts in one output the most telling one leads."""

from __future__ import annotations

from headway.launch.foreign.printed_lines import Bar, Count

_NEARLY = 0.9
"""A count that has come this far was finished when it begins again: the last line of an epoch is often not printed."""


class Counter:
    """One way a program counts: steps of the run, or steps of an epoch."""

    def __init__(self) -> None:
        self.step = 0
        self.total: int | None = None
        self.of: int | None = None
        self.last = 0
        self.has_loss = False
        self.elapsed_s = 0
        """The longest a bar of this kind has taken."""
        self._at_s = 0
        self._epoch: int | None = None
        self._first: int | None = None
        self._before = 0
        self._end: int | None = None
        self._on = 0
        """Ends of epochs that the count continued over; -1: it begins again."""
        self._is_whole = False
        """It counts the run, though its lines name epochs."""

    @property
    def is_done(self) -> bool:
        """Whether it is at its end."""
        return self.of is not None and self.last >= _NEARLY * self.of

    def take(self, count: Count, epochs: int | None) -> bool:
        """Continue with a count; say whether it is one of this run's own."""
        if count.of is None:
            return self._take_step(count, epochs)
        self._look_for_reset(count)
        if self._is_whole:
            self._epoch, self.last, self.step, self.total = count.epoch, count.n, count.n, count.of
            return True
        is_unsure = count.kind == "unsure" and count.epoch == self._epoch and not self._before
        self._take_epoch(count.n, count.of, count.epoch, count.epochs or epochs, count.first)
        if count.kind == "unsure" and self.total is None and (is_unsure or self._epoch in (0, 1)):
            self.total = count.of
        return True

    def take_bar(self, bar: Bar, epoch: int | None, epochs: int | None, first: int | None = None) -> bool:
        """Continue with a bar's state; False: it is behind, another rank's or a nested one."""
        if epoch is None and self.of == bar.of and bar.count < self.last and not self._begins_anew(bar):
            return False
        self.elapsed_s, self._at_s = max(self.elapsed_s, bar.elapsed_s), bar.elapsed_s
        if epoch is not None and self._counts_epochs(bar, epoch):
            self._is_whole = True
        if epoch is not None and not self._is_whole and epoch != self._epoch and self._goes_on(bar):
            self._is_whole = True
        if self._is_whole:
            self._epoch, self.last, self.of, self.step, self.total = epoch, bar.count, bar.of, bar.count, bar.of
            return True
        self._take_epoch(bar.count, bar.of, epoch, epochs, first)
        if epoch is None and not self._before:
            self.total = bar.of  # until it begins again it may be the run's one bar
        return True

    def _begins_anew(self, bar: Bar) -> bool:
        """A smaller count is the next epoch's only if its clock began again; else it is that of a rank behind."""
        if not self.is_done and (bar.count > 1 or 2 * self.last < bar.of):
            return False
        return 2 * bar.elapsed_s < self._at_s if self._at_s else 2 * bar.count <= bar.of

    def _look_for_reset(self, count: Count) -> None:
        """A count that continues over the ends of epochs is one of the run."""
        if self._epoch is None or count.epoch == self._epoch:
            return
        if count.n <= self.last:
            self._on = -1
        elif self._on >= 0:
            self._on += 1
            self._is_whole = self._on >= (1 if count.kind == "unsure" else 2)

    def _goes_on(self, bar: Bar) -> bool:
        """In a new epoch the bar did not begin again: it counts the run."""
        return self._epoch is not None and bar.of == self.of and bar.count > self.last > 1

    def _counts_epochs(self, bar: Bar, epoch: int) -> bool:
        """The bar is one of epochs: "Epoch 25, loss 0.1:  5%|▌ | 26/500"."""
        return self._epoch is None and epoch >= 2 and bar.count - epoch in (0, 1)

    def _take_step(self, count: Count, epochs: int | None) -> bool:
        end = count.total or self._end
        if count.epoch is not None and count.epoch != self._epoch:
            if self._epoch is not None and count.n <= self.last:
                self._before = self.step
            self._epoch = count.epoch
        elif count.epoch is None and end is not None and self._end == end and count.n < self.last >= _NEARLY * end:
            self._before += end  # its end was that of an epoch
        self.last, self._end = count.n, end
        self.step, self.total = self._before + count.n, end
        if self._before and end is not None:
            self.total = end * epochs if epochs is not None else None
        return True

    def _take_epoch(self, n: int, of: int, epoch: int | None, epochs: int | None, first: int | None) -> None:
        if epoch is not None:
            if self._first is None or epoch == 0:
                self._first = first if first is not None else min(epoch, 1)
            self._before = max(0, epoch - self._first) * of
        elif self.of == of and n < self.last:
            self._before += of
        elif self.of is not None and self.of != of:
            self._before = 0
        self._epoch, self.last, self.of = epoch, n, of
        self.step = self._before + n
        self.total = epochs * of if epochs is not None else None
