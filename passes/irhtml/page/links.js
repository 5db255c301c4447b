// What is marked on the page: a row and what comes from the same place, a value with its definition and uses.

class Marks {
  constructor(app) {
    this.app = app;
    this.clear();
  }

  clear() {
    this.selected = null;      // {view, entry, row}
    this.marked = null;        // {view, entry, low, high}: numbers of values
    this.symbol = null;        // {view, text}: a symbol and the references to it
    this.strong = new Set();   // locations
    this.weak = new Set();
    this.strongLines = new Set(); // of sources, as file:line
    this.weakLines = new Set();
    this.twins = new Map();    // view -> {entry, row}
  }

  // row is the class of a row.
  row(view, entry, row) {
    const names = [];
    if (view.isSource) {
      const place = view.spec.source + ':' + (row + 1);
      if (this.strongLines.has(place)) names.push('strong'); else if (this.weakLines.has(place)) names.push('weak');
    } else {
      const loc = entry.chunk.locs[row];
      if (this.strong.has(loc)) names.push('strong'); else if (this.weak.has(loc)) names.push('weak');
    }
    const same = (at) => at && at.entry === entry && entry.chunk.start(row) === at.row;
    if (same(this.twins.get(view))) names.push('twin');
    if (this.selected && this.selected.view === view && same(this.selected)) names.push('selected');
    return names.join(' ');
  }

  // value is what to add to the class of a value.
  value(view, entry, token) {
    const m = this.marked;
    if (!m || m.view !== view || m.entry !== entry || token.number === undefined) return '';
    if (token.number > m.high || token.number + token.count <= m.low) return '';
    return token.defines ? ' marked definition' : ' marked';
  }

  // reference is what to add to the class of a symbol.
  reference(view, text) {
    return this.symbol && this.symbol.view === view && this.symbol.text === text ? ' marked' : '';
  }

  // select marks a row and all that comes from the same place of the source.
  select(view, entry, row) {
    row = entry.chunk.start(row);
    const { marked, symbol } = this;
    this.clear();
    Object.assign(this, { marked, symbol });
    this.selected = { view, entry, row };
    const { model } = this.app;
    const lineOf = (i) => model.places[i].file + ':' + model.places[i].line;
    if (view.isSource) {
      this.strongLines.add(view.spec.source + ':' + (row + 1));
      Object.assign(this, model.locationsAt(view.spec.source, row + 1));
    } else if (entry.chunk.locs[row]) {
      const loc = entry.chunk.locs[row];
      Object.assign(this, model.related(loc));
      this.strongLines = new Set(model.locations[loc].p.map(lineOf));
      this.weakLines = new Set((model.locations[loc].v || []).map(lineOf));
    }
    for (const v of this.app.views) {
      v.matches = this.matchesIn(v);
      const twin = v === view || view.isSource || v.isSource ? null : twinOf(entry, row, v.layout);
      if (twin) this.twins.set(v, twin);
    }
  }

  matchesIn(view) {
    const list = [];
    for (const entry of view.layout.entries) {
      const rows = [];
      if (view.isSource) {
        for (const place of this.strongLines) {
          const cut = place.lastIndexOf(':');
          if (place.slice(0, cut) === view.spec.source) rows.push(Number(place.slice(cut + 1)) - 1);
        }
      } else {
        for (const loc of this.strong) rows.push(...(entry.chunk.byLoc.get(loc) || []));
      }
      for (const row of rows.sort((a, b) => a - b)) if (row < entry.chunk.count) list.push({ entry, row });
    }
    return list;
  }

  // mark marks a value in its column.
  mark(view, entry, token) {
    const all = token.defines ? token.number + token.count - 1 : token.number;
    this.marked = { view, entry, low: token.number, high: all };
  }

  // definition is the row that defines the marked value, undefined when that is outside.
  definition() { return this.marked.entry.chunk.definitions.get(this.marked.low); }

  // uses lists the rows that use the marked value.
  uses() {
    const { entry, low, high } = this.marked, list = [];
    entry.chunk.values.forEach((numbers, row) => {
      if (!numbers.some((n) => n >= low && n <= high)) return;
      const tokens = tokenize(entry.chunk.rows[row], numbers, false);
      if (tokens.some((t) => t.number >= low && t.number <= high && !t.defines)) list.push(row);
    });
    return list;
  }
}

// twinOf finds the same operation in another column: in the function of the same name, among equally many operations of
// the same kind from the same place, the one at the same position.
function twinOf(entry, row, layout) {
  const other = layout.byKey.get(entry.key), { chunk } = entry;
  if (!other || !(entry.chunk.name || other.chunk === chunk)) return null;
  if (other.chunk === chunk) return { entry: other, row };
  const loc = chunk.locs[row], name = opName(chunk.rows[row]);
  if (!loc) return null;
  const alike = (c) => (c.byLoc.get(loc) || []).filter((r) => opName(c.rows[r]) === name);
  const mine = alike(chunk), theirs = alike(other.chunk);
  if (mine.length !== theirs.length) return null;
  return { entry: other, row: theirs[mine.indexOf(row)] };
}
