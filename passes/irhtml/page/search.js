// Search in all columns that aren't folded, row by row.

const MAX_MATCHES = 200000;

class Search {
  constructor(app) {
    this.app = app;
    this.pattern = null;
    this.byChunk = new Map(); // chunk -> Map of row -> [{from, to}]
    this.list = [];           // {view, entry, row, from, to}, in the order of the page
    this.index = -1;
    this.full = false;
  }

  // compile makes the pattern; it throws what is wrong with it.
  compile(query, isRegex, isCase) {
    const source = isRegex ? query : query.replace(/[\\^$.*+?()[\]{}|\/]/g, '\\$&');
    this.pattern = query ? new RegExp(source, 'g' + (isCase ? '' : 'i')) : null;
    this.byChunk.clear();
  }

  // run lists the matches; the current one is the first at or after the cursor.
  run() {
    this.list = [];
    this.full = false;
    this.index = -1;
    if (!this.pattern) return;
    for (const view of this.app.views) {
      if (view.folded) continue;
      for (const entry of view.layout.entries) {
        for (const [row, found] of this.inChunk(entry.chunk)) {
          for (const m of found) this.list.push({ view, entry, row, from: m.from, to: m.to });
        }
        if (this.list.length >= MAX_MATCHES) { this.full = true; break; }
      }
      if (this.full) break;
    }
  }

  inChunk(chunk) {
    let rows = this.byChunk.get(chunk);
    if (rows) return rows;
    rows = new Map();
    this.byChunk.set(chunk, rows);
    chunk.rows.forEach((text, row) => {
      const found = [];
      for (const m of text.matchAll(this.pattern)) {
        if (m[0]) found.push({ from: m.index, to: m.index + m[0].length });
      }
      if (found.length) rows.set(row, found);
    });
    return rows;
  }

  // inRow lists the matches of a row, for drawing.
  inRow(view, entry, row) {
    const found = this.pattern && this.inChunk(entry.chunk).get(row);
    if (!found) return [];
    const c = this.current;
    const here = c && c.view === view && c.entry === entry && c.row === row;
    return found.map((m) => ({ ...m, current: here && m.from === c.from }));
  }

  get current() { return this.list[this.index] || null; }

  // fromCursor makes the first match at or after a row the current one.
  fromCursor(view, y) {
    if (!this.list.length) return;
    const i = this.list.findIndex((m) => m.view.index > view.index || m.view === view && m.view.layout.y(m.entry, m.row) >= y);
    this.index = Math.max(0, i);
  }

  step(n) {
    if (this.list.length) this.index = (this.index + n + this.list.length) % this.list.length;
  }

  get summary() {
    if (!this.pattern) return '';
    if (!this.list.length) return 'no match';
    return `${this.index + 1} of ${this.list.length}${this.full ? '+' : ''}`;
  }
}
