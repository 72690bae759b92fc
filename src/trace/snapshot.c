// PyTorch memory snapshots: from the pickled tree to a history.
//
//   {"segments": [{address, total_size, stream, device,
//                  "blocks": [{address, size, requested_size, state,
//                              "frames": [{filename, line, name}]}]}],
//    "device_traces": [[{action, addr, size, stream, time_us, "frames"}]]}
//
// or, as older versions wrote it, the list of segments alone; their blocks may
// have no address (they follow each other from the segment's on) and a
// "history": [{addr, real_size, frames}] in place of requested_size and frames.
// device_traces[i] are the events of device i.
//
// Keys, actions and states that are not known are passed over: newer versions
// add some. A known key of a wrong type is an error.
//
// Invariant: each container of the tree is walked at most once; see record.c.
#include "trace/readers.h"

#include <string.h>

#include "base/status.h"
#include "trace/history.h"
#include "trace/pickle.h"
#include "trace/snapshot.h"

enum { MAX_DEVICES = 256 };  // PyTorch counts devices in 8 bits

enum { SEGMENTS, DEVICE_TRACES, TOP_KEYS };
static const tarn__trace_key top_keys[TOP_KEYS] = {
    [SEGMENTS] = {.name = "segments", .type = TARN__LIST},
    [DEVICE_TRACES] = {.name = "device_traces", .type = TARN__LIST},
};

enum { S_ADDRESS, S_SIZE, S_STREAM, S_DEVICE, S_BLOCKS, SEGMENT_KEYS };
static const tarn__trace_key segment_keys[SEGMENT_KEYS] = {
    [S_ADDRESS] = {.name = "address", .type = TARN__INT, .required = true},
    [S_SIZE] = {.name = "total_size", .type = TARN__INT, .required = true},
    [S_STREAM] = {.name = "stream", .type = TARN__INT},
    [S_DEVICE] = {.name = "device", .type = TARN__INT},
    [S_BLOCKS] = {.name = "blocks", .type = TARN__LIST, .required = true},
};

enum { B_ADDRESS, B_SIZE, B_ASKED, B_STATE, B_FRAMES, B_HISTORY, BLOCK_KEYS };
static const tarn__trace_key block_keys[BLOCK_KEYS] = {
    [B_ADDRESS] = {.name = "address", .type = TARN__INT},
    [B_SIZE] = {.name = "size", .type = TARN__INT, .required = true},
    [B_ASKED] = {.name = "requested_size", .type = TARN__INT},
    [B_STATE] = {.name = "state", .type = TARN__TEXT, .required = true},
    [B_FRAMES] = {.name = "frames", .type = TARN__LIST},
    [B_HISTORY] = {.name = "history", .type = TARN__LIST},
};

enum { H_ASKED, H_FRAMES, HISTORY_KEYS };
static const tarn__trace_key history_keys[HISTORY_KEYS] = {
    [H_ASKED] = {.name = "real_size", .type = TARN__INT},
    [H_FRAMES] = {.name = "frames", .type = TARN__LIST},
};

enum {
  E_ACTION,
  E_ADDRESS,
  E_SIZE,
  E_STREAM,
  E_TIME,
  E_FRAMES,
  E_DEVICE_FREE,
  EVENT_KEYS
};
static const tarn__trace_key event_keys[EVENT_KEYS] = {
    [E_ACTION] = {.name = "action", .type = TARN__TEXT, .required = true},
    [E_ADDRESS] = {.name = "addr", .type = TARN__INT},
    [E_SIZE] = {.name = "size", .type = TARN__INT},
    [E_STREAM] = {.name = "stream", .type = TARN__INT},
    [E_TIME] = {.name = "time_us", .type = TARN__INT},
    [E_FRAMES] = {.name = "frames", .type = TARN__LIST},
    [E_DEVICE_FREE] = {.name = "device_free",
                       .type = TARN__INT,
                       .lenient = true},
};

