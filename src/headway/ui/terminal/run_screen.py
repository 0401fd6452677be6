"""A run on the terminal while it trains: what ranks print, the events worth a line, and one line that moves."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TextIO

from headway.messages import say
from headway.planner import Plan
from headway.telemetry import Beat, best_measure
from headway.ui.findings import finding_hint, finding_text
from headway.ui.output import trusted
from headway.ui.terminal.limit import LineLimit
from headway.ui.terminal.pace import LinePace
from headway.ui.terminal.progress_line import ProgressLine
from headway.ui.text import clean_text, columns_of, fit_text
from headway.units import ABSENT, duration, size

_SHOWN_OWN_LINE: Final = 2000
_ON_HANG: Final = {"wait": "console/hang-wait", "restart": "console/hang-restart", "stop": "console/hang-stop"}
_HOLD_S: Final = 0.15
"""How long a line waits for its like from other ranks."""
_MOST_WAITING: Final = 200
_MOST_A_TICK: Final = 400
"""Lines shown between two ticks; a flood is counted, and is whole in the log."""
_SHOWN_LINE: Final = 4000
_FLOOD_S: Final = 1.0
"""Between two words on how many lines were not shown."""
_TELL_S: Final = 30.0
"""Between two words on progress where there is no terminal."""


class RunScreen:
    """Shows one run. The supervisor calls it from its loop, so it only writes short texts and returns."""

    def __init__(self, stream: TextIO, plan: Plan, log: Path | None = None) -> None:
        """With `log`, lines of ranks are shown only at first: the stream is a file, and they are in the log."""
        total, tokens = plan.total_steps, plan.tokens_per_sample
        self._line = ProgressLine(trusted(stream), total_steps=total, tokens_per_sample=tokens)
        self._validation: tuple[str, float] | None = None
        self._limit = LineLimit(log)
        self._has_saved = False
        """Whether there is a checkpoint to restart from."""
        self._keeps_steps = False
        """Whether the ranks keep their last step in memory."""

    def event(self, event: dict[str, Any]) -> None:
        """Say an event that a person would want to know."""
        self._limit.see(event)
        is_later = event["kind"] == "training_started" and bool(event.get("step"))
        self._has_saved |= is_later or event["kind"] == "checkpoint_committed"
        if event["kind"] == "training_started":
            self._keeps_steps = bool(event.get("keeps_steps"))
        text = self._words(event)
        # Only what must not be overlooked takes several lines.
        for line in text.split("\n") if event["kind"] in ("save_lost", "finding") else [text]:
            if line:
                self._line.say(clean_text(line))

    def line(self, rank: int, line: bytes) -> None:
        """Show what a rank printed, made safe for a terminal."""
        text = line[:_SHOWN_OWN_LINE].decode("utf-8", "replace")
        for shown in self._limit.take(f"[{rank}] {clean_text(text)}"):
            self._line.say(shown)

    def tick(self, beats: list[Beat | None]) -> None:
        """Move the progress line."""
        self._line.update([beat for beat in beats if beat is not None], self._validation)

    def close(self) -> None:
        """Leave the last line on the screen."""
        self._line.close()

    def _words(self, event: dict[str, Any]) -> str:
        match event["kind"]:
            case "training_started" if event.get("source") == "memory":
                return say("console/resumed-memory", step=event["step"], redone=event.get("redone", ABSENT))
            case "memory_refused":
                return say("console/memory-refused", rank=event.get("rank"), why=event.get("why"))
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
            case "checkpoint_mirrored":
                facts = {"step": event.get("step"), "to": event.get("to"), "taken": duration(event.get("seconds"))}
                return say("mirror/copied", size=size(event.get("bytes")), **facts)
            case "checkpoint_failed":
                return say("console/save-failed", step=event.get("step"), why=_why(event))
            case "save_lost":
                return _lost(event)
            case "checkpoint_skipped":
                return say("console/checkpoint-skipped", path=event.get("path"), why=event.get("why"))
            case "guard":
                names = ", ".join(map(str, event["samples"])) or ABSENT
                facts = {key: event[key] for key in ("what", "step", "rank", "policy")}
                return say("console/guard", samples=names, **facts)
            case "node_lost":
                return say("nodes/lost", index=event.get("node"), host=event.get("host"))
            case "incident" if event.get("action") == "restart":
                code = "console/restart" if self._has_saved else "console/restart-anew"
                code = "console/restart-memory" if self._keeps_steps else code
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
            case "finding":
                return "\n".join([finding_text(event), *finding_hint(event)])
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
    return str(event.get("why", ABSENT))


@dataclass(slots=True)
class _Waiting:
    text: str
    at: float
    ranks: list[int] = field(default_factory=list)


class LineScreen:
    """Shows one foreign run: ranks' lines on `out`, our own words on `err`."""

    def __init__(self, out: TextIO, err: TextIO, world_size: int, log: Path | None = None) -> None:
        """With `log`, lines are shown only at first: the streams are a file, and they are in the log."""
        self._out, self._err, self._world_size = trusted(out), trusted(err), world_size
        self._limit = LineLimit(log)
        self._waiting: list[_Waiting] = []
        self._at: dict[int, int] = {}
        self._taken = self._dropped = 0
        self._flood_at = 0.0
        self._bar = ""
        self._has_bar = False
        """The job draws one of its own."""
        self._is_terminal = err.isatty()
        self._pace = LinePace()
        self._told_at = time.monotonic()

    def event(self, event: dict[str, Any]) -> None:
        """Say an event that a person would want to know."""
        self._limit.see(event)
        if event["kind"] == "attempt_started":
            self._pace.restart()
        lines = _event_lines(event)
        if lines:
            self._flush()
            self._write(self._err, lines)

    def line(self, rank: int, line: bytes) -> None:
        """Take a line; it is shown a moment later, together with its like."""
        self._taken += 1
        if self._taken > _MOST_A_TICK:
            self._dropped += 1
            return
        if rank == 0:
            self._pace.read(line)
        text = clean_text(line[:_SHOWN_LINE].decode("utf-8", "replace"))
        first = self._at.get(rank, 0)
        for place in range(first, len(self._waiting)):
            if self._waiting[place].text == text:
                self._waiting[place].ranks.append(rank)
                self._at[rank] = place
                return
        self._waiting.append(_Waiting(text, time.monotonic(), [rank]))
        self._at[rank] = len(self._waiting) - 1
        if len(self._waiting) >= _MOST_WAITING:
            self._flush()

    def bar(self, rank: int, state: bytes) -> None:
        """Keep a bar's latest state; the lowest rank's is shown."""
        if rank == 0:
            self._pace.read(state)
        if rank == 0 and self._is_terminal:
            self._has_bar = True
            self._bar = clean_text(state[:_SHOWN_LINE].decode("utf-8", "replace"))

    def skipped(self, num: int) -> None:
        """Count what did not even come here."""
        self._dropped += num

    def tick(self, beats: list[Beat | None]) -> None:
        """Show what has waited long enough, and the bar."""
        if self._waiting and time.monotonic() - self._waiting[0].at >= _HOLD_S:
            self._flush()
        self._taken = 0
        if self._dropped and time.monotonic() - self._flood_at >= _FLOOD_S:
            self._tell_dropped()
        self._show_pace(max((beat.step for beat in beats if beat is not None), default=0))
        if self._bar:
            self._err.write(f"\r{fit_text(self._bar, columns_of(self._err))}\x1b[K")
            self._err.flush()

    def _show_pace(self, step: int) -> None:
        """Say how far it is: in one place on a terminal where the job draws no bar of its own, else now and then."""
        now = time.monotonic()
        self._pace.step(step, now)
        text = self._pace.text()
        if text is None:
            return
        if self._is_terminal:
            self._bar = self._bar if self._has_bar else text
        elif now - self._told_at >= _TELL_S:
            self._told_at = now
            self._flush()
            self._write(self._err, [text])

    def _tell_dropped(self) -> None:
        self._flood_at = time.monotonic()
        told = self._limit.take(say("run/lines-skipped", num=self._dropped))
        self._dropped = 0
        if told:
            self._write(self._err, told)

    def close(self) -> None:
        """Show the last lines."""
        self._flush()
        if self._dropped:
            self._tell_dropped()
        if self._bar:
            self._err.write("\r\x1b[K")
            self._bar = ""

    def _flush(self) -> None:
        if not self._waiting:
            return
        lines = [shown for one in self._waiting for shown in self._limit.take(self._compose(one))]
        self._waiting, self._at = [], {}
        if lines:
            self._write(self._out, lines)

    def _compose(self, one: _Waiting) -> str:
        times = f" (×{len(one.ranks)})" if len(one.ranks) > 1 else ""
        if self._world_size == 1:
            return one.text + times
        return f"[{_ranges(sorted(set(one.ranks)))}] {one.text}{times}"

    def _write(self, stream: TextIO, lines: list[str]) -> None:
        if self._bar:
            self._err.write("\r\x1b[K")
            self._err.flush()
        text = "\n".join(map(clean_text, lines)) + "\n"
        with contextlib.suppress(UnicodeEncodeError):
            stream.write(text)
            stream.flush()
            return
        stream.write(text.encode("ascii", "backslashreplace").decode("ascii"))
        stream.flush()


