// page_script.h - a page of the tool in a browser: scripts of a test around its
// own, and what they saw.
#ifndef TARN_TESTS_TOOL_PAGE_SCRIPT_H_
#define TARN_TESTS_TOOL_PAGE_SCRIPT_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/browser.h"
#include "support/json_check.h"
#include "support/run.h"
#include "support/tool_run.h"

// Goes in front of the page's own script: counts its errors.
#define PAGE_SCRIPT_BEFORE                                                  \
  "<script>window.errors = [];"                                             \
  "addEventListener('error', e => errors.push(String(e.message)));"         \
  "addEventListener('securitypolicyviolation', e => errors.push('policy: '" \
  " + e.violatedDirective));</script>"

// Goes around what a test does with the page and notes in |out|: holds back the
// event 'load' until it is done and then writes |out| into #checked.
#define PAGE_SCRIPT_BEGIN                                                 \
  "<script>(async () => {\n"                                              \
  "const hold = document.createElement('iframe');\n"                      \
  "document.body.append(hold); hold.contentDocument.open();\n"            \
  "const $ = id => document.getElementById(id);\n"                        \
  "const text = id => $(id).textContent;\n"                               \
  "const rest = () => new Promise(r => requestAnimationFrame(() =>\n"     \
  "    requestAnimationFrame(() => setTimeout(r))));\n"                   \
  "const press = async (key, at = document.body, more = {}) => {\n"       \
  "  at.dispatchEvent(new KeyboardEvent('keydown',\n"                     \
  "      {key, bubbles: true, cancelable: true, ...more}));\n"            \
  "  await rest();\n"                                                     \
  "};\n"                                                                  \
  "const point = async (name, at, x, y, more = {}) => {\n"                \
  "  at.setPointerCapture = () => {};\n"                                  \
  "  const r = at.getBoundingClientRect();\n"                             \
  "  at.dispatchEvent(new PointerEvent(name, {bubbles: true,\n"           \
  "      clientX: r.left + x, clientY: r.top + y, button: 0, ...more}\n"  \
  "  ));\n"                                                               \
  "  await rest();\n"                                                     \
  "};\n"                                                                  \
  "const pixels = c => new Uint32Array(c.getContext('2d').getImageData("  \
  "0, 0, c.width, c.height).data.buffer);\n"                              \
  "const print = c => pixels(c).reduce((h, v) => (h * 31 + v) | 0, 7);\n" \
  "const out = {};\n"                                                     \
  "try {\n"                                                               \
  "  await rest();\n"

#define PAGE_SCRIPT_END                                                   \
  "} catch (e) { errors.push(String(e)); }\n"                             \
  "out.hacked = window.hacked === true;\n"                                \
  "out.errors = errors;\n"                                                \
  "const pre = document.createElement('pre'); pre.id = 'checked';\n"      \
  "pre.textContent = JSON.stringify(out).replace(/[<>&\\u00a0]/g, c =>\n" \
  "    '\\\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));\n"       \
  "document.body.append(pre); hold.contentDocument.close();\n"            \
  "})();</script>"

static inline size_t count_of(const char *text, const char *part) {
  size_t count = 0;
  while ((text = strstr(text, part)) != NULL) {
    count++;
    text += strlen(part);
  }
  return count;
}

// The JSON that the page's script reads.
static inline char *data_of(const char *page) {
  const char *begin = strstr(page, "id=\"data\">");
  ck_assert_ptr_nonnull(begin);
  begin += strlen("id=\"data\">");
  char *data = tool_keep(strndup(begin, strcspn(begin, "<")));
  ck_assert_msg(json_valid(data), "%s", data);
  return data;
}

// What stands at |path| in base64.
static inline void assert_uints(const char *data, const char *path,
                                size_t count, const uint32_t *expected) {
  uint32_t found[16] = {0};
  size_t size = json_decode(data, path, found, sizeof found);
  ck_assert_msg(size == count * sizeof *found, "%s has %zu bytes", path, size);
  for (size_t i = 0; i < count; i++)
    ck_assert_msg(found[i] == expected[i], "%s[%zu] is %u", path, i, found[i]);
}

static inline void assert_doubles(const char *data, const char *path,
                                  size_t count, const double *expected) {
  double found[16] = {0};
  size_t size = json_decode(data, path, found, sizeof found);
  ck_assert_msg(size == count * sizeof *found, "%s has %zu bytes", path, size);
  for (size_t i = 0; i < count; i++)
    ck_assert_msg(found[i] == expected[i], "%s[%zu] is %g", path, i, found[i]);
}

enum { PAGE_SECONDS = 100 };

// |page| as a file, with the script |use| after its own.
static inline const char *page_with_scripts(const char *page, const char *use) {
  const char *path = tool_file("checked.html");
  const char *body = strstr(page, "<body>");
  ck_assert_ptr_nonnull(body);
  const char *end = strstr(body, "</body>");
  ck_assert_ptr_nonnull(end);
  FILE *out = fopen(path, "w");
  ck_assert_ptr_nonnull(out);
  fwrite(page, 1, (size_t)(body - page), out);
  fputs("<body>" PAGE_SCRIPT_BEFORE, out);
  fwrite(body + 6, 1, (size_t)(end - body - 6), out);
  fprintf(out, "%s%s%s</body></html>", PAGE_SCRIPT_BEGIN, use, PAGE_SCRIPT_END);
  fclose(out);
  return path;
}

// What the scripts saw, as JSON; NULL without a browser, which is told.
static inline char *page_check(const char *page, const char *what,
                               const char *use) {
  char program[BROWSER_PATH_SIZE], why[BROWSER_PATH_SIZE + 64];
  if (!browser_find(program)) {
    note_skipped(what, "there is no Chromium");
    return NULL;
  }
  const char *path = page_with_scripts(page, use);
  char *dom = browser_dump(program, path, "", PAGE_SECONDS, why, sizeof why);
  ck_assert_msg(dom != NULL, "%s", why);
  const char *begin = strstr(dom, "<pre id=\"checked\">");
  ck_assert_msg(begin != NULL, "%.2000s", dom);
  begin += strlen("<pre id=\"checked\">");
  char *json = tool_keep(strndup(begin, strcspn(begin, "<")));
  ck_assert_msg(json_valid(json), "%s", json);
  free(dom);
  return json;
}

#endif  // TARN_TESTS_TOOL_PAGE_SCRIPT_H_
