// The raster of the view: colours with patterns, and boxes written into pixels.
//
// Boxes are written by hand into an image: their number costs little, as no two
// of them cover the same bytes at the same time. Where the view only moves, the
// image moves with it and only the new strip is written.

// ---------------------------------------------------------------------------
// Tiles: a colour and a pattern each, so that no band is told by hue alone
// ---------------------------------------------------------------------------

// Hues that stay apart with all colour blindnesses (after Okabe and Ito), in an
// order in which dark and bright take turns.
const LOOKS = {
  0: {colour: [0, 104, 166], pattern: 'solid'},
  1: {colour: [236, 168, 30], pattern: 'solid'},
  2: {colour: [0, 138, 102], pattern: 'rising'},
  3: {colour: [104, 190, 236], pattern: 'dots'},
  4: {colour: [204, 88, 8], pattern: 'falling'},
  5: {colour: [240, 226, 90], pattern: 'lines'},
  6: {colour: [190, 100, 156], pattern: 'grid'},
  other: {colour: [150, 158, 166], pattern: 'solid'},
  baseline: {colour: [196, 203, 209], dark: [84, 94, 104],
             pattern: 'rising', contrast: 0.1},
  role0: {colour: [0, 104, 166], pattern: 'solid'},
  role1: {colour: [104, 190, 236], pattern: 'solid'},
  role2: {colour: [204, 88, 8], pattern: 'falling', contrast: 0.12},
  role3: {colour: [0, 138, 102], pattern: 'solid'},
  role4: {colour: [190, 100, 156], pattern: 'grid'},
  role5: {colour: [236, 168, 30], pattern: 'lines'},
  role6: {colour: [150, 158, 166], pattern: 'dots'},
  role7: {colour: [196, 203, 209], dark: [84, 94, 104],
          pattern: 'rising', contrast: 0.1},
};

const PATTERN_SIZE = 8;
const PATTERNS = {
  solid: () => false,
  rising: (x, y) => (x + y) % 8 < 2,
  falling: (x, y) => (x - y + 8) % 8 < 2,
  dots: (x, y) => (x % 4 < 2 && y % 4 < 2 && (x >> 2) % 2 === (y >> 2) % 2),
  lines: (x, y) => y % 4 === 0,
  grid: (x, y) => x % 8 === 0 || y % 8 === 0,
};

const mix = (a, b, part) => a.map((c, i) => Math.round(c + (b[i] - c) * part));
const cssColour = c => `rgb(${c[0]},${c[1]},${c[2]})`;
const pixelOf = c => (255 << 24 | c[2] << 16 | c[1] << 8 | c[0]) >>> 0;
const luminance = c => 0.3 * c[0] + 0.59 * c[1] + 0.11 * c[2];

// Each change of the looks makes all images stale. How often images were
// painted anew or moved is for the tests and figures.
const looks = {version: 0, repainted: 0, moved: 0};

const theme = {dark: false, page: [255, 255, 255], held: [0, 0, 0], tiles: []};

function makeTile(look, scale) {
  const base = theme.dark && look.dark ? look.dark : look.colour;
  const ink = luminance(base) > 125 ? [0, 0, 0] : [255, 255, 255];
  const accent = mix(base, ink, look.contrast || 0.24);
  const side = PATTERN_SIZE * scale;
  const colours = [base, accent, mix(base, theme.page, 0.8),
                   mix(accent, theme.page, 0.8)].map(pixelOf);
  const tile = {
    base: cssColour(base), ink: cssColour(ink), side,
    solid: look.pattern === 'solid',
    normal: new Uint32Array(side * side), faint: new Uint32Array(side * side),
    edge: pixelOf(mix(base, theme.page, 0.55)),
    faintEdge: pixelOf(mix(base, theme.page, 0.9)),
  };
  for (let i = 0; i < side * side; i++) {
    const x = Math.floor(i % side / scale), y = Math.floor(i / side / scale);
    const on = PATTERNS[look.pattern](x, y) ? 1 : 0;
    tile.normal[i] = colours[on];
    tile.faint[i] = colours[on + 2];
  }
  return tile;
}

