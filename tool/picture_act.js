// What stands beside the drawings, what people do, and the page.

// ---------------------------------------------------------------------------
// Texts beside the drawings
// ---------------------------------------------------------------------------

function writeNote(panel, columns) {
  if (view.cursor === null) {
    panel.note.textContent =
        `peak ${bytesText(largest(columns.asked))} asked, ` +
        `${bytesText(largest(columns.held))} held`;
    return;
  }
  const event = eventAt(view.cursor);
  const when = data.events === 0 ? 'no events' : `event ${countText(event)}`;
  panel.note.textContent = `${when}: ` +
      `${bytesText(live[event + 1])} asked, ` +
      `${bytesText(panel.pool.held[event + 1])} held`;
}

function writeDetails() {
  const b = view.selected;
  const details = document.getElementById('details');
  const list = element('dl');
  const rows = [['size', exactText(size[b])], ['life', lifeText(b)],
                ['lasted', durationText(b)]];
  for (const {pool} of panels) rows.push([pool.name, addressText(pool, b)]);
  for (const [name, value] of rows) {
    list.append(element('dt', name), element('dd', value));
  }
  const frames = element('ol');
  for (const text of frameTexts(b)) frames.append(element('li', text));
  details.replaceChildren(element('h2', `Block ${countText(b)}`), list, frames);
}

function writeLegend() {
  const legend = document.getElementById('legend');
  legend.replaceChildren(...classes.map(c => {
    const item = element('span');
    const swatch = element('i');
    swatch.style.background = c.fill;
    item.append(swatch, classText(c));
    return item;
  }));
}

function showTip(panel, b, x, y) {
  const tip = document.getElementById('tip');
  tip.replaceChildren(element('div', exactText(size[b])),
                      element('div', lifeText(b)),
                      element('div', `lasted ${durationText(b)}`),
                      element('div', `at ${addressText(panel.pool, b)}`));
  const frame = tellingFrame(b);
  if (frame !== undefined) tip.append(element('div', frame));
  tip.hidden = false;
  const width = tip.offsetWidth, height = tip.offsetHeight;
  const left = x + 16 + width > innerWidth ? x - 16 - width : x + 16;
  tip.style.left = `${Math.max(left, 4)}px`;
  tip.style.top = `${Math.max(Math.min(y + 16, innerHeight - height - 4), 4)}px`;
}

function hideTip() {
  document.getElementById('tip').hidden = true;
}

// ---------------------------------------------------------------------------
// Drawing it all, at most once a frame
// ---------------------------------------------------------------------------

let requested = false;

function drawAll() {
  requested = false;
  for (const panel of panels) {
    writeNote(panel, drawChart(panel));
    drawMap(panel);
  }
}

function redraw() {
  if (!requested) requestAnimationFrame(drawAll);
  requested = true;
}

// ---------------------------------------------------------------------------
// What people do
// ---------------------------------------------------------------------------

function pointOf(panel, event) {
  const rect = panel.map.getBoundingClientRect();
  const x = event.clientX - rect.left - MARGIN.left;
  const y = event.clientY - rect.top;
  const high = panel.map.clientHeight - AXIS_HEIGHT;
  return {
    x: view.x0 + x / plotWidth(panel.map) * (view.x1 - view.x0),
    y: panel.y1 - y / high * (panel.y1 - panel.y0),
  };
}

// The block under a point, or the nearest within three pixels of it.
function blockAt(panel, event) {
  const rect = panel.map.getBoundingClientRect();
  const px = event.clientX - rect.left, py = event.clientY - rect.top;
  const toX = xScale(panel.map), toY = yScale(panel);
  let best = null, bestDistance = 3;
  for (let b = 0; b < blockCount; b++) {
    if (!isVisible(panel, b)) continue;
    const box = boxOf(panel, b, toX, toY);
    const dx = Math.max(box.x - px, px - box.x - box.w, 0);
    const dy = Math.max(box.y - py, py - box.y - box.h, 0);
    if (Math.max(dx, dy) >= bestDistance) continue;
    best = b;
    bestDistance = Math.max(dx, dy);
    if (bestDistance === 0) break;
  }
  return best;
}

function select(b) {
  view.selected = b;
  if (b !== null) writeDetails();
  redraw();
}

// Brings a block that was chosen by key into sight.
function reveal(panel, b) {
  const x = (position(born[b]) + position(died[b])) / 2;
  const y = panel.pool.at[b] + size[b] / 2;
  const w = view.x1 - view.x0, h = panel.y1 - panel.y0;
  if (!isVisible(panel, b)) {
    setX(x - w / 2, x + w / 2);
    setY(panel, y - h / 2, y + h / 2);
  }
  const rect = panel.map.getBoundingClientRect();
  const box = boxOf(panel, b, xScale(panel.map), yScale(panel));
  showTip(panel, b, rect.left + Math.max(box.x, MARGIN.left), rect.top + box.y);
}

