// What people do in the view, and drawing it at most once a frame.

// ---------------------------------------------------------------------------
// Drawing, and only what changed
// ---------------------------------------------------------------------------

const due = {all: true, map: true, moment: true, table: true, asked: false};

function draw() {
  due.asked = false;
  if (due.all) {
    document.documentElement.classList.toggle('drawn-dark', theme.dark);
    drawTimeline();
  }
  if (due.all || due.map || due.moment) drawTimelineOver();
  if (due.all || due.map) eachPanel(drawMap);
  if (due.all || due.map || due.moment) eachPanel(drawMapOver);
  if (due.all || due.moment) writeMoment();
  if (due.all || due.moment || due.table) writeTable();
  if (due.all || due.map || due.moment) writeNotes();
  due.all = due.map = due.moment = due.table = false;
}

function redraw(what) {
  due[what] = true;
  if (!due.asked) requestAnimationFrame(draw);
  due.asked = true;
}

function setMoment(m) {
  view.moment = Math.min(Math.max(m, 0), eventCount);
  const x = momentX(view.moment), span = view.x1 - view.x0;
  if (x < view.x0 || x > view.x1) {
    setX(x - span / 2, x + span / 2);
    redraw('map');
  }
  redraw('moment');
}

function select(b) {
  view.selected = b;
  if (b === null) clearDetails();
  else writeDetails();
  redraw('map');
}

function showAll() {
  setX(0, endOfTime());
  eachPanel(() => setY(0, panel.totalHeight));
  redraw('map');
}

function looksChanged() {
  looks.version++;
  redraw('all');
}

// ---------------------------------------------------------------------------
// Search and highlights
// ---------------------------------------------------------------------------

function updateFound() {
  found.text = byId('search').value;
  if (found.text !== '') findText(found.text);
  else if (view.chosen.length > 0) findGroups(view.chosen);
  else found.active = false;
  writeFound();
  looksChanged();
}

function toggleHolder(index) {
  byId('search').value = '';
  view.chosen = view.chosen.includes(index)
      ? view.chosen.filter(i => i !== index) : [...view.chosen, index];
  updateFound();
}

function onHolderClick(event) {
  const button = event.target.closest('button[data-holder]');
  if (button === null) return;
  const {holder: index} = button.dataset, list = button.closest('ol, table');
  toggleHolder(Number(index));
  draw();  // the button is a new one: the focus goes there
  const again = list.querySelector(`button[data-holder="${index}"]`);
  if (again !== null) again.focus({preventScroll: true});
}

function onSort(event) {
  const button = event.target.closest('button[data-sort]');
  if (button === null) return;
  const {sort} = button.dataset;
  table.down = table.sort === sort ? !table.down : sort !== 'name';
  table.sort = sort;
  redraw('table');
}

function escape() {
  byId('search').value = '';
  view.chosen = [];
  hideTip();
  select(null);
  updateFound();
}

// ---------------------------------------------------------------------------
// Keys
// ---------------------------------------------------------------------------

function zoomTime(factor) {
  const x = momentX(view.moment);
  zoomX(factor, x >= view.x0 && x <= view.x1 ? x : undefined);
  redraw('map');
}

function pan(dx, dy) {
  const w = view.x1 - view.x0, h = panel.y1 - panel.y0;
  setX(view.x0 + dx * w, view.x1 + dx * w);
  setY(panel.y0 + dy * h, panel.y1 + dy * h);
  redraw('map');
}

function zoomAddresses(factor) {
  zoomY(factor);
  redraw('map');
}

// Brings a block that was chosen by key into sight.
function reveal(b) {
  if (isVisible(b) || panel.low[b] < 0) return;
  const x = momentX(view.moment), y = (panel.low[b] + panel.high[b]) / 2;
  const w = view.x1 - view.x0, h = panel.y1 - panel.y0;
  setX(x - w / 2, x + w / 2);
  setY(y - h / 2, y + h / 2);
}