static const struct action {
  const char *name;
  tarn_trace_kind kind;
  bool placed;  // address and size are required
} actions[] = {
    {"alloc", TARN_TRACE_ALLOC, true},
    {"free_completed", TARN_TRACE_FREE, true},
    {"free_requested", TARN_TRACE_FREE_REQUESTED, true},
    {"segment_alloc", TARN_TRACE_SEGMENT_ALLOC, true},
    {"segment_free", TARN_TRACE_SEGMENT_FREE, true},
    {"segment_map", TARN_TRACE_SEGMENT_MAP, true},
    {"segment_unmap", TARN_TRACE_SEGMENT_UNMAP, true},
    {"oom", TARN_TRACE_OOM, false},
    {"snapshot", TARN_TRACE_SNAPSHOT, false},
};
enum { ACTIONS = sizeof actions / sizeof *actions };

static const char *const active_states[] = {
    "active_allocated", "active_awaiting_free", "active_pending_free"};
enum { ACTIVE_STATES = sizeof active_states / sizeof *active_states };

typedef struct segment {
  tarn_trace_segment shown;
  tarn__trace_pickle_value blocks;
  uint32_t device;
} segment;

typedef struct reader {
  tarn__trace_pickle pickle;
  tarn__trace_history history;
  tarn__trace_frames frames;
  tarn__array segments;             // segment, of all devices
  tarn__trace_pickle_value traces;  // the list, or absent
  size_t event_counts[MAX_DEVICES];
  size_t segment_counts[MAX_DEVICES];
} reader;

static tarn_status corrupt(const reader *r, tarn__trace_pickle_value value,
                           const char *what) {
  return tarn__pickle_corrupt(&r->pickle, tarn__pickle_at(&r->pickle, value),
                              "%s", what);
}

// The error of |what| of |size| bytes at a wrong place, |where|.
static tarn_status misplaced(const reader *r, tarn__trace_pickle_value dict,
                             const char *what, const char *where,
                             uint64_t address, uint64_t size) {
  return tarn__pickle_corrupt(&r->pickle, tarn__pickle_at(&r->pickle, dict),
                              "%s of %llu bytes %s at address 0x%llx", what,
                              (unsigned long long)size, where,
                              (unsigned long long)address);
}

// --- segments of all devices -----------------------------------------------

static tarn_status read_segment(reader *r, tarn__trace_pickle_value dict) {
  tarn__trace_field fields[SEGMENT_KEYS];
  size_t end = 0;
  void *fresh = NULL;
  tarn_status status =
      tarn__record_read(&r->pickle, dict, segment_keys, SEGMENT_KEYS, fields);
  if (status != TARN_OK) return status;
  uint64_t device = fields[S_DEVICE].number;
  if (device >= MAX_DEVICES) {
    return corrupt(r, fields[S_DEVICE].value, "'device' is beyond 255");
  }
  if (!tarn_size_add(fields[S_ADDRESS].number, fields[S_SIZE].number, &end)) {
    return misplaced(r, dict, "a segment", "beyond the address space",
                     fields[S_ADDRESS].number, fields[S_SIZE].number);
  }
  status = tarn__array_grow(r->pickle.budget, &r->segments, 1, &fresh);
  if (status != TARN_OK) return status;
  r->segment_counts[device]++;
  *(segment *)fresh = (segment){.shown = {.address = fields[S_ADDRESS].number,
                                          .size = fields[S_SIZE].number,
                                          .stream = fields[S_STREAM].number},
                                .blocks = fields[S_BLOCKS].value,
                                .device = (uint32_t)device};
  return TARN_OK;
}

static tarn_status read_segments(reader *r, tarn__trace_pickle_value list) {
  tarn__trace_pickle_value dict;
  tarn_status status = tarn__record_enter(&r->pickle, list, TARN__LIST);
  tarn__trace_pickle_walk walk = tarn__pickle_walk(&r->pickle, list);
  while (status == TARN_OK && tarn__walk_next(&walk, &dict)) {
    status = read_segment(r, dict);
  }
  return status;
}

// --- devices ---------------------------------------------------------------

