// Small charts in SVG: axes, lines or steps, bands and marks; each with a title, and a legend where there is more than
// one thing to tell apart. Series differ in dash and mark, not in colour alone.

import { el, svg, freshId } from "./dom.js";
import { significant } from "./format.js";

const DASHES = [null, "6 3", "2 3", "8 3 2 3"];
const LEFT = 62;
const RIGHT = 14;
const TOP = 10;
const BOTTOM = 40;

export function ticks(low, high, wanted = 5) {
  if (!(high > low)) return [low];
  const raw = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((times) => times * power).find((each) => each >= raw);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) found.push(Number((at * step).toPrecision(12)));
  return found;
}

export function extent(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value === null || value === undefined) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return [0, 1];
  const margin = (high - low) * 0.06 || Math.abs(high) * 0.05 || 0.5;
  return [low - margin, high + margin];
}

function scaleOf(low, high, from, to, logarithmic) {
  const f = logarithmic ? Math.log : (x) => x;
  const span = f(high) - f(low) || 1;
  return (x) => from + ((f(x) - f(low)) / span) * (to - from);
}

function axes(chart, across, up, xTicks, yTicks, xLabel, yLabel) {
  const { width, height } = chart;
  const group = svg("g", { class: "axes" });
  for (const tick of yTicks) {
    const y = up(tick);
    group.append(svg("line", { x1: LEFT, x2: width - RIGHT, y1: y, y2: y, class: "grid" }));
    group.append(svg("text", { x: LEFT - 7, y: y + 4, "text-anchor": "end" }, significant(tick)));
  }
  for (const tick of xTicks) {
    const x = across(tick);
    group.append(svg("line", { x1: x, x2: x, y1: height - BOTTOM, y2: height - BOTTOM + 5, class: "tick" }));
    group.append(svg("text", { x, y: height - BOTTOM + 18, "text-anchor": "middle" }, significant(tick)));
  }
  group.append(svg("line", { x1: LEFT, x2: width - RIGHT, y1: height - BOTTOM, y2: height - BOTTOM, class: "axis" }));
  group.append(svg("text", { x: (LEFT + width - RIGHT) / 2, y: height - 5, "text-anchor": "middle", class: "label" }, xLabel));
  const middle = (TOP + height - BOTTOM) / 2;
  group.append(svg("text", { x: 13, y: middle, "text-anchor": "middle", class: "label", transform: `rotate(-90 13 ${middle})` }, yLabel));
  return group;
}

export function linePath(xs, ys, across, up) {
  let path = "";
  let pen = "M";
  for (let i = 0; i < xs.length; i += 1) {
    if (ys[i] === null || ys[i] === undefined) {
      pen = "M";
      continue;
    }
    path += `${pen}${across(xs[i]).toFixed(1)} ${up(ys[i]).toFixed(1)}`;
    pen = "L";
  }
  return path;
}

// A step function: xs has one entry more than ys.
export function stepPath(xs, ys, across, up) {
  let path = "";
  for (let i = 0; i < ys.length; i += 1) {
    const y = up(ys[i]).toFixed(1);
    path += `${i ? "L" : "M"}${across(xs[i]).toFixed(1)} ${y}L${across(xs[i + 1]).toFixed(1)} ${y}`;
  }
  return path;
}

export function legend(entries) {
  return el("ul", { class: "legend" }, entries.map(({ name, kind, series }) => {
    const key = svg("svg", { width: 30, height: 12, "aria-hidden": "true" });
    if (kind === "band") key.append(svg("rect", { x: 0, y: 1, width: 30, height: 10, class: "band" }));
    else if (kind === "mark") key.append(svg("path", { d: markPath(series, 15, 6), class: `mark series-${series}` }));
    else if (kind === "way") key.append(svg("path", { d: "M0 6H30", class: "way-under" }), svg("path", { d: "M0 6H30", class: "way" }));
    else if (kind === "rug") key.append(svg("path", { d: "M8 2V10M15 2V10M20 2V10", class: "rug" }));
    else key.append(svg("line", { x1: 0, x2: 30, y1: 6, y2: 6, class: `line series-${series}`, "stroke-dasharray": DASHES[series % 4] }));
    return el("li", {}, key, el("span", {}, name));
  }));
}