function tileCanvas(tile, pixels) {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = tile.side;
  const image = new ImageData(tile.side, tile.side);
  new Uint32Array(image.data.buffer).set(pixels);
  canvas.getContext('2d').putImageData(image, 0, 0);
  return canvas;
}

const deviceScale = () => Math.max(1, Math.round(devicePixelRatio || 1));

function makeTheme() {
  theme.dark = matchMedia('(prefers-color-scheme: dark)').matches;
  theme.page = theme.dark ? [20, 23, 26] : [255, 255, 255];
  theme.held = theme.dark ? [38, 44, 50] : [232, 235, 238];
  theme.tiles = bands.map(band => {
    const tile = makeTile(LOOKS[band.style], deviceScale());
    tile.canvas = tileCanvas(tile, tile.normal);
    tile.faintCanvas = tileCanvas(tile, tile.faint);
    return tile;
  });
  theme.tiles.forEach((tile, i) => {
    document.documentElement.style.setProperty(
        `--band-${i}`, `url(${tile.canvas.toDataURL()})`);
  });
  looks.version++;
}

// ---------------------------------------------------------------------------
// The image
// ---------------------------------------------------------------------------

// Places in whole device pixels, so that a view that moved a little shows the
// same boxes at the same distances.
function rasterScale(width, height) {
  const sx = width / (view.x1 - view.x0), sy = height / (panel.y1 - panel.y0);
  return {sx, sy, ox: Math.round(view.x0 * sx), oy: Math.round(panel.y0 * sy),
          width, height, version: looks.version, position,
          low: panel.low, high: panel.high, out: panel.raster.pixels};
}

// A call of fill costs as much as writing so many pixels.
const NARROW = 16;

function fillRow(row, x0, x1, y, tile, pixels, s) {
  const {side} = tile, {out} = s;
  const line = ((y - s.oy) % side + side) % side * side;
  if (tile.solid && x1 - x0 > NARROW) {
    out.fill(pixels[line], row + x0, row + x1);
    return;
  }
  let k = ((x0 + s.ox) % side + side) % side;
  for (let x = x0; x < x1; x++) {
    out[row + x] = pixels[line + k];
    if (++k === side) k = 0;
  }
}

// The box of device pixels, cut to |clip|; edges where there is room for them.
function fillBox(x0, y0, x1, y1, b, s, clip) {
  const tile = theme.tiles[bandOf[b]];
  const isFaint = found.active && found.isIn[b] === 0;
  const pixels = isFaint ? tile.faint : tile.normal;
  const edge = isFaint ? tile.faintEdge : tile.edge;
  const left = Math.max(x0, clip.x0), right = Math.min(x1, clip.x1);
  const top = Math.max(y0, clip.y0), bottom = Math.min(y1, clip.y1);
  const hasSide = x1 - x0 >= 4 && right === x1, hasTop = y1 - y0 >= 4;
  const end = hasSide ? right - 1 : right;
  for (let y = top; y < bottom; y++) {
    const row = y * s.width;
    if (hasTop && y === y0) {
      s.out.fill(edge, row + left, row + right);
      continue;
    }
    fillRow(row, left, end, y, tile, pixels, s);
    if (hasSide) s.out[row + end] = edge;
  }
}

function paintSegments(s, clip) {
  const {segments} = panel, colour = pixelOf(theme.held);
  for (let i = 0; i < segments.at.length; i++) {
    const x0 = Math.round(position[segments.born[i]] * s.sx) - s.ox;
    const x1 = Math.round(position[segments.died[i]] * s.sx) - s.ox;
    const low = s.height - (Math.round(panel.segmentLow[i] * s.sy) - s.oy);
    const high = s.height - (Math.round(panel.segmentHigh[i] * s.sy) - s.oy);
    const left = Math.max(x0, clip.x0), right = Math.min(x1, clip.x1);
    if (right <= left) continue;
    // A line between segments that touch, where there is room.
    const top = Math.max(low - high > 3 ? high + 1 : high, clip.y0);
    for (let y = top; y < Math.min(low, clip.y1); y++) {
      s.out.fill(colour, y * s.width + left, y * s.width + right);
    }
  }
}

