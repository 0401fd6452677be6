"""The app: one screen, drawn every second from the run directory; keys ask the supervisor, never the ranks."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Final

from rich.console import Group, RenderableType
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Input, Static

from headway.errors import HeadwayError
from headway.launch import request_save, request_stop
from headway.messages import language, say, set_language
from headway.telemetry import RunDir, RunRow, list_rows, read_beat
from headway.telemetry.sample_gpu import GpuReader, find_source
from headway.telemetry.sample_host import HostSampler
from headway.ui.terminal.live import draw
from headway.ui.terminal.live.snapshot import Snapshot, read_snapshot
from headway.ui.text import clean_text

_EVERY_S: Final = 1.0
_WIDE: Final = 120
_PAGES: Final = ("run", "ranks", "devices", "log", "checkpoints", "findings")
_STACK_S: Final = 15.0
_ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class LiveApp(App[int]):
    """Shows one run, or the runs of a folder until one is chosen."""

    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None
    CSS = """
    Screen { layout: vertical; }
    #head { height: 5; padding: 0 1; }
    #tabs { height: 1; padding: 0 1; }
    #body { height: 1fr; padding: 0 1; }
    #left { width: 1fr; } #right { width: 1fr; display: none; }
    .wide #right { display: block; padding-left: 2; }
    #filter { display: none; height: 3; } #filter.on { display: block; }
    #note { height: auto; max-height: 12; padding: 0 1; display: none; } #note.on { display: block; }
    #foot { height: 1; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", show=False),
        *[Binding(str(at + 1), f"page('{name}')", show=False) for at, name in enumerate(_PAGES)],
        Binding("tab", "next_page", show=False, priority=True),
        Binding("s", "ask('stop')", show=False),
        Binding("w", "ask('save')", show=False),
        Binding("d", "stacks", show=False),
        Binding("l", "language", show=False),
        Binding("t", "theme", show=False),
        Binding("slash", "filter", show=False),
        Binding("escape", "go_back", show=False),
        Binding("y", "confirm", show=False),
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("enter", "choose", show=False),
        Binding("question_mark,h", "help", show=False),
    ]

    def __init__(self, out: Path, run: RunDir | None, *, is_ascii: bool = False) -> None:
        super().__init__()
        self._out, self._run, self._is_ascii = out, run, is_ascii
        self._is_shelf = run is None
        self._page = "run"
        self._view: Snapshot | None = None
        self._rows: list[RunRow] = []
        self._chosen = 0
        self._wanted = ""
        self._asked: str | None = None
        self._machine: dict[str, Any] = {"gpus": [], "host": {}}
        self._host: HostSampler | None = None
        self._gpus: GpuReader | None = None
        self._about: dict[int, dict[str, Any]] = {}
        self.signum: int | None = None
        """The signal that ended us; the caller dies of it too."""

    def compose(self) -> ComposeResult:
        """Make the parts."""
        yield Static(id="head")
        yield Static(id="tabs")
        with Horizontal(id="body"):
            with VerticalScroll(id="left", can_focus=False):
                yield Static(id="main")
            with VerticalScroll(id="right", can_focus=False):
                yield Static(id="side")
        yield Static(id="note")
        yield Input(id="filter")
        yield Static(id="foot")

    def on_mount(self) -> None:
        """Begin to look."""
        loop = asyncio.get_running_loop()
        for signum in _ENDING:
            with contextlib.suppress(ValueError, NotImplementedError, RuntimeError):  # not in the main thread: a test
                loop.add_signal_handler(signum, self._on_signal, signum)
        if self.signum is not None:  # it came while the terminal was taken
            self.exit(0)
        self.set_interval(_EVERY_S, self._look)
        self._look()

    def _on_signal(self, signum: int) -> None:
        self.signum = signum
        self.exit(0)

    def on_resize(self) -> None:
        """Lay out for the new size."""
        self.screen.set_class(self.size.width >= _WIDE, "wide")
        self._draw()

    def _look(self) -> None:
        self.run_worker(self._read, thread=True, exclusive=True, group="look")

    def _read(self) -> None:
        if self._run is not None:
            view = read_snapshot(self._run)
            self.call_from_thread(self._take_view, view)
        else:
            rows, machine = list_rows(self._out), self._read_machine()
            self.call_from_thread(self._take_rows, rows, machine)

    def _read_machine(self) -> dict[str, Any]:
        if self._host is None:
            self._host = HostSampler(1, self._out)
            source = find_source(None)
            self._gpus = GpuReader(source) if source is not None else None
            self._about = {one["i"]: one for one in source.about()} if source is not None else {}
        now = time.monotonic()
        gpus = self._gpus.read(now) if self._gpus is not None else []
        shown = [
            {
                **one,
                "name": self._about.get(one["i"], {}).get("name"),
                "total": self._about.get(one["i"], {}).get("mem"),
            }
            for one in gpus
        ]
        return {"gpus": shown, "host": {**self._host.read_host(now), "total_mem": self._host.about()["mem"]}}

    def _take_view(self, view: Snapshot) -> None:
        self._view = view
        self._draw()

    def _take_rows(self, rows: list[RunRow], machine: dict[str, Any]) -> None:
        self._rows, self._machine = rows, machine
        self._chosen = max(0, min(self._chosen, len(rows) - 1))
        self._draw()

    # --- drawing ---

    def _draw(self) -> None:
        if not self.is_running or not self.query("#foot"):
            return
        if self._run is None:
            self._draw_shelf()
        elif self._view is not None:
            self._draw_run(self._view)
        self.query_one("#foot", Static).update(Text(self._foot(), style="dim", no_wrap=True, overflow="ellipsis"))

    def _draw_shelf(self) -> None:
        running = sum(row.state == "running" for row in self._rows)
        head = Text(
            say("watch/shelf", num=len(self._rows), running=running, out=clean_text(str(self._out))), style="bold"
        )
        head.append("\n")
        machine = draw.draw_machine(self._machine["gpus"], self._machine["host"])
        self.query_one("#head", Static).update(head)
        self.query_one("#head", Static).styles.height = 1
        self.query_one("#tabs", Static).update("")
        rows = draw.draw_runs(self._rows, self._chosen, max(3, self.size.height - 8 - len(self._machine["gpus"])))
        self.query_one("#main", Static).update(rows if self._rows else Text(say("watch/no-runs"), style="dim"))
        self.query_one("#side", Static).update("")
        note = self.query_one("#note", Static)
        note.add_class("on")
        note.update(machine)

    def _draw_run(self, view: Snapshot) -> None:
        width, height = self.size.width - 2, max(4, self.size.height - 8)
        is_wide = self.size.width >= _WIDE
        half = width // 2 - 2 if is_wide else width
        head = self.query_one("#head", Static)
        head.styles.height = 5
        head.update(draw.draw_head(view, width))
        self.query_one("#tabs", Static).update(self._tabs(view))
        main, side = self._parts(view, half, height, is_wide)
        self.query_one("#main", Static).update(main)
        self.query_one("#side", Static).update(side)

    def _parts(self, view: Snapshot, width: int, height: int, is_wide: bool) -> tuple[Any, Any]:
        """Return what the left and the right half show."""
        makers: dict[str, Callable[[], Any]] = {
            "run": lambda: self._curves(view, width, height),
            "ranks": lambda: draw.draw_ranks(view, width),
            "devices": lambda: draw.draw_devices(view, width),
            "log": lambda: draw.draw_log(view, self._wanted, height),
            "checkpoints": lambda: draw.draw_checkpoints(view),
            "findings": lambda: draw.draw_findings(view),
        }
        main = makers[self._page]()
        if not is_wide:
            return main, ""
        rows = len(view.devices.gpus()) or len(view.ranks)
        found = len(view.findings) + len(view.incidents)
        left = max(3, height - rows - len(view.ranks) - found - 8)
        if self._page != "run":
            return main, self._curves(view, width, height)
        parts: list[RenderableType] = [
            draw.draw_devices(view, width),
            Text(""),
            draw.draw_ranks(view, width),
            Text(""),
            draw.draw_findings(view),
            Text(""),
            Text(say("ui/watch-log"), style="bold"),
            draw.draw_log(view, self._wanted, left),
        ]
        return main, Group(*parts)

    def _curves(self, view: Snapshot, width: int, height: int) -> Text:
        return draw.draw_curves(view, width, height, is_ascii=self._is_ascii)

    def _tabs(self, view: Snapshot) -> Text:
        text = Text(no_wrap=True, overflow="ellipsis")
        for at, name in enumerate(_PAGES):
            style = "reverse bold" if name == self._page else "dim"
            num = sum(not one.is_over for one in view.findings) + len(view.incidents) if name == "findings" else 0
            text.append(f" {at + 1} {say(f'watch/page-{name}')}{f' ({num})' if num else ''} ", style=style)
        if self._wanted:
            text.append(f"  /{self._wanted}", style="yellow")
        return text

    def _foot(self) -> str:
        if self._asked is not None:
            return say(f"watch/sure-{self._asked}")
        return say("watch/keys-shelf" if self._run is None else "watch/keys")

    def _note(self, text: str | Text) -> None:
        note = self.query_one("#note", Static)
        note.set_class(bool(text), "on")
        note.update(text)

    # --- keys ---

    def action_leave(self) -> None:
        """End."""
        self.exit(0)

    def action_go_back(self) -> None:
        """Take back what was asked, or go back to the list."""
        if self._asked is not None:
            self._asked = None
        elif self.query_one("#note", Static).has_class("on") and self._run is not None:
            self._note("")
        elif self._is_shelf and self._run is not None:
            self._run, self._view = None, None
            self._look()
        self._draw()

    def action_page(self, name: str) -> None:
        """Show another page."""
        self._page = name
        self._draw()

    def action_next_page(self) -> None:
        """Show the next page."""
        self.action_page(_PAGES[(_PAGES.index(self._page) + 1) % len(_PAGES)])

    def action_move(self, by: int) -> None:
        """Choose another run."""
        if self._run is None:
            self._chosen = max(0, min(self._chosen + by, len(self._rows) - 1))
            self._draw()
        else:
            self.query_one("#left", VerticalScroll).scroll_relative(y=by, animate=False)

    def action_choose(self) -> None:
        """Look at the chosen run."""
        if self._run is None and self._rows:
            self._note("")
            self._run = RunDir(self._out / self._rows[self._chosen].name)
            self._look()

    def action_language(self) -> None:
        """Change the language."""
        set_language("en" if language() == "zh" else "zh", is_chosen=True)
        self._draw()

    def action_theme(self) -> None:
        """Change between dark and light."""
        self.theme = "textual-light" if self.theme != "textual-light" else "textual-dark"

    def action_help(self) -> None:
        """Show or hide the keys."""
        note = self.query_one("#note", Static)
        self._note("" if note.has_class("on") and self._run is not None else say("watch/help-keys"))

    def action_filter(self) -> None:
        """Ask for a text that lines of the log must hold."""
        if self._run is None:
            return
        self._page = "log"
        field = self.query_one("#filter", Input)
        field.placeholder = say("watch/filter")
        field.value = self._wanted
        field.add_class("on")
        field.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Filter the log."""
        self._wanted = event.value.strip()
        event.input.remove_class("on")
        self.set_focus(None)
        self._draw()

    def action_ask(self, what: str) -> None:
        """Ask whether it is meant."""
        if self._run is not None and self._view is not None and self._view.state.state == "running":
            self._asked = what
            self._draw()

    def action_confirm(self) -> None:
        """Do what was asked for."""
        what, self._asked = self._asked, None
        if what is None or self._run is None:
            return
        try:
            request_stop(self._run) if what == "stop" else request_save(self._run)
            self._note(say(f"watch/sent-{what}"))
        except HeadwayError as err:
            self._note(Text(str(err), style="red"))
        self._draw()

    def action_stacks(self) -> None:
        """Show where the ranks are, line by line, by py-spy."""
        if self._run is not None:
            self._note(say("watch/stacks-wait"))
            self.run_worker(self._read_stacks, thread=True, exclusive=True, group="stacks")

    def _read_stacks(self) -> None:
        assert self._run is not None
        text = read_stacks(self._run)
        self.call_from_thread(self._note, Text(text))


def read_stacks(run: RunDir) -> str:
    """Return the stacks of the slowest rank; what it needs when it cannot be read."""
    program = shutil.which("py-spy")
    if program is None:
        return say("watch/no-py-spy")
    beats = {rank: beat for rank in run.ranks() if (beat := read_beat(run.heartbeat(rank)))}
    if not beats:
        return say("watch/no-rank")
    rank = min(beats, key=lambda one: beats[one].monotonic_ns)
    try:
        done = subprocess.run(
            [program, "dump", "--pid", str(beats[rank].pid)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_STACK_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as err:
        return clean_text(str(err))
    lines = (done.stdout or done.stderr).splitlines()[:40]
    return "\n".join([say("watch/stack-of", rank=rank), *map(clean_text, lines)])


def run_live(out: Path, run: RunDir | None, *, is_ascii: bool = False) -> int:
    """Show until the user leaves; a signal ends us as it would have, with the terminal given back."""
    app = LiveApp(out, run, is_ascii=is_ascii)

    def remember(signum: int, _: object) -> None:
        app.signum = signum

    for signum in _ENDING:
        signal.signal(signum, remember)
    app.run()
    if app.signum is not None:
        signal.signal(app.signum, signal.SIG_DFL)
        signal.raise_signal(app.signum)
    return 0
