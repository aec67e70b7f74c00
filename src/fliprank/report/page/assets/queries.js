// Every query before and after: sort, search, filter; a click opens its two rankings.

import { el, replace } from "./dom.js";
import { fixed, signed, significant, visible, way, count } from "./format.js";
import { address } from "./address.js";
import { LongTable, plainTable } from "./table.js";
import { drawLists } from "./lists.js";

function spread(rows, sign) {
  // How many queries changed by how much: bars of a histogram as text is worth little, so it is drawn by lists.js' kin.
  const gains = rows.filter((row) => row.gain !== null).map((row) => row.gain);
  return { won: gains.filter((g) => g > 0).length, lost: gains.filter((g) => g < 0).length, same: gains.filter((g) => g === 0).length, sign };
}

function bar(row, reach) {
  if (row.gain === null) return "";
  const width = `${Math.min(50, (Math.abs(row.gain) / reach) * 50)}%`;
  const inner = el("span", { class: way(row.gain) });
  inner.style.width = width;
  return el("span", { class: "bar", "aria-hidden": "true" }, inner);
}

export function drawQueries(data, page) {
  const rows = data.rows.map(([id, text, before, after, list], number) => {
    const change = before === null || after === null ? null : after - before;
    return { number, id: visible(id), text: visible(text), before, after, change, gain: change === null ? null : data.sign * change, list,
      words: `${id} ${text}`.toLowerCase() };
  });
  const reach = Math.max(1e-9, ...rows.map((row) => Math.abs(row.gain ?? 0)));
  const link = (row) => el("a", { href: address({ query: row.number }), title: row.text || row.id }, row.text ? [el("span", { class: "id" }, row.id), ` ${row.text}`] : row.id);
  const columns = [
    { head: "Query", wide: true, cell: link, key: (row) => row.text || row.id },
    { head: data.names[0], numeric: true, descending: true, cell: (row) => fixed(row.before), key: (row) => row.before },
    { head: data.names[1], numeric: true, descending: true, cell: (row) => fixed(row.after), key: (row) => row.after },
    { head: "Change", numeric: true, descending: true, cell: (row) => el("span", { class: way(row.gain ?? 0) }, signed(row.change)), key: (row) => row.gain },
    { head: "Loss or gain", cell: (row) => bar(row, reach), key: (row) => (row.gain === null ? null : Math.abs(row.gain)), descending: true },
  ];
  const table = new LongTable(`${data.measure} by query: ${data.on}`, columns, rows, { sorted: 3, descending: true, label: "queries" });
  const counts = spread(rows, data.sign);
  const search = el("input", { type: "search", id: "query-search", autocomplete: "off" });
  const choice = el("select", { id: "query-filter" }, [["all", `all (${count(rows.length)})`], ["won", `gained (${count(counts.won)})`], ["lost", `lost (${count(counts.lost)})`], ["same", `unchanged (${count(counts.same)})`]]
    .map(([value, name]) => el("option", { value }, name)));
  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kept = { all: () => true, won: (row) => row.gain > 0, lost: (row) => row.gain < 0, same: (row) => row.gain === 0 }[choice.value];
    table.filter((row) => kept(row) && words.every((word) => row.words.includes(word)));
  };
  search.addEventListener("input", apply);
  choice.addEventListener("change", apply);
  const opened = el("div", { class: "opened", id: "query-opened" });
  let last = null;
  page.follow((state) => {
    const number = state.has("query") ? Number(state.get("query")) : null;
    const row = Number.isInteger(number) ? rows[number] : undefined;
    if (number === last) return;
    last = number;
    if (row === undefined) {
      replace(opened);
      return;
    }
    const heading = el("h3", { tabindex: -1 }, el("span", { class: "id" }, row.id), row.text ? ` ${row.text}` : "");
    const close = el("a", { class: "close", href: "#queries" }, "Close");
    replace(opened, close, heading,
      el("p", {}, `${data.measure}: ${fixed(row.before)} → ${fixed(row.after)} (${signed(row.change)})`),
      row.list === null ? el("p", {}, "The lists of this query were left out, since the page has only those that changed most.") : drawLists(data, data.lists[row.list], page));
    opened.scrollIntoView({ block: "start" });
    heading.focus({ preventScroll: true });
  });
  const judge = data.to_judge.map(([query, document, before, after, change]) => {
    const known = page.documents[document];
    return [visible(query), known.title ? `${known.id} ${known.title}` : known.id, before ?? "–", after ?? "–", signed(change, 5)];
  });
  return [
    el("div", { class: "controls" },
      el("label", { for: "query-search" }, "Search ", search),
      el("label", { for: "query-filter" }, "Show ", choice)),
    table.node,
    opened,
    judge.length > 0 && el("div", {}, el("h3", {}, "Which documents to judge next"),
      el("p", { class: "note" }, "Nobody judged these, and their labels would move the comparison most: how much the mean change would differ if the document is relevant."),
      plainTable("Documents to judge next", ["Query", "Document", `Rank, ${data.names[0]}`, `Rank, ${data.names[1]}`, "Change if relevant"], judge, { numeric: [2, 3, 4] })),
    data.notes.length > 0 && el("ul", { class: "note" }, data.notes.map((note) => el("li", {}, visible(note)))),
  ];
}
