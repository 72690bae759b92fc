// What stands beside the drawings: the answer, the state at the moment, the
// block that was chosen, the table of holders.

const byId = id => document.getElementById(id);
const plural = (count, word) =>
    `${countText(count)} ${word}${count === 1 ? '' : 's'}`;

// ---------------------------------------------------------------------------
// Maps
// ---------------------------------------------------------------------------

function makeMap(p, index) {
  const suffix = index === 0 ? '' : `-${index}`;
  const section = element('section'), heading = element('div', undefined, 'heading');
  const stage = element('div', undefined, 'stage');
  p.canvas = element('canvas', undefined, 'map');
  p.over = element('canvas', undefined, 'map over');
  p.note = element('p', undefined, 'note');
  const of = p.isReplayed ? ` of ${p.name}` : '';
  Object.assign(p.over, {id: `map-over${suffix}`, tabIndex: 0});
  p.canvas.id = `map${suffix}`;
  p.note.id = `map-note${suffix}`;
  p.over.setAttribute('role', 'application');
  p.over.setAttribute('aria-roledescription', 'map of blocks');
  p.over.setAttribute('aria-label', `Blocks${of} by address and time; n and b ` +
      'step through those alive at the moment');
  heading.append(element('h2', p.isReplayed
      ? p.name : 'Addresses over the selected time'), p.note);
  stage.append(p.canvas, p.over);
  section.append(heading, stage);
  byId('maps').append(section);
}

// ---------------------------------------------------------------------------
// The answer: the peak and its holders
// ---------------------------------------------------------------------------

function eventsText() {
  if (data.events === data.whole) return plural(data.events, 'event');
  return `events ${eventText(0)} to ${eventText(data.events - 1)} of ${
      countText(data.whole)}`;
}

function writeDescription() {
  const words = [eventsText(), plural(blockCount, 'block')];
  if (time !== null) words.push(timeText(time[eventCount]));
  if (data.refused.length > 0) {
    words.push(`${plural(data.refused.length, 'request')} out of memory`);
  }
  if (panel.name !== null && !panel.isReplayed) {
    words.push(`no addresses recorded: blocks stand where ${panel.name} ` +
        'puts them');
  }
  byId('description').textContent = words.join(' \u00b7 ');
}

function swatch(band) {
  const made = element('i', undefined, 'swatch');
  if (band < 0) made.style.background = 'var(--muted)';
  else made.style.backgroundImage = `var(--band-${band})`;
  made.setAttribute('aria-hidden', 'true');
  return made;
}

const lower = text => text.replace(/^./, c => c.toLowerCase());

const byNow = groups =>
    groups.filter(g => g.now > 0).sort((a, b) => b.now - a.now);

// "Held by A 5 MiB, 50 %, B ...": the holders of most at a moment; if roles are
// known, what it was.
function writeFirstHolders(answer, m) {
  sumMoment(m);
  const first = role === null ? byNow(holders).slice(0, 3)
                              : byNow(roles).slice(0, 4);
  const lead = role === null ? ' Held by ' : ' Alive were ';
  first.forEach((g, i) => {
    const part = element('span', undefined, 'part');
    part.append(element('b', g.label),
                ` ${bytesText(g.now)}, ${percentText(g.now, live[m])}`);
    answer.append(i === 0 ? lead : ', ', part);
  });
  if (first.length > 0) answer.append('.');
}

// " in backward": the pass at the moment, if it is known.
function phaseText(m) {
  const phase = phaseAt(m);
  if (phase === undefined) return '';
  return ` in ${phase.name === 'optimizer' ? 'the ' : ''}${phase.name},`;
}

function writePeak(answer) {
  answer.replaceChildren(
      element('strong', `Peak ${bytesText(live[peak])}`),
      data.events === 0 ? ', before anything was recorded.'
                        : `${phaseText(peak)} ${lower(momentText(peak))}.`);
  writeFirstHolders(answer, peak);
}

const byWhom = refusal =>
    refusal.holder === NO_STACK ? '' : ` by ${holders[refusal.holder].label}`;

function heldText(m) {
  const {held} = panel, holes = holesAt(m);
  if (held === null || panel.isReplayed) return '';
  if (holes.count === 0) {
    return ` ${bytesText(held[m])} were held of the device, none of it free.`;
  }
  return ` ${bytesText(held[m])} were held of the device, ${
      bytesText(holes.bytes)} of it free, the largest hole ${
      bytesText(holes.largest)}.`;
}

