// What the tests of `tarn view` have in common: pages, and snapshots made by
// hand.
#ifndef TARN_TESTS_TOOL_VIEW_KIT_H_
#define TARN_TESTS_TOOL_VIEW_KIT_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot_kit.h"
#include "support/json_check.h"
#include "support/run.h"
#include "support/tool_assert.h"
#include "support/tool_run.h"

#define HOSTILE \
  "</script><script>window.hacked=true</script><img src=x onerror=hacked()>"

#define MIB ((uint64_t)1 << 20)

static inline char *view(const char *name) {
  const char *path = tool_file("out.html");
  tool_output o = tool_did("view", name, "--html", path);
  ck_assert_int_eq(strncmp(o.out, path, strlen(path)), 0);
  ck_assert_uint_eq(strcspn(o.out, "\n") + 1, strlen(o.out));
  char *page = tool_read_file(path);
  ck_assert_ptr_nonnull(page);
  return page;
}

// --- snapshots made by hand ------------------------------------------------

// Of the next event.
static uint64_t time_us = 1000;

static inline void event_by(const char *action, uint64_t address, uint64_t size,
                            const char *file, const char *function) {
  begin_event(action, address, size);
  snapshot_entry("time_us", time_us);
  time_us += 10;
  pickle_text(&w, "frames");
  pickle_open_list(&w);
  if (file != NULL) pickle_frame(&w, file, 7, function);
  if (file != NULL) pickle_frame(&w, "/app/main.py", 3, "main");
  pickle_close_list(&w);
  pickle_close_dict(&w);
}

// 1 MiB from before; 4 and 2 MiB come, the 4 go: the peak is after event 2.
static inline const char *write_known(void) {
  begin_snapshot();
  event_by("segment_alloc", 64 * MIB, 16 * MIB, NULL, NULL);
  event_by("alloc", 64 * MIB, 4 * MIB, "/app/model.py", "forward");
  event_by("alloc", 72 * MIB, 2 * MIB, "/app/optim.py", "step");
  event_by("free_completed", 64 * MIB, 4 * MIB, NULL, NULL);
  event_by("free_completed", 200 * MIB, MIB, NULL, NULL);
  event_by("alloc", 64 * MIB, MIB, HOSTILE ".py", HOSTILE "\"'&\x1b[2J");
  event_by("oom", 0, 32 * MIB, NULL, NULL);
  return write_snapshot("known.pickle");
}

#endif  // TARN_TESTS_TOOL_VIEW_KIT_H_
