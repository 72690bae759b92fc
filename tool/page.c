// Pages: a template with its marks {{name}} filled in.
#include "page.h"

#include <stdlib.h>
#include <string.h>

#include "kit/text.h"
#include "outfile.h"

// ---------------------------------------------------------------------------
// Texts and marks
// ---------------------------------------------------------------------------

void page_text(const char *text, FILE *out) {
  static const char marks[] = "&<>\"'";
  static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;",
                                         "&#39;"};
  char *harmless = tool_text(text);
  text_neutralise(harmless, "");
  for (const char *at = harmless; *at; at++) {
    const char *mark = strchr(marks, *at);
    if (mark != NULL) {
      fputs(entities[mark - marks], out);
    } else {
      fputc(*at, out);
    }
  }
  free(harmless);
}

static const page_mark *mark_at(const page *p, const char *text) {
  for (size_t i = 0; i < p->mark_count; i++) {
    const char *name = p->marks[i].name;
    if (strncmp(text, name, strlen(name)) == 0) return &p->marks[i];
  }
  return NULL;
}

static void fill(const void *context, FILE *out) {
  const page *p = context;
  const char *text = p->html;
  while (*text) {
    const page_mark *found = mark_at(p, text);
    if (found == NULL) {
      fputc(*text++, out);
      continue;
    }
    found->write(p->context, out);
    text += strlen(found->name);
  }
}

bool page_write(const tool_verb *verb, const page *p, const char *path) {
  return outfile_write(verb, path, fill, p);
}
