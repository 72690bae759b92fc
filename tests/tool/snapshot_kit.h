// snapshot_kit.h - snapshots of PyTorch made by hand, one at a time.
#ifndef TARN_TESTS_TOOL_SNAPSHOT_KIT_H_
#define TARN_TESTS_TOOL_SNAPSHOT_KIT_H_

#include "support/pickle_writer.h"
#include "support/tool_run.h"

static pickle_writer w;

static inline void begin_snapshot(void) {
  w = (pickle_writer){0};
  pickle_snapshot(&w, 4);
  pickle_middle(&w);
}

// With one segment, at whose beginning a block is alive.
static inline void begin_snapshot_of_block(uint64_t address, uint64_t segment,
                                           uint64_t size, uint64_t requested) {
  w = (pickle_writer){0};
  pickle_snapshot(&w, 4);
  pickle_open_segment(&w, address, segment);
  pickle_block(&w, address, size, requested, "active_allocated");
  pickle_close_segment(&w);
  pickle_middle(&w);
}

static inline void snapshot_entry(const char *key, uint64_t value) {
  pickle_text(&w, key);
  pickle_int(&w, value);
}

// An event, to which more can be added until its dict is closed.
static inline void begin_event(const char *action, uint64_t address,
                               uint64_t size) {
  pickle_open_dict(&w);
  pickle_text(&w, "action");
  pickle_text(&w, action);
  snapshot_entry("addr", address);
  snapshot_entry("size", size);
  snapshot_entry("stream", 0);
}

// Ends it, and writes it to a file of the test's folder; its path.
static inline const char *write_snapshot(const char *name) {
  pickle_finish(&w);
  pickle_save(&w, tool_file(name));
  return tool_file(name);
}

#endif  // TARN_TESTS_TOOL_SNAPSHOT_KIT_H_
