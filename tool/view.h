// view.h - the page of `tarn view`.
#ifndef TARN_TOOL_VIEW_H_
#define TARN_TOOL_VIEW_H_

#include "tool.h"

// Writes what |trace| tells as one HTML file at |path|, under |title|; NULL:
// its name without folders. Where the trace has no addresses the blocks stand
// where arena_pool puts them.
//
// TOOL_NO after a message; a page that was there then stays.
tool_exit view_write(const tool_verb *verb, const tarn_trace *trace,
                     const char *title, const char *path);

#endif  // TARN_TOOL_VIEW_H_