static tarn_status count_events(reader *r) {
  size_t device = 0;
  tarn__trace_pickle_value list;
  if (r->traces.type == TARN__ABSENT) return TARN_OK;
  tarn_status status = tarn__record_enter(&r->pickle, r->traces, TARN__LIST);
  tarn__trace_pickle_walk walk = tarn__pickle_walk(&r->pickle, r->traces);
  for (; status == TARN_OK && tarn__walk_next(&walk, &list); device++) {
    if (device == MAX_DEVICES) {
      return corrupt(r, r->traces, "'device_traces' of more than 256 devices");
    }
    status = tarn__record_enter(&r->pickle, list, TARN__LIST);
    if (status != TARN_OK) break;
    r->event_counts[device] = tarn__pickle_container(&r->pickle, list)->count;
  }
  return status;
}

static bool has_history(const reader *r, uint32_t device) {
  return r->event_counts[device] != 0 || r->segment_counts[device] != 0;
}

// The device with most events; among those without, the one with most segments.
static uint32_t busiest_device(const reader *r) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < MAX_DEVICES; i++) {
    if (r->event_counts[i] < r->event_counts[best]) continue;
    if (r->event_counts[i] > r->event_counts[best] ||
        r->segment_counts[i] > r->segment_counts[best]) {
      best = i;
    }
  }
  return best;
}

static tarn_status choose_device(const reader *r,
                                 const tarn_trace_options *options,
                                 uint32_t *out_device) {
  *out_device = options->device;
  if (!options->choose_device) {
    *out_device = busiest_device(r);
    return TARN_OK;
  }
  if (options->device < MAX_DEVICES && has_history(r, options->device)) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_INVALID, "%s: device %u has no history",
                    r->pickle.name, options->device);
}

static uint32_t count_devices(const reader *r) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < MAX_DEVICES; i++)
    count += has_history(r, i);
  return count;
}

// --- events ----------------------------------------------------------------

static const struct action *find_action(const reader *r,
                                        tarn__trace_pickle_value field) {
  size_t row =
      tarn__pickle_find(&r->pickle, field, actions, sizeof *actions, ACTIONS);
  return row < ACTIONS ? &actions[row] : NULL;
}

static tarn_status read_event(reader *r, tarn__trace_pickle_value dict) {
  tarn__trace_field fields[EVENT_KEYS];
  tarn__trace_frames_text dressed;
  tarn_status status =
      tarn__record_read(&r->pickle, dict, event_keys, EVENT_KEYS, fields);
  if (status != TARN_OK) return status;
  const struct action *action = find_action(r, fields[E_ACTION].value);
  if (action == NULL) return TARN_OK;
  if (action->placed && !(tarn__field_is_there(&fields[E_ADDRESS]) &&
                          tarn__field_is_there(&fields[E_SIZE]))) {
    return corrupt(r, dict, "an event without 'addr' or 'size'");
  }
  tarn_trace_event event = {.kind = action->kind,
                            .address = fields[E_ADDRESS].number,
                            .size = fields[E_SIZE].number,
                            .time_us = fields[E_TIME].number,
                            .stream = fields[E_STREAM].number};
  status = tarn__frames_stack(&r->frames, fields[E_FRAMES].value, &dressed);
  if (status != TARN_OK) return status;
  if (event.kind == TARN_TRACE_OOM)
    event.address = fields[E_DEVICE_FREE].number;
  event.stack = dressed.stack;
  event.tag = dressed.tag;
  r->history.byte = tarn__pickle_at(&r->pickle, dict);
  return tarn__history_event(&r->history, &event);
}

// Reserves |count| events, but no more than the file's size can hold.
static tarn_status expect_events(reader *r, size_t count) {
  enum { EVENT_BYTES = 24 };
  size_t most = r->pickle.size / EVENT_BYTES;
  return tarn__array_reserve(r->pickle.budget, &r->history.events,
                             count < most ? count : most);
}

static tarn_status read_events(reader *r, uint32_t device) {
  tarn__trace_pickle_value list = {0};
  tarn__trace_pickle_value dict;
  if (r->event_counts[device] == 0) return TARN_OK;
  tarn__trace_pickle_walk traces = tarn__pickle_walk(&r->pickle, r->traces);
  for (uint32_t i = 0; i <= device; i++)
    (void)tarn__walk_next(&traces, &list);
  tarn__trace_pickle_walk walk = tarn__pickle_walk(&r->pickle, list);
  tarn_status status = expect_events(r, r->event_counts[device]);
  while (status == TARN_OK && tarn__walk_next(&walk, &dict)) {
    status = read_event(r, dict);
  }
  return status;
}