def hang_table(event: dict[str, Any]) -> list[str]:
    """Return one line a rank: where it is and for how long."""
    head = [say(f"run/column-{name}") for name in ("rank", "state", "step", "phase", "collective", "seconds", "place")]
    rows = [head]
    for view in event["ranks"]:
        number = ABSENT if view["collectives"] is None else f"#{view['collectives']}"
        call = f"{number} {view['collective']}" if view["collective"] else number
        mark = "→ " if view["rank"] == event["rank"] else "  "
        cells = [f"{mark}{view['rank']}", view["state"], str(view["step"]), view["phase"], call]
        rows.append([*cells, f"{view['seconds']:.0f} s", view["place"] or ABSENT])
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _event_lines(event: dict[str, Any]) -> list[str]:
    match event["kind"]:
        case "hang":
            text = say(event["code"], **event["facts"])
            head = say("run/hang", seconds=round(event["seconds"]), text=text)
            return [head, *map(clean_text, hang_table(event)), say(f"run/hang-{event['policy']}")]
        case "node_lost":
            return [say("nodes/lost", index=event.get("node"), host=event.get("host"))]
        case "incident" if event.get("action") == "restart":
            return [say("run/restart", rank=ABSENT if event["rank"] is None else event["rank"], text=event["text"])]
        case "stop_requested":
            return [say("run/stop-now" if event.get("now") else "run/stop")]
        case "warning":
            return [say(event["code"], **event.get("facts", {}))]
        case "finding":
            return [finding_text(event), *finding_hint(event)]
    return []


def _ranges(ranks: list[int]) -> str:
    """Return `0-3,6`."""
    parts: list[list[int]] = []
    for rank in ranks:
        if parts and rank == parts[-1][-1] + 1:
            parts[-1].append(rank)
        else:
            parts.append([rank])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)