function step(panel, by) {
  if (blockCount === 0) return;
  const from = view.selected === null ? (by > 0 ? -1 : 0) : view.selected;
  const b = (from + by + blockCount) % blockCount;
  select(b);
  reveal(panel, b);
}

function pan(panel, dx, dy) {
  const w = view.x1 - view.x0, h = panel.y1 - panel.y0;
  setX(view.x0 + dx * w, view.x1 + dx * w);
  setY(panel, panel.y0 + dy * h, panel.y1 + dy * h);
}

const KEYS = {
  '+': panel => zoomX(0.7),
  '=': panel => zoomX(0.7),
  '-': panel => zoomX(1 / 0.7),
  '*': panel => zoomY(panel, 0.7),
  '_': panel => zoomY(panel, 1 / 0.7),
  '0': showAll,
  'ArrowLeft': panel => pan(panel, -0.15, 0),
  'ArrowRight': panel => pan(panel, 0.15, 0),
  'ArrowUp': panel => pan(panel, 0, 0.15),
  'ArrowDown': panel => pan(panel, 0, -0.15),
  'n': panel => step(panel, 1),
  'p': panel => step(panel, -1),
  'Escape': () => select(null),
};

function onKey(panel, event) {
  const act = KEYS[event.key];
  if (act === undefined) return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  hideTip();
  act(panel);
  redraw();
}

function onWheel(panel, event) {
  event.preventDefault();
  const factor = 1.0015 ** (event.deltaY || event.deltaX);
  const {x, y} = pointOf(panel, event);
  if (event.shiftKey) zoomY(panel, factor, y);
  else zoomX(factor, x);
  redraw();
}

function onMove(panel, event) {
  const {x, y} = pointOf(panel, event);
  if (panel.drag) {
    panel.moved = panel.moved || Math.abs(event.movementX) +
        Math.abs(event.movementY) > 1;
    setX(view.x0 + panel.drag.x - x, view.x1 + panel.drag.x - x);
    setY(panel, panel.y0 + panel.drag.y - y, panel.y1 + panel.drag.y - y);
    hideTip();
  } else {
    const b = blockAt(panel, event);
    if (b === null) hideTip();
    else showTip(panel, b, event.clientX, event.clientY);
  }
  view.cursor = Math.min(Math.max(x, view.x0), view.x1);
  redraw();
}

function onDown(panel, event) {
  panel.drag = pointOf(panel, event);
  panel.moved = false;
  panel.map.setPointerCapture(event.pointerId);
}

function onUp(panel, event) {
  panel.drag = null;
  if (!panel.moved) select(blockAt(panel, event));
}

// The browser took the pointer away.
function onCancel(panel) {
  panel.drag = null;
}

function onLeave() {
  view.cursor = null;
  hideTip();
  redraw();
}

function listen(panel) {
  const on = (name, act, options) =>
      panel.map.addEventListener(name, event => act(panel, event), options);
  on('keydown', onKey);
  on('wheel', onWheel, {passive: false});
  on('pointermove', onMove);
  on('pointerdown', onDown);
  on('pointerup', onUp);
  on('pointercancel', onCancel);
  on('pointerleave', onLeave);
  on('blur', hideTip);
  on('dblclick', () => {
    showAll();
    redraw();
  });
}

// ---------------------------------------------------------------------------
// The page
// ---------------------------------------------------------------------------

function makePanel(pool) {
  const article = element('article', undefined, 'panel');
  const head = element('header');
  const note = element('span', '', 'note');
  const chart = element('canvas', undefined, 'chart');
  const map = element('canvas', undefined, 'map');
  map.tabIndex = 0;
  map.setAttribute('role', 'img');
  map.setAttribute('aria-label',
                   `Addresses of ${pool.name} over time; n and p step through ` +
                   'the blocks');
  head.append(element('h2', pool.name), note);
  article.append(head, chart, map);
  document.getElementById('panels').append(article);
  const panel = {pool, note, chart, map, y0: 0, y1: pool.height, drag: null};
  panels.push(panel);
  listen(panel);
}

function makeAxisButton() {
  const button = document.getElementById('axis');
  const name = () => {
    button.textContent = view.byTime ? 'By event' : 'By time';
  };
  button.hidden = time === null;
  button.addEventListener('click', () => {
    view.byTime = !view.byTime;
    name();
    showAll();
    redraw();
  });
  name();
}

function makeButtons() {
  const on = (id, act) =>
      document.getElementById(id).addEventListener('click', () => {
        act();
        redraw();
      });
  on('in', () => zoomX(0.7));
  on('out', () => zoomX(1 / 0.7));
  on('reset', showAll);
}

function repaint() {
  paintClasses();
  writeLegend();
  redraw();
}

document.getElementById('drawings').hidden = false;
pools.forEach(makePanel);
makeAxisButton();
makeButtons();
showAll();
repaint();
new ResizeObserver(redraw).observe(document.getElementById('panels'));
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);
