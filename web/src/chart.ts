// One figure as a chart that can be read, zoomed and followed. Text goes into text nodes, colours come from the page.

import uPlot from "uplot";
import { figure as say, nearest, pile, place, place_text, smooth, type Axes, type Figure, type Values } from "./curves";
import { moveZoom as moveWithin, type Choice } from "./choice";

export interface Hears {
  zoom(ends: [number, number] | null): void;
}

interface Shown {
  label: string;
  color: string;
  x: Values;
  /** What the pointer is told, which is not what is drawn where layers lie on each other. */
  y: Values;
}

const color = (style: string) => getComputedStyle(document.documentElement).getPropertyValue(`--${style}`).trim() || "#3056d3";
const faded = (one: string, share: number) => {
  const parts = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(one);
  return parts ? `rgb(${parts.slice(1).map((two) => parseInt(two, 16)).join(" ")} / ${share})` : one;
};

export class Chart {
  readonly root = document.createElement("div");
  private readonly tip = document.createElement("div");
  private plot: uPlot | null = null;
  private shown: Shown[] = [];
  private axis = "step";
  private full: [number, number] = [0, 1];
  private readonly sizes: ResizeObserver;

  constructor(
    private figure: Figure,
    private axes: Axes[],
    private choice: Choice,
    private readonly hears: Hears,
    title: string,
  ) {
    this.root.className = "chart";
    this.root.tabIndex = 0;
    this.root.setAttribute("role", "group");
    this.root.setAttribute("aria-label", title);
    this.tip.className = "chart-tip";
    this.tip.hidden = true;
    this.sizes = new ResizeObserver(() => this.fit());
    this.sizes.observe(this.root);
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.build();
  }

  update(figure: Figure, axes: Axes[], choice: Choice): void {
    [this.figure, this.axes, this.choice] = [figure, axes, choice];
    this.build();
  }

  destroy(): void {
    this.sizes.disconnect();
    this.plot?.destroy();
    this.root.remove();
  }

  /** First and last place on the chosen axis, of everything there is. */
  get ends(): [number, number] {
    return this.full;
  }

  private build(): void {
    const before = this.plot?.cursor.left ?? -1;
    this.plot?.destroy();
    this.axis = this.figure.is_by_step ? this.choice.axis : "time";
    const isLog = this.figure.is_log || (this.choice.isLog && this.figure.can_log);
    const { data, series } = this.series(isLog);
    this.plot = new uPlot(this.options(series, isLog), data, this.root);
    this.plot.over.append(this.tip);
    if (before >= 0) this.plot.setCursor({ left: before, top: 0 });
  }

  private series(isLog: boolean): { data: uPlot.AlignedData; series: uPlot.Series[] } {
    const lines = this.figure.lines;
    const piled = pile(lines.filter((line) => line.kind === "area").map((line) => line.y));
    const tables: uPlot.AlignedData[] = [];
    const series: uPlot.Series[] = [{}];
    this.shown = [];
    let areas = 0;
    const drawn = lines.map((line) => {
      const x = this.figure.is_by_step ? place(line.x, this.axes[line.run], this.axis) : line.x;
      const told = line.kind === "mean" ? smooth(line.y, this.choice.smoothing) : line.y;
      const y = line.kind === "area" ? piled[areas++]! : told;
      return { line, x, y, told };
    });
    // Layers are painted from the highest to the lowest, each over the one that holds it.
    if (areas) drawn.reverse();
    for (const { line, x, y, told } of drawn) {
      const [xs, ys] = [x as number[], y.map((value) => (isLog && value !== null && value <= 0 ? null : value))];
      tables.push([xs, ys]);
      series.push(this.look(line.kind, color(line.style)));
      if (line.kind !== "every" || this.choice.smoothing === 0) {
        this.shown.push({ label: line.label, color: color(line.style), x, y: told });
      }
    }
    if (areas) this.shown.reverse();
    const data = tables.length ? uPlot.join(tables) : ([[]] as unknown as uPlot.AlignedData);
    const xs = data[0];
    this.full = xs.length ? [Math.min(0, xs[0] ?? 0), xs[xs.length - 1] ?? 1] : [0, 1];
    return { data, series };
  }

  private look(kind: string, stroke: string): uPlot.Series {
    const isFaint = kind === "every" && this.choice.smoothing > 0;
    return {
      stroke: isFaint ? faded(stroke, 0.3) : stroke,
      width: kind === "area" ? 0 : isFaint ? 1 : 1.8,
      ...(kind === "area" ? { fill: stroke } : {}),
      points: kind === "dots" ? { show: true, size: 6, fill: stroke, stroke } : { show: false },
      spanGaps: false,
    };
  }