// Through the blocks alive at the moment, by size.
function stepBlock(by) {
  const alive = bySize.filter(b => isAlive(b, view.moment));
  if (alive.length === 0) return;
  const from = alive.indexOf(view.selected);
  const next = from < 0 ? (by > 0 ? 0 : alive.length - 1)
                        : (from + by + alive.length) % alive.length;
  reveal(alive[next]);
  select(alive[next]);
}

function nextRefusal() {
  if (data.refused.length === 0) return;
  const next = data.refused.find(r => r[0] + 1 > view.moment);
  setMoment((next || data.refused[0])[0] + 1);
}

function toggleAxis() {
  if (time === null) return;
  const [from, to] = [momentAt(view.x0), momentAt(view.x1)];
  view.byTime = !view.byTime;
  placeEvents();
  setX(momentX(from), momentX(to));
  writeAxisButton();
  looksChanged();
}

function writeAxisButton() {
  byId('axis').hidden = time === null;
  byId('axis').textContent = view.byTime ? 'Show by event' : 'Show by time';
}

function toggleFold() {
  if (!canFold) return;
  view.fold = !view.fold;
  eachPanel(placeAll);
  writeFoldButton();
  looksChanged();
}

function writeFoldButton() {
  byId('base').hidden = !canFold;
  byId('base').textContent = view.fold ? 'Unfold' : 'Fold the baseline';
  byId('base').title = `${bytesText(alwaysLive)} are alive all the time (h)`;
}

function toggleColours() {
  if (role === null) return;
  view.byRole = !view.byRole;
  colourBy(view.byRole);
  makeTheme();
  writeLegend();
  writeColourButton();
  looksChanged();
}

function writeColourButton() {
  byId('colours').hidden = role === null;
  byId('colours').textContent = view.byRole ? 'Show frames' : 'Show roles';
}

function openHelp() {
  byId('help').showModal();
}

const hundredth = () => Math.max(1, Math.round(eventCount / 100));
const stepOf = event => (event.shiftKey ? 10 : 1);

const KEYS = {
  'ArrowLeft': event => setMoment(view.moment - stepOf(event)),
  'ArrowRight': event => setMoment(view.moment + stepOf(event)),
  'PageUp': () => setMoment(view.moment - hundredth()),
  'PageDown': () => setMoment(view.moment + hundredth()),
  'Home': () => setMoment(0),
  'End': () => setMoment(eventCount),
  'p': () => setMoment(peak),
  'o': nextRefusal,
  'n': () => stepBlock(1),
  'b': () => stepBlock(-1),
  '+': () => zoomTime(0.7),
  '=': () => zoomTime(0.7),
  '-': () => zoomTime(1 / 0.7),
  ',': () => pan(-0.2, 0),
  '.': () => pan(0.2, 0),
  '*': () => zoomAddresses(0.7),
  '_': () => zoomAddresses(1 / 0.7),
  '0': showAll,
  't': toggleAxis,
  'h': toggleFold,
  'f': toggleColours,
  '/': () => byId('search').focus(),
  '?': openHelp,
};

const DRAWING_KEYS = {
  'ArrowUp': () => pan(0, 0.15),
  'ArrowDown': () => pan(0, -0.15),
};

const isDrawing = target => target.classList.contains('over');

// Keys that scroll a page or press a button do so outside of the drawings.
function actOf(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  if (byId('help').open) return undefined;
  if (event.key === 'Escape') return escape;
  if (event.target instanceof HTMLInputElement) return undefined;
  if (isDrawing(event.target) && event.key in DRAWING_KEYS) {
    return DRAWING_KEYS[event.key];
  }
  const isFree = event.target === document.body || isDrawing(event.target);
  if (event.key.length > 1 && !event.key.startsWith('ArrowL') &&
      !event.key.startsWith('ArrowR') && !isFree) {
    return undefined;
  }
  return Object.hasOwn(KEYS, event.key) ? KEYS[event.key] : undefined;
}

