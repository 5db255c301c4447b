'use strict';
// The recorded data, with the indexes that are made when they are first needed. Words are those of the
// package that recorded it: a chunk is a part of a module that is stored once, a row is a line of its text or a piece of
// a long one.

const KIND_OPEN = 1, KIND_CLOSE = 2;

class Chunk {
  constructor(spec) {
    this.kind = spec.k;
    this.name = spec.n || '';
    this.text = spec.t;
    this.locs = spec.l;           // by row
    this.values = spec.v;         // by row: numbers of the values in it
    this.args = spec.a || [];     // [number, row, location]
    this.symbols = spec.d || [];  // {r: row, n: name}
    this.count = spec.l.length;
  }

  get rows() {
    return this.lazy('rows', () => this.text.split('\n'));
  }

  // continues tells of a row that its line began further up.
  continues(row) { return this.rows[row].charCodeAt(0) === 9; }

  // start is the first row of the line that row is part of.
  start(row) {
    while (row > 0 && this.continues(row)) row--;
    return row;
  }

  // definitions maps the number of a value to the row that defines it.
  get definitions() {
    return this.lazy('definitions', () => {
      const map = new Map();
      this.rows.forEach((text, row) => {
        const m = /^ *%\w+(?::(\d+))? = /.exec(text);
        if (!m || !this.values[row].length) return;
        for (let i = 0; i < (m[1] || 1); i++) map.set(this.values[row][0] + i, row);
      });
      for (const [number, row] of this.args) map.set(number, row);
      return map;
    });
  }

  get argLocs() {
    return this.lazy('argLocs', () => new Map(this.args.map(([number, , loc]) => [number, loc])));
  }

  // byLoc maps a location to the first rows of the lines that have it.
  get byLoc() {
    return this.lazy('byLoc', () => {
      const map = new Map();
      this.locs.forEach((loc, row) => {
        if (!loc || this.continues(row)) return;
        if (map.has(loc)) map.get(loc).push(row); else map.set(loc, [row]);
      });
      return map;
    });
  }

  lazy(name, make) {
    const value = make();
    Object.defineProperty(this, name, { value });
    return value;
  }

  static ofSource(text) {
    const rows = text.replace(/\r?\n$/, '').split(/\r?\n/);
    return new Chunk({ k: 0, t: rows.join('\n').replaceAll('\t', '    '), l: rows.map(() => 0), v: rows.map(() => []) });
  }
}

class Model {
  constructor(data) {
    this.title = data.title;
    this.stopped = data.stopped || '';
    this.locations = data.locations;
    this.places = data.places.map(([file, line, col]) => ({ file: data.files[file], line, col }));
    this.chunks = data.chunks.map((spec) => new Chunk(spec));
    this.columns = data.sources.map((s) => ({ source: s.name, title: s.name, chunks: [Chunk.ofSource(s.text)] }));
    for (const c of data.columns) {
      this.columns.push({ ...c, title: c.pass || c.phase, chunks: c.chunks.map((i) => this.chunks[i]) });
    }
  }

  // locationsAt lists the locations that are on a line of a file, and those that came through a call there.
  locationsAt(file, line) {
    const here = (i) => this.places[i].file === file && this.places[i].line === line;
    return this.select((loc) => loc.p.some(here), (loc) => (loc.v || []).some(here));
  }

  // related lists the locations that share a place with loc; those that came through a call there; the calls that loc
  // came through.
  related(loc) {
    const places = new Set(this.locations[loc].p), calls = new Set(this.locations[loc].v);
    const shares = (i) => places.has(i);
    return this.select((l) => l.p.some(shares), (l) => (l.v || []).some(shares) || l.p.some((i) => calls.has(i)));
  }

  select(isStrong, isWeak) {
    const strong = new Set(), weak = new Set();
    this.locations.forEach((loc, i) => {
      if (isStrong(loc)) strong.add(i); else if (isWeak(loc)) weak.add(i);
    });
    return { strong, weak };
  }
}

// load decodes what the page carries: JSON, compressed, in base64.
async function load() {
  const text = atob(document.getElementById('data').textContent.trim());
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Model(await new Response(stream).json());
}
