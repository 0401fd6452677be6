"""The addresses of the board. All are GET, none has a side effect, and none takes a path."""

from __future__ import annotations

import asyncio
import json
import shlex
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import jinja2
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from headway.messages import LANGUAGES, Language, language, say
from headway.telemetry import RunDir, plain
from headway.ui.board import pages
from headway.ui.board.charts import compared_curves, curves_of
from headway.ui.board.form import describe_form
from headway.ui.board.prometheus import render_metrics
from headway.ui.board.store import Store, plain_state, run_id, stamp_of
from headway.ui.report import both
from headway.ui.samples import list_samples, read_picture

_HERE: Final = Path(__file__).parent
BUILT: Final = _HERE / "static" / "built"
_THEMES: Final = ("auto", "light", "dark")
_KEEP_S: Final = 365 * 24 * 3600
_MOST_STREAMS: Final = 128
_LOOK_S: Final = 1.0
_ALIVE_S: Final = 15.0
_PAGE_RUNS: Final = 100
TABS: Final = (
    "overview",
    "ranks",
    "devices",
    "logs",
    "checkpoints",
    "findings",
    "plan",
    "samples",
    "config",
)


def make_app(out: Path, *, has_form: bool = False) -> Starlette:
    """Return the board of a folder of runs, without its gate."""
    board = Board(out, has_form=has_form)
    get = board.routes()
    return Starlette(
        routes=[Route(path, answer, methods=["GET"]) for path, answer in get.items()],
        middleware=[Middleware(GZipMiddleware, minimum_size=1024, compresslevel=5)],
        exception_handlers={404: board.missing, 500: board.broken},
    )


