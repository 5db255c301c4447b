// What a column holds and where: chunks one below the other, each with its rows or folded to its first one.

const LONG_RUN = 20; // rows of operations without regions, such as declarations, that are folded at first

class Layout {
  constructor(chunks) {
    const scopes = [];
    const unnamed = new Map();
    this.entries = chunks.map((chunk, index) => {
      if (chunk.kind === KIND_CLOSE) scopes.pop();
      const scope = scopes.length ? scopes[scopes.length - 1] : null;
      const entry = { chunk, index, scope, folded: !chunk.name && chunks.length > 1 && chunk.count > LONG_RUN };
      // key tells which entries of two columns are the same thing.
      const path = scope ? scope.key : '';
      if (chunk.name) entry.key = path + '@' + chunk.name;
      else {
        const n = unnamed.get(path + chunk.kind) || 0;
        unnamed.set(path + chunk.kind, n + 1);
        entry.key = path + '#' + chunk.kind + '.' + n;
      }
      if (chunk.kind === KIND_OPEN) scopes.push(entry);
      return entry;
    });
    this.byKey = new Map(this.entries.map((e) => [e.key, e]));
    this.width = Math.min(400, chunks.reduce((w, c) => c.rows.reduce((w, r) => Math.max(w, r.length), w), 0) + 6);
    this.arrange();
  }

  arrange() {
    this.starts = new Int32Array(this.entries.length + 1);
    this.entries.forEach((e, i) => { this.starts[i + 1] = this.starts[i] + (e.folded ? 1 : e.chunk.count); });
    this.height = this.starts[this.entries.length];
  }

  fold(entry, folded) {
    if (entry.folded === folded || entry.chunk.count < 2) return;
    entry.folded = folded;
    this.arrange();
  }

  // at is what is shown at a height, in rows.
  at(y) {
    let low = 0, high = this.entries.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.starts[middle] <= y) low = middle; else high = middle - 1;
    }
    return { entry: this.entries[low], row: y - this.starts[low] };
  }

  // y is the height of a row; that of the entry where it is folded.
  y(entry, row) { return this.starts[entry.index] + (entry.folded ? 0 : row); }

  get symbols() {
    const list = [];
    for (const entry of this.entries) {
      for (const s of entry.chunk.symbols) list.push({ name: s.n, entry, row: s.r });
    }
    Object.defineProperty(this, 'symbols', { value: list });
    return list;
  }

  // resolve finds what a reference in an entry means: its root in the nearest table that has it, the other names inside.
  // The head of a table may also name what is inside, and anything may be named by attributes that aren't references.
  resolve(path, from) {
    const inside = (table, name) => this.symbols.find((s) => s.name === name && s.entry.scope === table);
    let table = from.chunk.kind === KIND_OPEN ? from : from.scope;
    for (;;) {
      let found = inside(table, path[0]);
      for (const name of path.slice(1)) found = found && inside(found.entry, name);
      if (found) return found;
      if (!table) break;
      table = table.scope;
    }
    return this.symbols.find((s) => s.name === path[path.length - 1]) || null;
  }
}