// --- blocks that the segments hold -----------------------------------------

static bool is_active(const reader *r, tarn__trace_pickle_value state) {
  return tarn__pickle_find(&r->pickle, state, active_states,
                           sizeof *active_states,
                           ACTIVE_STATES) < ACTIVE_STATES;
}

// Older versions: the first of a block's history is its newest allocation, or
// one of the larger block that it was split off, if nothing was recorded since.
static tarn_status read_history(reader *r, tarn__trace_pickle_value list,
                                tarn__trace_field *fields) {
  tarn__trace_pickle_value dict;
  tarn__trace_field found[HISTORY_KEYS];
  if (list.type == TARN__ABSENT) return TARN_OK;
  tarn__trace_pickle_walk walk = tarn__pickle_walk(&r->pickle, list);
  if (!tarn__walk_next(&walk, &dict)) return TARN_OK;
  tarn_status status =
      tarn__record_read(&r->pickle, dict, history_keys, HISTORY_KEYS, found);
  if (status != TARN_OK) return status;
  if (!tarn__field_is_there(&fields[B_ASKED]) &&
      found[H_ASKED].number <= fields[B_SIZE].number) {
    fields[B_ASKED] = found[H_ASKED];
  }
  if (!tarn__field_is_there(&fields[B_FRAMES])) {
    fields[B_FRAMES] = found[H_FRAMES];
  }
  return TARN_OK;
}

// Used for active blocks only: a free block has the requested size of the
// larger block that it was split off.
static tarn_status check_asked(const reader *r, tarn__trace_pickle_value dict,
                               uint64_t asked, const tarn_trace_block *place) {
  if (asked <= place->size) return TARN_OK;
  return tarn__pickle_corrupt(
      &r->pickle, tarn__pickle_at(&r->pickle, dict),
      "%llu bytes were asked for in a block of %llu at address 0x%llx",
      (unsigned long long)asked, (unsigned long long)place->size,
      (unsigned long long)place->address);
}

// An active block: its requested size and stack.
static tarn_status hold_block(reader *r, tarn__trace_pickle_value dict,
                              tarn__trace_field *fields,
                              const tarn_trace_block *place) {
  tarn_trace_block block = *place;
  tarn__trace_frames_text dressed;
  tarn_status status = read_history(r, fields[B_HISTORY].value, fields);
  if (status == TARN_OK) {
    status = check_asked(r, dict, fields[B_ASKED].number, place);
  }
  if (status == TARN_OK) {
    status = tarn__frames_stack(&r->frames, fields[B_FRAMES].value, &dressed);
  }
  if (status != TARN_OK) return status;
  block.stack = dressed.stack;
  block.tag = dressed.tag;
  if (fields[B_ASKED].number != 0) block.size = fields[B_ASKED].number;
  r->history.byte = tarn__pickle_at(&r->pickle, dict);
  return tarn__history_held(&r->history, &block);
}

// The blocks of a segment are in order of address; |next| is the lowest address
// for the next one.
static tarn_status check_place(const reader *r, tarn__trace_pickle_value dict,
                               const tarn_trace_segment *in, uint64_t next,
                               const tarn_trace_block *block) {
  if (block->address < in->address || block->size > in->size ||
      block->address - in->address > in->size - block->size) {
    return misplaced(r, dict, "a block", "outside its segment", block->address,
                     block->size);
  }
  if (block->address >= next) return TARN_OK;
  return misplaced(r, dict, "a block", "within the one before it",
                   block->address, block->size);
}

// Reads one block of the segment |in|. |*next| is its address if it has none,
// and becomes that of the block after it.
static tarn_status read_block(reader *r, tarn__trace_pickle_value dict,
                              const tarn_trace_segment *in, uint64_t *next) {
  tarn__trace_field fields[BLOCK_KEYS];
  tarn_status status =
      tarn__record_read(&r->pickle, dict, block_keys, BLOCK_KEYS, fields);
  if (status != TARN_OK) return status;
  tarn_trace_block block = {
      .size = fields[B_SIZE].number, .address = *next, .stream = in->stream};
  if (tarn__field_is_there(&fields[B_ADDRESS])) {
    block.address = fields[B_ADDRESS].number;
  }
  status = check_place(r, dict, in, *next, &block);
  if (status != TARN_OK) return status;
  *next = block.address + block.size;  // at most the segment's end
  if (!is_active(r, fields[B_STATE].value)) return TARN_OK;
  return hold_block(r, dict, fields, &block);
}

