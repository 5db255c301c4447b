// The page as a whole: it connects columns, marks, search and the controls above them.

class App {
  constructor(model) {
    this.model = model;
    this.history = [];
    this.marks = new Marks(this);
    this.search = new Search(this);
    this.views = [];
    this.container = document.getElementById('columns');
    this.firstIR = model.columns.findIndex((c) => c.source === undefined);
    this.views = model.columns.map((spec, i) => new View(this, spec, i));
    const ir = this.views.slice(this.firstIR);
    this.diff = new Diff(ir.map((v) => ({ layout: v.layout, same: v.spec.same })));
    this.current = this.views[0];
    this.controls = {};
    for (const id of ['query', 'regex', 'case', 'previous', 'next', 'count', 'sync', 'unfold', 'status', 'where']) this.controls[id] = document.getElementById(id);
    this.container.replaceChildren(...this.views.map((v) => v.root));
    this.charWidth = measure(this.views[0].body);
    ir.forEach((v, i) => this.showCounts(v, i));
    this.bindControls();
    bindKeys(this);
    this.draw();
  }

  showCounts(view, i) {
    const ops = view.layout.entries.reduce((n, e) => n + e.chunk.count, 0);
    const c = view.spec.same ? null : this.diff.counts(i);
    view.counts.append(`${ops} rows`);
    if (!c) return;
    view.counts.append(' ', element('span', { className: 'new', textContent: '+' + c.added }), ' ', element('span', { className: 'gone', textContent: '\u2212' + c.removed }));
    view.counts.title = `${c.added} rows that the column before lacks, ${c.removed} rows of it that are gone`;
  }

  bindControls() {
    const { query, regex, unfold, previous, next } = this.controls;
    const caseBox = this.controls.case;
    const soon = () => { clearTimeout(this.timer); this.timer = setTimeout(() => this.find(), 150); };
    query.addEventListener('input', soon);
    regex.addEventListener('change', () => this.find());
    caseBox.addEventListener('change', () => this.find());
    query.addEventListener('keydown', (e) => {
      if (e.key === 'Escape') { query.value = ''; this.find(); this.current.body.focus(); }
      if (e.key !== 'Enter') return;
      e.preventDefault();
      if (this.timer) this.find(); else this.step(e.shiftKey ? -1 : 1);
    });
    document.getElementById('search').addEventListener('submit', (e) => e.preventDefault());
    previous.addEventListener('click', () => this.step(-1));
    next.addEventListener('click', () => this.step(1));
    unfold.hidden = !this.views.some((v) => v.spec.same);
    unfold.addEventListener('click', () => {
      const same = this.views.filter((v) => v.spec.same), show = same.some((v) => v.folded);
      same.forEach((v) => v.fold(!show));
      unfold.setAttribute('aria-pressed', String(show));
    });
    document.getElementById('help-button').addEventListener('click', () => document.getElementById('help').showModal());
    if (this.model.stopped) {
      const note = document.getElementById('stopped');
      note.textContent = this.model.stopped;
      note.hidden = false;
    }
  }

  draw() { for (const v of this.views) v.draw(true); }

  status(text) { this.controls.status.textContent = text; }

  // where shows the location of what the pointer or the cursor is on.
  where(text) { this.controls.where.textContent = text; }

  focused(view) { this.current = view; }

  // folded is told that a column was folded or unfolded: what is searched has changed.
  folded() {
    if (!this.search.pattern) return;
    const { current } = this.search;
    this.search.run();
    this.search.index = current ? this.search.list.findIndex((m) => m.view === current.view && m.entry === current.entry && m.row === current.row && m.from === current.from) : 0;
    this.controls.count.textContent = this.search.summary;
    this.draw();
  }

  // activate is a click on a token of a row, or on the row.
  activate(view, entry, row, token) {
    const text = token ? entry.chunk.rows[row].slice(token.from, token.to) : '';
    this.marks.symbol = null;
    if (token && token.kind === 'symbol' && !view.isSource) {
      const found = view.layout.resolve(symbolPath(text), entry);
      if (found && !(found.entry === entry && found.row === row)) return this.jump(view, found.entry, found.row);
      this.marks.symbol = { view, text };
    }
    if (token && token.number !== undefined) this.marks.mark(view, entry, token);
    else this.marks.marked = null;
    this.select(view, entry, row);
    if (this.marks.marked) this.tellValue(text);
    if (this.marks.symbol) this.status(text + ': references in this column are marked');
  }

  tellValue(name) {
    const uses = this.marks.uses().length, outside = this.marks.definition() === undefined;
    this.status(`${name}: ${outside ? 'defined elsewhere' : 'defined here'}, used in ${uses} ${uses === 1 ? 'row' : 'rows'} (d: definition, u: next use)`);
  }

  select(view, entry, row) {
    this.current = view;
    this.marks.select(view, entry, row);
    view.cursor = view.layout.y(entry, row);
    const where = view.where(entry, row, null);
    this.status(where || 'this row has no location');
    for (const v of this.views) {
      const n = v.matches.length;
      v.linked.hidden = n === 0;
      v.linked.textContent = `${n} from here \u25B8`;
      if (v === view || v.folded || !this.controls.sync.checked) continue;
      const at = this.marks.twins.get(v) || v.matches.find((m) => m.entry.key === entry.key) || v.matches[0];
      if (at) v.show(at.entry, at.row);
    }
    this.draw();
  }