class Board:
    """Answers."""

    def __init__(self, out: Path, *, has_form: bool = False) -> None:
        self._store = Store(out)
        self._has_form = has_form
        self._streams = 0
        self._machine = pages.MachineReader()
        self._pages = jinja2.Environment(
            autoescape=True,
            loader=jinja2.FileSystemLoader(_HERE / "templates"),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        static = {
            "board.js": "text/javascript; charset=utf-8",
            "board.css": "text/css; charset=utf-8",
            "icon.svg": "image/svg+xml",
        }
        self._static = {name: ((_HERE / "static" / name).read_bytes(), media) for name, media in static.items()}
        report = (_HERE.parent / "report" / "style.css").read_bytes()
        self._static["report.css"] = (report, "text/css; charset=utf-8")
        # Built from `web/`; where it is not, the pages stay as the server draws them and say how to get it.
        self._has_charts = all((BUILT / name).is_file() for name in ("charts.js", "charts.css"))
        if self._has_charts:
            self._static["charts.js"] = ((BUILT / "charts.js").read_bytes(), "text/javascript; charset=utf-8")
            self._static["charts.css"] = ((BUILT / "charts.css").read_bytes(), "text/css; charset=utf-8")

    def routes(self) -> dict[str, Callable[[Request], Any]]:
        """Return what answers at which address."""
        form = {"/new": self.new} if self._has_form else {}
        return {
            **form,
            "/": self.runs,
            "/compare": self.compare,
            "/machine": self.machine,
            "/run/{run}": self.run,
            "/run/{run}/sample/{number:int}": self.sample,
            "/run/{run}/{tab}": self.run,
            "/api/runs": self.api_runs,
            "/api/run/{run}": self.api_run,
            "/api/run/{run}/metrics": self.api_metrics,
            "/api/run/{run}/curves": self.api_curves,
            "/api/run/{run}/devices": self.api_devices,
            "/api/compare": self.api_compare,
            "/stream": self.stream,
            "/metrics": self.prometheus,
            "/static/{name}": self.static,
        }

    # --- pages ---

    def runs(self, request: Request) -> Response:
        """The table of all runs."""
        query = request.query_params
        found = pages.list_runs(self._store, query, _PAGE_RUNS)
        return self._page(request, "runs.html", "board/runs", **found)

    def run(self, request: Request) -> Response:
        """One page of a run."""
        run = self._run(request)
        tab = request.path_params.get("tab", "overview")
        if tab not in TABS:
            raise HTTPException(404)
        facts = self._store.facts(run)
        shown = pages.TABS[tab](self._store, run, facts, request.query_params)
        head = pages.describe_run(self._store, run, facts)
        title = f"{head['name']} · {say(f'board/tab-{tab}', self._language(request))}"
        curves = {"overview": "curves", "devices": "devices"}.get(tab)
        shown["curves"] = f"/api/run/{head['id']}/{curves}" if curves else ""
        return self._page(
            request,
            f"{tab}.html",
            title,
            tab=tab,
            tabs=TABS,
            run=head,
            live=head["is_live"] or facts.is_glance,
            **shown,
        )

    def compare(self, request: Request) -> Response:
        """Runs side by side."""
        shown = pages.compare(self._store, request.query_params)
        curves = f"/api/compare?runs={','.join(shown['ids'])}" if shown["ids"] else ""
        return self._page(request, "compare.html", "board/compare", curves=curves, **shown)

    def machine(self, request: Request) -> Response:
        """This machine now."""
        return self._page(
            request, "machine.html", "board/machine", live=True, **pages.machine(self._store, self._machine)
        )

    def new(self, request: Request) -> Response:
        """The form that makes the command of a new run."""
        return self._page(request, "new.html", "board/new-run", **describe_form(request.query_params))

    def sample(self, request: Request) -> Response:
        """A picture of a run."""
        number = request.path_params["number"]
        found = next((one for one in list_samples(self._run(request)) if one.number == number and one.media), None)
        data = read_picture(found) if found is not None else None
        if found is None or data is None:
            raise HTTPException(404)
        return Response(data, media_type=found.media, headers={"Cache-Control": "private, max-age=60"})

    def static(self, request: Request) -> Response:
        """Style and script, from memory and by name."""
        found = self._static.get(request.path_params["name"])
        if found is None:
            raise HTTPException(404)
        return Response(found[0], media_type=found[1], headers={"Cache-Control": "private, max-age=3600"})

    # --- numbers ---

    def api_runs(self, request: Request) -> Response:
        """The table as JSON."""
        return JSONResponse(plain({"schema": "board-runs/1", "runs": [plain_state(row) for row in self._store.rows()]}))

    def api_run(self, request: Request) -> Response:
        """The state of a run as JSON."""
        wanted = request.path_params["run"]
        row = next((row for row in self._store.rows() if run_id(row.name) == wanted), None)
        if row is None:
            raise HTTPException(404)
        return JSONResponse(plain({"schema": "board-run/1", **plain_state(row)}))

    def api_metrics(self, request: Request) -> Response:
        """The curves of a run, thinned, as JSON."""
        return JSONResponse(plain(pages.metrics_of(self._store.facts(self._run(request)))))

    def api_curves(self, request: Request) -> Response:
        """The figures of a run as numbers, for the page's script."""
        facts = self._store.facts(self._run(request))
        return _compact(curves_of(facts, self._language(request), devices=False))

    def api_devices(self, request: Request) -> Response:
        """The figures of a run's devices as numbers."""
        facts = self._store.facts(self._run(request))
        return _compact(curves_of(facts, self._language(request), devices=True))

    def api_compare(self, request: Request) -> Response:
        """The figures of several runs over each other as numbers."""
        found = pages.find_compared(self._store, request.query_params)
        return _compact(compared_curves(pages.named(self._store, found), self._language(request)))

    def prometheus(self, request: Request) -> Response:
        """Everything that moves, as Prometheus reads it."""
        return PlainTextResponse(render_metrics(self._store), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def stream(self, request: Request) -> Response:
        """Say when something has changed: one event per change, and a comment now and then."""
        if self._streams >= _MOST_STREAMS:
            return PlainTextResponse("too many pages are open\n", 503, {"Retry-After": "30"})
        wanted = request.query_params.get("run", "")
        run = await run_in_threadpool(self._store.find, wanted) if wanted else None
        if wanted and run is None:
            raise HTTPException(404)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(self._changes(request, run), media_type="text/event-stream", headers=headers)

    async def _changes(self, request: Request, run: RunDir | None) -> AsyncIterator[str]:
        self._streams += 1
        try:
            last, said = "", time.monotonic()
            yield "retry: 3000\n\n"
            while not await request.is_disconnected():
                stamp = await run_in_threadpool(self._stamp, run)
                if stamp != last:
                    if last:
                        yield "event: changed\ndata: {}\n\n"
                        said = time.monotonic()
                    last = stamp
                elif time.monotonic() - said > _ALIVE_S:
                    yield ": alive\n\n"
                    said = time.monotonic()
                await asyncio.sleep(_LOOK_S)
        finally:
            self._streams -= 1

    def _stamp(self, run: RunDir | None) -> str:
        if run is not None:
            return f"{stamp_of(run)} {self._store.is_whole(run)}"
        return repr([(row.name, row.state, row.step) for row in self._store.rows()])

    # --- the rest ---

    def missing(self, request: Request, _: Exception) -> Response:
        """There is no such page."""
        return self._page(request, "message.html", "board/missing", code=404, text=both("board/missing"))

    def broken(self, request: Request, _: Exception) -> Response:
        """Our own bug; what went wrong is not told to the page."""
        return PlainTextResponse("a bug in the board\n", 500)

    def _run(self, request: Request) -> RunDir:
        found = self._store.find(request.path_params["run"])
        if found is None:
            raise HTTPException(404)
        return found

    def _language(self, request: Request) -> Language:
        for given in (request.query_params.get("lang"), request.cookies.get("headway-lang")):
            if given in LANGUAGES:
                return "zh" if given == "zh" else "en"
        accepted = request.headers.get("accept-language", "")
        return "zh" if accepted.lower().startswith("zh") else language()

    def _theme(self, request: Request) -> str:
        given = request.query_params.get("theme") or request.cookies.get("headway-theme")
        return given if given in _THEMES else "auto"

    def _page(self, request: Request, template: str, title: str, *, code: int = 200, **facts: Any) -> Response:
        lang, theme = self._language(request), self._theme(request)
        facts.setdefault("live", False)
        facts.setdefault("tab", "")
        facts.setdefault("run", None)
        facts.setdefault("curves", "")
        text = self._pages.get_template(template).render(
            say=both,
            said=lambda code, **words: say(code, lang, **words),
            lang=lang,
            theme=theme,
            title=say(title, lang) if title.startswith("board/") else title,
            here=request.url.path,
            has_charts=self._has_charts,
            has_form=self._has_form,
            web=web_folder(),
            query=dict(request.query_params),
            link=_Link(request.url.path, request.query_params),
            **facts,
        )
        # Bytes that are not text (a lone surrogate from a name) must not keep a page from being shown.
        answer = HTMLResponse(text.encode("utf-8", "replace"), code)
        for name, value in (("lang", lang), ("theme", theme)):
            if name in request.query_params:
                answer.set_cookie(f"headway-{name}", value, max_age=_KEEP_S, path="/", httponly=True, samesite="strict")
        return answer


def _compact(told: dict[str, Any]) -> Response:
    return Response(json.dumps(told, separators=(",", ":"), allow_nan=False), media_type="application/json")


def web_folder() -> str:
    """Return where the script's source is, quoted for a shell; empty where Headway is installed without it."""
    folder = _HERE.parents[3] / "web"
    return shlex.quote(str(folder)) if (folder / "package.json").is_file() else ""


class _Link:
    """Addresses of this page with some of its choices changed."""

    def __init__(self, path: str, query: Mapping[str, str]) -> None:
        self._path, self._query = path, query

    def __call__(self, **changes: object) -> Markup:
        kept = {name: value for name, value in self._query.items() if name not in ("lang", "theme")}
        asked = {**kept, **changes}
        words = urlencode(
            {name: str(value) for name, value in asked.items() if value not in (None, "")}, errors="replace"
        )
        return Markup("{}").format(f"?{words}" if words else self._path)