function onKey(event) {
  const act = actOf(event);
  if (act === undefined) return;
  event.preventDefault();
  hideTip();
  act(event);
}

// ---------------------------------------------------------------------------
// The timeline under the mouse
// ---------------------------------------------------------------------------

const EDGE = 6;  // so near to an edge of the brush one takes hold of it
const CLICK = 3; // a shorter way of the mouse is a click
const drag = {what: null, x: 0, y: 0, from: null, moved: false};

const offsetOf = (canvas, event) => {
  const rect = canvas.getBoundingClientRect();
  return {x: event.clientX - rect.left, y: event.clientY - rect.top};
};

function partOfBrush(x) {
  const x0 = timeline.toX(view.x0), x1 = timeline.toX(view.x1);
  const isAll = view.x1 - view.x0 >= endOfTime() * 0.9999;
  if (Math.abs(x - x0) <= EDGE && view.x0 > 0) return 'left';
  if (Math.abs(x - x1) <= EDGE && !isAll) return 'right';
  return x > x0 && x < x1 && !isAll ? 'brush' : 'new';
}

function begin(what, canvas, event) {
  if (event.button !== 0) return;
  const {x, y} = offsetOf(canvas, event);
  canvas.setPointerCapture(event.pointerId);
  Object.assign(drag, {what, x, y, from: {...view, y0: panel.y0, y1: panel.y1},
                       moved: false});
  hideTip();
}

// The browser took the pointer away: for scrolling, or for another window.
function endDrag() {
  drag.what = null;
}

function dragTimeline(x) {
  const {from} = drag, there = timeline.toPosition(x);
  const by = there - timeline.toPosition(drag.x);
  if (drag.what === 'brush') setX(from.x0 + by, from.x1 + by);
  else if (drag.what === 'left') setX(Math.min(there, from.x1), from.x1);
  else if (drag.what === 'right') setX(from.x0, Math.max(there, from.x0));
  else {
    const start = timeline.toPosition(drag.x);
    setX(Math.min(start, there), Math.max(start, there));
  }
  redraw('map');
}

const CURSORS = {left: 'ew-resize', right: 'ew-resize', brush: 'grab'};

function onTimelineMove(event) {
  const canvas = byId('timeline-over'), {x, y} = offsetOf(canvas, event);
  if (drag.what !== null) {
    drag.moved = drag.moved || Math.abs(x - drag.x) >= CLICK;
    if (drag.moved) dragTimeline(x);
    return;
  }
  canvas.style.cursor = CURSORS[partOfBrush(x)] || 'crosshair';
  const m = momentAt(timeline.toPosition(x));
  showTip(tipOfTimeline(m, timeline.toBytes(y)), event.clientX, event.clientY);
}

// A click chooses the moment that the chart shows in the column under it.
function clickTimeline(x) {
  const {columns} = timeline, c = Math.floor(x - MARGIN.left);
  setMoment(columns[Math.min(Math.max(c, 0), columns.length - 1)]);
}

function onTimelineUp(event) {
  const {x} = offsetOf(byId('timeline-over'), event);
  if (drag.what !== null && !drag.moved) clickTimeline(x);
  drag.what = null;
}

// ---------------------------------------------------------------------------
// The map under the mouse
// ---------------------------------------------------------------------------

// The block under a point, or the nearest within three pixels of it.
function blockAt(px, py) {
  let best = null, bestDistance = 3;
  for (let b = 0; b < blockCount && bestDistance > 0; b++) {
    if (!isVisible(b)) continue;
    const box = boxOf(b);
    const dx = Math.max(box.x - px, px - box.x - box.w, 0);
    const dy = Math.max(box.y - py, py - box.y - box.h, 0);
    if (Math.max(dx, dy) >= bestDistance) continue;
    best = b;
    bestDistance = Math.max(dx, dy);
  }
  return best;
}

