// The page: reads its content, draws each section with the script of its kind, and keeps to the address.

import { el } from "./dom.js";
import { visible } from "./format.js";
import { state } from "./address.js";
import { drawVerdict } from "./verdict.js";
import { drawParameters } from "./parameters.js";
import { drawQueries } from "./queries.js";
import { drawExplorer } from "./explorer.js";
import { drawFigures, drawComparisons, drawValues } from "./figures.js";
import { drawStages } from "./stages.js";
import { drawSurface } from "./surface.js";
import { drawWeight } from "./weight.js";
import { drawTrail } from "./trail.js";
import { drawOutlook } from "./outlook.js";
import { drawMeasured } from "./measured.js";

const DRAWN = {
  verdict: drawVerdict,
  parameters: drawParameters,
  queries: drawQueries,
  explorer: drawExplorer,
  figures: drawFigures,
  comparisons: drawComparisons,
  values: drawValues,
  stages: drawStages,
  surface: drawSurface,
  weight: drawWeight,
  trail: drawTrail,
  outlook: drawOutlook,
  measured: drawMeasured,
};

function start() {
  const content = JSON.parse(document.getElementById("content").textContent);
  const opened = [];
  const page = {
    documents: content.documents.map(([id, title]) => ({ id: visible(id), title: visible(title) })),
    // A section that has states says what to do when the address changes.
    follow: (react) => opened.push(react),
  };
  const known = content.sections.filter((section) => DRAWN[section.kind]);
  const ids = known.map((section, i) => (known.findIndex((other) => other.kind === section.kind) === i ? section.kind : `${section.kind}-${i}`));
  const sections = known.map((section, i) => {
    const id = ids[i];
    return el("section", { id, "aria-labelledby": `${id}-title` },
      el("h2", { id: `${id}-title` }, section.title),
      el("p", { class: "conclusion" }, visible(section.conclusion)),
      DRAWN[section.kind](section.data, page));
  });
  document.body.append(
    el("a", { class: "skip", href: "#content-start" }, "Skip to the report"),
    el("header", { class: "top" },
      el("div", {}, el("h1", {}, content.title), el("p", {}, visible(content.about))),
      el("nav", { "aria-label": "Sections" }, el("ul", {}, known.map((section, i) => el("li", {}, el("a", { href: `#${ids[i]}` }, section.title)))))),
    el("main", { id: "content-start", tabindex: -1 }, sections),
    el("footer", {}, el("p", {}, "Made by fliprank. This file is all there is: nothing is loaded, nothing is sent.")));
  const react = () => opened.forEach((each) => each(state()));
  window.addEventListener("hashchange", react);
  react();
  if (location.hash && !location.hash.includes("=")) document.getElementById(location.hash.slice(1))?.scrollIntoView();
  document.documentElement.dataset.ready = "yes";
}

start();
