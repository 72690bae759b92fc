// Draws the replay: one panel per pool, a chart of bytes over a map of
// addresses. All texts of the trace are shown through textContent or canvas.
'use strict';
(() => {
// ---------------------------------------------------------------------------
// The data
// ---------------------------------------------------------------------------

const data = JSON.parse(document.getElementById('data').textContent);

function decode(text, Type) {
  const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  return new Type(bytes.buffer);
}

const eventCount = data.events;
const born = decode(data.born, Uint32Array);
const died = decode(data.died, Uint32Array);
const size = decode(data.size, Float64Array);
const stack = decode(data.stack, Uint32Array);
const time = data.time === null ? null : decode(data.time, Float64Array);
const blockCount = born.length;

// Bytes alive: liveAfter[0] before the first event, [i + 1] after event i.
function sumLive() {
  const live = new Float64Array(eventCount + 1);
  for (let b = 0; b < blockCount; b++) {
    live[b < data.baseline ? 0 : born[b] + 1] += size[b];
    if (died[b] < eventCount) live[died[b] + 1] -= size[b];
  }
  for (let i = 1; i <= eventCount; i++) live[i] += live[i - 1];
  return live;
}

function expand(events, bytes) {
  const all = new Float64Array(eventCount + 1);
  for (let k = 0; k < events.length; k++) {
    const end = k + 1 < events.length ? events[k + 1] : eventCount + 1;
    all.fill(bytes[k], events[k], end);
  }
  return all;
}

const live = sumLive();
const pools = data.pools.map(pool => ({
  name: pool.name,
  height: Math.max(pool.height, 1),
  ranges: pool.ranges,
  at: decode(pool.at, Float64Array),
  held: expand(decode(pool.reserved_event, Uint32Array),
               decode(pool.reserved_bytes, Float64Array)),
}));

const largest = values => values.reduce((a, b) => Math.max(a, b), 0);
const mostBytes =
    Math.max(1, largest(live), ...pools.map(pool => largest(pool.held)));

// ---------------------------------------------------------------------------
// Words
// ---------------------------------------------------------------------------

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

function bytesText(bytes, digits = 2) {
  let unit = 0;
  while (bytes >= 1024 && unit < UNITS.length - 1) {
    bytes /= 1024;
    unit++;
  }
  return `${unit === 0 ? bytes : bytes.toFixed(digits)} ${UNITS[unit]}`;
}

function exactText(bytes) {
  const exact = `${bytes} byte${bytes === 1 ? '' : 's'}`;
  return bytes < 1024 ? exact : `${bytesText(bytes)} (${exact})`;
}

const countText = count => count.toLocaleString('en');

function timeText(us) {
  if (us < 1e3) return `${us.toFixed(0)} us`;
  if (us < 1e6) return `${(us / 1e3).toFixed(2)} ms`;
  return `${(us / 1e6).toFixed(3)} s`;
}

function lifeText(b) {
  const from = b < data.baseline ? 'alive before the first event'
                                 : `event ${countText(born[b])}`;
  const to = died[b] === eventCount ? 'never freed'
                                    : `freed at event ${countText(died[b])}`;
  return `${from}, ${to}`;
}

function durationText(b) {
  const events = `${countText(died[b] - born[b])} events`;
  if (time === null) return events;
  return `${events}, ${timeText(time[died[b]] - time[born[b]])}`;
}

function frameTexts(b) {
  const frames = data.stacks[stack[b]];
  return frames === undefined ? [] : frames.map(i => data.frames[i]);
}

function addressText(pool, b) {
  const height = pool.at[b];
  if (height < 0) return 'refused';
  let range = pool.ranges[0];
  for (const r of pool.ranges) if (r[2] <= height) range = r;
  const address = BigInt(range[0]) + BigInt(height - range[2]);
  return `0x${address.toString(16)}`;
}

// ---------------------------------------------------------------------------
// Colours: classes of size, each a power of two wide, over one ramp from dark
// to bright (viridis, legible with every kind of colour blindness)
// ---------------------------------------------------------------------------

const RAMP = [
  [68, 1, 84], [70, 50, 126], [54, 92, 141], [39, 127, 142], [31, 161, 135],
  [74, 193, 109], [160, 218, 57], [253, 231, 37],
];
const CLASSES_MOST = 7;

function rampAt(part) {
  const at = part * (RAMP.length - 1);
  const low = Math.min(Math.floor(at), RAMP.length - 2);
  return RAMP[low].map(
      (c, i) => Math.round(c + (RAMP[low + 1][i] - c) * (at - low)));
}

const logOf = bytes => Math.floor(Math.log2(Math.max(bytes, 1)));

function makeClasses() {
  const logs = Array.from(new Set(Array.from(size, logOf)));
  const span = Math.max(...logs) - Math.min(...logs) + 1;
  const width = Math.max(1, Math.ceil(span / CLASSES_MOST));
  const steps = new Set(logs.map(log => Math.floor(log / width)));
  return Array.from(steps).sort((a, b) => a - b).map(step => ({step, width}));
}

const classes = blockCount > 0 ? makeClasses() : [];
const classIndex = new Map(classes.map((c, i) => [c.step, i]));
const classOf = b =>
    classIndex.get(Math.floor(logOf(size[b]) / classes[0].width));

function paintClasses() {
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const [from, to] = dark ? [0.2, 1] : [0.08, 0.94];
  classes.forEach((c, i) => {
    const part = classes.length > 1 ? i / (classes.length - 1) : 0.4;
    const [r, g, b] = rampAt(from + (to - from) * part);
    c.fill = `rgb(${r},${g},${b})`;
    c.ink = 0.3 * r + 0.59 * g + 0.11 * b > 130 ? '#10151a' : '#ffffff';
  });
}

function classText(c) {
  const low = 2 ** (c.step * c.width), high = 2 ** ((c.step + 1) * c.width);
  return `${bytesText(low, 0)} to ${bytesText(high, 0)}`;
}

// Blocks class by class, so that a colour is set once in a drawing.
const byClass = classes.map(() => []);
for (let b = 0; b < blockCount; b++) byClass[classOf(b)].push(b);

// ---------------------------------------------------------------------------
// The view: a stretch of time shared by all panels, addresses per panel
// ---------------------------------------------------------------------------

const MARGIN = {left: 74, right: 10, top: 10};
const view = {byTime: false, x0: 0, x1: 1, cursor: null, selected: null};
const panels = [];

const position = i => (view.byTime ? time[i] : i);
const endOfTime = () => Math.max(position(eventCount), 1e-9);

function eventAt(x) {
  let low = 0, high = eventCount;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (position(middle) <= x) low = middle;
    else high = middle;
  }
  return low;
}

function clampSpan(low, high, most, least) {
  const span = Math.min(Math.max(high - low, least), most);
  const start = Math.min(Math.max(low, 0), most - span);
  return [start, start + span];
}

function setX(x0, x1) {
  const most = endOfTime();
  const least = most / Math.max(eventCount, 1) * 4;
  [view.x0, view.x1] = clampSpan(x0, x1, most, Math.min(least, most));
}

function setY(panel, y0, y1) {
  [panel.y0, panel.y1] =
      clampSpan(y0, y1, panel.pool.height, Math.min(64, panel.pool.height));
}

function showAll() {
  setX(0, endOfTime());
  for (const panel of panels) setY(panel, 0, panel.pool.height);
}

function zoomX(factor, x = (view.x0 + view.x1) / 2) {
  setX(x - (x - view.x0) * factor, x + (view.x1 - x) * factor);
}

function zoomY(panel, factor, y = (panel.y0 + panel.y1) / 2) {
  setY(panel, y - (y - panel.y0) * factor, y + (panel.y1 - y) * factor);
}

// ---------------------------------------------------------------------------
// Canvas
// ---------------------------------------------------------------------------

const style = name =>
    getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function prepare(canvas) {
  const ratio = devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = '11px system-ui, "DejaVu Sans", sans-serif';
  return {context, width, height};
}

function plotWidth(canvas) {
  return Math.max(canvas.clientWidth - MARGIN.left - MARGIN.right, 1);
}

function xScale(canvas) {
  const scale = plotWidth(canvas) / (view.x1 - view.x0);
  return x => MARGIN.left + (x - view.x0) * scale;
}

function line(context, x0, y0, x1, y1) {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}

// A text that stays within |width|, whatever stands at its side.
function label(context, text, x, y, align, width) {
  const half = context.measureText(text).width;
  const low = MARGIN.left + 2, high = width - MARGIN.right - 2;
  let left = align === 'right' ? x - half : align === 'center' ? x - half / 2 : x;
  left = Math.max(low, Math.min(left, high - half));
  context.textAlign = 'left';
  context.fillText(text, left, y);
}

function drawCursor(context, canvas, height) {
  if (view.cursor === null) return;
  const x = xScale(canvas)(view.cursor);
  if (x < MARGIN.left || x > MARGIN.left + plotWidth(canvas)) return;
  context.strokeStyle = style('--muted');
  context.lineWidth = 1;
  line(context, Math.round(x) + 0.5, 0, Math.round(x) + 0.5, height);
}

// ---------------------------------------------------------------------------
// The chart: bytes asked for and held
// ---------------------------------------------------------------------------

// The largest value within each pixel column.
function columnsOf(values, canvas) {
  const columns = new Float64Array(Math.ceil(plotWidth(canvas)));
  const toX = xScale(canvas);
  for (let i = eventAt(view.x0); i < eventCount; i++) {
    if (position(i) > view.x1) break;
    const from = Math.max(Math.floor(toX(position(i)) - MARGIN.left), 0);
    const to = Math.max(toX(position(i + 1)) - MARGIN.left, from + 1);
    for (let c = from; c < to && c < columns.length; c++) {
      columns[c] = Math.max(columns[c], values[i + 1]);
    }
  }
  return columns;
}

function niceStep(most, count) {
  const unit = 1024 ** Math.floor(Math.log2(most) / 10);
  for (const step of [1, 2, 5, 10, 20, 50, 100, 200, 500, 1024]) {
    if (most / (unit * step) <= count) return unit * step;
  }
  return most;
}

function fillBetween(context, low, high, toY, colour) {
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(MARGIN.left, toY(low ? low[0] : 0));
  for (let c = 0; c < high.length; c++) {
    context.lineTo(MARGIN.left + c, toY(high[c]));
    context.lineTo(MARGIN.left + c + 1, toY(high[c]));
  }
  for (let c = high.length - 1; c >= 0; c--) {
    context.lineTo(MARGIN.left + c + 1, toY(low ? low[c] : 0));
    context.lineTo(MARGIN.left + c, toY(low ? low[c] : 0));
  }
  context.fill();
}

function strokeSteps(context, values, toY, colour) {
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.beginPath();
  for (let c = 0; c < values.length; c++) {
    context.lineTo(MARGIN.left + c, toY(values[c]));
    context.lineTo(MARGIN.left + c + 1, toY(values[c]));
  }
  context.stroke();
}

function drawChartGrid(context, width, toY) {
  const step = niceStep(mostBytes, 3);
  context.strokeStyle = style('--line');
  context.fillStyle = style('--muted');
  context.lineWidth = 1;
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  for (let bytes = 0; bytes <= mostBytes; bytes += step) {
    const y = Math.round(toY(bytes)) + 0.5;
    line(context, MARGIN.left, y, width - MARGIN.right, y);
    context.fillText(bytes === 0 ? '0' : bytesText(bytes, 0), MARGIN.left - 8,
                     y);
  }
}

function indexOfMost(columns) {
  let best = 0;
  for (let c = 1; c < columns.length; c++) {
    if (columns[c] > columns[best]) best = c;
  }
  return best;
}

// Both peaks are named above the curves, in one line, so that no two labels
// can meet; dots show where they are.
function drawPeaks(context, width, asked, held, toY) {
  const marks = [[held, '--held'], [asked, '--live']];
  for (const [columns, colour] of marks) {
    const at = indexOfMost(columns);
    context.fillStyle = style(colour);
    context.beginPath();
    context.arc(MARGIN.left + at, toY(columns[at]), 3.5, 0, 7);
    context.fill();
  }
}

function drawChart(panel) {
  const {context, width, height} = prepare(panel.chart);
  const toY = bytes =>
      height - 6 - bytes / mostBytes * (height - MARGIN.top - 12);
  const asked = columnsOf(live, panel.chart);
  const held = columnsOf(panel.pool.held, panel.chart);
  const top = held.map((bytes, c) => Math.max(bytes, asked[c]));
  drawChartGrid(context, width, toY);
  fillBetween(context, null, asked, toY, style('--live'));
  fillBetween(context, asked, top, toY, style('--waste-soft'));
  strokeSteps(context, held, toY, style('--held'));
  drawPeaks(context, width, asked, held, toY);
  drawCursor(context, panel.chart, height);
  return {asked, held};
}

// ---------------------------------------------------------------------------
// The map: address x time
// ---------------------------------------------------------------------------

const AXIS_HEIGHT = 22;

function yScale(panel) {
  const height = panel.map.clientHeight - AXIS_HEIGHT;
  const scale = height / (panel.y1 - panel.y0);
  return y => height - (y - panel.y0) * scale;
}

function boxOf(panel, b, toX, toY) {
  const at = panel.pool.at[b];
  const x = toX(position(born[b])), y = toY(at + Math.max(size[b], 1));
  return {
    x,
    y,
    w: Math.max(toX(position(died[b])) - x, 0.6),
    h: Math.max(toY(at) - y, 0.6),
  };
}

function isVisible(panel, b) {
  const at = panel.pool.at[b];
  return at >= 0 && at < panel.y1 && at + Math.max(size[b], 1) > panel.y0 &&
      position(born[b]) < view.x1 && position(died[b]) > view.x0;
}

function drawInk(context, box, b, left) {
  const text = bytesText(size[b]);
  const x = Math.max(box.x, left);
  if (box.h < 15 || box.x + box.w - x < context.measureText(text).width + 12) {
    return;
  }
  context.fillText(text, x + 6, box.y + Math.min(box.h / 2, 14));
}

function drawBlocks(panel, context, toX, toY) {
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  classes.forEach((c, index) => {
    for (const b of byClass[index]) {
      if (!isVisible(panel, b)) continue;
      const box = boxOf(panel, b, toX, toY);
      const gapX = box.w > 4 ? 0.5 : 0, gapY = box.h > 4 ? 0.5 : 0;
      context.fillStyle = c.fill;
      context.fillRect(box.x + gapX, box.y + gapY, box.w - 2 * gapX,
                       box.h - 2 * gapY);
      context.fillStyle = c.ink;
      drawInk(context, box, b, MARGIN.left);
    }
  });
}

function drawFolds(panel, context, width, toY) {
  context.strokeStyle = style('--muted');
  context.lineWidth = 1;
  context.setLineDash([5, 4]);
  for (const [, , height] of panel.pool.ranges.slice(1)) {
    const y = Math.round(toY(height)) + 0.5;
    if (y > 0 && height > panel.y0) line(context, MARGIN.left, y, width - MARGIN.right, y);
  }
  context.setLineDash([]);
}

// The lowest address of each range, where there is room for it.
function drawAddresses(panel, context, toY) {
  let free = Infinity;
  context.fillStyle = style('--muted');
  context.textAlign = 'right';
  context.textBaseline = 'alphabetic';
  for (const [address, , height] of panel.pool.ranges) {
    const y = Math.min(toY(height), toY(panel.y0)) - 2;
    if (height > panel.y1 || y > free - 13 || y < 10) continue;
    context.fillText(shorten(address), MARGIN.left - 8, y);
    free = y;
  }
}

const shorten = address =>
    address.length <= 10 ? address : `\u2026${address.slice(-8)}`;

function axisStep() {
  const span = (view.x1 - view.x0) / 5;
  const unit = 10 ** Math.floor(Math.log10(span));
  const step = [1, 2, 5, 10].find(f => f * unit >= span) * unit;
  return view.byTime ? step : Math.max(1, step);
}

function drawAxis(context, width, height, toX) {
  const step = axisStep();
  const y = height - AXIS_HEIGHT;
  context.strokeStyle = style('--line');
  context.fillStyle = style('--muted');
  context.textBaseline = 'alphabetic';
  line(context, MARGIN.left, y + 0.5, width - MARGIN.right, y + 0.5);
  for (let x = Math.ceil(view.x0 / step) * step; x <= view.x1; x += step) {
    const text = view.byTime ? timeText(x) : countText(x);
    line(context, toX(x), y, toX(x), y + 4);
    label(context, text, toX(x), height - 5, 'center', width);
  }
  context.textAlign = 'right';
  context.fillText(view.byTime ? 'time' : 'event', MARGIN.left - 8, height - 5);
}

function drawSelected(panel, context, toX, toY) {
  const b = view.selected;
  if (b === null || !isVisible(panel, b)) return;
  const box = boxOf(panel, b, toX, toY);
  context.strokeStyle = style('--mark');
  context.lineWidth = 2.5;
  context.strokeRect(box.x, box.y, Math.max(box.w, 3), Math.max(box.h, 3));
}

function drawMap(panel) {
  const {context, width, height} = prepare(panel.map);
  const toX = xScale(panel.map), toY = yScale(panel);
  const plot = [MARGIN.left, 0, plotWidth(panel.map), height - AXIS_HEIGHT];
  context.save();
  context.beginPath();
  context.rect(...plot);
  context.clip();
  context.fillStyle = style('--page');
  context.fillRect(...plot);
  drawBlocks(panel, context, toX, toY);
  drawFolds(panel, context, width, toY);
  drawSelected(panel, context, toX, toY);
  drawCursor(context, panel.map, height - AXIS_HEIGHT);
  context.restore();
  drawAddresses(panel, context, toY);
  drawAxis(context, width, height, toX);
}

// ---------------------------------------------------------------------------
// Texts beside the drawings
// ---------------------------------------------------------------------------

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function writeNote(panel, columns) {
  if (view.cursor === null) {
    panel.note.textContent =
        `peak ${bytesText(largest(columns.asked))} asked, ` +
        `${bytesText(largest(columns.held))} held`;
    return;
  }
  const event = eventAt(view.cursor);
  panel.note.textContent = `event ${countText(event)}: ` +
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
  const frames = frameTexts(b);
  tip.replaceChildren(element('div', exactText(size[b])),
                      element('div', lifeText(b)),
                      element('div', `lasted ${durationText(b)}`),
                      element('div', `at ${addressText(panel.pool, b)}`));
  if (frames.length > 0) tip.append(element('div', frames[0]));
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
  if (act === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
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
})();
