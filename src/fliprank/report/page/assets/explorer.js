// A slider per parameter; lists are ranked anew while it moves, and flips are told as they happen.

import { el, replace } from "./dom.js";
import { fixed, signed, significant, visible, way, count } from "./format.js";
import { go, state } from "./address.js";
import { scoresOf, ranked, measured } from "./scorers.js";

const SHOWN = 10;
const TOLD = 4;
const LINE = 46;

class Explorer {
  constructor(data, page) {
    this.data = data;
    this.page = page;
    this.values = data.parameters.map((each) => each.tuned);
    this.query = 0;
    this.cards = new Map();
    this.dragging = false;
    this.written = null;
    this.base = { default: this.evaluate(data.parameters.map((each) => each.default)), tuned: this.evaluate(this.values) };
    this.now = this.base.tuned;
    // The query that tuning moved most comes first: there is most to see.
    const moved = this.now.queries.map((each, i) => Math.abs(each.value - this.base.default.queries[i].value));
    this.first = moved.indexOf(Math.max(...moved));
    this.query = this.first;
  }

  vector(values) {
    const full = this.data.tuned.slice();
    this.data.parameters.forEach((each, i) => each.places.forEach((place) => { full[place] = values[i]; }));
    return full;
  }

  evaluate(values) {
    const full = this.vector(values);
    const queries = this.data.queries.map((query) => {
      const scores = scoresOf(this.data.scorer, full, query.input);
      const order = ranked(scores);
      return { scores, order, value: measured(query, this.data.law, order) };
    });
    return { queries, mean: queries.reduce((sum, each) => sum + each.value, 0) / queries.length };
  }

  draw() {
    const { data } = this;
    this.sliders = data.parameters.map((each, i) => {
      const id = `slider-${i}`;
      const input = el("input", { type: "range", id, min: each.low, max: each.high, step: "any", "aria-describedby": `${id}-good` });
      const shown = el("output", { for: id });
      input.addEventListener("input", () => this.set(i, Number(input.value), true));
      input.addEventListener("change", () => { this.dragging = false; });
      const good = each.good ? `as good: ${significant(each.good[0], 3)} to ${significant(each.good[1], 3)}` : "";
      const band = el("span", { class: "good", "aria-hidden": "true" });
      if (each.good) {
        const part = (x) => `${(100 * (x - each.low)) / (each.high - each.low || 1)}%`;
        band.style.left = part(each.good[0]);
        band.style.width = `calc(${part(each.good[1])} - ${part(each.good[0])})`;
      }
      const node = el("div", { class: "slider" }, el("label", { for: id }, visible(each.name)), shown,
        el("div", { class: "track" }, each.good && band, input), el("span", { class: "note", id: `${id}-good` }, good));
      return { input, shown, node };
    });
    const button = (name, which) => el("button", { type: "button", on: { click: () => this.take(data.parameters.map((each) => each[which])) } }, name);
    const others = [];
    data.parameters.forEach((each, i) => (each.good ?? []).forEach((end) => {
      if (Math.abs(end - each.tuned) > 1e-9 * (1 + Math.abs(each.tuned))) others.push([i, end, `${each.name} = ${significant(end, 3)}, all else tuned`]);
    }));
    this.others = el("select", { id: "equally-good" }, el("option", { value: "" }, "choose"), others.map(([, , name], at) => el("option", { value: at }, visible(name))));
    this.others.addEventListener("change", () => {
      if (this.others.value === "") return;
      const [i, end] = others[Number(this.others.value)];
      this.take(data.parameters.map((each, at) => (at === i ? end : each.tuned)));
    });
    this.choice = el("select", { id: "explored-query" }, data.queries.map((query, i) => el("option", { value: i }, visible(query.text ? `${query.id}: ${query.text}` : query.id).slice(0, 90))));
    this.choice.addEventListener("change", () => {
      this.query = Number(this.choice.value);
      this.write(false);
      this.list();
    });
    this.figures = el("dl", { class: "figures" });
    this.mean = el("div", { class: "now", role: "status" }, this.figures);
    this.ranking = el("ol", { class: "ranking" });
    this.flips = el("ul", { class: "flips", "aria-live": "polite" });
    this.heading = el("h3", {});
    this.page.follow((found) => this.follow(found));
    this.show();
    return [
      el("div", { class: "controls" }, button("Default", "default"), button("Tuned", "tuned"),
        others.length > 0 && el("label", { for: "equally-good" }, "Equally good ", this.others)),
      this.mean,
      el("div", { class: "explored" },
        el("div", { class: "sliders" }, el("h3", {}, "Parameters"), this.sliders.map((each) => each.node)),
        el("div", {}, this.heading, el("div", { class: "controls" }, el("label", { for: "explored-query" }, "Query ", this.choice)), this.ranking,
          el("h4", {}, "Flips of the last move in this list"), this.flips)),
      el("p", { class: "note" }, `${count(data.queries.length)} of ${count(data.of)} ${visible(data.on)}, spread evenly; of each the judged documents and those that either function has among its first 20. Documents that neither has there are not in this page, and could come up in the engine; values are of these documents, and may differ a little from those of whole rankings. The address of this page holds the setting: send it to a colleague.`),
    ];
  }

