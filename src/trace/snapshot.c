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

const char *const tarn__snapshot_actions[TARN__ACTIONS] = {
    [TARN_TRACE_ALLOC - 1] = "alloc",
    [TARN_TRACE_FREE - 1] = "free_completed",
    [TARN_TRACE_FREE_REQUESTED - 1] = "free_requested",
    [TARN_TRACE_SEGMENT_ALLOC - 1] = "segment_alloc",
    [TARN_TRACE_SEGMENT_FREE - 1] = "segment_free",
    [TARN_TRACE_SEGMENT_MAP - 1] = "segment_map",
    [TARN_TRACE_SEGMENT_UNMAP - 1] = "segment_unmap",
    [TARN_TRACE_OOM - 1] = "oom",
    [TARN_TRACE_SNAPSHOT - 1] = "snapshot",
};

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
  tarn__trace_tally tallies[MAX_DEVICES];
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
  TARN__TRY(
      tarn__record_read(&r->pickle, dict, segment_keys, SEGMENT_KEYS, fields));
  uint64_t device = fields[S_DEVICE].number;
  if (device >= MAX_DEVICES) {
    return corrupt(r, fields[S_DEVICE].value, "'device' is beyond 255");
  }
  if (!tarn_size_add(fields[S_ADDRESS].number, fields[S_SIZE].number, &end)) {
    return misplaced(r, dict, "a segment", "beyond the address space",
                     fields[S_ADDRESS].number, fields[S_SIZE].number);
  }
  TARN__TRY(tarn__array_grow(r->pickle.budget, &r->segments, 1, &fresh));
  r->tallies[device].segments++;
  *(segment *)fresh = (segment){.shown = {.address = fields[S_ADDRESS].number,
                                          .size = fields[S_SIZE].number,
                                          .stream = fields[S_STREAM].number},
                                .blocks = fields[S_BLOCKS].value,
                                .device = (uint32_t)device};
  return TARN_OK;
}

static tarn_status read_segments(reader *r, tarn__trace_pickle_value list) {
  tarn__trace_pickle_value dict;
  tarn__trace_pickle_walk walk;
  TARN__TRY(tarn__record_enter(&r->pickle, list, TARN__LIST, &walk));
  while (tarn__walk_next(&walk, &dict))
    TARN__TRY(read_segment(r, dict));
  return TARN_OK;
}

// --- devices ---------------------------------------------------------------

static tarn_status count_events(reader *r) {
  size_t device = 0;
  tarn__trace_pickle_value list;
  tarn__trace_pickle_walk walk;
  tarn__trace_pickle_walk events;
  if (r->traces.type == TARN__ABSENT) return TARN_OK;
  TARN__TRY(tarn__record_enter(&r->pickle, r->traces, TARN__LIST, &walk));
  for (; tarn__walk_next(&walk, &list); device++) {
    if (device == MAX_DEVICES) {
      return corrupt(r, r->traces, "'device_traces' of more than 256 devices");
    }
    TARN__TRY(tarn__record_enter(&r->pickle, list, TARN__LIST, &events));
    r->tallies[device].events = tarn__pickle_container(&r->pickle, list)->count;
  }
  return TARN_OK;
}

// --- events ----------------------------------------------------------------

static tarn_status read_event(reader *r, tarn__trace_pickle_value dict) {
  tarn__trace_field fields[EVENT_KEYS];
  tarn__trace_frames_text dressed;
  TARN__TRY(
      tarn__record_read(&r->pickle, dict, event_keys, EVENT_KEYS, fields));
  size_t action = tarn__pickle_find(
      &r->pickle, fields[E_ACTION].value, tarn__snapshot_actions,
      sizeof *tarn__snapshot_actions, TARN__ACTIONS);
  if (action == TARN__ACTIONS) return TARN_OK;
  tarn_trace_kind kind = (tarn_trace_kind)(action + 1);
  if (kind < TARN_TRACE_OOM && !(tarn__field_is_there(&fields[E_ADDRESS]) &&
                                 tarn__field_is_there(&fields[E_SIZE]))) {
    return corrupt(r, dict, "an event without 'addr' or 'size'");
  }
  tarn_trace_event event = {.kind = kind,
                            .address = fields[E_ADDRESS].number,
                            .size = fields[E_SIZE].number,
                            .time_us = fields[E_TIME].number,
                            .stream = fields[E_STREAM].number};
  TARN__TRY(tarn__frames_stack(&r->frames, fields[E_FRAMES].value, &dressed));
  if (kind == TARN_TRACE_OOM) event.address = fields[E_DEVICE_FREE].number;
  event.stack = dressed.stack;
  event.tag = dressed.tag;
  r->history.byte = tarn__pickle_at(&r->pickle, dict);
  return tarn__history_event(&r->history, &event);
}

