// Puts a chart in the place of each figure that the server has drawn, and keeps them up to date.

import "uplot/dist/uPlot.min.css";
import "./charts.css";
import { Chart } from "./chart";
import { readChoice, STRENGTHS, writeChoice, type Choice } from "./choice";
import { isCurves, type Curves } from "./curves";

const source = document.body.dataset["curves"];
const charts = new Map<string, Chart>();
let curves: Curves | null = null;
let choice: Choice = { axis: "step", smoothing: 20, isLog: false, zoom: null };

const figures = () => [...document.querySelectorAll<HTMLElement>("figure[data-figure]")];

/** Puts every chart into the figure it belongs to: the server's drawing comes anew with each change of the page. */
function mount(): void {
  for (const place of figures()) {
    const chart = charts.get(place.dataset["figure"] ?? "");
    const drawing = place.querySelector(":scope > svg");
    if (!chart || chart.root.parentElement === place) continue;
    place.classList.add("has-chart");
    place.insertBefore(chart.root, drawing);
  }
  tools();
}

function draw(): void {
  if (!curves) return;
  for (const place of figures()) {
    const key = place.dataset["figure"] ?? "";
    const figure = curves.figures.find((one) => one.key === key);
    const chart = charts.get(key);
    if (!figure) continue;
    if (chart) chart.update(figure, curves.axes, choice);
    else {
      const title = place.querySelector<HTMLElement>("h2")?.innerText ?? key;
      charts.set(key, new Chart(figure, curves.axes, choice, { zoom }, title));
    }
  }
  mount();
}

function zoom(ends: [number, number] | null): void {
  show({ ...choice, zoom: ends });
}

function show(next: Choice): void {
  // What is looked at is kept by place; on another axis the places are others.
  choice = next.axis === choice.axis ? next : { ...next, zoom: null };
  history.replaceState(null, "", location.pathname + writeChoice(choice, location.search));
  draw();
}

/** The server's choices are links that load the page again; here they change it in its place. */
function tools(): void {
  for (const link of document.querySelectorAll<HTMLAnchorElement>("[data-choice]")) {
    const [name, value] = (link.dataset["choice"] ?? "").split("=");
    const isOn = name === "x" ? choice.axis === value : name === "log" ? choice.isLog === (value === "1") : choice.smoothing === STRENGTHS[value ?? ""];
    isOn ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
  }
  for (const one of document.querySelectorAll<HTMLElement>("[data-tool]")) {
    one.hidden = one.dataset["tool"] === "unzoom" && !choice.zoom;
    if (one instanceof HTMLInputElement && one !== document.activeElement) one.value = String(choice.smoothing);
  }
}

document.addEventListener("click", (event) => {
  const target = event.target as Element | null;
  const link = target?.closest<HTMLAnchorElement>("[data-choice]");
  if (target?.closest("[data-tool=unzoom]")) return zoom(null);
  if (!link || !curves || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const [name, value] = (link.dataset["choice"] ?? "").split("=");
  if (name === "x") show({ ...choice, axis: value ?? "step" });
  else if (name === "log") show({ ...choice, isLog: value === "1" });
  else if (name === "smooth") show({ ...choice, smoothing: STRENGTHS[value ?? ""] ?? 20 });
});

document.addEventListener("input", (event) => {
  const field = event.target;
  if (field instanceof HTMLInputElement && field.dataset["tool"] === "smooth") show({ ...choice, smoothing: Number(field.value) });
});

async function load(): Promise<void> {
  if (!source) return;
  const answer = await fetch(source, { credentials: "same-origin" });
  const found: unknown = answer.ok ? await answer.json() : null;
  if (!isCurves(found)) return;
  if (!curves) choice = readChoice(location.search, location.hash, Object.keys(found.axes[0] ?? { step: [] }));
  curves = found;
  draw();
}

if (source) {
  const again = () => load().catch(() => undefined); // the server is gone for now; the page stays as it is
  document.addEventListener("board:replaced", () => { mount(); void again(); });
  addEventListener("hashchange", () => { choice = readChoice(location.search, location.hash, Object.keys(curves?.axes[0] ?? { step: [] })); draw(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  void again();
}