  follow(found) {
    if (found.has("explore")) {
      const text = `${found.get("explore")}|${found.get("list") ?? 0}`;
      if (text === this.written) return;
      const values = found.get("explore").split(",").map(Number);
      if (values.length !== this.data.parameters.length || !values.every(Number.isFinite)) return;
      const asked = Number(found.get("list") ?? 0);
      this.query = Number.isInteger(asked) && this.data.queries[asked] ? asked : 0;
      this.values = values.map((value, i) => Math.min(Math.max(value, this.data.parameters[i].low), this.data.parameters[i].high));
      this.written = text;
      this.show();
      document.getElementById("explorer")?.scrollIntoView({ block: "start" });
    } else if (location.hash === "" && this.written !== null) {
      this.written = null;
      this.query = this.first;
      this.values = this.data.parameters.map((each) => each.tuned);
      this.show();
    }
  }

  // The first step of a drag makes an entry in the history, the others change it.
  write(replacing) {
    const explore = this.values.map((value) => Number(value.toPrecision(12))).join(",");
    this.written = `${explore}|${this.query}`;
    go({ explore, list: this.query }, replacing && state().has("explore"));
  }

  set(i, value, live) {
    this.values = this.values.map((old, at) => (at === i ? value : old));
    this.show();
    this.write(live && this.dragging);
    this.dragging = live;
  }

  take(values) {
    this.values = values.slice();
    this.show();
    this.write(false);
  }

  show() {
    const before = this.now;
    this.now = this.evaluate(this.values);
    this.sliders.forEach(({ input, shown }, i) => {
      if (Number(input.value) !== this.values[i]) input.value = String(this.values[i]);
      shown.textContent = significant(this.values[i]);
      input.setAttribute("aria-valuetext", significant(this.values[i]));
    });
    const { data, now, base } = this;
    const better = now.queries.filter((each, i) => data.sign * (each.value - base.default.queries[i].value) > 1e-12).length;
    const worse = now.queries.filter((each, i) => data.sign * (each.value - base.default.queries[i].value) < -1e-12).length;
    this.mean.dataset.mean = String(now.mean);
    replace(this.figures, [[`${data.measure}, ${count(data.queries.length)} queries`, fixed(now.mean), ""], ["Against default", signed(now.mean - base.default.mean), way(data.sign * (now.mean - base.default.mean))],
      ["Against tuned", signed(now.mean - base.tuned.mean), way(data.sign * (now.mean - base.tuned.mean))], ["Better and worse than default", `${better} / ${worse}`, ""]]
      .map(([what, value, kind]) => el("div", {}, el("dt", {}, what), el("dd", {}, el("span", { class: kind }, value)))));
    this.tell(before);
    this.list();
  }