static tarn_status read_blocks(reader *r, const segment *from) {
  tarn__trace_pickle_value dict;
  uint64_t next = from->shown.address;
  tarn_status status = tarn__record_enter(&r->pickle, from->blocks, TARN__LIST);
  tarn__trace_pickle_walk walk = tarn__pickle_walk(&r->pickle, from->blocks);
  while (status == TARN_OK && tarn__walk_next(&walk, &dict)) {
    status = read_block(r, dict, &from->shown, &next);
  }
  return status;
}

static tarn_status read_held(reader *r, uint32_t device) {
  const segment *segments = r->segments.items;
  tarn_status status = TARN_OK;
  for (size_t i = 0; status == TARN_OK && i < r->segments.count; i++) {
    if (segments[i].device != device) continue;
    status = tarn__history_segment(&r->history, &segments[i].shown);
    if (status == TARN_OK) status = read_blocks(r, &segments[i]);
  }
  return status;
}

// --- the whole -------------------------------------------------------------

static tarn_status read_dict(reader *r) {
  tarn__trace_field fields[TOP_KEYS];
  tarn_status status =
      tarn__record_read(&r->pickle, r->pickle.root, top_keys, TOP_KEYS, fields);
  if (status != TARN_OK) return status;
  r->traces = fields[DEVICE_TRACES].value;
  if (tarn__field_is_there(&fields[SEGMENTS])) {
    return read_segments(r, fields[SEGMENTS].value);
  }
  if (r->traces.type != TARN__ABSENT) return TARN_OK;
  return corrupt(r, r->pickle.root,
                 "a dict with neither 'segments' nor 'device_traces': not a "
                 "PyTorch memory snapshot");
}

static tarn_status read_top(reader *r) {
  if (r->pickle.root.type == TARN__DICT) return read_dict(r);
  if (r->pickle.root.type == TARN__LIST) {
    return read_segments(r, r->pickle.root);
  }
  return tarn__pickle_corrupt(
      &r->pickle, tarn__pickle_at(&r->pickle, r->pickle.root),
      "%s: a PyTorch memory snapshot is a dict or a list",
      tarn__value_type_name(r->pickle.root.type));
}

static tarn_status read_tree(reader *r, const tarn_trace_options *options,
                             uint32_t *out_device) {
  tarn_status status = read_top(r);
  if (status == TARN_OK) status = count_events(r);
  if (status == TARN_OK) status = choose_device(r, options, out_device);
  if (status == TARN_OK) status = read_events(r, *out_device);
  if (status == TARN_OK) status = read_held(r, *out_device);
  return status;
}

tarn_status tarn__snapshot_read(tarn__budget *budget, const char *name,
                                const void *bytes, size_t size,
                                const tarn_trace_options *options,
                                tarn_trace **out_trace) {
  uint32_t device = 0;
  reader r = {.segments = TARN__ARRAY_OF(segment)};
  *out_trace = NULL;
  tarn__history_init(&r.history, budget, name);
  tarn_status status = tarn__pickle_load(&r.pickle, budget, name, bytes, size);
  tarn__frames_init(&r.frames, &r.pickle, &r.history);
  if (status == TARN_OK) status = read_tree(&r, options, &device);
  tarn__frames_deinit(&r.frames);
  tarn__array_free(budget, &r.segments);
  tarn__pickle_deinit(&r.pickle);
  if (status == TARN_OK) {
    status = tarn__history_finish(&r.history, "pytorch-snapshot", out_trace);
  }
  if (status == TARN_OK) {
    (*out_trace)->device = device;
    (*out_trace)->device_count = count_devices(&r);
  }
  tarn__history_deinit(&r.history);
  return status;
}
