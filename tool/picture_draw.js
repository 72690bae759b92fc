// Draws the picture: a chart of bytes and a map of addresses per pool.

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
  const extent = context.measureText(text).width;
  const low = MARGIN.left + 2, high = width - MARGIN.right - 2;
  let left = align === 'center' ? x - extent / 2 : x;
  left = Math.max(low, Math.min(left, high - extent));
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

// The largest value within each pixel column; in the first, what was before the
// first event as well.
function columnsOf(values, canvas) {
  const columns = new Float64Array(Math.ceil(plotWidth(canvas)));
  if (view.x0 === 0) columns[0] = values[0];
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
  const step = niceStep(mostBytes, 5);
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

// The note over the chart tells both peaks, where no two labels can meet; dots
// show where they are.
function drawPeaks(context, asked, held, toY) {
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
  drawPeaks(context, asked, held, toY);
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
    if (height <= panel.y0 || height >= panel.y1) continue;
    line(context, MARGIN.left, y, width - MARGIN.right, y);
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
