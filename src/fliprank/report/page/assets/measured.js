// Everything that a number depends on.

import { el } from "./dom.js";
import { visible } from "./format.js";

function pairs(title, rows) {
  return rows.length > 0 && el("div", {}, el("h3", {}, title), el("dl", { class: "pairs" }, rows.map(([what, how]) => [el("dt", {}, visible(what)), el("dd", {}, visible(how))])));
}

export function drawMeasured(data) {
  return [
    data.command && el("div", {}, el("h3", {}, "To run it again"), el("pre", { tabindex: 0 }, el("code", {}, visible(data.command)))),
    pairs("What the measures mean", data.conventions),
    pairs("Settings", data.settings),
    pairs("Files", data.sources),
    pairs("Versions", data.versions),
    data.notes.length > 0 && el("div", {}, el("h3", {}, "Notes"), el("ul", {}, data.notes.map((note) => el("li", {}, visible(note))))),
  ];
}
