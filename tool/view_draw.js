// The drawings of the view: the timeline, the map, and what lies over them.

const canvasOf = id => document.getElementById(id);
const styles = new Map();

// A colour of the style sheet.
function style(name) {
  if (!styles.has(name)) {
    styles.set(name, getComputedStyle(document.documentElement)
                         .getPropertyValue(name).trim());
  }
  return styles.get(name);
}

const FONT = '12px system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", ' +
    'sans-serif';

// Makes a canvas as large as it is shown; setting a size empties it.
function fitCanvas(canvas, scale) {
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== width * scale) canvas.width = width * scale;
  if (canvas.height !== height * scale) canvas.height = height * scale;
  return {width, height};
}

// The context of an empty canvas as large as it is shown, in CSS pixels.
function prepare(canvas) {
  const scale = deviceScale(), {width, height} = fitCanvas(canvas, scale);
  const context = canvas.getContext('2d');
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = FONT;
  return {context, width, height, plot: width - MARGIN.left - MARGIN.right};
}

function line(context, x0, y0, x1, y1) {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}

// A text with a seam of |seam| around it, legible on any pattern.
function seamedText(context, text, x, y, ink, seam) {
  context.lineJoin = 'round';
  context.lineWidth = 3.5;
  context.strokeStyle = seam;
  context.strokeText(text, x, y);
  context.fillStyle = ink;
  context.fillText(text, x, y);
}

// |text| cut so that it fits, or '' if hardly any of it does.
function fitText(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    const cut = `${text.slice(0, middle)}\u2026`;
    if (context.measureText(cut).width <= width) low = middle;
    else high = middle - 1;
  }
  return low < 4 ? '' : `${text.slice(0, low)}\u2026`;
}

// ---------------------------------------------------------------------------
// Axes
// ---------------------------------------------------------------------------

// Steps of bytes that are whole in binary units: 1, 2, 4 ... of a power of two.
function byteStep(most, count) {
  return 2 ** Math.ceil(Math.log2(Math.max(most / count, 1)));
}

function axisStep(span, count) {
  const unit = 10 ** Math.floor(Math.log10(span / count));
  const step = [1, 2, 5, 10].find(f => f * unit >= span / count) * unit;
  return view.byTime ? step : Math.max(1, step);
}

function drawTimeAxis(context, x0, x1, y, plot, toX) {
  const step = axisStep(x1 - x0, Math.max(2, plot / 130));
  context.strokeStyle = style('--line');
  context.fillStyle = style('--muted');
  context.lineWidth = 1;
  context.textBaseline = 'top';
  line(context, MARGIN.left, y + 0.5, MARGIN.left + plot, y + 0.5);
  const first = view.byTime ? 0 : data.first;
  for (let k = Math.ceil((x0 + first) / step); k * step - first <= x1; k++) {
    const x = toX(k * step - first);
    const text = view.byTime ? timeText(k * step) : countText(k * step);
    const half = context.measureText(text).width / 2;
    line(context, x, y, x, y + 4);
    const least = MARGIN.left - 4 + half;
    const most = MARGIN.left + plot + 8 - half;
    context.textAlign = 'center';
    context.fillText(text, Math.max(least, Math.min(x, most)), y + 7);
  }
  context.textAlign = 'right';
  context.fillText(view.byTime ? 'time' : 'event', MARGIN.left - 10, y + 7);
}

// The passes of the program, as a strip over the axis at |y|.
const STRIP = phases.length > 0 ? 18 : 0;

function drawPhase(context, {name}, left, right, y) {
  context.fillStyle = style(`--${name}`);
  context.fillRect(left, y + 1, Math.max(right - left - 1, 1), STRIP - 3);
  if (context.measureText(name).width > right - left - 8) return;
  context.fillStyle = style('--text');
  context.fillText(name, (left + right) / 2, y + STRIP / 2);
}

function drawPhases(context, x0, x1, y, toX) {
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  let end = -1;
  for (const phase of phases) {
    const from = Math.max(position[phase.first], x0);
    const to = Math.min(position[phase.end], x1);
    // Many short ones share a pixel.
    if (to <= from || toX(to) < end + 1) continue;
    end = toX(to);
    drawPhase(context, phase, toX(from), end, y);
  }
  if (STRIP === 0) return;
  context.fillStyle = style('--muted');
  context.textAlign = 'right';
  context.fillText('pass', MARGIN.left - 10, y + STRIP / 2);
}

