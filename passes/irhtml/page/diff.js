// What a pass changed: rows whose text, numbers of values aside, the same function in the other column doesn't have.

const NEW = 1, GONE = 2;

class Diff {
  constructor(columns) {
    this.columns = columns; // [{layout, same}], those of the IR
    this.pairs = new Map(); // chunk -> chunk -> marks
  }

  // marks are those of an entry's rows in the column with this index: bits NEW and GONE.
  marks(index, entry) {
    const before = this.columns[index - 1];
    const after = this.columns.slice(index + 1).find((c) => !c.same);
    const added = before && this.against(entry, before), removed = after && this.against(entry, after);
    return { at: (row) => (added && added[row] ? NEW : 0) | (removed && removed[row] ? GONE : 0) };
  }

  // counts are how many rows a column has more and less than the one before.
  counts(index) {
    const here = this.columns[index], before = this.columns[index - 1];
    const sum = (a, b) => a.layout.entries.reduce((n, e) => n + this.against(e, b).reduce((x, y) => x + y, 0), 0);
    return before ? { added: sum(here, before), removed: sum(before, here) } : null;
  }

  // against marks the rows that an entry's counterpart in a column lacks.
  against(entry, column) {
    const other = column.layout.byKey.get(entry.key);
    const key = other ? other.chunk : null;
    let known = this.pairs.get(entry.chunk);
    if (!known) this.pairs.set(entry.chunk, known = new Map());
    if (!known.has(key)) known.set(key, lacking(entry.chunk, key));
    return known.get(key);
  }
}

function lacking(chunk, other) {
  if (chunk === other) return new Uint8Array(chunk.count);
  const have = new Map();
  const plain = (row) => row.replace(/%[\w$]+(?:#\d+)?/g, '%');
  for (const row of other ? other.rows : []) {
    const text = plain(row);
    have.set(text, (have.get(text) || 0) + 1);
  }
  return Uint8Array.from(chunk.rows, (row) => {
    const text = plain(row), n = have.get(text) || 0;
    have.set(text, n - 1);
    return n > 0 ? 0 : 1;
  });
}
