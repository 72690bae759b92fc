// From events to blocks.
//
// A block is known by the address at which it lives. |places| holds for each
// address that was ever seen the newest block there; whether it lives still,
// its |died| tells. So an address that is not in |places| belonged to nobody
// yet, and a free of it must be of a block that is older than the trace.
//
//       address seen?   newest block   ALLOC      FREE
//       no              -              birth      baseline, and dies
//       yes             lives          corrupt    dies
//       yes             dead           birth      corrupt
//
// Invariants: at most one living block per address; blocks stand in order of
// discovery until finish, which moves the baseline to the front.
#include "trace/history.h"

#include <assert.h>

#include "base/hostmem.h"
#include "base/status.h"

void tarn__history_init(tarn__history *history, tarn__budget *budget,
                        const char *name) {
  *history = (tarn__history){.budget = budget,
                             .name = name,
                             .seed = tarn__hash_seed(),
                             .events = TARN__ARRAY_OF(tarn_trace_event),
                             .blocks = TARN__ARRAY_OF(tarn_trace_block),
                             .segments = TARN__ARRAY_OF(tarn_trace_segment),
                             .places = TARN__ARRAY_OF(uint32_t)};
  tarn__stacks_init(&history->stacks, budget);
}

void tarn__history_deinit(tarn__history *history) {
  tarn__stacks_deinit(&history->stacks);
  tarn__array_free(history->budget, &history->places);
  tarn__array_free(history->budget, &history->segments);
  tarn__array_free(history->budget, &history->blocks);
  tarn__array_free(history->budget, &history->events);
}

static tarn_status corrupt(const tarn__history *history, const char *what,
                           uint64_t address) {
  return tarn__fail(TARN_E_CORRUPT, "%s: byte %zu: %s at address %llu",
                    history->name, history->byte, what,
                    (unsigned long long)address);
}

static tarn_trace_block *block_at(const tarn__history *history,
                                  uint32_t block) {
  return (tarn_trace_block *)history->blocks.items + block;
}

// --- places ----------------------------------------------------------------

// The slot of |address|, or the empty one where it would stand.
static uint32_t *find_place(const tarn__history *history, uint64_t address) {
  uint32_t *places = history->places.items;
  size_t mask = history->places.count - 1;
  assert(places != NULL);
  size_t at =
      (size_t)tarn__hash(history->seed, &address, sizeof address) & mask;
  while (places[at] != 0 &&
         block_at(history, places[at] - 1)->address != address) {
    at = (at + 1) & mask;
  }
  return &places[at];
}

// Moves all places into an array of |count|.
static tarn_status rehash(tarn__history *history, size_t count) {
  void *unused = NULL;
  tarn__array old = history->places;
  tarn__array wider = TARN__ARRAY_OF(uint32_t);
  tarn_status status =
      tarn__array_grow(history->budget, &wider, count, &unused);
  if (status != TARN_OK) return status;
  history->places = wider;
  const uint32_t *places = old.items;
  for (size_t i = 0; i < old.count; i++) {
    if (places[i] == 0) continue;
    *find_place(history, block_at(history, places[i] - 1)->address) = places[i];
  }
  tarn__array_free(history->budget, &old);
  return TARN_OK;
}

// Keeps half of the places empty when one more address comes.
static tarn_status widen(tarn__history *history) {
  enum { LEAST_PLACES = 16 };
  size_t count = history->places.count;
  if ((history->place_count + 1) * 2 <= count) return TARN_OK;
  return rehash(history, count == 0 ? LEAST_PLACES : count * 2);
}

// The newest block that stood at |address|, or NO_BLOCK.
static uint32_t newest_at(const tarn__history *history, uint64_t address) {
  if (history->places.count == 0) return TARN_TRACE_NO_BLOCK;
  uint32_t slot = *find_place(history, address);
  return slot == 0 ? TARN_TRACE_NO_BLOCK : slot - 1;
}

static bool lives(const tarn__history *history, uint32_t block) {
  return block_at(history, block)->died == TARN_TRACE_NEVER;
}

// --- blocks and events -----------------------------------------------------

static tarn_status append_block(tarn__history *history,
                                const tarn_trace_block *block,
                                uint32_t *out_index) {
  void *fresh = NULL;
  size_t index = history->blocks.count;
  tarn_status status =
      tarn__array_grow(history->budget, &history->blocks, 1, &fresh);
  if (status != TARN_OK) return status;
  *(tarn_trace_block *)fresh = *block;
  *out_index = (uint32_t)index;
  return TARN_OK;
}

// Appends |block| and makes it the newest at its address.
static tarn_status settle_block(tarn__history *history,
                                const tarn_trace_block *block,
                                uint32_t *out_index) {
  size_t end = 0;
  if (block->size == 0) return corrupt(history, "size 0", block->address);
  if (!tarn_size_add(block->address, block->size, &end)) {
    return corrupt(history, "a size beyond the address space", block->address);
  }
  tarn_status status = widen(history);
  if (status == TARN_OK) status = append_block(history, block, out_index);
  if (status != TARN_OK) return status;
  uint32_t *place = find_place(history, block->address);
  if (*place == 0) history->place_count++;
  *place = *out_index + 1;
  return TARN_OK;
}

