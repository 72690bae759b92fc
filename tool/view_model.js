// The model of the view: the trace, sums over it, whose bytes are which band,
// and a panel for each pool: where it put the blocks, and what it held.
//
// view.c puts the scripts into one function: page, view_model, view_raster,
// view_draw, view_side, view_act, view_measure.
//
// Moments count from 0, before the first event; moment m is after event m - 1.
// A block is alive at the moments born + 1 to died.

// ---------------------------------------------------------------------------
// The trace
// ---------------------------------------------------------------------------

const data = JSON.parse(document.getElementById('data').textContent);

// Without events, what was there all the time is drawn as if through one.
const eventCount = Math.max(data.events, 1);
const endAt = list => list.map(e => (e === data.events ? eventCount : e));
const born = decode(data.born, Uint32Array);
const died = endAt(decode(data.died, Uint32Array));
const size = decode(data.size, Float64Array);
const stack = decode(data.stack, Uint32Array);
const holder = decode(data.holder, Uint32Array);
const tag = data.tag === null ? null : decode(data.tag, Uint32Array);
const role = data.role === null ? null : decode(data.role, Uint8Array);
const phases = data.phases.map(([name, first, end]) => ({name, first, end}));
const kind = decode(data.kind, Uint8Array);
const eventBlock = decode(data.block, Uint32Array);
const time = data.time === null ? null : decode(data.time, Float64Array);
const blockCount = born.length;
const peak = data.peak_event + 1;

// Requests that were refused.
const refusals = data.refused.map(([event, bytes, , holder]) =>
    ({moment: event + 1, bytes, holder}));
const refusalAt = new Map(refusals.map(r => [r.moment, r]));

// The page opens where `tarn why` begins: at the last refused request.
const opening =
    refusals.length > 0 ? refusals[refusals.length - 1].moment : peak;
const KINDS = {
  1: 'allocated', 2: 'freed', 3: 'let go of', 4: 'segment taken',
  5: 'segment given back', 6: 'memory mapped', 7: 'memory unmapped',
  8: 'out of memory', 9: 'snapshot',
};

const BEFORE = 2 ** 32 - 1;  // born: held before the first event
const firstMoment = b => (b < data.baseline ? 0 : born[b] + 1);
const isAlive = (b, m) => firstMoment(b) <= m && died[b] >= m;

// At each moment, the sum of amounts that last from one moment to another.
function sumUp(count, amountOf, fromOf, toOf) {
  const sums = new Float64Array(eventCount + 2);
  for (let i = 0; i < count; i++) {
    sums[fromOf(i)] += amountOf(i);
    sums[toOf(i) + 1] -= amountOf(i);
  }
  for (let m = 1; m <= eventCount + 1; m++) sums[m] += sums[m - 1];
  return sums.subarray(0, eventCount + 1);
}

const liveBlocks = sumUp(blockCount, () => 1, firstMoment, b => died[b]);
const largest = values => values.reduce((a, b) => Math.max(a, b), 0);

// ---------------------------------------------------------------------------
// Panels
// ---------------------------------------------------------------------------

function decodeSegments(s) {
  const segments = {
    at: decode(s.at, Float64Array),
    size: decode(s.size, Float64Array),
    first: decode(s.born, Uint32Array).map(e => (e === BEFORE ? 0 : e + 1)),
    died: endAt(decode(s.died, Uint32Array)),
    begins: decode(s.begins, Uint32Array),
  };
  segments.born = segments.first.map(m => Math.max(m - 1, 0));
  return segments;
}

// Bytes at each moment, from their changes.
function expand(moments, bytes) {
  const all = new Float64Array(eventCount + 1);
  moments.forEach((m, k) => all.fill(bytes[k], m));
  return all;
}

// What was held of the device at each moment; null: unknown.
function heldBy(pool, segments) {
  if (pool.reserved_event !== undefined) {
    return expand(decode(pool.reserved_event, Uint32Array),
                  decode(pool.reserved_bytes, Float64Array));
  }
  return segments.at.length === 0 ? null : sumUp(
      segments.at.length, s => segments.size[s],
      s => segments.first[s], s => segments.died[s]);
}