// ---------------------------------------------------------------------------
// The timeline
// ---------------------------------------------------------------------------

const TIMELINE = {top: 22, bottom: 24 + STRIP};
const FOLDED = 30;  // pixels of what is alive all the time
const timeline = {columns: null, edges: null, labels: [], labelled: -1,
                  toX: null, toY: null, toBytes: null};

// Folded, what is alive all the time has FOLDED pixels, and all above it the
// rest.
function timelineScale(width, height) {
  const plot = width - MARGIN.left - MARGIN.right;
  const bottom = height - TIMELINE.bottom;
  const folded = view.fold ? FOLDED : 0, under = view.fold ? alwaysLive : 0;
  const high = bottom - TIMELINE.top - folded, rest = mostOfAll - under;
  timeline.toX = x => MARGIN.left + x / endOfTime() * plot;
  timeline.toPosition = px => (px - MARGIN.left) / plot * endOfTime();
  timeline.toY = bytes => (bytes < under
      ? bottom - folded * bytes / under
      : bottom - folded - high * (bytes - under) / rest);
  timeline.toBytes = y => (y > bottom - folded
      ? (bottom - y) / Math.max(folded, 1) * under
      : under + (bottom - folded - y) / high * rest);
}

// For each column of pixels, the moment of it with most bytes alive.
function findColumns(plot) {
  const columns = new Uint32Array(Math.max(1, Math.floor(plot)));
  let m = 0;
  for (let c = 0; c < columns.length; c++) {
    const end = (c + 1) / columns.length * endOfTime();
    let best = m;
    while (m < eventCount && position[m] < end) {
      m++;
      if (live[m] > live[best]) best = m;
    }
    columns[c] = best;
  }
  return columns;
}

function bandEdges() {
  const {columns} = timeline;
  const edges = [new Float64Array(columns.length)];
  for (const sum of bandLive) {
    const below = edges[edges.length - 1];
    edges.push(below.map((bytes, c) => bytes + sum[columns[c]]));
  }
  return edges;
}

function fillBetween(context, low, high, fill) {
  const {toY} = timeline;
  context.fillStyle = fill;
  context.beginPath();
  for (let c = 0; c < high.length; c++) {
    context.lineTo(MARGIN.left + c, toY(high[c]));
    context.lineTo(MARGIN.left + c + 1, toY(high[c]));
  }
  for (let c = high.length - 1; c >= 0; c--) {
    context.lineTo(MARGIN.left + c + 1, toY(low[c]));
    context.lineTo(MARGIN.left + c, toY(low[c]));
  }
  context.fill();
}

function strokeColumns(context, values, colour, width) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  for (let c = 0; c < timeline.columns.length; c++) {
    const y = timeline.toY(values[timeline.columns[c]]);
    context.lineTo(MARGIN.left + c, y);
    context.lineTo(MARGIN.left + c + 1, y);
  }
  context.stroke();
}

function patternOf(context, canvas) {
  const pattern = context.createPattern(canvas, 'repeat');
  pattern.setTransform(new DOMMatrix().scale(1 / deviceScale()));
  return pattern;
}

function drawGrid(context, width) {
  const under = view.fold ? alwaysLive : 0;
  const step = byteStep(mostOfAll - under, 5);
  context.strokeStyle = style('--line');
  context.fillStyle = style('--muted');
  context.lineWidth = 1;
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  for (let bytes = 0; bytes <= mostOfAll; bytes += step) {
    const y = Math.round(timeline.toY(bytes)) + 0.5;
    if (bytes > 0 && timeline.toY(0) - y < Math.max(FOLDED, 14) && under > 0) {
      continue;
    }
    line(context, MARGIN.left, y, width - MARGIN.right, y);
    context.fillText(bytes === 0 ? '0' : axisBytes(bytes), MARGIN.left - 10,
                     bytes === 0 ? y - 4 : y);
  }
}