// The last refused request, as `tarn why` begins with it.
function writeRefusal(answer, refusal) {
  const m = refusal.moment;
  answer.replaceChildren(
      element('strong', 'Out of memory'),
      `${phaseText(m)} ${lower(momentText(m)).replace('after', 'at')}: `,
      element('b', bytesText(refusal.bytes)),
      ` more were asked for${byWhom(refusal)} while ${
          bytesText(live[m])} were alive.${heldText(m)}`);
  writeFirstHolders(answer, m);
  if (refusals.length > 1) {
    answer.append(` ${countText(refusals.length)} requests were refused; ` +
        'this is the last of them.');
  }
  answer.append(` The peak was ${bytesText(live[peak])}, ${
      lower(momentText(peak))}.`);
}

function writeAnswer() {
  const refusal = refusalAt.get(opening);
  if (refusal === undefined) writePeak(byId('answer'));
  else writeRefusal(byId('answer'), refusal);
}

// ---------------------------------------------------------------------------
// The moment
// ---------------------------------------------------------------------------

function whatHappened(m) {
  if (m === 0 || data.events === 0) return 'What was alive from the beginning.';
  const word = KINDS[kind[m - 1]], b = eventBlock[m - 1];
  const refusal = refusalAt.get(m);
  if (refusal !== undefined) {
    return `${bytesText(refusal.bytes)} were asked for${
        byWhom(refusal)}: the red boxes are as high.`;
  }
  if (b >= blockCount) return `This event: ${word}.`;
  return `This event${phaseText(m).replace(',', '')}: ${
      bytesText(size[b])} ${word}, ${holders[holder[b]].label}.`;
}

function addFact(list, name, value) {
  list.append(element('dt', name), element('dd', value));
}

function addHoles(list, m) {
  const {held} = panel, holes = holesAt(m);
  if (held !== null) addFact(list, 'held of the device', bytesText(held[m]));
  addFact(list, held !== null ? 'free within' : 'gaps between',
          `${bytesText(holes.bytes)} in ${plural(holes.count, 'hole')}`);
  addFact(list, 'largest hole', bytesText(holes.largest));
  if (holes.bytes > 0) {
    addFact(list, 'fragmentation',
            `${percentText(holes.bytes - holes.largest, holes.bytes)} of it ` +
                'outside the largest');
  }
}

function writeFacts(m) {
  const list = element('dl');
  addFact(list, 'alive', `${bytesText(live[m])} (${
      percentText(live[m], live[peak])} of the peak)`);
  addFact(list, 'blocks', countText(liveBlocks[m]));
  eachPanel(({name, held, isReplayed}) => {
    if (isReplayed) addFact(list, `held by ${name}`, bytesText(held[m]));
    else addHoles(list, m);
  });
  byId('moment-facts').replaceChildren(...list.children);
}

// Chooses the group of blocks, and shows whether it is chosen.
function holderButton(h, look) {
  const button = element('button', undefined, look);
  button.type = 'button';
  button.dataset.holder = h.index;
  button.setAttribute('aria-pressed', view.chosen.includes(h.index));
  button.title = h.text;
  return button;
}

function barOf(h, most) {
  const item = element('li'), button = holderButton(h, 'bar-row');
  const bar = element('span', undefined, 'bar-line');
  const filled = swatch(h.band);
  filled.style.width = `${Math.max(100 * h.now / most, 0.5)}%`;
  bar.append(filled);
  button.append(element('span', h.label, 'bar-name'),
                element('span', bytesText(h.now), 'bar-bytes'), bar);
  item.append(button);
  return item;
}

const SIDE_ROWS = 8;

function writeMomentHolders() {
  const now = byNow(view.byRole ? roles : holders);
  byId('moment-holders-title').textContent =
      view.byRole ? 'What it is for' : 'Held by';
  const rows = now.slice(0, SIDE_ROWS).map(h => barOf(h, now[0].now));
  const rest = now.slice(SIDE_ROWS);
  if (rest.length > 0) {
    const bytes = rest.reduce((sum, h) => sum + h.now, 0);
    rows.push(element('li', `${bytesText(bytes)} by ${
        plural(rest.length, 'other')}, in the table below`, 'rest'));
  }
  if (now.length === 0) rows.push(element('li', 'Nothing is alive.', 'rest'));
  byId('moment-holders').replaceChildren(...rows);
}

