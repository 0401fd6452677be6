// What the server tells of the curves of a page, and the arithmetic on it; nothing here touches the page.

export type Values = (number | null)[];
export type Kind = "line" | "mean" | "every" | "dots" | "area";

export interface Line {
  label: string;
  style: string;
  kind: Kind;
  /** Which run's axes it stands on. */
  run: number;
  x: Values;
  y: Values;
}

export interface Figure {
  key: string;
  unit: string;
  lines: Line[];
  restarts: Values;
  level: { value: number; name: string } | null;
  is_log: boolean;
  can_log: boolean;
  from_zero: boolean;
  /** By step, which another axis may replace; otherwise by time. */
  is_by_step: boolean;
}

/** Places on each axis, and the steps they belong to under the axis' name with `-steps`. */
export type Axes = Record<string, Values>;

export interface Curves {
  schema: string;
  axes: Axes[];
  figures: Figure[];
}

export const SCHEMA = "board-curves/1";

/** Puts steps on an axis: by the line between the two places known beside each. */
export function place(steps: Values, axes: Axes | undefined, axis: string): Values {
  const known = axes?.[`${axis}-steps`];
  const places = axes?.[axis];
  if (axis === "step" || !known?.length || !places) return steps;
  let at = 0;
  return steps.map((step) => {
    if (step === null) return null;
    if (step < (known[at] ?? 0)) at = 0;
    while (at + 1 < known.length && (known[at + 1] ?? 0) < step) at += 1;
    const [a, b] = [known[at] ?? 0, known[at + 1] ?? known[at] ?? 0];
    const [from, to] = [places[at] ?? 0, places[at + 1] ?? places[at] ?? 0];
    return b > a ? from + (to - from) * Math.min(1, Math.max(0, (step - a) / (b - a))) : from;
  });
}

/** How many neighbours on each side a strength of 0 to 100 takes in; 20 is the report's: a hundredth of the curve. */
export function reachOf(strength: number, num: number): number {
  return strength <= 0 ? 0 : Math.max(2, Math.floor(num * 0.25 * (strength / 100) ** 2));
}

/** The mean of each value's neighbourhood, cut the same on both sides near the ends, so that a slope has no lag. */
export function smooth(values: Values, strength: number): Values {
  const num = values.length;
  const reach = reachOf(strength, num);
  if (!reach) return values;
  const sums = new Float64Array(num + 1);
  const counts = new Uint32Array(num + 1);
  values.forEach((value, at) => {
    sums[at + 1] = sums[at]! + (value ?? 0);
    counts[at + 1] = counts[at]! + (value === null ? 0 : 1);
  });
  return values.map((_, at) => {
    const wide = Math.min(reach, at, num - 1 - at);
    const found = counts[at + wide + 1]! - counts[at - wide]!;
    return found ? (sums[at + wide + 1]! - sums[at - wide]!) / found : null;
  });
}

/** Each layer with all below it. */
export function pile(layers: Values[]): Values[] {
  const below: number[] = [];
  return layers.map((layer) => layer.map((value, at) => (below[at] = (below[at] ?? 0) + (value ?? 0))));
}

/** The place of the value nearest to x among rising ones; -1: there are none. */
export function nearest(x: Values, wanted: number): number {
  let [low, high] = [0, x.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((x[middle] ?? -Infinity) < wanted) low = middle + 1;
    else high = middle;
  }
  return low > 0 && wanted - (x[low - 1] ?? -Infinity) < (x[low] ?? Infinity) - wanted ? low - 1 : x.length ? low : -1;
}

const UNITS: [number, string][] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]];

export function figure(value: number, unit = ""): string {
  if (!Number.isFinite(value)) return "–";
  const behind = unit ? (unit === "%" ? unit : ` ${unit}`) : "";
  const size = Math.abs(value);
  if (size !== 0 && size < 1e-3) return value.toExponential(2).replace("e-", "e−") + behind;
  const [times, letter] = UNITS.find(([one]) => size >= one) ?? [1, ""];
  const by = letter === "k" ? 1e3 : times;
  return `${Number((value / by).toPrecision(4))}${letter}${behind}`;
}

export function clock(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 120) return `${Number(seconds.toPrecision(3))} s`;
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (value: number) => String(value).padStart(2, "0");
  return h >= 100 ? `${Math.floor(h / 24)} d ${h % 24} h` : h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}

export function place_text(value: number, axis: string): string {
  if (axis === "time") return clock(value);
  return axis === "step" ? Math.round(value).toLocaleString("en") : figure(value);
}

/** An answer that is not what this script knows (another version of the server) leaves the page as it was drawn. */
export function isCurves(given: unknown): given is Curves {
  const one = given as Partial<Curves> | null;
  return one !== null && typeof one === "object" && one.schema === SCHEMA && Array.isArray(one.figures);
}