export function markPath(series, x, y, size = 5) {
  const s = size;
  if (series % 3 === 1) return `M${x} ${y - s}L${x + s} ${y}L${x} ${y + s}L${x - s} ${y}Z`;
  if (series % 3 === 2) return `M${x - s} ${y - s}H${x + s}V${y + s}H${x - s}Z`;
  return `M${x - s} ${y}a${s} ${s} 0 1 0 ${2 * s} 0a${s} ${s} 0 1 0 ${-2 * s} 0Z`;
}

// `series`: [{name, x, y, step?, dots?}], `bands`: [{name, low, high}] across the x axis, `areas`: [{x, low, high}],
// `marks`: [{name, x, y, series}], `rug`: {name, x}.
export function chart({ title, summary, x, y, series = [], bands = [], areas = [], marks = [], rug = null, width = 640, height = 260 }) {
  const xs = x.range ?? extent(series.flatMap((each) => each.x));
  const every = series.flatMap((each) => each.y).concat(areas.flatMap((each) => [...each.low, ...each.high]), marks.map((m) => m.y));
  const ys = y.range ?? extent(every.filter((value) => value !== undefined));
  const box = { width, height };
  const across = scaleOf(xs[0], xs[1], LEFT, width - RIGHT, x.log);
  const up = scaleOf(ys[0], ys[1], height - BOTTOM, TOP, false);
  const titled = freshId("chart");
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-labelledby": titled, class: "chart" });
  drawing.append(svg("title", { id: titled }, summary ? `${title}. ${summary}` : title));
  for (const band of bands) {
    const [a, b] = [Math.max(band.low, xs[0]), Math.min(band.high, xs[1])].map(across);
    drawing.append(svg("rect", { x: a, width: Math.max(b - a, 1), y: TOP, height: height - BOTTOM - TOP, class: "band" }));
  }
  drawing.append(axes(box, across, up, x.ticks ?? ticks(xs[0], xs[1], width < 400 ? 4 : 6), ticks(ys[0], ys[1], 4), x.label, y.label));
  for (const area of areas) {
    const back = area.x.map((_, i) => area.x.length - 1 - i);
    const outline = linePath(area.x, area.high, across, up) + linePath(back.map((i) => area.x[i]), back.map((i) => area.low[i]), across, up).replace("M", "L");
    drawing.append(svg("path", { d: `${outline}Z`, class: `area series-${area.series ?? 0}` }));
  }
  series.forEach((each, number) => {
    const own = each.series ?? number;
    const d = each.step ? stepPath(each.x, each.y, across, up) : linePath(each.x, each.y, across, up);
    drawing.append(svg("path", { d, class: `line series-${own}`, "stroke-dasharray": DASHES[own % 4] }));
    if (each.dots) each.x.forEach((at, i) => each.y[i] !== null && drawing.append(svg("path", { d: markPath(own, across(at), up(each.y[i]), 3.5), class: `mark series-${own}` })));
  });
  if (rug) for (const at of rug.x) drawing.append(svg("line", { x1: across(at), x2: across(at), y1: height - BOTTOM - 6, y2: height - BOTTOM, class: "rug" }));
  for (const mark of marks) {
    const at = across(Math.min(Math.max(mark.x, xs[0]), xs[1]));
    if (mark.line) drawing.append(svg("line", { x1: at, x2: at, y1: TOP, y2: height - BOTTOM, class: `rule series-${mark.series}` }));
    drawing.append(svg("path", { d: markPath(mark.series, at, up(mark.y)), class: `mark series-${mark.series}` }));
  }
  const entries = [
    ...series.map((each, number) => ({ name: each.name, series: each.series ?? number })),
    ...bands.map((each) => ({ name: each.name, kind: "band" })),
    ...marks.map((each) => ({ name: each.name, kind: "mark", series: each.series })),
    ...(rug ? [{ name: rug.name, kind: "rug" }] : []),
  ];
  return el("figure", {}, el("figcaption", {}, title), drawing, legend(entries));
}
