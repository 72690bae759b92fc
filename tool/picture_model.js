// The model of the picture: the data, words for it, colours, and the view.
//
// picture.html puts the three scripts into one function, in the order model,
// draw, act. All texts of the trace are shown through textContent or canvas.

// ---------------------------------------------------------------------------
// The data
// ---------------------------------------------------------------------------

const data = JSON.parse(document.getElementById('data').textContent);

// Without events, what was there all the time is drawn as if through one.
const eventCount = Math.max(data.events, 1);
const born = decode(data.born, Uint32Array);
const died = decode(data.died, Uint32Array)
    .map(event => event === data.events ? eventCount : event);
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

function lifeText(b) {
  const from = b < data.baseline ? 'alive before the first event'
                                 : `event ${countText(born[b])}`;
  const to = died[b] === eventCount ? 'never freed'
                                    : `freed at event ${countText(died[b])}`;
  return `${from}, ${to}`;
}

function durationText(b) {
  if (data.events === 0) return 'no events';
  const count = died[b] - born[b];
  const events = `${countText(count)} event${count === 1 ? '' : 's'}`;
  if (time === null) return events;
  return `${events}, ${timeText(time[died[b]] - time[born[b]])}`;
}

function frameTexts(b) {
  const frames = data.stacks[stack[b]];
  return frames === undefined ? [] : frames.map(i => data.frames[i]);
}

// The frame that says most: where Python called, below the allocator's own.
function tellingFrame(b) {
  const frames = frameTexts(b);
  return frames.find(text => /\.py(:\d+)?$/.test(text)) ?? frames[0];
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
// Colours: classes of size, as narrow as a legend of seven allows, over one
// ramp from dark to bright (viridis, legible with all colour blindnesses)
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

function classSteps(width) {
  const steps =
      new Set(Array.from(size, bytes => Math.floor(logOf(bytes) / width)));
  return Array.from(steps).sort((a, b) => a - b);
}

function makeClasses() {
  let width = 1;
  while (classSteps(width).length > CLASSES_MOST) width++;
  return classSteps(width).map(step => ({step, width}));
}

const classes = blockCount > 0 ? makeClasses() : [];
const classIndex = new Map(classes.map((c, i) => [c.step, i]));
const classOf = b =>
    classIndex.get(Math.floor(logOf(size[b]) / classes[0].width));

function paintClasses() {
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const [from, to] = dark ? [0.16, 0.9] : [0.06, 0.9];
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
