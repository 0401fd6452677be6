import { describe, expect, it } from "vitest";
import { clock, figure, isCurves, nearest, pile, place, reachOf, smooth } from "../src/curves";
import { moveZoom, readChoice, writeChoice } from "../src/choice";

describe("smooth", () => {
  it("keeps a straight slope as it is, also at its ends", () => {
    const line = Array.from({ length: 200 }, (_, at) => at * 2);
    smooth(line, 60).forEach((value, at) => expect(value).toBeCloseTo(line[at]!, 9));
  });
  it("passes over what is no number and leaves a gap where there is nothing", () => {
    expect(smooth([1, null, 3, null, 5], 20)).toEqual([1, 2, 3, 4, 5]);
    expect(smooth([null, null], 20)).toEqual([null, null]);
  });
  it("is off at 0 and takes in a hundredth at the report's strength", () => {
    const values = [3, 1, 2];
    expect(smooth(values, 0)).toBe(values);
    expect(reachOf(20, 1000)).toBe(10);
    expect(reachOf(20, 50)).toBe(2);
  });
});

describe("place", () => {
  const axes = { time: [0, 10, 110], "time-steps": [0, 10, 20] };
  it("puts a step between the two known ones beside it", () => {
    expect(place([0, 5, 15, 20, 99], axes, "time")).toEqual([0, 5, 60, 110, 110]);
    expect(place([15, 5, null], axes, "time")).toEqual([60, 5, null]);
  });
  it("leaves steps where they are on an axis that the run does not have", () => {
    expect(place([1, 2], axes, "tokens")).toEqual([1, 2]);
    expect(place([1, 2], undefined, "time")).toEqual([1, 2]);
  });
});

describe("nearest", () => {
  it("finds the closer of the two beside a place", () => {
    expect([0, 4, 6, 99].map((one) => nearest([0, 5, 10], one))).toEqual([0, 1, 1, 2]);
    expect(nearest([], 3)).toBe(-1);
  });
});

it("layers lie on each other", () => {
  expect(pile([[1, 2], [10, null], [100, 100]])).toEqual([[1, 2], [11, 2], [111, 102]]);
});

it("numbers and times are short", () => {
  expect([0, 1.23456, 12345, 2.5e6, 0.0000421].map((one) => figure(one))).toEqual(["0", "1.235", "12.35k", "2.5M", "4.21e−5"]);
  expect([figure(97.25, "%"), figure(70, "GiB"), figure(NaN)]).toEqual(["97.25%", "70 GiB", "–"]);
  expect([clock(3.2), clock(150), clock(3725), clock(900_000)]).toEqual(["3.2 s", "2:30", "1:02:05", "10 d 10 h"]);
});

describe("the address", () => {
  it("says the same after it was written and read", () => {
    const choice = { axis: "time", smoothing: 35, isLog: true, zoom: [1.5, 200] as [number, number] };
    const text = writeChoice(choice, "?runs=a,b");
    expect(text).toBe("?runs=a,b&x=time&smooth=35&log=1#z=1.5~200");
    const [search, hash] = text.split("#");
    expect(readChoice(search!, `#${hash}`, ["step", "time"])).toEqual(choice);
  });
  it("takes the usual for what it does not know", () => {
    expect(readChoice("?x=evil&smooth=9999&log=yes", "#z=9~1", ["step"])).toEqual({ axis: "step", smoothing: 20, isLog: false, zoom: null });
    expect(writeChoice({ axis: "step", smoothing: 20, isLog: false, zoom: null }, "?x=time&log=1")).toBe("");
  });
});

it("a window moves to the ends and no further, and is gone when it holds everything", () => {
  expect(moveZoom([40, 60], [0, 100], 5, 1)).toEqual([80, 100]);
  expect(moveZoom([40, 60], [0, 100], 0, 0.5)).toEqual([45, 55]);
  expect(moveZoom([20, 80], [0, 100], 0, 2)).toBeNull();
});

it("an answer of another version is not taken", () => {
  expect([isCurves(null), isCurves({ schema: "board-curves/9", figures: [] }), isCurves({ schema: "board-curves/1", figures: [] })]).toEqual([false, false, true]);
});
