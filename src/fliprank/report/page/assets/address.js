// What is open is in the address, after #: a query, a setting of the explorer. So back and forward work, and a setting
// can be sent to a colleague. "#queries" is a place in the page, "#query=17" a state.

export function state() {
  const text = location.hash.slice(1);
  const found = new Map();
  if (!text.includes("=")) return found;
  for (const pair of text.split("&")) {
    const at = pair.indexOf("=");
    if (at < 1) continue;
    try {
      found.set(decodeURIComponent(pair.slice(0, at)), decodeURIComponent(pair.slice(at + 1)));
    } catch {
      // Someone else's address: what can't be read is left out.
    }
  }
  return found;
}

export function address(values) {
  const pairs = Object.entries(values).filter(([, value]) => value !== null && value !== undefined);
  return `#${pairs.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&")}`;
}

// Go to a state; `replacing` leaves no entry in the history, for what changes while a slider moves.
export function go(values, replacing = false) {
  const to = address(values);
  if (to === location.hash) return;
  if (replacing) location.replace(to);
  else location.hash = to;
}