static tarn_status read_events(reader *r) {
  enum { EVENT_BYTES = 24 };  // that an event takes at least in the file
  tarn__trace_pickle_value list = {0};
  tarn__trace_pickle_value dict;
  size_t count = r->tallies[r->history.trace.device].events;
  if (count == 0) return TARN_OK;
  tarn__trace_pickle_walk traces = tarn__pickle_walk(&r->pickle, r->traces);
  for (uint32_t i = 0; i <= r->history.trace.device; i++)
    (void)tarn__walk_next(&traces, &list);
  TARN__TRY(
      tarn__array_reserve(r->pickle.budget, &r->history.events,
                          tarn__lesser(count, r->pickle.size / EVENT_BYTES)));
  tarn__trace_pickle_walk walk = tarn__pickle_walk(&r->pickle, list);
  while (tarn__walk_next(&walk, &dict))
    TARN__TRY(read_event(r, dict));
  return TARN_OK;
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
  TARN__TRY(
      tarn__record_read(&r->pickle, dict, history_keys, HISTORY_KEYS, found));
  if (!tarn__field_is_there(&fields[B_ASKED]) &&
      found[H_ASKED].number <= fields[B_SIZE].number) {
    fields[B_ASKED] = found[H_ASKED];
  }
  if (!tarn__field_is_there(&fields[B_FRAMES])) {
    fields[B_FRAMES] = found[H_FRAMES];
  }
  return TARN_OK;
}

// An active block: its requested size and stack. A free block is not checked:
// it has the requested size of the larger block that it was split off.
static tarn_status hold_block(reader *r, tarn__trace_pickle_value dict,
                              tarn__trace_field *fields,
                              const tarn_trace_block *place) {
  tarn_trace_block block = *place;
  tarn__trace_frames_text dressed;
  size_t at = tarn__pickle_at(&r->pickle, dict);
  TARN__TRY(read_history(r, fields[B_HISTORY].value, fields));
  uint64_t asked = fields[B_ASKED].number;
  if (asked > place->size) {
    return tarn__pickle_corrupt(
        &r->pickle, at,
        "%llu bytes were asked for in a block of %llu at address 0x%llx",
        (unsigned long long)asked, (unsigned long long)place->size,
        (unsigned long long)place->address);
  }
  TARN__TRY(tarn__frames_stack(&r->frames, fields[B_FRAMES].value, &dressed));
  block.stack = dressed.stack;
  block.tag = dressed.tag;
  if (asked != 0) block.size = asked;
  r->history.byte = at;
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
  TARN__TRY(
      tarn__record_read(&r->pickle, dict, block_keys, BLOCK_KEYS, fields));
  tarn_trace_block block = {
      .size = fields[B_SIZE].number, .address = *next, .stream = in->stream};
  if (tarn__field_is_there(&fields[B_ADDRESS])) {
    block.address = fields[B_ADDRESS].number;
  }
  TARN__TRY(check_place(r, dict, in, *next, &block));
  *next = block.address + block.size;  // at most the segment's end
  if (!is_active(r, fields[B_STATE].value)) return TARN_OK;
  return hold_block(r, dict, fields, &block);
}

static tarn_status read_blocks(reader *r, const segment *from) {
  tarn__trace_pickle_value dict;
  tarn__trace_pickle_walk walk;
  uint64_t next = from->shown.address;
  TARN__TRY(tarn__record_enter(&r->pickle, from->blocks, TARN__LIST, &walk));
  while (tarn__walk_next(&walk, &dict))
    TARN__TRY(read_block(r, dict, &from->shown, &next));
  return TARN_OK;
}

static tarn_status read_held(reader *r) {
  const segment *segments = r->segments.items;
  for (size_t i = 0; i < r->segments.count; i++) {
    if (segments[i].device != r->history.trace.device) continue;
    TARN__TRY(tarn__history_segment(&r->history, &segments[i].shown));
    TARN__TRY(read_blocks(r, &segments[i]));
  }
  return TARN_OK;
}

// --- the whole -------------------------------------------------------------

static tarn_status read_dict(reader *r) {
  tarn__trace_field fields[TOP_KEYS];
  TARN__TRY(tarn__record_read(&r->pickle, r->pickle.root, top_keys, TOP_KEYS,
                              fields));
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

static tarn_status read_tree(reader *r, const tarn__trace_input *input) {
  TARN__TRY(tarn__pickle_load(&r->pickle, input->budget, input->name,
                              input->bytes, input->size));
  TARN__TRY(read_top(r));
  TARN__TRY(count_events(r));
  TARN__TRY(tarn__trace_choose_device(input, r->tallies, sizeof *r->tallies,
                                      MAX_DEVICES, &r->history.trace));
  TARN__TRY(read_events(r));
  return read_held(r);
}

tarn_status tarn__snapshot_read(const tarn__trace_input *input,
                                tarn_trace **out_trace) {
  reader r = {.segments = TARN__ARRAY_OF(segment)};
  tarn__history_init(&r.history, input->budget, input->name);
  tarn__frames_init(&r.frames, &r.pickle, &r.history);
  tarn_status status = read_tree(&r, input);
  tarn__frames_deinit(&r.frames);
  tarn__array_free(input->budget, &r.segments);
  tarn__pickle_deinit(&r.pickle);
  return tarn__history_finish(&r.history, status, "pytorch-snapshot",
                              out_trace);
}