// Teeth along the height at which the scale changes, and what lies below.
function drawFold(context, width) {
  if (!view.fold) return;
  const y = Math.round(timeline.toY(alwaysLive)), tooth = 5;
  context.strokeStyle = style('--page');
  context.lineWidth = 3;
  context.beginPath();
  for (let x = MARGIN.left, k = 0; x <= width - MARGIN.right; x += tooth, k++) {
    context.lineTo(x, y + (k % 2 === 0 ? -2 : 2));
  }
  context.stroke();
}

const foldText =
    () => `${bytesText(alwaysLive)} alive all the time, not to scale`;

function labelFold(context) {
  if (!view.fold) return;
  const x = MARGIN.left + 8, text = foldText();
  const right = x + context.measureText(text).width;
  const at = timeline.toX(momentX(view.moment));
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  seamedText(context, text, at > x - 6 && at < right + 6 ? at + 8 : x,
             timeline.toY(alwaysLive / 2), style('--text'), style('--page'));
}

const axisBytes = bytes => bytesText(bytes, 2).replace(/\.?0+ /, ' ');

// Where a band is high enough for its name: the widest of several places that
// are not under the line of the moment.
function placeLabel(low, high, width) {
  const {toY} = timeline;
  const line = timeline.toX(momentX(view.moment)) - MARGIN.left;
  const floor = view.fold ? toY(alwaysLive) : Infinity;
  let best = {room: 14, at: -1, y: 0};
  const step = Math.max(4, Math.floor(width / 6));
  for (let c = 4; c + width < high.length; c += step) {
    if (line > c - 6 && line < c + width + 6) continue;
    let top = -Infinity, bottom = Infinity;
    for (let k = c; k < c + width; k += 3) {
      top = Math.max(top, toY(high[k]));
      bottom = Math.min(bottom, toY(low[k]), floor);
    }
    if (bottom - top > best.room + 0.5) {
      best = {room: bottom - top, at: c, y: (top + bottom) / 2};
    }
  }
  return best.at < 0 ? null : best;
}

// Where the name of a band stands; null: nowhere.
function findLabel(context, index) {
  const {edges} = timeline, tile = theme.tiles[index];
  for (const share of [0.45, 0.22, 0.1]) {
    const text =
        fitText(context, bands[index].label, edges[0].length * share);
    if (text === '') return null;
    const place = placeLabel(edges[index], edges[index + 1],
                             Math.ceil(context.measureText(text).width));
    if (place !== null) return {text, tile, ...place};
  }
  return null;
}

// Looked for again only when the bands or the moment have changed.
function findLabels(context) {
  if (timeline.labelled === view.moment) return;
  timeline.labelled = view.moment;
  timeline.labels = bands.map((_, i) => findLabel(context, i))
      .filter(label => label !== null);
}

function drawBands(context) {
  const edges = timeline.edges = bandEdges();
  timeline.labelled = -1;
  bands.forEach((band, i) => {
    const tile = theme.tiles[i];
    fillBetween(context, edges[i], edges[i + 1], patternOf(
        context, found.active ? tile.faintCanvas : tile.canvas));
  });
}

function labelBands(context) {
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  if (found.active) return;
  findLabels(context);
  for (const {text, at, y, tile} of timeline.labels) {
    seamedText(context, text, MARGIN.left + at, y, tile.ink, tile.base);
  }
}

function drawFound(context) {
  if (!found.active) return;
  const {columns} = timeline;
  const values = Float64Array.from(columns, m => found.live[m]);
  fillBetween(context, new Float64Array(columns.length), values,
              style('--found'));
  strokeColumns(context, found.live, style('--text'), 1.5);
}

// Requests that were refused: a mark over their column, one for all that share
// it, which may be many.
function drawRefused(context) {
  context.fillStyle = style('--mark');
  let last = -1;
  for (const [event] of data.refused) {
    const x = Math.round(timeline.toX(position[event]));
    if (x === last) continue;
    last = x;
    context.beginPath();
    context.moveTo(x - 5, TIMELINE.top - 9);
    context.lineTo(x + 5, TIMELINE.top - 9);
    context.lineTo(x, TIMELINE.top - 1);
    context.fill();
  }
}

const DASHES = [[], [7, 3], [2, 2], [10, 3, 2, 3]];