  tell(before) {
    const query = this.data.queries[this.query];
    const old = before.queries[this.query];
    const now = this.now.queries[this.query];
    const place = new Map(old.order.map((row, rank) => [row, rank]));
    const found = [];
    const top = now.order.slice(0, SHOWN);
    top.forEach((row, rank) => now.order.slice(rank + 1, rank + 1 + SHOWN).forEach((other) => {
      if (place.get(row) > place.get(other)) found.push([row, other, rank + 1]);
    }));
    const name = (row) => this.page.documents[query.documents[row]].title || this.page.documents[query.documents[row]].id;
    const label = (row) => (query.labels[row] === null ? "unjudged" : `label ${significant(query.labels[row])}`);
    const worth = (pair) => Math.abs((query.gains[pair[0]] ?? 0) - (query.gains[pair[1]] ?? 0));
    found.sort((a, b) => worth(b) - worth(a) || a[2] - b[2]);
    if (!found.length) {
      if (old !== now || !this.flips.childElementCount) replace(this.flips, el("li", {}, "none"));
      return;
    }
    const change = now.value - old.value;
    replace(this.flips,
      found.slice(0, TOLD).map(([up, down]) => {
        const good = (query.gains[up] ?? 0) - (query.gains[down] ?? 0);
        return el("li", { class: way(good) }, `${name(up)} (${label(up)}) overtakes ${name(down)} (${label(down)})`);
      }),
      found.length > TOLD && el("li", {}, `${count(found.length - TOLD)} more`),
      el("li", {}, el("strong", {}, `${this.data.measure} of this query: ${signed(change)}`)));
  }

  list() {
    const { data, page } = this;
    const query = data.queries[this.query];
    const now = this.now.queries[this.query];
    if (this.choice.value !== String(this.query)) this.choice.value = String(this.query);
    if (this.drawnQuery !== this.query) {
      this.cards.clear();
      replace(this.ranking);
      this.drawnQuery = this.query;
      replace(this.heading, `The first ${Math.min(SHOWN, query.documents.length)} of `, el("span", { class: "id" }, visible(query.id)), visible(query.text));
    }
    const tuned = new Map(this.base.tuned.queries[this.query].order.map((row, rank) => [row, rank + 1]));
    const first = new Map(this.base.default.queries[this.query].order.map((row, rank) => [row, rank + 1]));
    const top = now.order.slice(0, SHOWN);
    for (const [row, card] of this.cards) {
      if (!top.includes(row)) {
        card.remove();
        this.cards.delete(row);
      }
    }
    top.forEach((row, rank) => {
      let card = this.cards.get(row);
      if (!card) {
        const known = page.documents[query.documents[row]];
        const judged = query.labels[row];
        card = el("li", {}, el("span", { class: "rank" }), el("span", { class: "name", title: known.title ? `${known.title} (${known.id})` : known.id }, known.title || known.id),
          el("span", { class: `label ${judged === null ? "unjudged" : judged > 0 ? "relevant" : "not"}` }, judged === null ? "unjudged" : `label ${significant(judged)}`), el("span", { class: "was" }));
        this.cards.set(row, card);
      }
      card.style.top = `${rank * LINE}px`;
      card.dataset.score = String(now.scores[row]);
      card.dataset.document = String(query.documents[row]);
      card.querySelector(".rank").textContent = String(rank + 1);
      card.querySelector(".was").textContent = `default ${first.get(row)}, tuned ${tuned.get(row)}`;
    });
    // In the order of ranks, for readers who hear the page.
    top.forEach((row, rank) => {
      const card = this.cards.get(row);
      if (this.ranking.children[rank] !== card) this.ranking.insertBefore(card, this.ranking.children[rank] ?? null);
    });
    this.ranking.style.height = `${top.length * LINE}px`;
    this.ranking.dataset.value = String(now.value);
  }
}

export function drawExplorer(data, page) {
  return new Explorer(data, page).draw();
}