// Blocks and segments from the lowest address on.
const sortedBy = heights => Uint32Array.from(heights.keys())
    .sort((a, b) => heights[a] - heights[b]);

function makePanel(pool) {
  const at = decode(pool.at, Float64Array);
  const segments = decodeSegments(pool.segments);
  const held = heldBy(pool, segments);
  return {
    name: pool.name, ranges: pool.ranges, at, segments,
    isReplayed: pool.reserved_event !== undefined,
    held, mostHeld: held === null ? 0 : largest(held),
    folds: new Set(pool.ranges.map(([, , height]) => height)),
    byHeight: sortedBy(at).filter(b => at[b] >= 0),
    segmentsByHeight: sortedBy(segments.at),
    mapHeight: Math.max(pool.height, 1), totalHeight: 0, y0: 0, y1: 1,
    cuts: [], low: at, high: at, segmentLow: segments.at,
    segmentHigh: segments.at,
    raster: {drawn: null, image: null, pixels: null, width: 0, height: 0},
    map: {},
  };
}

const panels = data.pools.map(makePanel);

// The panel that is being drawn or used.
let panel = panels[0];

function eachPanel(act) {
  const kept = panel;
  for (panel of panels) act(panel);
  panel = kept;
}

const segmentIsHeld = (s, m) =>
    panel.segments.first[s] <= m && panel.segments.died[s] >= m;

// ---------------------------------------------------------------------------
// Frames
// ---------------------------------------------------------------------------

// "forward  a/b/model.py:7": what C writes of a frame, taken apart.
function splitFrame(text) {
  const gap = text.indexOf('  ');
  const isPlace = gap < 0 && /:\d+$/.test(text);
  const place = gap < 0 ? (isPlace ? text : '') : text.slice(gap + 2);
  const name = gap < 0 ? (isPlace ? '' : text) : text.slice(0, gap);
  const slash = place.lastIndexOf('/') + 1;
  return {folder: place.slice(0, slash), file: place.slice(slash), name};
}

// Without the arguments of functions of C++.
function shortName(name) {
  const end = name.includes('::') ? name.search(/.\((?!\)|anonymous)/) : -1;
  return end < 1 ? name : name.slice(0, end + 1);
}

function shortFrame(text) {
  const {file, name: whole} = splitFrame(text);
  const name = shortName(whole);
  return file === '' ? name : name === '' ? file : `${file} ${name}`;
}

function frameTexts(stackIndex) {
  const frames = data.stacks[stackIndex];
  return frames === undefined ? [] : frames.map(i => data.frames[i]);
}

// ---------------------------------------------------------------------------
// Holders
// ---------------------------------------------------------------------------

const FIXED = ['baseline', 'without a stack'], NO_STACK = 1;

// |name|: a frame, or -1 less a tag.
function holderText(name, index) {
  if (index < FIXED.length) return FIXED[index];
  return name >= 0 ? data.frames[name] : `tag ${data.tags[-1 - name]}`;
}

const holders = data.holders.map((name, index) => ({
  index,
  isFrame: name >= 0,
  text: holderText(name, index),
  label: name >= 0 ? shortFrame(data.frames[name]) : holderText(name, index),
  peak: 0, most: 0, total: 0, blocks: 0, now: 0, nowBlocks: 0, band: -1,
}));

// What blocks are for; as groups of blocks they are numbered behind the
// holders.
const roles = role === null ? [] : data.roles.map((label, r) => ({
  index: holders.length + r, label, text: label, now: 0, nowBlocks: 0, band: -1,
}));

function sumHolders() {
  for (let b = 0; b < blockCount; b++) {
    const h = holders[holder[b]];
    h.total += size[b];
    h.blocks++;
    if (isAlive(b, peak)) h.peak += size[b];
    if (b < data.baseline) h.most += size[b];
  }
}

