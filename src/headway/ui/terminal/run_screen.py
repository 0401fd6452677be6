"""A run on the terminal while it trains: the progress line, what ranks print, and the events worth a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, TextIO

from headway.messages import say
from headway.planner import Plan
from headway.telemetry import Beat, best_measure
from headway.ui.output import trusted
from headway.ui.terminal.limit import LineLimit
from headway.ui.terminal.progress_line import ProgressLine
from headway.ui.text import clean_text
from headway.units import duration, size

_SHOWN_LINE: Final = 2000
_ON_HANG: Final = {"wait": "console/hang-wait", "restart": "console/hang-restart", "stop": "console/hang-stop"}


class RunScreen:
    """Shows one run. The supervisor calls it from its loop, so it only writes short texts and returns."""

    def __init__(self, stream: TextIO, plan: Plan, log: Path | None = None) -> None:
        """With `log`, lines of ranks are shown only at first: the stream is a file, and they stand in the log."""
        total, tokens = plan.total_steps, plan.tokens_per_sample
        self._line = ProgressLine(trusted(stream), total_steps=total, tokens_per_sample=tokens)
        self._validation: tuple[str, float] | None = None
        self._limit = LineLimit(log)
        self._has_saved = False
        """Whether there is a checkpoint to restart from."""

    def event(self, event: dict[str, Any]) -> None:
        """Say an event that a person would want to know."""
        self._limit.see(event)
        is_later = event["kind"] == "training_started" and bool(event.get("step"))
        self._has_saved |= is_later or event["kind"] == "checkpoint_committed"
        text = self._words(event)
        # Only what must not be overlooked takes several lines.
        for line in text.split("\n") if event["kind"] == "save_lost" else [text]:
            if line:
                self._line.say(clean_text(line))

    def line(self, rank: int, line: bytes) -> None:
        """Show what a rank printed, made safe for a terminal."""
        text = line[:_SHOWN_LINE].decode("utf-8", "replace")
        for shown in self._limit.take(f"[{rank}] {clean_text(text)}"):
            self._line.say(shown)

    def tick(self, beats: list[Beat | None]) -> None:
        """Move the progress line."""
        self._line.update([beat for beat in beats if beat is not None], self._validation)

    def close(self) -> None:
        """Leave the last line standing."""
        self._line.close()

    def _words(self, event: dict[str, Any]) -> str:
        match event["kind"]:
            case "training_started" if event.get("step"):
                return say("console/resumed", step=event["step"])
            case "validation":
                return self._validated(event)
            case "trial":
                values = "  ".join(f"{key} {value:.4f}" for key, value in event["measures"].items())
                return say("console/trial", step=event["step"], values=values)
            case "checkpoint_committed":
                taken = duration(event.get("write_s"))
                return say("console/saved", step=event["step"], size=size(event.get("bytes")), taken=taken)
            case "checkpoint_failed":
                return say("console/save-failed", step=event.get("step"), why=_why(event))
            case "save_lost":
                return _lost(event)
            case "checkpoint_skipped":
                return say("console/checkpoint-skipped", path=event.get("path"), why=event.get("why"))
            case "guard":
                names = ", ".join(map(str, event["samples"])) or "n/a"
                facts = {key: event[key] for key in ("what", "step", "rank", "policy")}
                return say("console/guard", samples=names, **facts)
            case "incident" if event.get("action") == "restart":
                code = "console/restart" if self._has_saved else "console/restart-anew"
                return say(code, rank=event.get("rank"), text=event.get("text"))
            case "hang":
                text = say(event["code"], **event["facts"])
                head = say("run/hang-one", seconds=round(event["seconds"]), text=text)
                return f"{head}\n{say(_ON_HANG[event['policy']])}"
            case "save_requested":
                return say("console/save-asked", signal=event.get("why"))
            case "stop_requested":
                return say("console/stop-now" if event.get("now") else "console/stop")
            case "warning":
                return say(event["code"], **event.get("facts", {}))
        return ""

    def _validated(self, event: dict[str, Any]) -> str:
        name = best_measure(event)
        self._validation = (name, event["measures"][name])
        values = "  ".join(f"{key} {value:.4f}" for key, value in event["measures"].items())
        mark = say("console/best") if event.get("best") else ""
        return say("console/validation", step=event["step"], values=values, mark=mark).rstrip()


def _lost(event: dict[str, Any]) -> str:
    """Say what is at stake, on lines of their own, with what to do about it."""
    code = "console/save-lost-first" if event.get("committed") is None else "console/save-lost"
    text = say(code, why=_why(event), **{key: event.get(key) for key in ("step", "num", "committed")})
    return "\n".join(part for part in (text, str(event.get("hint") or "")) if part)


def _why(event: dict[str, Any]) -> str:
    return str(event.get("why", "n/a"))