// The name of a replayed pool at its line, each further to the left.
function labelHeld(context, name, held, index) {
  const {columns} = timeline;
  const at = Math.max(0, Math.floor(columns.length * (1 - 0.2 * (index % 5))) - 1);
  context.textAlign = 'right';
  context.textBaseline = 'alphabetic';
  seamedText(context, name, MARGIN.left + at - 4,
             timeline.toY(held[columns[at]]) - 5, style('--held'),
             style('--page'));
}

function drawHeld(context) {
  panels.forEach(({held}, i) => {
    if (held === null) return;
    strokeColumns(context, held, style('--page'), 3.5);
    context.setLineDash(DASHES[i % DASHES.length]);
    strokeColumns(context, held, style('--held'), 1.5);
    context.setLineDash([]);
  });
}

function labelPools(context) {
  panels.forEach(({name, held, isReplayed}, i) => {
    if (held !== null && isReplayed) labelHeld(context, name, held, i);
  });
}

function drawTimeline() {
  const {context, width, height, plot} = prepare(canvasOf('timeline'));
  timelineScale(width, height);
  timeline.columns = findColumns(plot);
  drawGrid(context, width);
  drawBands(context);
  drawFound(context);
  drawFold(context, width);
  drawHeld(context);
  drawRefused(context);
  drawPhases(context, 0, endOfTime(), height - TIMELINE.bottom, timeline.toX);
  drawTimeAxis(context, 0, endOfTime(), height - TIMELINE.bottom + STRIP, plot,
               timeline.toX);
}

// A box over both drawings that stands for a request: |y0| is its lower edge.
// Returns where it begins; it stands left of |x| where there is no room.
function drawRequest(context, x, right, y0, y1, text) {
  const width = Math.min(context.measureText(text).width + 16, 220);
  const left = x + width <= right ? x : x - width;
  context.fillStyle = style('--mark');
  context.globalAlpha = 0.22;
  context.fillRect(left, y1, width, y0 - y1);
  context.globalAlpha = 1;
  context.strokeStyle = style('--mark');
  context.lineWidth = 2;
  context.strokeRect(left + 1, y1 + 1, width - 2, Math.max(y0 - y1 - 2, 1));
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  seamedText(context, text, left + 8,
             y1 + Math.max(Math.min((y0 - y1) / 2, 14), 9), style('--text'),
             style('--page'));
  return {left, width};
}

const requestText = (refusal, room) => `${bytesText(refusal.bytes)} asked for${
    refusal.bytes > room ? ' (cut)' : ''}`;

// On top of what was alive.
function drawRequestOfTimeline(context, plot) {
  const refusal = refusalAt.get(view.moment);
  if (refusal === undefined) return;
  const alive = live[view.moment], room = mostOfAll - alive;
  drawRequest(context, timeline.toX(momentX(view.moment)), MARGIN.left + plot,
              timeline.toY(alive),
              timeline.toY(alive + Math.min(refusal.bytes, room)),
              requestText(refusal, room));
}

// The peak, the moment and the brush.
function drawTimelineOver() {
  const {context, width, height, plot} = prepare(canvasOf('timeline-over'));
  const bottom = height - TIMELINE.bottom, top = TIMELINE.top - 4;
  const x0 = timeline.toX(view.x0), x1 = timeline.toX(view.x1);
  context.fillStyle = style('--shade');
  context.fillRect(MARGIN.left, top, x0 - MARGIN.left, bottom - top);
  context.fillRect(x1, top, MARGIN.left + plot - x1, bottom - top);
  if (x1 - x0 < plot - 0.5) drawBrush(context, x0, x1, top, bottom);
  labelBands(context);
  labelFold(context);
  labelPools(context);
  drawRequestOfTimeline(context, plot);
  drawMoment(context, timeline.toX(momentX(view.moment)), top, bottom);
  drawPeak(context, width);
}

function drawBrush(context, x0, x1, top, bottom) {
  const right = Math.max(x1, x0 + 2);
  context.strokeStyle = style('--text');
  context.lineWidth = 1;
  context.strokeRect(x0 + 0.5, top + 0.5, right - x0 - 1, bottom - top - 1);
  context.fillStyle = style('--text');
  const middle = (top + bottom) / 2;
  context.fillRect(x0 - 2, middle - 14, 4, 28);
  context.fillRect(right - 2, middle - 14, 4, 28);
}