// The most that each held at once.
function findMost() {
  const now = new Float64Array(holders.length);
  for (let b = 0; b < data.baseline; b++) now[holder[b]] += size[b];
  for (let i = 0; i < data.events; i++) {
    const b = eventBlock[i];
    if (kind[i] === 1) now[holder[b]] += size[b];
    if (kind[i] === 2) now[holder[b]] -= size[b];
    if (kind[i] !== 1) continue;
    const h = holders[holder[b]];
    if (now[h.index] > h.most) h.most = now[h.index];
  }
}

// The folder that all holders have in common.
function findRoot() {
  const folders = holders.filter(h => h.isFrame).map(h => splitFrame(h.text).folder)
      .filter(folder => folder !== '');
  let root = folders[0] || '';
  for (const folder of folders) {
    while (!folder.startsWith(root)) {
      root = root.slice(0, root.slice(0, -1).lastIndexOf('/') + 1);
    }
  }
  return root;
}

sumHolders();
findMost();
const root = findRoot();

// ---------------------------------------------------------------------------
// Bands by holder: the baseline below, the largest holders over it, all others
// above. Bands by role: what stands below, what comes and goes above.
// ---------------------------------------------------------------------------

const BANDS_MOST = 7, BANDS_OF_PEAK = 3;

// The holders of most at the peak, and those of most at another time; in
// the order of the peak.
function bandHolders() {
  const byPeak = holders.filter(h => h.index !== 0 && h.blocks > 0)
      .sort((a, b) => b.peak - a.peak || b.most - a.most);
  const first = byPeak.slice(0, BANDS_OF_PEAK);
  const rest = byPeak.slice(BANDS_OF_PEAK).sort((a, b) => b.most - a.most);
  const chosen =
      new Set([...first, ...rest.slice(0, BANDS_MOST - first.length)]);
  return {chosen: byPeak.filter(h => chosen.has(h)),
          rest: byPeak.filter(h => !chosen.has(h))};
}

function makeHolderBands() {
  const made = [], {chosen, rest} = bandHolders();
  if (holders[0].blocks > 0) {
    made.push({label: 'baseline', style: 'baseline', holders: [holders[0]]});
  }
  chosen.forEach((h, i) => {
    made.push({label: h.label, style: i, holders: [h]});
  });
  if (rest.length > 0) {
    made.push({label: `${countText(rest.length)} other${
                   rest.length === 1 ? '' : 's'}`,
               style: 'other', holders: rest});
  }
  const bandOfHolder = new Uint8Array(holders.length);
  made.forEach((band, i) => {
    for (const h of band.holders) bandOfHolder[h.index] = i;
  });
  return {bands: made, of: holder.map(h => bandOfHolder[h])};
}

// The roles of C, from the lowest band on: weights, optimizer states,
// workspaces, inputs, unknown; gradients, activations, temporaries.
const ROLE_ORDER = [0, 1, 6, 4, 7, 2, 3, 5];

function makeRoleBands() {
  const used = new Set(role), bandOfRole = new Uint8Array(data.roles.length);
  const order = ROLE_ORDER.filter(r => used.has(r));
  order.forEach((r, i) => { bandOfRole[r] = i; });
  return {bands: order.map(r => ({label: data.roles[r], style: `role${r}`})),
          of: role.map(r => bandOfRole[r])};
}

function sumBands(count, of) {
  const sums = Array.from({length: count},
                          () => new Float64Array(eventCount + 2));
  for (let b = 0; b < blockCount; b++) {
    sums[of[b]][firstMoment(b)] += size[b];
    sums[of[b]][died[b] + 1] -= size[b];
  }
  for (const sum of sums) {
    for (let m = 1; m < sum.length; m++) sum[m] += sum[m - 1];
  }
  return sums;
}

// The bands that are shown, the band of each block, and the bytes of each band
// at each moment.
let bands = [], bandOf = new Uint8Array(blockCount), bandLive = [];