  // jump goes to a row and remembers where from.
  jump(view, entry, row) {
    this.history.push({ view: this.current, y: this.current.cursor, top: this.current.body.scrollTop });
    view.show(entry, row, { always: true });
    this.marks.marked = null;
    this.select(view, entry, row);
    view.reveal();
    view.body.focus({ preventScroll: true });
  }

  back() {
    const from = this.history.pop();
    if (!from) return this.status('nothing to go back to');
    from.view.body.scrollTop = from.top;
    from.view.cursor = Math.min(from.y, from.view.layout.height - 1);
    from.view.reveal();
    from.view.body.focus({ preventScroll: true });
    this.draw();
  }

  showDefinition() {
    if (!this.marks.marked) return this.status('no value is marked');
    const row = this.marks.definition();
    if (row === undefined) return this.status('its definition is elsewhere');
    this.goto(this.marks.marked.view, this.marks.marked.entry, row);
  }

  nextUse(n) {
    if (!this.marks.marked) return this.status('no value is marked');
    const { view, entry } = this.marks.marked;
    this.cycle(view, this.marks.uses().map((row) => ({ entry, row })), n);
  }

  nextLinked(view, n) { this.cycle(view, view.matches, n); }

  // cycle goes to the row of a list that is after, or before, the cursor.
  cycle(view, list, n) {
    if (!list.length) return this.status('there is none');
    const ys = list.map((m) => view.layout.y(m.entry, m.row));
    let i = n > 0 ? ys.findIndex((y) => y > view.cursor) : ys.findLastIndex((y) => y < view.cursor);
    if (i < 0) i = n > 0 ? 0 : list.length - 1;
    this.goto(view, list[i].entry, list[i].row);
    this.status(`${i + 1} of ${list.length}`);
  }

  goto(view, entry, row) {
    this.history.push({ view: this.current, y: this.current.cursor, top: this.current.body.scrollTop });
    view.cursor = view.show(entry, row);
    view.token = -1;
    this.current = view;
    view.draw(true);
    view.reveal();
    view.body.focus({ preventScroll: true });
  }

  moveTo(view, y) {
    y = Math.max(0, Math.min(view.layout.height - 1, y));
    const { entry, row } = view.layout.at(y);
    view.cursor = y;
    view.token = -1;
    const { scrollTop, clientHeight } = view.body;
    if (y * ROW < scrollTop) view.body.scrollTop = y * ROW;
    if ((y + 1) * ROW > scrollTop + clientHeight) view.body.scrollTop = (y + 1) * ROW - clientHeight;
    view.draw(true);
    this.where(view.where(entry, row, null));
  }

  chooseToken(view, n) {
    const tokens = view.tokensAt(view.cursor);
    let i = view.token < 0 && n < 0 ? tokens.length : view.token;
    do i += n; while (tokens[i] && tokens[i].kind !== 'symbol' && tokens[i].number === undefined);
    view.token = tokens[i] ? i : -1;
    if (tokens[i]) {
      const { entry, row } = view.layout.at(view.cursor);
      view.show(entry, row, tokens[i]);
    }
    view.draw(true);
  }

  focusColumn(n) {
    let i = this.current.index;
    do i += n; while (this.views[i] && this.views[i].folded);
    if (!this.views[i]) return false;
    this.views[i].reveal();
    this.views[i].body.focus({ preventScroll: true });
    return true;
  }

  clear() {
    this.marks.clear();
    for (const v of this.views) { v.matches = []; v.linked.hidden = true; v.token = -1; }
    this.status('');
    this.draw();
  }

  // find runs the search that the controls ask for.
  find() {
    clearTimeout(this.timer);
    this.timer = 0;
    const { query, regex, count } = this.controls;
    query.removeAttribute('aria-invalid');
    try {
      this.search.compile(query.value, regex.checked, this.controls.case.checked);
    } catch (e) {
      query.setAttribute('aria-invalid', 'true');
      this.search.compile('');
      this.search.run();
      count.textContent = e.message.replace(/^Invalid regular expression: /, '');
      return this.draw();
    }
    this.search.run();
    this.search.fromCursor(this.current, this.current.cursor);
    this.showMatch();
  }

  step(n) {
    this.search.step(n);
    this.showMatch();
  }

  showMatch() {
    const m = this.search.current;
    if (m) {
      m.view.show(m.entry, m.row, m);
      m.view.reveal();
    }
    this.controls.count.textContent = this.search.summary;
    this.draw();
  }
}

// measure is the width of a character in an element, in pixels.
function measure(parent) {
  const probe = element('span', { textContent: 'm'.repeat(100) });
  parent.append(probe);
  const { width } = probe.getBoundingClientRect();
  probe.remove();
  return width / 100 || 7;
}

async function main() {
  try {
    window.app = new App(await load());
  } catch (e) {
    document.getElementById('columns').textContent = 'The page is damaged: ' + e.message;
    throw e;
  }
  // What is in sight is drawn with the next frame.
  requestAnimationFrame(() => requestAnimationFrame(() => { document.documentElement.dataset.ready = 'yes'; }));
}

main();