function writeSlider(m) {
  const slider = byId('timeline-over');
  slider.setAttribute('aria-valuemax', eventCount);
  slider.setAttribute('aria-valuenow', m);
  slider.setAttribute('aria-valuetext',
                      `${momentText(m)}: ${bytesText(live[m])} alive`);
}

function writeMoment() {
  const m = view.moment;
  sumMoment(m);
  byId('moment-title').textContent =
      momentText(m) + (refusalAt.has(m) ? ': out of memory' :
                       m === peak ? ': the peak' : '');
  byId('moment-what').textContent = whatHappened(m);
  byId('refusal').hidden = data.refused.length === 0;
  writeFacts(m);
  writeMomentHolders();
  writeSlider(m);
  if (found.active) writeFound();
}

// ---------------------------------------------------------------------------
// A block
// ---------------------------------------------------------------------------

function writeDetails() {
  const b = view.selected, details = byId('details');
  const list = element('dl', undefined, 'facts');
  addFact(list, 'size', exactText(size[b]));
  addFact(list, 'life', lifeText(b));
  addFact(list, 'lasted', durationText(b));
  eachPanel(({name, at, isReplayed}) => addFact(
      list, isReplayed ? `in ${name}` : 'address', addressText(at[b])));
  if (tag !== null && tag[b] !== 0) addFact(list, 'tag', data.tags[tag[b]]);
  if (role !== null) addFact(list, 'role', roles[role[b]].label);
  addFact(list, 'held by', holders[holder[b]].label);
  const frames = element('ol');
  for (const text of frameTexts(stack[b])) {
    const isOwner = text === holders[holder[b]].text;
    frames.append(element('li', text, isOwner ? 'owner' : undefined));
  }
  details.replaceChildren(element('h2', `Block ${countText(b)}`), list);
  details.append(frames.children.length > 0
                     ? frames : element('p', 'No stack recorded.', 'hint'));
}

function clearDetails() {
  byId('details').replaceChildren(
      element('h2', 'Block'),
      element('p', 'Click a box, or press n for the largest block alive at ' +
                   'the moment.', 'hint'));
}

// ---------------------------------------------------------------------------
// Notes and search
// ---------------------------------------------------------------------------

function writeNotes() {
  const isHeld = panels.some(p => p.held !== null);
  const what = !isHeld ? 'most in each column'
      : panels.length > 1 ? 'the lines are what each pool held of the device'
                          : 'the line is what was held of the device';
  byId('timeline-note').textContent = `${what}; drag to select time`;
  const whole = endOfTime(), part = view.x1 - view.x0;
  const isAll = part >= whole * 0.9999;
  const span = view.byTime
      ? `${timeText(view.x0)} to ${timeText(view.x1)}`
      : `events ${eventText(Math.round(view.x0))} to ${
            eventText(Math.round(view.x1))}`;
  const shown = isAll ? 'all of it' : `${span}, ${percentText(part, whole)}`;
  for (const {note, held, mostHeld, isReplayed} of panels) {
    note.textContent = isReplayed
        ? `${bytesText(held[view.moment])} held at the moment, ${
              bytesText(mostHeld)} at most` : shown;
  }
}

function legendItem(look, text) {
  const item = element('span');
  item.append(look, text);
  return item;
}

function writeLegend() {
  byId('timeline-title').textContent =
      `Live bytes by ${view.byRole ? 'role' : 'holder'}`;
  const items = bands.map((band, i) => legendItem(swatch(i), band.label));
  if (panels.some(p => p.held !== null && !p.isReplayed)) {
    items.push(legendItem(element('i', undefined, 'swatch hole'),
                          'held, not used'));
  }
  byId('map-legend').replaceChildren(...items);
  if (panels.length > 1) byId('maps').before(byId('map-legend'));
}

function writeFound() {
  const out = byId('found');
  if (!found.active) {
    out.textContent = '';
    return;
  }
  const what = found.text === '' ? '' : `${plural(found.frames, 'frame')}, `;
  out.textContent = `${what}${plural(found.blocks, 'block')}: ` +
      `${bytesText(found.live[view.moment])} at the moment, ` +
      `${bytesText(found.most)} at most`;
}