// The band in which a group of blocks has most of its bytes.
function bandOfMost(groups, groupOf) {
  const bytes = groups.map(() => new Float64Array(bands.length));
  for (let b = 0; b < blockCount; b++) bytes[groupOf(b)][bandOf[b]] += size[b];
  groups.forEach((g, i) => { g.band = bytes[i].indexOf(largest(bytes[i])); });
}

function colourBy(isByRole) {
  const made = isByRole ? makeRoleBands() : makeHolderBands();
  bands = made.bands;
  bandOf = Uint8Array.from(made.of);
  bandLive = sumBands(bands.length, bandOf);
  bandOfMost(holders, b => holder[b]);
  if (role !== null) bandOfMost(roles, b => role[b]);
}

colourBy(role !== null);

const live = sumUp(blockCount, b => size[b], firstMoment, b => died[b]);
// Requests are drawn as boxes, to scale; what would reach four times as high as
// all else is cut.
const withRequests = (most, mostWanted) =>
    Math.max(most, Math.min(mostWanted, 4 * most));
const mostWanted =
    refusals.reduce((most, r) => Math.max(most, live[r.moment] + r.bytes), 0);
const mostOfAll = withRequests(
    Math.max(1, largest(live), ...panels.map(p => p.mostHeld)), mostWanted);

// ---------------------------------------------------------------------------
// Folds: weights often dwarf all else, so that what is alive all the time can be
// squeezed, in the timeline and in the map
// ---------------------------------------------------------------------------

const alwaysLive = live.reduce((a, b) => Math.min(a, b));
const canFold = data.events > 0 && alwaysLive > mostOfAll / 50;
const BASELINE_MOST = 0.6;  // of the peak; above it the page opens folded

function baselineShare() {
  let bytes = 0;
  for (let b = 0; b < data.baseline; b++) bytes += size[b];
  return bytes / Math.max(live[peak], 1);
}

// A block takes whole units of its allocator.
const occupied = b => Math.ceil(size[b] / data.unit) * data.unit;

// Where blocks of the baseline stand that are never freed: each such range
// that is large enough is squeezed to a fiftieth of the map.
function findCuts(p) {
  const cuts = [], shown = p.mapHeight / 50;
  for (const b of p.byHeight) {
    if (b >= data.baseline || died[b] !== eventCount) continue;
    const at = p.at[b], end = at + occupied(b), last = cuts[cuts.length - 1];
    if (last !== undefined && at <= last.end) last.end = Math.max(last.end, end);
    else cuts.push({at, end, shown});
  }
  return cuts.filter(({at, end}) => end - at > 2 * shown);
}

// Where |height| is drawn in the map of the panel.
function place(p, height) {
  let placed = height;
  for (const {at, end, shown} of p.cuts) {
    if (height <= at) break;
    placed -= (Math.min(height, end) - at) * (1 - shown / (end - at));
  }
  return placed;
}

function placeAll(p) {
  const {at, segments} = p;
  p.cuts = view.fold ? findCuts(p) : [];
  p.low = at.map(h => (h < 0 ? -1 : place(p, h)));
  p.high = at.map((h, b) => (h < 0 ? -1 : place(p, h + size[b])));
  p.segmentLow = segments.at.map(h => place(p, h));
  p.segmentHigh = segments.at.map((h, s) => place(p, h + segments.size[s]));
  withRefusals(p);
}

// ---------------------------------------------------------------------------
// The state at a moment
// ---------------------------------------------------------------------------

const bySize = Uint32Array.from(size.keys()).sort((a, b) => size[b] - size[a]);

