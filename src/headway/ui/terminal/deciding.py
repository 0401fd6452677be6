"""What is found and decided before a run starts, as it comes."""

from __future__ import annotations

from rich.console import Console

from headway.config import LoadedConfig
from headway.machine import MachineReport
from headway.planner import Plan
from headway.ui.terminal.machine import show_machine, show_notes
from headway.ui.terminal.plan import show_plan


class DecisionScreen:
    """Shows the machine and the plan on a console."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def tell(self, text: str) -> None:
        """Show one line on the way; in a pipe or a log a path stays in one piece."""
        self._console.print(text, style="dim", markup=False, soft_wrap=not self._console.is_terminal)

    def machine(self, report: MachineReport) -> None:
        """Show the machine and its findings."""
        show_machine(report, self._console)

    def plan(self, loaded: LoadedConfig, plan: Plan) -> None:
        """Show the plan, and what in the config is probably not wanted."""
        self._console.print()
        show_notes((("warn", code, facts) for code, facts in loaded.warnings), self._console)
        show_plan(plan, loaded.recipe.name, self._console)