// Blocks in runs, so that a strip looks only at those that may be in it: the
// first event and the last of each run.
const RUN = 64;
const runs = Array.from({length: Math.ceil(blockCount / RUN)}, (_, i) => {
  const first = i * RUN, end = Math.min(first + RUN, blockCount);
  return {first, end, born: largest(born.subarray(first, end)),
          from: born.subarray(first, end).reduce((a, b) => Math.min(a, b)),
          died: largest(died.subarray(first, end))};
});

const columnOf = (event, s) => Math.round(position[event] * s.sx) - s.ox;
const mayBeIn = (run, s, clip) => columnOf(run.from, s) < clip.x1 &&
    Math.max(columnOf(run.died, s), columnOf(run.born, s) + 1) > clip.x0;

// Low and high ends of a block in pixels, at least one apart.
function paintBlock(b, s, clip) {
  const x0 = columnOf(born[b], s), low = s.low[b];
  if (x0 >= clip.x1 || low < 0) return;
  const x1 = Math.max(columnOf(died[b], s), x0 + 1);
  if (x1 <= clip.x0) return;
  const y1 = s.height - (Math.round(low * s.sy) - s.oy);
  if (y1 <= clip.y0) return;
  const y0 = Math.min(
      s.height - (Math.round(s.high[b] * s.sy) - s.oy), y1 - 1);
  if (y0 < clip.y1) fillBox(x0, y0, x1, y1, b, s, clip);
}

function paintBlocks(s, clip) {
  for (const run of runs) {
    if (!mayBeIn(run, s, clip)) continue;
    for (let b = run.first; b < run.end; b++) paintBlock(b, s, clip);
  }
}

function paint(s, clip) {
  if (clip.x0 >= clip.x1 || clip.y0 >= clip.y1) return;
  const page = pixelOf(theme.page);
  for (let y = clip.y0; y < clip.y1; y++) {
    s.out.fill(page, y * s.width + clip.x0, y * s.width + clip.x1);
  }
  paintSegments(s, clip);
  paintBlocks(s, clip);
}

const isMoved = (old, s) => old !== null && old.sx === s.sx &&
    old.sy === s.sy && old.width === s.width && old.height === s.height &&
    old.version === s.version && old.position === s.position &&
    Math.abs(s.ox - old.ox) < s.width && Math.abs(s.oy - old.oy) < s.height;

// The image moves by whole pixels; what comes in from the sides is painted.
function move(s, dx, dy) {
  const {width, height} = s;
  const by = dx - dy * width;  // what stood |by| further is here now
  if (by > 0) s.out.copyWithin(0, by);
  else s.out.copyWithin(-by, 0, width * height + by);
  const all = {x0: 0, x1: width, y0: 0, y1: height};
  const x = dx > 0 ? {x0: width - dx, x1: width} : {x0: 0, x1: -dx};
  const y = dy > 0 ? {y0: 0, y1: dy} : {y0: height + dy, y1: height};
  paint(s, {...all, ...x});
  paint(s, {...all, ...y});
  looks.moved++;
}

function resizeRaster(width, height) {
  if (panel.raster.width === width && panel.raster.height === height) return;
  Object.assign(panel.raster, {width, height, image: new ImageData(width, height)});
  panel.raster.pixels = new Uint32Array(panel.raster.image.data.buffer);
  panel.raster.drawn = null;
}

// Brings the image up to date with the view.
function drawRaster(width, height) {
  resizeRaster(width, height);
  const s = rasterScale(width, height);
  if (isMoved(panel.raster.drawn, s)) {
    const dx = s.ox - panel.raster.drawn.ox, dy = s.oy - panel.raster.drawn.oy;
    if (dx !== 0 || dy !== 0) move(s, dx, dy);
  } else {
    paint(s, {x0: 0, x1: width, y0: 0, y1: height});
    looks.repainted++;
  }
  panel.raster.drawn = s;
  return panel.raster.image;
}