// Calls |use| with what is free between the blocks alive within a range. Ranges
// come by ascending height; |walk| says which block is next and where the blocks
// before it end, since one of them may reach into this range.
function walkHoles(range, m, walk, use) {
  let end = Math.max(range.at, walk.end);
  for (; walk.next < panel.byHeight.length; walk.next++) {
    const b = panel.byHeight[walk.next];
    if (panel.at[b] >= range.end) break;
    if (!isAlive(b, m)) continue;
    if (panel.at[b] > end) use(end, panel.at[b] - end);
    end = Math.max(end, panel.at[b] + occupied(b));
  }
  if (range.end > end) use(end, range.end - end);
  walk.end = end;
}

// Holes are free bytes within a segment; where no segments are known, between
// the lowest and the highest block alive. Mapped pages that touch are one range.
function rangesAt(m) {
  const ranges = [];
  for (const s of panel.segmentsByHeight) {
    if (!segmentIsHeld(s, m)) continue;
    const start = panel.segments.at[s], end = start + panel.segments.size[s];
    const last = ranges[ranges.length - 1];
    const goesOn = last !== undefined && last.end === start &&
        panel.segments.begins[s] === 0 && !panel.folds.has(start);
    if (goesOn) last.end = end;
    else ranges.push({at: start, end});
  }
  if (panel.segments.at.length > 0) return ranges;
  let low = Infinity, high = 0;
  for (const b of panel.byHeight) {
    if (!isAlive(b, m)) continue;
    low = Math.min(low, panel.at[b]);
    high = Math.max(high, panel.at[b] + size[b]);
  }
  return high > low ? [{at: low, end: high}] : [];
}

function holesAt(m) {
  const holes = {bytes: 0, count: 0, largest: 0, at: 0};
  const walk = {next: 0, end: 0};
  for (const range of rangesAt(m)) {
    walkHoles(range, m, walk, (start, bytes) => {
      holes.bytes += bytes;
      holes.count++;
      if (bytes <= holes.largest) return;
      holes.largest = bytes;
      holes.at = start;
    });
  }
  return holes;
}

// Where the map has the box of a request: at the largest hole, which shows what
// is missing.
const requestAt = holes => (holes.count > 0 ? holes.at : panel.mapHeight);

// Of the panel that is used.
function withRefusals() {
  const at = place(panel, requestAt(holesAt(opening)));
  panel.totalHeight = withRequests(
      place(panel, panel.mapHeight), refusals.reduce((most, r) => Math.max(
          most, r.bytes + (r.moment === opening ? at : 0)), 0));
  panel.y0 = 0;
  panel.y1 = panel.totalHeight;
}

function addNow(group, b) {
  group.now += size[b];
  group.nowBlocks++;
}

function sumMoment(m) {
  for (const group of [...holders, ...roles]) group.now = group.nowBlocks = 0;
  for (let b = 0; b < blockCount; b++) {
    if (!isAlive(b, m)) continue;
    addNow(holders[holder[b]], b);
    if (role !== null) addNow(roles[role[b]], b);
  }
}

// The pass that the moment falls into; undefined: none that is known.
const phaseAt = m => phases.find(p => p.first < m && m <= p.end);

// ---------------------------------------------------------------------------
// What is searched for or highlighted
// ---------------------------------------------------------------------------

const found = {active: false, text: '', frames: 0, blocks: 0,
               isIn: new Uint8Array(blockCount), live: null, most: 0};

function findStacks(text) {
  const frames = data.frames.map(f => f.toLowerCase().includes(text));
  found.frames = frames.reduce((sum, is) => sum + is, 0);
  return data.stacks.map(list => list.some(f => frames[f]));
}

function mark(isMarked) {
  found.active = true;
  found.blocks = 0;
  for (let b = 0; b < blockCount; b++) {
    found.isIn[b] = isMarked(b) ? 1 : 0;
    found.blocks += found.isIn[b];
  }
  found.live = sumUp(blockCount, b => found.isIn[b] * size[b], firstMoment,
                     b => died[b]);
  found.most = largest(found.live);
}