// Beside its dot, where the line of the moment does not cross the words.
function drawPeak(context, width) {
  const x = timeline.toX(momentX(peak)), y = timeline.toY(live[peak]);
  const text = `peak ${bytesText(live[peak])}`;
  const wide = context.measureText(text).width, at = x + 8;
  const line = timeline.toX(momentX(view.moment));
  const isCrossed = line > at - 4 && line < at + wide + 4;
  const isLeft = at + wide > width - MARGIN.right || isCrossed;
  context.fillStyle = style('--text');
  context.beginPath();
  context.arc(x, y, 3.5, 0, 7);
  context.fill();
  context.textAlign = isLeft ? 'right' : 'left';
  context.textBaseline = 'alphabetic';
  seamedText(context, text, isLeft ? x - 8 : at, Math.max(y - 8, 12),
             style('--text'), style('--page'));
}

function drawMoment(context, x, top, bottom) {
  context.strokeStyle = style('--page');
  context.lineWidth = 4;
  line(context, x, top, x, bottom);
  context.strokeStyle = style('--mark');
  context.lineWidth = 2;
  line(context, x, top, x, bottom);
}

// ---------------------------------------------------------------------------
// The map
// ---------------------------------------------------------------------------

const MAP_AXIS = 24 + STRIP;

function mapScale() {
  const {map, canvas} = panel;
  map.plot = Math.max(canvas.clientWidth - MARGIN.left - MARGIN.right, 1);
  map.high = Math.max(canvas.clientHeight - MAP_AXIS, 1);
  map.sx = map.plot / (view.x1 - view.x0);
  map.sy = map.high / (panel.y1 - panel.y0);
  map.toX = x => MARGIN.left + (x - view.x0) * map.sx;
  map.toY = y => map.high - (y - panel.y0) * map.sy;
}

function boxOf(b) {
  const {map, low, high} = panel;
  const x = map.toX(position[born[b]]), y = map.toY(high[b]);
  return {x, y, w: Math.max((position[died[b]] - position[born[b]]) * map.sx, 1),
          h: Math.max((high[b] - low[b]) * map.sy, 1)};
}

const isVisible = b => panel.low[b] >= 0 && panel.low[b] < panel.y1 &&
    panel.high[b] > panel.y0 && position[born[b]] < view.x1 &&
    position[died[b]] > view.x0;

// The part of [left, right) that is wider beside the line of the moment.
function besideMoment(left, right) {
  const x = panel.map.toX(momentX(view.moment));
  if (x < left || x > right) return [left, right];
  return x - left > right - x ? [left, x] : [x, right];
}

function labelBox(context, b) {
  const box = boxOf(b);
  const [left, right] = besideMoment(
      Math.max(box.x, MARGIN.left),
      Math.min(box.x + box.w, MARGIN.left + panel.map.plot));
  const top = Math.max(box.y, 0);
  const width = right - left - 12;
  const height = Math.min(box.y + box.h, panel.map.high) - top;
  if (width < 48 || height < 16) return false;
  const tile = theme.tiles[bandOf[b]];
  const name = view.byRole ? roles[role[b]].label : holders[holder[b]].label;
  const whole = `${bytesText(size[b])}  ${name}`;
  const text = fitText(context, whole, width);
  if (text.length < 7) return false;
  seamedText(context, text, left + 6, top + Math.min(height / 2, 12), tile.ink,
             tile.base);
  return true;
}

// Names in those boxes that are large enough, the largest first.
function labelBoxes(context) {
  const leastBytes = 16 / panel.map.sy, leastWidth = 60 / panel.map.sx;
  let labelled = 0;
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  for (const b of bySize) {
    if (size[b] < leastBytes || labelled >= 120) break;
    if (panel.high[b] - panel.low[b] < leastBytes) continue;
    if (position[died[b]] - position[born[b]] < leastWidth) continue;
    if (found.active && found.isIn[b] === 0) continue;
    if (isVisible(b) && labelBox(context, b)) labelled++;
  }
}

function drawFolds(context) {
  context.strokeStyle = style('--muted');
  context.lineWidth = 1;
  context.setLineDash([5, 4]);
  for (let i = 1; i < panel.ranges.length; i++) {
    const height = place(panel, panel.ranges[i][2]);
    if (height <= panel.y0 || height >= panel.y1) continue;
    const y = Math.round(panel.map.toY(height)) + 0.5;
    line(context, MARGIN.left, y, MARGIN.left + panel.map.plot, y);
  }
  context.setLineDash([]);
}

