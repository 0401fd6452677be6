"""The full-screen view of a run in a terminal. In: a run directory. Out: an app that only `headway watch` imports."""

from headway.ui.terminal.live.app import LiveApp, run_live

__all__ = ["LiveApp", "run_live"]