function findText(text) {
  const low = text.toLowerCase();
  const stacks = findStacks(low);
  const tags = data.tags.map(t => t !== '' && t.toLowerCase().includes(low));
  const names = FIXED.map(name => name.includes(low));
  const uses = data.roles.map(name => name.includes(low));
  mark(b => stacks[stack[b]] || (tag !== null && tags[tag[b]]) ||
      names[holder[b]] || (role !== null && uses[role[b]]));
}

// By the numbers of holders and roles.
function findGroups(chosen) {
  found.frames = chosen.length;
  mark(b => chosen.includes(holder[b]) ||
      (role !== null && chosen.includes(holders.length + role[b])));
}

// ---------------------------------------------------------------------------
// Words
// ---------------------------------------------------------------------------

// Events are numbered as in the whole trace.
const eventText = event => countText(data.first + event);

function lifeText(b) {
  const from = b < data.baseline ? 'alive before the first event'
                                 : `event ${eventText(born[b])}`;
  const to = died[b] === eventCount ? 'never freed'
                                    : `freed at event ${eventText(died[b])}`;
  return `${from}, ${to}`;
}

function durationText(b) {
  if (data.events === 0) return 'no events';
  const count = died[b] - born[b];
  const events = `${countText(count)} event${count === 1 ? '' : 's'}`;
  if (time === null) return events;
  return `${events}, ${timeText(time[died[b]] - time[born[b]])}`;
}

function addressText(height) {
  if (height < 0) return panel.isReplayed ? 'refused' : 'unknown';
  let range = panel.ranges[0];
  for (const r of panel.ranges) if (r[2] <= height) range = r;
  const address = BigInt(range[0]) + BigInt(height - range[2]);
  return `0x${address.toString(16)}`;
}

function percentText(part, whole) {
  if (!(whole > 0)) return '-';
  const percent = 100 * part / whole;
  return percent > 0 && percent < 0.1 ? '< 0.1 %' : `${percent.toFixed(1)} %`;
}

function momentText(m) {
  if (data.events === 0) return 'No events';
  if (m === 0) return 'Before the first event';
  const when = time === null ? '' : `, ${timeText(time[m - 1])}`;
  return `After event ${eventText(m - 1)}${when}`;
}

// ---------------------------------------------------------------------------
// The view
// ---------------------------------------------------------------------------

const MARGIN = {left: 88, right: 12};
const view = {byTime: false, x0: 0, x1: 1,
              moment: opening, selected: null, chosen: [],
              byRole: role !== null,
              fold: canFold && baselineShare() > BASELINE_MOST};

eachPanel(placeAll);

// Along the axis, where each event is; the last is the end.
const byEvent = Float64Array.from({length: eventCount + 1}, (_, i) => i);
let position = byEvent;

function placeEvents() {
  position = view.byTime && time !== null ? time : byEvent;
}

const endOfTime = () => Math.max(position[eventCount], 1e-9);
const momentX = m => position[Math.max(m - 1, 0)];

// The moment whose place is nearest below |x|.
function momentAt(x) {
  if (data.events === 0 || x < 0) return 0;
  let low = 0, high = eventCount;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (position[middle] <= x) low = middle;
    else high = middle;
  }
  return low + 1;
}

function clampSpan(low, high, most, least) {
  const span = Math.min(Math.max(high - low, least), most);
  const start = Math.min(Math.max(low, 0), most - span);
  return [start, start + span];
}

function setX(x0, x1) {
  const most = endOfTime();
  const least = Math.min(most / eventCount * 2, most);
  [view.x0, view.x1] = clampSpan(x0, x1, most, least);
}

function setY(y0, y1) {
  const most = panel.totalHeight;
  [panel.y0, panel.y1] = clampSpan(y0, y1, most, Math.min(64, most));
}

function zoomX(factor, x = (view.x0 + view.x1) / 2) {
  setX(x - (x - view.x0) * factor, x + (view.x1 - x) * factor);
}

function zoomY(factor, y = (panel.y0 + panel.y1) / 2) {
  setY(y - (y - panel.y0) * factor, y + (panel.y1 - y) * factor);
}