function onMapMove(event) {
  const {x, y} = offsetOf(panel.over, event);
  if (drag.what === null) {
    const b = x < MARGIN.left ? null : blockAt(x, y);
    if (b === null) hideTip();
    else showTip(tipOfBlock(b), event.clientX, event.clientY);
    return;
  }
  drag.moved = drag.moved || Math.hypot(x - drag.x, y - drag.y) >= CLICK;
  if (!drag.moved) return;
  const {from} = drag;
  const dx = (drag.x - x) / panel.map.sx, dy = (y - drag.y) / panel.map.sy;
  setX(from.x0 + dx, from.x1 + dx);
  setY(from.y0 + dy, from.y1 + dy);
  redraw('map');
}

function onMapUp(event) {
  const {x, y} = offsetOf(panel.over, event);
  if (drag.what !== null && !drag.moved) {
    select(blockAt(x, y));
    setMoment(momentAt(view.x0 + (x - MARGIN.left) / panel.map.sx));
  }
  drag.what = null;
}

function onMapWheel(event) {
  event.preventDefault();
  hideTip();
  const {x, y} = offsetOf(panel.over, event);
  const factor = 1.0015 ** (event.deltaY || event.deltaX);
  if (event.shiftKey) zoomY(factor, panel.y0 + (panel.map.high - y) / panel.map.sy);
  else zoomX(factor, view.x0 + (x - MARGIN.left) / panel.map.sx);
  redraw('map');
}

// ---------------------------------------------------------------------------
// The beginning
// ---------------------------------------------------------------------------

// |before| runs before each handler.
function listenTo(target, handlers, before = () => {}) {
  for (const [name, handler] of Object.entries(handlers)) {
    target.addEventListener(name, event => {
      before();
      handler(event);
    }, {passive: name !== 'wheel'});
  }
}

function listenToMap(p) {
  listenTo(p.over, {
    focus: () => {},  // its keys are for this map
    pointerdown: event => begin('map', p.over, event),
    pointermove: onMapMove,
    pointerup: onMapUp,
    pointercancel: endDrag,
    pointerleave: hideTip,
    wheel: onMapWheel,
    dblclick: showAll,
  }, () => { panel = p; });
}

function listenToDrawings() {
  const over = byId('timeline-over');
  listenTo(over, {
    pointerdown: event => begin(partOfBrush(offsetOf(over, event).x), over, event),
    pointermove: onTimelineMove,
    pointerup: onTimelineUp,
    pointercancel: endDrag,
    pointerleave: hideTip,
    dblclick: showAll,
  });
  panels.forEach(listenToMap);
}

function listen() {
  document.addEventListener('keydown', onKey);
  listenToDrawings();
  const onClick = (id, act) => byId(id).addEventListener('click', act);
  byId('search').addEventListener('input', updateFound);
  onClick('axis', toggleAxis);
  onClick('base', toggleFold);
  onClick('colours', toggleColours);
  onClick('in', () => zoomTime(0.7));
  onClick('out', () => zoomTime(1 / 0.7));
  onClick('reset', showAll);
  onClick('help-open', openHelp);
  onClick('moment-holders', onHolderClick);
  onClick('holders', event => { onHolderClick(event); onSort(event); });
  onClick('more', () => { table.rows = ROWS_MOST; redraw('table'); });
  for (const button of document.querySelectorAll('button[data-key]')) {
    button.addEventListener('click', event => KEYS[button.dataset.key](event));
  }
  new ResizeObserver(() => redraw('all')).observe(byId('maps'));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    styles.clear();
    makeTheme();
    writeLegend();
    looksChanged();
  });
}

function start() {
  makeTheme();
  byId('main').hidden = false;
  panels.forEach(makeMap);
  setX(0, endOfTime());
  writeDescription();
  writeAnswer();
  writeLegend();
  writeAxisButton();
  writeFoldButton();
  writeColourButton();
  listen();
  draw();
}

try {
  start();
} catch (error) {
  byId('broken').hidden = false;
  byId('broken').textContent = `The page could not be drawn: ${error.message}`;
  throw error;
}
