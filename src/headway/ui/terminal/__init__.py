"""The terminal: tables of runs and the live view. In: records of telemetry. Out: rich renderables and text."""

from headway.ui.terminal.compare import render_compared
from headway.ui.terminal.follow import follow, show
from headway.ui.terminal.runs import render_runs
from headway.ui.terminal.watch import View, look, one_line, render

__all__ = ["View", "follow", "look", "one_line", "render", "render_compared", "render_runs", "show"]
