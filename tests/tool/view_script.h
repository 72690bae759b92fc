// view_script.h - what the test does in a page of `tarn view`, as its user
// would: keys and texts, and a look at what is drawn. What it saw
// is JSON, as page_script.h tells.
#ifndef TARN_TESTS_TOOL_VIEW_SCRIPT_H_
#define TARN_TESTS_TOOL_VIEW_SCRIPT_H_

#include "page_script.h"

#define VIEW_SCRIPT                                                        \
  "const plainOf = id => print($(id));\n"                                  \
  "const colours = id => new Set(pixels($(id))).size;\n"                   \
  "  out.answer = text('answer');\n"                                       \
  "  out.opens = text('moment-title');\n"                                  \
  "  await press('p');\n"                                                  \
  "  out.timeline = colours('timeline');\n"                                \
  "  out.map = colours('map');\n"                                          \
  "  out.over = colours('timeline-over');\n"                               \
  "  out.rows = [...$('holders').tBodies[0].rows].map(r =>\n"              \
  "      [...r.cells].map(c => c.textContent));\n"                         \
  "  out.sums = [...$('holders').tFoot.rows[0].cells].map(c => "           \
  "c.textContent);\n"                                                      \
  "  out.facts = text('moment-facts');\n"                                  \
  "  out.peak = text('moment-title');\n"                                   \
  "  await press('Home'); out.home = text('moment-title');\n"              \
  "  await press('ArrowRight'); out.next = text('moment-title');\n"        \
  "  out.next_facts = text('moment-facts');\n"                             \
  "  out.slider = $('timeline-over').getAttribute('aria-valuenow');\n"     \
  "  await press('End'); out.end = text('moment-title');\n"                \
  "  await press('o'); out.refused = text('moment-what');\n"               \
  "  await press('p'); out.again = text('moment-title');\n"                \
  "  const before = plainOf('map');\n"                                     \
  "  await press('+'); out.zoomed = plainOf('map') !== before;\n"          \
  "  const near = plainOf('map');\n"                                       \
  "  await press('.'); out.panned = plainOf('map') !== near;\n"            \
  "  await press('ArrowUp', $('map-over'));\n"                             \
  "  await press('+'); await press('.'); await press(',');\n"              \
  "  await press('ArrowDown', $('map-over'));\n"                           \
  "  const moved = plainOf('map');\n"                                      \
  "  $('search').value = 'x';\n"                                           \
  "  $('search').dispatchEvent(new Event('input')); await rest();\n"       \
  "  await press('Escape'); out.same = plainOf('map') === moved;\n"        \
  "  await press('0'); out.restored = plainOf('map') === before;\n"        \
  "  await press('n'); out.block = text('details');\n"                     \
  "  await press('Escape'); out.no_block = text('details');\n"             \
  "  const plain = plainOf('timeline');\n"                                 \
  "  $('search').value = 'OPTIM';\n"                                       \
  "  $('search').dispatchEvent(new Event('input')); await rest();\n"       \
  "  out.found = text('found');\n"                                         \
  "  out.found_drawn = plainOf('timeline') !== plain;\n"                   \
  "  await press('Escape'); out.nothing = text('found');\n"                \
  "  out.cleared = plainOf('timeline') === plain;\n"                       \
  "  $('holders').querySelector('button[data-holder]').click();\n"         \
  "  await rest(); out.chosen = text('found');\n"                          \
  "  out.focus = document.activeElement.getAttribute('aria-pressed');\n"   \
  "  await press('Escape');\n"                                             \
  "  await press('t'); out.by_time = plainOf('timeline') !== plain;\n"     \
  "  await press('t'); out.by_event = plainOf('timeline') === plain;\n"    \
  "  await press('h'); out.hidden = plainOf('timeline') !== plain;\n"      \
  "  await press('h'); out.shown = plainOf('timeline') === plain;\n"       \
  "  await press('?'); out.help = $('help').open; $('help').close();\n"    \
  "  $('holders').tHead.querySelector('[data-sort=name]').click();\n"      \
  "  await rest();\n"                                                      \
  "  out.sorted = $('holders').tBodies[0].rows[0].cells[0].textContent;\n" \
  "  out.images = document.images.length;\n"                               \
  "  out.links = document.querySelectorAll('[src],[href]').length;\n"      \
  "  out.unnamed = [...document.querySelectorAll('button')].filter(b =>\n" \
  "      !b.hidden && !(b.textContent.trim() || b.ariaLabel)).length;\n"

