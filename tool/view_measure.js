// Opened as page.html#measure the page pans and zooms by itself for some
// seconds, and then writes how that went into the element #measured, as JSON.
//
// The event 'load' waits until then: a frame that is being written to holds it
// up. So `chromium --dump-dom` prints the page with the figures in it.

const MEASURE_MS = 3000;

function holdLoad() {
  const frame = document.createElement('iframe');
  frame.hidden = true;
  document.body.append(frame);
  frame.contentDocument.open();
  return () => frame.contentDocument.close();
}

const quantile = (sorted, part) =>
    sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];

// Of the times between frames, and of the script's own work within them.
function summarise(gaps, work) {
  gaps.sort((a, b) => a - b);
  work.sort((a, b) => a - b);
  return {
    frames: gaps.length,
    median_ms: quantile(gaps, 0.5),
    p95_ms: quantile(gaps, 0.95),
    work_median_ms: quantile(work, 0.5),
    work_p95_ms: quantile(work, 0.95),
    frames_per_second: 1000 / quantile(gaps, 0.5),
    slow_frames_per_second: 1000 / quantile(gaps, 0.95),
  };
}

// Calls |step| with the part of the time that has passed, a frame at a time.
function runFrames(step) {
  const gaps = [], work = [];
  let begin = null, last = 0;
  return new Promise(resolve => {
    const frame = now => {
      if (begin === null) begin = now;
      else gaps.push(now - last);
      last = now;
      if (now - begin >= MEASURE_MS) return resolve(summarise(gaps, work));
      const before = performance.now();
      step((now - begin) / MEASURE_MS);
      draw();
      work.push(performance.now() - before);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
}

// Through all of the trace with |share| of it in sight, and back.
function panWith(share) {
  showAll();
  return runFrames(part => {
    const whole = endOfTime(), room = whole * (1 - share);
    const x = room * (1 - Math.abs(2 * part - 1));
    setX(x, x + whole * share);
    redraw('map');
  });
}

function zoomInAndOut() {
  return runFrames(part => {
    const whole = endOfTime();
    const share = 0.001 ** (1 - Math.abs(2 * part - 1));
    const middle = whole / 2;
    setX(middle - whole * share / 2, middle + whole * share / 2);
    redraw('map');
  });
}

function stepMoments() {
  showAll();
  return runFrames(part => setMoment(Math.floor(part * eventCount)));
}

async function measure() {
  const release = holdLoad();
  const drawn = performance.now();
  const out = {events: data.events, blocks: blockCount, drawn_ms: drawn};
  out.pan = await panWith(0.25);
  out.pan_near = await panWith(0.02);
  out.zoom = await zoomInAndOut();
  out.moments = await stepMoments();
  out.repainted = looks.repainted;
  out.moved = looks.moved;
  const paint = performance.getEntriesByName('first-contentful-paint')[0];
  out.first_paint_ms = paint === undefined ? null : paint.startTime;
  const written = element('pre', JSON.stringify(out));
  written.id = 'measured';
  document.body.append(written);
  release();
}

if (location.hash === '#measure') measure();
