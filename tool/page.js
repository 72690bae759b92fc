// What the scripts of all pages share: arrays, elements, words.

function decode(text, Type) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new Type(bytes.buffer);
}

// All texts of a trace are shown through textContent or on canvases.
function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

// Cut, not rounded, as in the figures above.
function bytesText(bytes, digits = 2) {
  let unit = 0;
  while (bytes >= 1024 && unit < UNITS.length - 1) {
    bytes /= 1024;
    unit++;
  }
  const cut = Math.floor(bytes * 10 ** digits) / 10 ** digits;
  return `${unit === 0 ? bytes : cut.toFixed(digits)} ${UNITS[unit]}`;
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