static tarn_status append_event(tarn__history *history,
                                const tarn_trace_event *event) {
  void *fresh = NULL;
  if (history->events.count >= TARN_TRACE_NO_BLOCK - 1) {
    return tarn__fail(TARN_E_UNSUPPORTED, "%s: more than 2^32 events",
                      history->name);
  }
  tarn_status status =
      tarn__array_grow(history->budget, &history->events, 1, &fresh);
  if (status == TARN_OK) *(tarn_trace_event *)fresh = *event;
  return status;
}

static tarn_status find_born(tarn__history *history,
                             const tarn_trace_event *event,
                             uint32_t *out_block) {
  uint32_t newest = newest_at(history, event->address);
  if (newest != TARN_TRACE_NO_BLOCK && lives(history, newest)) {
    return corrupt(history, "an alloc where a block lives", event->address);
  }
  tarn_trace_block block = {.size = event->size,
                            .address = event->address,
                            .stream = event->stream,
                            .born = (uint32_t)history->events.count,
                            .died = TARN_TRACE_NEVER,
                            .stack = event->stack};
  return settle_block(history, &block, out_block);
}

// The block that a free concerns: one that lives, or one of the baseline that
// shows itself by this.
static tarn_status find_freed(tarn__history *history,
                              const tarn_trace_event *event,
                              uint32_t *out_block) {
  uint32_t newest = newest_at(history, event->address);
  if (newest != TARN_TRACE_NO_BLOCK) {
    *out_block = newest;
    if (lives(history, newest)) return TARN_OK;
    return corrupt(history, "a free of a block freed before", event->address);
  }
  tarn_trace_block block = {.size = event->size,
                            .address = event->address,
                            .stream = event->stream,
                            .born = TARN_TRACE_BASELINE,
                            .died = TARN_TRACE_NEVER,
                            .stack = TARN_TRACE_NO_STACK};
  return settle_block(history, &block, out_block);
}

static tarn_status find_block(tarn__history *history,
                              const tarn_trace_event *event,
                              uint32_t *out_block) {
  *out_block = TARN_TRACE_NO_BLOCK;
  switch (event->kind) {
    case TARN_TRACE_ALLOC:
      return find_born(history, event, out_block);
    case TARN_TRACE_FREE:
    case TARN_TRACE_FREE_REQUESTED:
      return find_freed(history, event, out_block);
    case TARN_TRACE_SEGMENT_ALLOC:
    case TARN_TRACE_SEGMENT_FREE:
    case TARN_TRACE_SEGMENT_MAP:
    case TARN_TRACE_SEGMENT_UNMAP:
    case TARN_TRACE_OOM:
    case TARN_TRACE_SNAPSHOT:
      break;
  }
  return TARN_OK;
}

tarn_status tarn__history_event(tarn__history *history,
                                const tarn_trace_event *event) {
  tarn_trace_event found = *event;
  tarn_status status = find_block(history, event, &found.block);
  if (status == TARN_OK) status = append_event(history, &found);
  if (status == TARN_OK && event->kind == TARN_TRACE_FREE) {
    block_at(history, found.block)->died = (uint32_t)history->events.count - 1;
  }
  return status;
}

tarn_status tarn__history_held(tarn__history *history,
                               const tarn_trace_block *block) {
  uint32_t newest = newest_at(history, block->address);
  uint32_t index = 0;
  if (newest != TARN_TRACE_NO_BLOCK) return TARN_OK;
  tarn_trace_block held = *block;
  held.born = TARN_TRACE_BASELINE;
  held.died = TARN_TRACE_NEVER;
  return settle_block(history, &held, &index);
}

tarn_status tarn__history_segment(tarn__history *history,
                                  const tarn_trace_segment *segment) {
  void *fresh = NULL;
  tarn_status status =
      tarn__array_grow(history->budget, &history->segments, 1, &fresh);
  if (status == TARN_OK) *(tarn_trace_segment *)fresh = *segment;
  return status;
}

tarn_status tarn__history_birth(tarn__history *history, uint64_t size,
                                uint32_t stack, uint32_t *out_block) {
  tarn_trace_event event = {
      .kind = TARN_TRACE_ALLOC, .size = size, .stack = stack};
  tarn_trace_block block = {.size = size,
                            .born = (uint32_t)history->events.count,
                            .died = TARN_TRACE_NEVER,
                            .stack = stack};
  tarn_status status = append_block(history, &block, out_block);
  if (status != TARN_OK) return status;
  event.block = *out_block;
  return append_event(history, &event);
}

tarn_status tarn__history_death(tarn__history *history, uint32_t block) {
  tarn_trace_event event = {.kind = TARN_TRACE_FREE,
                            .block = block,
                            .size = block_at(history, block)->size,
                            .stack = block_at(history, block)->stack};
  tarn_status status = append_event(history, &event);
  if (status != TARN_OK) return status;
  block_at(history, block)->died = (uint32_t)history->events.count - 1;
  return TARN_OK;
}