// What is squeezed in a folded map.
function drawCuts(context) {
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  const [left] = besideMoment(MARGIN.left, MARGIN.left + panel.map.plot);
  for (const {at, end, shown} of panel.cuts) {
    const top = panel.map.toY(place(panel, end));
    const high = shown * panel.map.sy;
    context.fillStyle = style('--shade');
    context.fillRect(MARGIN.left, top, panel.map.plot, high);
    if (high < 8) continue;
    seamedText(context, `${bytesText(end - at)} that is never freed, squeezed`,
               left + 8, top + high / 2, style('--text'), style('--page'));
  }
}

// Bytes of addresses from the lowest one on, without those that are folded away;
// steps that stand where the map is squeezed are left out.
function drawSizes(context) {
  const step = byteStep(panel.y1 - panel.y0, panel.map.high / 60);
  let free = Infinity;
  context.fillStyle = style('--muted');
  context.strokeStyle = style('--line');
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  for (let bytes = 0; place(panel, bytes) <= panel.y1; bytes += step) {
    const height = place(panel, bytes), y = panel.map.toY(height);
    const isCut = panel.cuts.some(({at, end}) => bytes > at && bytes < end);
    if (height < panel.y0 || isCut || y > free - 16 || y < 6) continue;
    context.fillText(bytes === 0 ? '0' : axisBytes(bytes), MARGIN.left - 10,
                     Math.min(y, panel.map.high - 6));
    line(context, MARGIN.left - 5, y, MARGIN.left, y);
    free = y;
  }
}

function drawSelected(context) {
  const b = view.selected;
  if (b === null || !isVisible(b)) return;
  const box = boxOf(b);
  const w = Math.max(box.w, 3), h = Math.max(box.h, 3);
  context.strokeStyle = style('--page');
  context.lineWidth = 5;
  context.strokeRect(box.x, box.y, w, h);
  context.strokeStyle = style('--mark');
  context.lineWidth = 2.5;
  context.strokeRect(box.x, box.y, w, h);
}

// Lower than where it belongs if it would end above the picture.
function drawRequestOfMap(context) {
  const refusal = refusalAt.get(view.moment);
  if (refusal === undefined) return;
  const bytes = Math.min(refusal.bytes, panel.totalHeight);
  const holes = holesAt(view.moment);
  const bottom = Math.min(place(panel, requestAt(holes)),
                          panel.totalHeight - bytes);
  const x = panel.map.toX(momentX(view.moment));
  const {left, width} =
      drawRequest(context, x, MARGIN.left + panel.map.plot, panel.map.toY(bottom),
                  panel.map.toY(bottom + bytes), requestText(refusal, panel.totalHeight));
  if (holes.count === 0) return;
  context.setLineDash([4, 3]);
  context.strokeStyle = style('--text');
  context.lineWidth = 1.5;
  const top = panel.map.toY(place(panel, holes.at + holes.largest));
  context.strokeRect(left + 4, top, width - 8, Math.max(
      panel.map.toY(place(panel, holes.at)) - top, 1));
  context.setLineDash([]);
}

function drawMap() {
  mapScale();
  const {canvas} = panel, scale = deviceScale();
  fitCanvas(canvas, scale);
  const image = drawRaster(panel.map.plot * scale, panel.map.high * scale);
  canvas.getContext('2d').putImageData(image, MARGIN.left * scale, 0);
}

function drawMapOver() {
  const {context, plot} = prepare(panel.over);
  context.save();
  context.beginPath();
  context.rect(MARGIN.left, 0, plot, panel.map.high);
  context.clip();
  drawCuts(context);
  labelBoxes(context);
  drawFolds(context);
  drawSelected(context);
  const x = momentX(view.moment);
  if (x >= view.x0 && x <= view.x1) {
    drawRequestOfMap(context);
    drawMoment(context, panel.map.toX(x), 0, panel.map.high);
  }
  context.restore();
  drawSizes(context);
  drawPhases(context, view.x0, view.x1, panel.map.high, panel.map.toX);
  drawTimeAxis(context, view.x0, view.x1, panel.map.high + STRIP, plot,
               panel.map.toX);
}