  private options(series: uPlot.Series[], isLog: boolean): uPlot.Options {
    const ink = color("soft");
    const line = { stroke: color("line"), width: 1 };
    const font = "12px system-ui, sans-serif";
    return {
      ...this.size(),
      series,
      legend: { show: false },
      padding: [10, 12, 0, 0],
      scales: {
        x: { time: false, range: () => this.choice.zoom ?? this.full },
        y: {
          distr: isLog ? 3 : 1,
          ...(isLog ? {} : { range: (_: uPlot, low: number | null, high: number | null) => this.range(low, high) }),
        },
      },
      axes: [
        { stroke: ink, font, grid: { show: false }, ticks: { ...line, size: 4 }, size: 32, space: 64,
          values: (_, ticks) => ticks.map((tick) => place_text(tick, this.axis)) },
        { stroke: ink, font, grid: line, ticks: { show: false }, size: 64, space: 34,
          values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : say(tick, this.figure.unit))) },
      ],
      cursor: {
        y: false,
        points: { size: 7 },
        drag: { x: true, y: false, setScale: false, dist: 6 },
        sync: {
          key: this.figure.is_by_step ? "steps" : "times",
          scales: ["x", null],
          filters: { pub: (type) => type === "mousemove" || type === "mouseleave" },
        },
      },
      hooks: {
        draw: [(plot) => this.marks(plot)],
        setCursor: [(plot) => this.point(plot)],
        setSelect: [(plot) => this.select(plot)],
        ready: [(plot) => plot.over.addEventListener("dblclick", () => this.hears.zoom(null))],
      },
    };
  }

  private range(low: number | null, high: number | null): [number, number] {
    const level = this.figure.level?.value;
    let [a, b] = [low ?? 0, high ?? 1];
    if (level !== undefined && !this.choice.zoom) [a, b] = [Math.min(a, level), Math.max(b, level)];
    const room = (b - a || Math.abs(a) * 0.2 || 1) * 0.06;
    return [this.figure.from_zero ? Math.min(0, a) : a - room, b + room];
  }

  private size(): { width: number; height: number } {
    const width = Math.max(200, this.root.clientWidth || 600);
    return { width, height: width < 480 ? 210 : 260 };
  }

  private fit(): void {
    const { width, height } = this.size();
    if (this.plot && (this.plot.width !== width || this.plot.height !== height)) this.plot.setSize({ width, height });
  }

  private marks(plot: uPlot): void {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.setLineDash([3, 4].map((one) => one * devicePixelRatio));
    ctx.lineWidth = devicePixelRatio;
    ctx.strokeStyle = color("bad");
    const restarts = this.figure.is_by_step ? place(this.figure.restarts, this.axes[0], this.axis) : this.figure.restarts;
    const at = restarts.filter((one): one is number => one !== null).map((one) => plot.valToPos(one, "x", true));
    for (const x of at.filter((one) => one >= bbox.left && one <= bbox.left + bbox.width)) {
      stroke(ctx, x, bbox.top, x, bbox.top + bbox.height);
    }
    const level = this.figure.level;
    const y = level ? plot.valToPos(level.value, "y", true) : NaN;
    if (level && y >= bbox.top && y <= bbox.top + bbox.height) {
      ctx.strokeStyle = ctx.fillStyle = color("soft");
      stroke(ctx, bbox.left, y, bbox.left + bbox.width, y);
      ctx.font = `italic ${12 * devicePixelRatio}px system-ui, sans-serif`;
      ctx.textAlign = "right";
      ctx.fillText(level.name, bbox.left + bbox.width - 4, y + (y < bbox.top + 30 ? 16 : -6) * devicePixelRatio);
    }
    ctx.restore();
  }

  private point(plot: uPlot): void {
    const left = plot.cursor.left ?? -1;
    const isHere = this.root.matches(":hover, :focus");
    this.tip.hidden = left < 0 || !isHere;
    if (this.tip.hidden) return;
    const wanted = plot.posToVal(left, "x");
    const rows = this.shown.map((one) => ({ one, at: nearest(one.x, wanted) })).filter(({ at }) => at >= 0);
    const head = document.createElement("b");
    const places = rows.map(({ one, at }) => one.x[at]).filter((one): one is number => one != null);
    const place = places.sort((a, b) => Math.abs(a - wanted) - Math.abs(b - wanted))[0] ?? wanted;
    head.textContent = place_text(place, this.axis);
    this.tip.replaceChildren(head, ...rows.map(({ one, at }) => row(one, one.y[at], this.figure.unit)));
    const isLeft = left > plot.over.clientWidth / 2;
    this.tip.classList.toggle("left", isLeft);
    this.tip.style.transform = `translateX(${isLeft ? left - 12 : left + 12}px)${isLeft ? " translateX(-100%)" : ""}`;
  }

  private select(plot: uPlot): void {
    const { left, width } = plot.select;
    if (width < 6) return;
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.hears.zoom([plot.posToVal(left, "x"), plot.posToVal(left + width, "x")]);
  }

  private key(event: KeyboardEvent): void {
    const plot = this.plot;
    if (!plot || event.ctrlKey || event.metaKey || event.altKey) return;
    const wide = plot.over.clientWidth;
    const by = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
    if (by && !event.shiftKey) {
      const left = plot.cursor.left ?? -1;
      plot.setCursor({ left: Math.min(wide - 1, Math.max(0, (left < 0 ? wide / 2 : left) + (by * wide) / 60)), top: 10 });
    } else if (by) this.hears.zoom(this.moved(by * 0.25, 1));
    else if (event.key === "+" || event.key === "=") this.hears.zoom(this.moved(0, 0.5));
    else if (event.key === "-") this.hears.zoom(this.moved(0, 2));
    else if (event.key === "Escape" || event.key === "0") this.hears.zoom(null);
    else return;
    event.preventDefault();
  }

  private moved(shift: number, times: number): [number, number] | null {
    return moveWithin(this.choice.zoom ?? this.full, this.full, shift, times);
  }
}


function stroke(ctx: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.lineTo(x1, y1);
  ctx.stroke();
}

function row(one: Shown, value: number | null | undefined, unit: string): HTMLElement {
  const line = document.createElement("div");
  const spot = document.createElement("i");
  spot.style.backgroundColor = one.color;
  const text = document.createElement("span");
  text.textContent = one.label;
  const number = document.createElement("b");
  number.textContent = value == null ? "–" : say(value, unit);
  line.append(spot, text, number);
  return line;
}
