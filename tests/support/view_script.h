// view_script.h - what the test does in a page of `tarn view`, as its user
// would: keys and texts, and a look at what is drawn. It writes what it saw as
// JSON into the element #checked.
#ifndef TARN_TESTS_SUPPORT_VIEW_SCRIPT_H_
#define TARN_TESTS_SUPPORT_VIEW_SCRIPT_H_

// Goes in front of the page's own script: counts its errors, and holds back
// the event 'load' until all was looked at.
#define VIEW_SCRIPT_BEFORE                                                  \
  "<script>window.errors = [];"                                             \
  "addEventListener('error', e => errors.push(String(e.message)));"         \
  "addEventListener('securitypolicyviolation', e => errors.push('policy: '" \
  " + e.violatedDirective));</script>"

#define VIEW_SCRIPT_AFTER                                                   \
  "<script>(async () => {\n"                                                \
  "const hold = document.createElement('iframe');\n"                        \
  "document.body.append(hold); hold.contentDocument.open();\n"              \
  "const $ = id => document.getElementById(id);\n"                          \
  "const text = id => $(id).textContent;\n"                                 \
  "const rest = () => new Promise(r => requestAnimationFrame(() =>\n"       \
  "    requestAnimationFrame(() => setTimeout(r))));\n"                     \
  "const press = async (key, at = document.body, more = {}) => {\n"         \
  "  at.dispatchEvent(new KeyboardEvent('keydown',\n"                       \
  "      {key, bubbles: true, cancelable: true, ...more}));\n"              \
  "  await rest();\n"                                                       \
  "};\n"                                                                    \
  "const colours = id => {\n"                                               \
  "  const c = $(id), d = c.getContext('2d').getImageData(0, 0, c.width,\n" \
  "      c.height).data;\n"                                                 \
  "  return new Set(new Uint32Array(d.buffer)).size;\n"                     \
  "};\n"                                                                    \
  "const print = id => {\n"                                                 \
  "  const c = $(id), d = c.getContext('2d').getImageData(0, 0, c.width,\n" \
  "      c.height).data;\n"                                                 \
  "  return new Uint32Array(d.buffer).reduce((h, v) => (h * 31 + v) | 0, "  \
  "7);\n"                                                                   \
  "};\n"                                                                    \
  "const out = {};\n"                                                       \
  "try {\n"                                                                 \
  "  await rest();\n"                                                       \
  "  out.answer = text('answer');\n"                                        \
  "  out.timeline = colours('timeline');\n"                                 \
  "  out.map = colours('map');\n"                                           \
  "  out.over = colours('timeline-over');\n"                                \
  "  out.rows = [...$('holders').tBodies[0].rows].map(r =>\n"               \
  "      [...r.cells].map(c => c.textContent));\n"                          \
  "  out.sums = [...$('holders').tFoot.rows[0].cells].map(c => "            \
  "c.textContent);\n"                                                       \
  "  out.facts = text('moment-facts');\n"                                   \
  "  out.peak = text('moment-title');\n"                                    \
  "  await press('Home'); out.home = text('moment-title');\n"               \
  "  await press('ArrowRight'); out.next = text('moment-title');\n"         \
  "  out.next_facts = text('moment-facts');\n"                              \
  "  out.slider = $('timeline-over').getAttribute('aria-valuenow');\n"      \
  "  await press('End'); out.end = text('moment-title');\n"                 \
  "  await press('o'); out.refused = text('moment-what');\n"                \
  "  await press('p'); out.again = text('moment-title');\n"                 \
  "  const before = print('map');\n"                                        \
  "  await press('+'); out.zoomed = print('map') !== before;\n"             \
  "  const near = print('map');\n"                                          \
  "  await press('.'); out.panned = print('map') !== near;\n"               \
  "  await press('ArrowUp', $('map-over'));\n"                              \
  "  await press('+'); await press('.'); await press(',');\n"               \
  "  await press('ArrowDown', $('map-over'));\n"                            \
  "  const moved = print('map');\n"                                         \
  "  $('search').value = 'x';\n"                                            \
  "  $('search').dispatchEvent(new Event('input')); await rest();\n"        \
  "  await press('Escape'); out.same = print('map') === moved;\n"           \
  "  await press('0'); out.restored = print('map') === before;\n"           \
  "  await press('n'); out.block = text('details');\n"                      \
  "  await press('Escape'); out.no_block = text('details');\n"              \
  "  const plain = print('timeline');\n"                                    \
  "  $('search').value = 'OPTIM';\n"                                        \
  "  $('search').dispatchEvent(new Event('input')); await rest();\n"        \
  "  out.found = text('found');\n"                                          \
  "  out.found_drawn = print('timeline') !== plain;\n"                      \
  "  await press('Escape'); out.nothing = text('found');\n"                 \
  "  out.cleared = print('timeline') === plain;\n"                          \
  "  $('holders').querySelector('button[data-holder]').click();\n"          \
  "  await rest(); out.chosen = text('found');\n"                           \
  "  out.focus = document.activeElement.getAttribute('aria-pressed');\n"    \
  "  await press('Escape');\n"                                              \
  "  await press('t'); out.by_time = print('timeline') !== plain;\n"        \
  "  await press('t'); out.by_event = print('timeline') === plain;\n"       \
  "  await press('h'); out.hidden = print('timeline') !== plain;\n"         \
  "  await press('h'); out.shown = print('timeline') === plain;\n"          \
  "  await press('?'); out.help = $('help').open; $('help').close();\n"     \
  "  $('holders').tHead.querySelector('[data-sort=name]').click();\n"       \
  "  await rest();\n"                                                       \
  "  out.sorted = $('holders').tBodies[0].rows[0].cells[0].textContent;\n"  \
  "  out.images = document.images.length;\n"                                \
  "  out.links = document.querySelectorAll('[src],[href]').length;\n"       \
  "  out.unnamed = [...document.querySelectorAll('button')].filter(b =>\n"  \
  "      !b.hidden && !(b.textContent.trim() || b.ariaLabel)).length;\n"    \
  "} catch (e) { errors.push(String(e)); }\n"                               \
  "out.hacked = window.hacked === true;\n"                                  \
  "out.errors = errors;\n"                                                  \
  "const pre = document.createElement('pre'); pre.id = 'checked';\n"        \
  "pre.textContent = JSON.stringify(out).replace(/[<>&\\u00a0]/g, c =>\n"   \
  "    '\\\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));\n"         \
  "document.body.append(pre); hold.contentDocument.close();\n"              \
  "})();</script>"

#endif  // TARN_TESTS_SUPPORT_VIEW_SCRIPT_H_
