// How curves are shown: in the address, so that a link shows the same and a reload keeps it.

export interface Choice {
  axis: string;
  /** 0 to 100. */
  smoothing: number;
  isLog: boolean;
  /** Ends of what is looked at, on the chosen axis. */
  zoom: [number, number] | null;
}

export const STRENGTHS: Record<string, number> = { off: 0, auto: 20, strong: 60 };

export function readChoice(search: string, hash: string, axes: string[]): Choice {
  const query = new URLSearchParams(search);
  const axis = query.get("x") ?? "step";
  const word = query.get("smooth") ?? "auto";
  const found = /^#z=(-?[\d.e+]+)~(-?[\d.e+]+)$/.exec(hash);
  const ends = found ? [Number(found[1]), Number(found[2])] : [];
  const [low, high] = [ends[0] ?? NaN, ends[1] ?? NaN];
  return {
    axis: axes.includes(axis) ? axis : "step",
    smoothing: STRENGTHS[word] ?? (/^\d{1,3}$/.test(word) ? Math.min(100, Number(word)) : 20),
    isLog: query.get("log") === "1",
    zoom: low < high ? [low, high] : null,
  };
}

export function writeChoice(choice: Choice, search: string): string {
  const query = new URLSearchParams(search);
  const put = (name: string, value: string) => (value ? query.set(name, value) : query.delete(name));
  const word = Object.keys(STRENGTHS).find((one) => STRENGTHS[one] === choice.smoothing) ?? String(choice.smoothing);
  put("x", choice.axis === "step" ? "" : choice.axis);
  put("smooth", word === "auto" ? "" : word);
  put("log", choice.isLog ? "1" : "");
  const text = query.toString().replaceAll("%2C", ",");
  const zoom = choice.zoom ? `#z=${choice.zoom.map((one) => Number(one.toPrecision(8))).join("~")}` : "";
  return (text ? `?${text}` : "") + zoom;
}

/** Moves the window by a share of its width, or makes it wider or narrower around its middle. */
export function moveZoom(zoom: [number, number], all: [number, number], shift: number, times: number): [number, number] | null {
  const [low, high] = zoom;
  const half = ((high - low) / 2) * times;
  const middle = (low + high) / 2 + shift * (high - low);
  const wide = Math.min(half, (all[1] - all[0]) / 2);
  const at = Math.min(Math.max(middle, all[0] + wide), all[1] - wide);
  return wide * 2 >= (all[1] - all[0]) * 0.999 ? null : [at - wide, at + wide];
}
