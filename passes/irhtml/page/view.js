// One column on the page. Only the rows that are seen, and some around them, are in the document, and only those of
// columns that are in sight are kept up to date.

const ROW = 18;     // height in pixels, as in the style
const MARGIN = 10;  // rows drawn above and below those seen
const MAX_SHOWN = 4000; // characters of a row; longer ones, of constants printed whole, end with a note

function element(tag, properties, ...children) {
  const e = Object.assign(document.createElement(tag), properties);
  e.append(...children);
  return e;
}

class View {
  constructor(app, spec, index) {
    this.app = app;
    this.spec = spec;
    this.index = index;
    this.isSource = spec.source !== undefined;
    this.isModel = this.isSource && spec.source.endsWith('.blu'); // in the language of models, not IR
    this.layout = new Layout(spec.chunks);
    this.folded = Boolean(spec.same);
    this.cursor = 0;          // the row that keys act on
    this.token = -1;          // the token of that row that keys act on
    this.inSight = false;
    this.stale = true;        // to be drawn when it comes in sight
    this.matches = [];        // rows from the same place as the selected one
    this.build();
  }

  get label() { return (this.isSource ? 'source ' : this.spec.pass ? this.spec.phase + ': ' : '') + this.spec.title; }

  build() {
    const { spec } = this;
    this.rows = element('div', { className: 'rows' });
    this.sizer = element('div', { className: 'sizer' }, this.rows);
    this.body = element('div', { className: 'body', tabIndex: 0, role: 'listbox', ariaLabel: this.label }, this.sizer);
    this.body.style.setProperty('--width', this.layout.width);
    this.counts = element('span', { className: 'counts' });
    this.outline = element('select', { className: 'outline', title: 'Go to', ariaLabel: 'Go to, in ' + this.label });
    this.named = this.layout.entries.filter((e) => e.chunk.name && e.chunk.kind !== KIND_CLOSE);
    this.named.forEach((e, i) => this.outline.append(element('option', { value: i, textContent: e.key })));
    this.linked = element('button', { className: 'linked', type: 'button', hidden: true, title: 'Next row from the same place (n)' });
    const fold = element('button', { className: 'fold', type: 'button', title: 'Fold (f)', ariaLabel: 'Fold ' + this.label, textContent: '\u2039\u203A' });
    const heading = element('h2', { title: spec.summary || '' });
    if (spec.pass) heading.append(element('span', { className: 'phase', textContent: spec.phase }), ' ');
    heading.append(spec.title);
    const head = element('header', {}, element('div', { className: 'line' }, heading, this.counts, fold),
      element('div', { className: 'line' }, this.named.length ? this.outline : '', this.linked));
    this.strip = element('button', { className: 'strip', type: 'button', title: 'Unfold ' + this.label, ariaExpanded: 'false' },
      element('span', { textContent: this.label + (spec.same ? ' \u2014 nothing changed' : '') }));
    this.root = element('section', { className: 'column' + (this.isSource ? ' source' : ''), ariaLabel: this.label }, this.strip, head, this.body);
    this.root.dataset.index = this.index;
    this.body.addEventListener('scroll', () => this.scrolled(), { passive: true });
    this.body.addEventListener('click', (e) => this.clicked(e));
    this.body.addEventListener('mouseover', (e) => this.hovered(e));
    this.body.addEventListener('mouseleave', () => this.app.where(''));
    this.body.addEventListener('focus', () => this.app.focused(this));
    this.outline.addEventListener('change', () => this.app.jump(this, this.named[this.outline.value], 0));
    this.linked.addEventListener('click', () => this.app.nextLinked(this, 1));
    fold.addEventListener('click', () => this.fold(true));
    this.strip.addEventListener('click', () => { this.fold(false); this.body.focus(); });
    new ResizeObserver(() => this.draw(false)).observe(this.body);
    this.root.classList.toggle('folded', this.folded);
    new IntersectionObserver((changes) => {
      this.inSight = changes.at(-1).isIntersecting;
      if (this.inSight && this.stale) this.draw(true);
    }, { root: this.app.container, rootMargin: '0px 200px' }).observe(this.root);
  }

