// page.h - HTML pages: a template and its marks.
//
// Text from a trace may be hostile. It reaches a page in three ways only: as
// HTML text, through page_text; as JSON without '<', '>' and '&'; and through
// the scripts, which show it by textContent and on canvases alone.
#ifndef TARN_TOOL_PAGE_H_
#define TARN_TOOL_PAGE_H_

#include <stdio.h>

#include "kit/tool.h"

// The text for {{name}} in a template.
typedef struct page_mark {
  const char *name;  // with its braces
  void (*write)(const void *context, FILE *out);
} page_mark;

typedef struct page {
  const char *html;  // the template
  const page_mark *marks;
  size_t mark_count;
  const void *context;  // of the marks
} page;

// |text| as HTML text or the value of an attribute: neutralised as in text.h,
// every special character escaped.
void page_text(const char *text, FILE *out);

// Writes |p| to |path|, as outfile_write does. False after a message.
bool page_write(const tool_verb *verb, const page *p, const char *path);

#endif  // TARN_TOOL_PAGE_H_
