// A measure over two parameters: a tile per point of the grid, the way of the optimiser over it, and a scale.

import { el, svg, freshId } from "./dom.js";
import { significant, fixed, visible } from "./format.js";
import { ticks, markPath, legend } from "./chart.js";

const WIDE = 620;
const TALL = 420;
const EDGE = { left: 64, right: 110, top: 12, bottom: 44 };
const STEPS = 7;

// Light to dark in one hue: it can be told apart by everyone, and in print. Each shade has as many points as any other:
// most of a surface is flat, and even steps would show one shade there.
function shades(values) {
  const sorted = values.slice().sort((a, b) => a - b);
  const ends = [];
  for (let step = 1; step <= STEPS; step += 1) ends.push(sorted[Math.min(sorted.length - 1, Math.ceil((step * sorted.length) / STEPS) - 1)]);
  return ends;
}

export function drawSurface(data) {
  const [xs, ys] = data.axes;
  const every = data.values.flat().filter((value) => value !== null);
  const [low, high] = [Math.min(...every), Math.max(...every)];
  const ends = shades(every);
  const shade = (value) => `tile-${ends.findIndex((end) => value <= end)}`;
  const titled = freshId("surface");
  const across = (x) => EDGE.left + ((x - xs[0]) / (xs.at(-1) - xs[0] || 1)) * (WIDE - EDGE.left - EDGE.right);
  const up = (y) => TALL - EDGE.bottom - ((y - ys[0]) / (ys.at(-1) - ys[0] || 1)) * (TALL - EDGE.top - EDGE.bottom);
  const wide = (WIDE - EDGE.left - EDGE.right) / (xs.length - 1);
  const each = (TALL - EDGE.top - EDGE.bottom) / (ys.length - 1);
  const drawing = svg("svg", { viewBox: `0 0 ${WIDE} ${TALL}`, role: "img", "aria-labelledby": titled, class: "chart surface" });
  const title = `${data.measure} over ${data.names[0]} and ${data.names[1]}`;
  drawing.append(svg("title", { id: titled }, `${title}: from ${fixed(low)} to ${fixed(high)}`));
  xs.forEach((x, i) => ys.forEach((y, j) => {
    const value = data.values[i][j];
    if (value === null) return;
    const left = Math.max(across(x) - wide / 2, EDGE.left);
    const top = Math.max(up(y) - each / 2, EDGE.top);
    const right = Math.min(across(x) + wide / 2, WIDE - EDGE.right);
    const bottom = Math.min(up(y) + each / 2, TALL - EDGE.bottom);
    drawing.append(svg("rect", { x: left.toFixed(1), y: top.toFixed(1), width: (right - left + 0.4).toFixed(1), height: (bottom - top + 0.4).toFixed(1), class: shade(value) }));
  }));
  for (const tick of ticks(xs[0], xs.at(-1), 6)) drawing.append(svg("text", { x: across(tick), y: TALL - EDGE.bottom + 18, "text-anchor": "middle" }, significant(tick)));
  for (const tick of ticks(ys[0], ys.at(-1), 5)) drawing.append(svg("text", { x: EDGE.left - 7, y: up(tick) + 4, "text-anchor": "end" }, significant(tick)));
  drawing.append(svg("text", { x: (EDGE.left + WIDE - EDGE.right) / 2, y: TALL - 6, "text-anchor": "middle", class: "label" }, data.names[0]));
  const middle = (EDGE.top + TALL - EDGE.bottom) / 2;
  drawing.append(svg("text", { x: 14, y: middle, "text-anchor": "middle", class: "label", transform: `rotate(-90 14 ${middle})` }, data.names[1]));
  const inside = data.way.filter(([x, y]) => x >= xs[0] && x <= xs.at(-1) && y >= ys[0] && y <= ys.at(-1));
  if (inside.length > 1) {
    const d = inside.map(([x, y], i) => `${i ? "L" : "M"}${across(x).toFixed(1)} ${up(y).toFixed(1)}`).join("");
    drawing.append(svg("path", { d, class: "way-under" }), svg("path", { d, class: "way" }));
  }
  const within = ([x, y]) => [across(Math.min(Math.max(x, xs[0]), xs.at(-1))), up(Math.min(Math.max(y, ys[0]), ys.at(-1)))];
  drawing.append(svg("path", { d: markPath(1, ...within(data.default), 7), class: "mark series-1" }), svg("path", { d: markPath(0, ...within(data.tuned), 7), class: "mark series-0" }));
  for (let step = 0; step < STEPS; step += 1) {
    const y = TALL - EDGE.bottom - ((step + 1) * (TALL - EDGE.top - EDGE.bottom)) / STEPS;
    drawing.append(svg("rect", { x: WIDE - EDGE.right + 22, y, width: 18, height: (TALL - EDGE.top - EDGE.bottom) / STEPS, class: `tile-${step}` }));
    drawing.append(svg("text", { x: WIDE - EDGE.right + 46, y: y + 10 }, fixed(ends[step], 4)));
  }
  const entries = [{ name: "tuned", kind: "mark", series: 0 }, { name: "default", kind: "mark", series: 1 }];
  if (inside.length > 1) entries.push({ name: "the way of the fit", kind: "way", series: 1 });
  return [
    el("figure", {}, el("figcaption", {}, visible(title)), drawing, legend(entries)),
    el("p", { class: "note" }, `On ${visible(data.on)}; all other parameters as tuned. The scale at the right gives the highest value of each shade; each shade covers as many points as any other.`),
  ];
}