  fold(folded) {
    this.folded = folded;
    this.root.classList.toggle('folded', folded);
    this.app.folded();
    if (!folded) this.draw(true);
  }

  foldEntry(entry, folded) {
    const top = this.layout.at(Math.floor(this.body.scrollTop / ROW));
    this.layout.fold(entry, folded);
    this.cursor = this.layout.y(entry, 0);
    this.token = -1;
    this.body.scrollTop = this.layout.y(top.entry, top.row) * ROW;
    this.draw(true);
  }

  scrolled() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.draw(false); });
  }

  // draw puts the rows in sight into the document; unless all is to be drawn anew, only if they aren't there.
  draw(anew) {
    if (this.folded) return;
    this.stale = !this.inSight && (this.stale || anew);
    if (!this.inSight) return;
    const first = Math.floor(this.body.scrollTop / ROW), seen = Math.ceil(this.body.clientHeight / ROW);
    const last = Math.min(this.layout.height, first + seen + 1);
    this.follow(first);
    if (!anew && this.drawn && first >= this.drawn.from && last <= this.drawn.to) return;
    const from = Math.max(0, first - MARGIN), to = Math.min(this.layout.height, last + MARGIN);
    this.drawn = { from, to };
    this.sizer.style.height = this.layout.height * ROW + 'px';
    this.rows.style.transform = `translateY(${from * ROW}px)`;
    const list = document.createDocumentFragment();
    for (let y = from; y < to; y++) list.append(this.row(y));
    this.rows.replaceChildren(list);
    this.body.setAttribute('aria-activedescendant', this.rowId(this.cursor));
  }

  // follow shows in the outline which function is in sight.
  follow(y) {
    if (!this.named.length) return;
    const { entry } = this.layout.at(y);
    let i = this.named.findLastIndex((e) => e.index <= entry.index);
    if (this.outline.value !== String(Math.max(0, i))) this.outline.value = String(Math.max(0, i));
  }

  rowId(y) { return `r${this.index}-${y}`; }

  row(y) {
    const { entry, row } = this.layout.at(y), { chunk } = entry;
    const text = chunk.rows[row];
    const marks = this.app.marks.row(this, entry, row);
    const e = element('div', { className: 'row ' + marks, id: this.rowId(y), role: 'option', ariaSelected: String(y === this.cursor) });
    e.dataset.y = y;
    if (y === this.cursor) e.classList.add('cursor');
    e.append(this.gutter(entry, row));
    const code = element('code');
    if (text.charCodeAt(0) === 9) code.append('\u00A0'.repeat(8));
    this.fill(code, entry, row, text, y);
    if (entry.folded) code.append(element('span', { className: 'more', textContent: ` \u22EF ${chunk.count - 1} rows` }));
    e.append(code);
    return e;
  }

  gutter(entry, row) {
    if (this.isSource) return element('span', { className: 'gutter', textContent: row + 1 });
    const change = this.app.diff.marks(this.index - this.app.firstIR, entry).at(row);
    const g = element('span', { className: 'gutter' + (change & NEW ? ' new' : '') + (change & GONE ? ' gone' : '') });
    if (row === 0 && entry.chunk.count > 1 && entry.chunk.kind === 0) {
      g.append(element('button', { className: 'twist', type: 'button', tabIndex: -1, ariaLabel: entry.folded ? 'Unfold' : 'Fold', textContent: entry.folded ? '\u25B8' : '\u25BE' }));
    } else {
      g.textContent = { [NEW]: '+', [GONE]: '\u2212', [NEW | GONE]: '\u00B1' }[change] || '';
    }
    return g;
  }

  // fill puts the tokens of a row, and where searches found something, into an element.
  fill(code, entry, row, text, y) {
    const found = this.app.search.inRow(this, entry, row);
    let at = text.charCodeAt(0) === 9 ? 1 : 0;
    const end = Math.min(text.length, MAX_SHOWN);
    const put = (to, className, number) => {
      // Matches cut tokens into parts.
      const parent = className ? element('span', { className }) : code;
      if (number !== undefined) parent.dataset.token = number;
      while (at < to) {
        const hit = found.find((m) => m.to > at && m.from < to);
        const stop = !hit ? to : hit.from > at ? Math.min(hit.from, to) : Math.min(hit.to, to);
        const piece = text.slice(at, stop);
        parent.append(hit && hit.from <= at ? element('mark', { className: hit.current ? 'current' : '', textContent: piece }) : piece);
        at = stop;
      }
      if (parent !== code) code.append(parent);
    };
    const tokens = tokenize(text, entry.chunk.values[row], this.isModel);
    tokens.forEach((t, i) => {
      if (t.from >= end) return;
      put(t.from);
      let name = t.kind;
      if (t.kind === 'value') name += this.app.marks.value(this, entry, t);
      if (t.kind === 'symbol') name += this.app.marks.reference(this, text.slice(t.from, t.to));
      if (y === this.cursor && i === this.token) name += ' chosen';
      put(Math.min(t.to, end), name, i);
    });
    put(end);
    if (end < text.length) code.append(element('span', { className: 'more', textContent: ` \u22EF ${text.length - end} more characters` }));
  }

  tokensAt(y) {
    const { entry, row } = this.layout.at(y);
    return tokenize(entry.chunk.rows[row], entry.chunk.values[row], this.isModel);
  }

  clicked(event) {
    const row = event.target.closest('.row');
    if (!row) return;
    const y = Number(row.dataset.y), { entry, row: r } = this.layout.at(y);
    if (event.target.closest('.twist')) return this.foldEntry(entry, !entry.folded);
    const token = event.target.closest('[data-token]');
    this.cursor = y;
    this.token = -1;
    if (String(getSelection()) && !token) return; // text is being marked for copying
    this.app.activate(this, entry, r, token ? this.tokensAt(y)[token.dataset.token] : null);
  }

  hovered(event) {
    const row = event.target.closest('.row');
    if (!row) return;
    const { entry, row: r } = this.layout.at(Number(row.dataset.y));
    const token = event.target.closest('.value');
    const text = this.where(entry, r, token ? this.tokensAt(Number(row.dataset.y))[token.dataset.token] : null);
    if (text) (token || row).title = text;
    this.app.where(text);
  }

  // where says where a row, or the block argument that is a token of it, came from.
  where(entry, row, token) {
    if (this.isSource) return `${this.spec.source}:${row + 1}`;
    const { chunk } = entry;
    const arg = token && token.number !== undefined ? chunk.argLocs.get(token.number) : undefined;
    const loc = arg !== undefined && token.defines ? arg : chunk.locs[row];
    return loc ? this.app.model.locations[loc].t : '';
  }

  // show scrolls to a row if it isn't in sight, unfolding what hides it.
  show(entry, row, { from = 0, to = 0, always = false } = {}) {
    if (this.folded) this.fold(false);
    if (entry.folded && row > 0) this.layout.fold(entry, false);
    const y = this.layout.y(entry, row), top = y * ROW, { scrollTop, clientHeight } = this.body;
    this.sizer.style.height = this.layout.height * ROW + 'px';
    if (always || top < scrollTop + ROW || top > scrollTop + clientHeight - 3 * ROW) this.body.scrollTop = top - clientHeight / 3;
    if (to) {
      const ch = this.app.charWidth, left = from * ch, right = (to + 8) * ch;
      if (left < this.body.scrollLeft || right > this.body.scrollLeft + this.body.clientWidth) this.body.scrollLeft = Math.max(0, left - this.body.clientWidth / 3);
    }
    return y;
  }

  // reveal brings the column in sight.
  reveal() {
    this.root.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    this.inSight = true;
    if (this.stale) this.draw(true);
  }
}
