// view.h - the page of `tarn view`, and of `tarn replay --html`.
#ifndef TARN_TOOL_VIEW_H_
#define TARN_TOOL_VIEW_H_

#include "view_data.h"

typedef struct view_page {
  view_data data;
  const char *verb;   // that made it
  const char *title;  // without folders
  const char *about;  // behind the title, in that of the window
  // Writes HTML above the drawings; NULL: nothing.
  void (*figures)(const void *context, FILE *out);
  const void *context;
} view_page;

// Writes the page to |path|. TOOL_NO after a message; a page that was there
// then stays.
tool_exit view_page_write(const tool_verb *verb, const view_page *page,
                          const char *path);

typedef struct view_options {
  const char *path;               // of the HTML file
  const char *title;              // NULL: the name without folders
  const options_list *libraries;  // frames that are no user's, as in owners.h
  const roles *roles;             // of the trace
  uint32_t first;                 // as in view_data
  size_t whole_events;
} view_options;

// Writes what |trace| tells as one HTML file. Where the trace has no addresses
// the blocks stand where arena_pool puts them.
//
// TOOL_NO after a message; a page that was there then stays.
tool_exit view_write(const tool_verb *verb, const tarn_trace *trace,
                     const view_options *options);

#endif  // TARN_TOOL_VIEW_H_