// ---------------------------------------------------------------------------
// The table
// ---------------------------------------------------------------------------

// More would make the page slow: the search finds the others.
const ROWS_MOST = 1000;
const table = {sort: 'peak', down: true, rows: 25};

function sortedHolders() {
  const key = table.sort === 'share' ? 'peak' : table.sort;
  const sign = table.down ? -1 : 1;
  const used = holders.filter(h => h.blocks > 0);
  if (key === 'name') {
    return used.sort((a, b) => sign * (a.label < b.label ? -1 : 1));
  }
  return used.sort((a, b) => sign * (a[key] - b[key]) || b.most - a.most);
}

function nameCell(h) {
  const cell = element('th');
  const button = holderButton(h, 'frame');
  const {folder, file, name} =
      h.isFrame ? splitFrame(h.text) : {folder: '', file: '', name: h.text};
  button.append(swatch(h.band), element('span', folder.slice(folder === '' ? 0 : root.length),
                                     'folder'),
                element('b', file), file === '' ? '' : ' ', name);
  cell.append(button);
  return cell;
}

// |name| is the head of the row.
function rowOf(name, texts) {
  const row = element('tr');
  name.scope = 'row';
  row.append(name, ...texts.map(text => element('td', text)));
  return row;
}

function holderRow(h) {
  return rowOf(nameCell(h), [
    bytesText(h.peak), percentText(h.peak, live[peak]), bytesText(h.now),
    countText(h.nowBlocks), bytesText(h.most), bytesText(h.total),
    countText(h.blocks)]);
}

function writeSums(used) {
  const sum = key => used.reduce((all, h) => all + h[key], 0);
  byId('holders').tFoot.replaceChildren(
      rowOf(element('th', plural(used.length, 'holder')), [
        bytesText(sum('peak')), '100.0 %', bytesText(sum('now')),
        countText(sum('nowBlocks')), '', bytesText(sum('total')),
        countText(sum('blocks'))]));
}

function writeSortMarks() {
  for (const button of byId('holders').tHead.querySelectorAll('button')) {
    const isSorted = button.dataset.sort === table.sort;
    const order = table.down ? 'descending' : 'ascending';
    button.parentElement.setAttribute('aria-sort', isSorted ? order : 'none');
  }
}

function writeTable() {
  const used = sortedHolders();
  byId('holders').tBodies[0].replaceChildren(
      ...used.slice(0, table.rows).map(holderRow));
  writeSums(used);
  writeSortMarks();
  const more = byId('more');
  const rows = Math.min(used.length, ROWS_MOST);
  more.hidden = rows <= table.rows;
  more.textContent = rows < used.length
      ? `Show ${countText(rows)} of ${countText(used.length)}`
      : `Show all ${countText(rows)}`;
}

// ---------------------------------------------------------------------------
// The tip
// ---------------------------------------------------------------------------

function showTip(lines, x, y) {
  const tip = byId('tip');
  tip.replaceChildren(...lines.map(text => element('div', text)));
  tip.hidden = false;
  const width = tip.offsetWidth, height = tip.offsetHeight;
  const left = x + 16 + width > innerWidth ? x - 16 - width : x + 16;
  const top = Math.min(y + 16, innerHeight - height - 4);
  tip.style.left = `${Math.max(left, 4)}px`;
  tip.style.top = `${Math.max(top, 4)}px`;
}

function hideTip() {
  byId('tip').hidden = true;
}

function tipOfBlock(b) {
  const what = role === null ? [] : [`of ${roles[role[b]].label}`];
  return [exactText(size[b]), ...what, holders[holder[b]].label, lifeText(b),
          `lasted ${durationText(b)}`, `at ${addressText(panel.at[b])}`];
}

function tipOfTimeline(m, bytes) {
  const lines = [`${bytesText(live[m])} alive`, momentText(m)];
  if (phaseAt(m) !== undefined) lines.push(phaseAt(m).name);
  let top = 0;
  for (let i = 0; i < bands.length; i++) {
    top += bandLive[i][m];
    if (bytes > top || bytes < 0) continue;
    lines.push(`${bands[i].label}: ${bytesText(bandLive[i][m])}`);
    break;
  }
  return lines;
}
