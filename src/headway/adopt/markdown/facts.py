"""What the checks of a guide look at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from headway.adopt.markdown.blocks import MAX_LINE, Block, Key, Table
from headway.adopt.record import Meaning


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A guide taken apart."""

    text: str
    blocks: tuple[Block, ...]
    keys: tuple[Key, ...]
    tables: tuple[Table, ...]
    meaning: Meaning

    def lines(self) -> Iterator[tuple[int, str]]:
        """Return the lines with their numbers; a line no person wrote is left out."""
        return ((number, line) for number, line in enumerate(self.text.splitlines(), start=1) if len(line) <= MAX_LINE)

    def find(self, pattern: str | re.Pattern[str]) -> Iterator[tuple[int, re.Match[str]]]:
        """Return every match in the text, line by line."""
        compiled = re.compile(pattern, re.IGNORECASE) if isinstance(pattern, str) else pattern
        for number, line in self.lines():
            for match in compiled.finditer(line):
                yield number, match

    def ranks(self) -> int | None:
        """Return the number of ranks the guide speaks of: of a launch, of WORLD_SIZE, or of the visible devices."""
        for launch in self.meaning.launches:
            if isinstance(launch.nproc_per_node, int):
                return launch.nproc_per_node * (launch.nnodes if isinstance(launch.nnodes, int) else 1)
        for setting in self.meaning.settings:
            if setting.name == "WORLD_SIZE" and setting.value.isdigit():
                return int(setting.value)
        for setting in self.meaning.settings:
            if setting.name == "CUDA_VISIBLE_DEVICES" and re.fullmatch(r"\d+(,\d+)*", setting.value):
                return setting.value.count(",") + 1
        return None
