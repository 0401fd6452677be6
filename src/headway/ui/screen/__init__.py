"""The terminal: tables of runs and the live view. In: records of telemetry. Out: rich renderables and text."""

from headway.ui.screen.compare import render_compared
from headway.ui.screen.follow import follow, show
from headway.ui.screen.runs import render_runs
from headway.ui.screen.watch import View, look, one_line, render

__all__ = ["View", "follow", "look", "one_line", "render", "render_compared", "render_runs", "show"]