// How high the red box in the map is, as a part of the map: its left edge is
// the leftmost pixel of its colour.
#define VIEW_SCRIPT_REFUSAL                                                 \
  "const boxOf = () => {\n"                                                 \
  "  const canvas = $('map-over'), all = pixels(canvas);\n"                 \
  "  const mark = getComputedStyle(document.documentElement)\n"             \
  "      .getPropertyValue('--mark').trim();\n"                             \
  "  const probe = document.createElement('canvas').getContext('2d');\n"    \
  "  probe.fillStyle = mark; probe.fillRect(0, 0, 1, 1);\n"                 \
  "  const [ink] = new Uint32Array(\n"                                      \
  "      probe.getImageData(0, 0, 1, 1).data.buffer);\n"                    \
  "  const w = canvas.width, scale = w / canvas.clientWidth;\n"             \
  "  const high = canvas.height - 24 * scale;\n"                            \
  "  const heights = [];\n"                                                 \
  "  for (let x = 0; x < w; x++) {\n"                                       \
  "    let top = -1, bottom = -1;\n"                                        \
  "    for (let y = 0; y < high; y++) {\n"                                  \
  "      if (all[y * w + x] !== ink) continue;\n"                           \
  "      if (top < 0) top = y;\n"                                           \
  "      bottom = y;\n"                                                     \
  "    }\n"                                                                 \
  "    if (top >= 0) heights.push({x, part: (bottom + 1 - top) / high});\n" \
  "  }\n"                                                                   \
  "  return heights;\n"                                                     \
  "};\n"                                                                    \
  "  out.opens = text('moment-title'); out.what = text('moment-what');\n"   \
  "  out.answer = text('answer');\n"                                        \
  "  const columns = boxOf();\n"                                            \
  "  out.box = columns[columns.length - 1].part;\n"                         \
  "  await press('ArrowLeft');\n"                                           \
  "  const cut = boxOf(); out.cut = cut[cut.length - 1].part;\n"            \
  "  await press('Home'); out.none = boxOf().length > 4 ? 1 : 0;\n"

// The facts of each moment behind an event.
#define VIEW_SCRIPT_ALL_MOMENTS                                               \
  "const last = Number($('timeline-over').getAttribute('aria-valuemax'));\n"  \
  "  out.opens = text('moment-title'); out.what = text('moment-what');\n"     \
  "  out.answer = text('answer');\n"                                          \
  "  await press('Home');\n"                                                  \
  "  out.moments = [];\n"                                                     \
  "  for (let m = 1; m <= last; m++) {\n"                                     \
  "    await press('ArrowRight');\n"                                          \
  "    out.moments.push([...$('moment-facts').querySelectorAll('dd')].map(\n" \
  "        d => d.textContent));\n"                                           \
  "  }\n"

// Steps through the moments, drags the map and the brush.
#define VIEW_SCRIPT_MOMENTS                                                   \
  "const plainOf = id => print($(id));\n"                                     \
  "  await press('0'); await press('Home');\n"                                \
  "  out.home_facts = text('moment-facts');\n"                                \
  "  out.moments = [];\n"                                                     \
  "  for (let m = 1; m <= 7; m++) {\n"                                        \
  "    await press('ArrowRight');\n"                                          \
  "    out.moments.push([...$('moment-facts').querySelectorAll('dd')].map(\n" \
  "        d => d.textContent));\n"                                           \
  "  }\n"                                                                     \
  "  const over = $('map-over'), seen = plainOf('map');\n"                    \
  "  await press('+'); const still = plainOf('map');\n"                       \
  "  await point('pointerdown', over, 400, 200);\n"                           \
  "  await point('pointermove', over, 300, 200);\n"                           \
  "  out.dragged = plainOf('map') !== still;\n"                               \
  "  await point('pointercancel', over, 300, 200);\n"                         \
  "  const after = plainOf('map');\n"                                         \
  "  await point('pointermove', over, 500, 200);\n"                           \
  "  out.let_go = plainOf('map') === after;\n"                                \
  "  const line = $('timeline-over');\n"                                      \
  "  await press('0');\n"                                                     \
  "  await point('pointerdown', line, 200, 100);\n"                           \
  "  await point('pointermove', line, 400, 100);\n"                           \
  "  await point('pointerup', line, 400, 100);\n"                             \
  "  out.brushed = plainOf('map') !== seen && text('map-note');\n"            \
  "  await press('0');\n"

#endif  // TARN_TESTS_TOOL_VIEW_SCRIPT_H_
