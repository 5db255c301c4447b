// What keys do in a column.

function bindKeys(app) {
  document.addEventListener('keydown', (event) => {
    const inField = event.target.matches('input, select, textarea') || document.getElementById('help').open;
    if (inField || event.ctrlKey || event.metaKey || event.altKey) return;
    const view = app.current;
    const onButton = event.target.matches('button') && (event.key === 'Enter' || event.key === ' ');
    const action = onButton ? null : KEYS[event.key] || (event.target === view.body ? COLUMN_KEYS[event.key] : null);
    if (!action) return;
    event.preventDefault();
    action(app, view);
  });
}

// KEYS work everywhere but in fields.
const KEYS = {
  '/': (app) => { app.controls.query.focus(); app.controls.query.select(); },
  '?': () => document.getElementById('help').showModal(),
  '[': (app) => app.focusColumn(-1),
  ']': (app) => app.focusColumn(1),
  b: (app) => app.back(),
  d: (app) => app.showDefinition(),
  u: (app) => app.nextUse(1),
  U: (app) => app.nextUse(-1),
  n: (app, view) => app.nextLinked(view, 1),
  p: (app, view) => app.nextLinked(view, -1),
  f: (app, view) => { view.fold(true); app.focusColumn(1) || app.focusColumn(-1); },
  s: (app) => { app.controls.sync.checked = !app.controls.sync.checked; },
  Escape: (app) => app.clear(),
};

// COLUMN_KEYS work in a column that has the focus.
const COLUMN_KEYS = {
  ArrowUp: (app, view) => app.moveTo(view, view.cursor - 1),
  ArrowDown: (app, view) => app.moveTo(view, view.cursor + 1),
  PageUp: (app, view) => app.moveTo(view, view.cursor - Math.floor(view.body.clientHeight / ROW)),
  PageDown: (app, view) => app.moveTo(view, view.cursor + Math.floor(view.body.clientHeight / ROW)),
  Home: (app, view) => app.moveTo(view, 0),
  End: (app, view) => app.moveTo(view, view.layout.height - 1),
  ArrowLeft: (app, view) => app.chooseToken(view, -1),
  ArrowRight: (app, view) => app.chooseToken(view, 1),
  ' ': (app, view) => {
    const { entry } = view.layout.at(view.cursor);
    view.foldEntry(entry, !entry.folded);
  },
  Enter: (app, view) => {
    const { entry, row } = view.layout.at(view.cursor);
    app.activate(view, entry, row, view.token < 0 ? null : view.tokensAt(view.cursor)[view.token]);
  },
};
