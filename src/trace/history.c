// Turns events into blocks.
//
// The address identifies a live block. |places| has for each address that was
// ever seen the newest block there, and whether it lives. A free of an address
// that is not in |places| must be of a block that is older than the trace.
//
//       address seen?   newest block   ALLOC     FREE             held
//       no              -              birth     baseline, dies   baseline
//       yes             lives          corrupt   dies             is that block
//       yes             dead           birth     corrupt          is ignored
//
// A free must have the size of its block, and each address is held once.
//
// Sums. A block of the baseline is found late, but has lived at every moment
// before: it raises the peak so far by its size, at any event. So the peak's
// event is known at each step without a second pass.
//
// Invariants: at most one living block per address; blocks are in order of
// discovery until finish, which moves the baseline to the front; no sum of
// bytes exceeds live_peak_bytes, except ignored_bytes.
#include "trace/history.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/hostmem.h"
#include "base/status.h"

// An address, and the newest block that stood there. The address is here as
// well as in its block, and whether that lives, so that most lookups are one
// access to memory.
typedef struct place {
  uint64_t address;
  uint32_t block;  // + 1; 0: an empty slot
  bool lives;
  bool met;  // by a held block
} place;

void tarn__history_init(tarn__trace_history *history, tarn__budget *budget,
                        const char *name) {
  *history = (tarn__trace_history){
      .budget = budget,
      .name = name,
      .unit = "byte",
      .seed = tarn__hash_seed(),
      .events = TARN__ARRAY_OF(tarn_trace_event),
      .blocks = TARN__ARRAY_OF(tarn_trace_block),
      .segments = TARN__ARRAY_OF(tarn_trace_segment),
      .places = TARN__ARRAY_OF(place),
      .trace = {.live_peak_event = TARN_TRACE_BASELINE, .device_count = 1}};
  tarn__intern_init(&history->tags);
  tarn__stacks_init(&history->stacks, budget);
}

void tarn__history_deinit(tarn__trace_history *history) {
  tarn__stacks_deinit(&history->stacks);
  tarn__intern_deinit(&history->tags, history->budget);
  tarn__array_free(history->budget, &history->places);
  tarn__array_free(history->budget, &history->segments);
  tarn__array_free(history->budget, &history->blocks);
  tarn__array_free(history->budget, &history->events);
}

__attribute__((format(printf, 3, 4), cold)) static tarn_status corrupt(
    const tarn__trace_history *history, uint64_t address, const char *format,
    ...) {
  char text[160];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return tarn__fail(TARN_E_CORRUPT, "%s: %s %zu: %s at address 0x%llx",
                    history->name, history->unit, history->byte, text,
                    (unsigned long long)address);
}

static tarn_trace_block *block_at(const tarn__trace_history *history,
                                  uint32_t block) {
  return (tarn_trace_block *)history->blocks.items + block;
}

// --- places ----------------------------------------------------------------

// One round is enough, since the seed is secret.
static size_t hash_address(const tarn__trace_history *history,
                           uint64_t address) {
  return (size_t)tarn__hash_fold(history->seed ^ address, history->seed | 1);
}

// The slot of |address|, or the empty slot for it.
static place *find_place(const tarn__trace_history *history, uint64_t address) {
  place *places = history->places.items;
  size_t mask = history->places.count - 1;
  assert(places != NULL);
  size_t at = hash_address(history, address) & mask;
  while (places[at].block != 0 && places[at].address != address)
    at = (at + 1) & mask;
  return &places[at];
}

void tarn__history_expect(const tarn__trace_history *history,
                          uint64_t address) {
  const place *places = history->places.items;
  if (places == NULL) return;
  size_t mask = history->places.count - 1;
  __builtin_prefetch(&places[hash_address(history, address) & mask]);
}

// Moves all places into an array of |count|.
static tarn_status rehash(tarn__trace_history *history, size_t count) {
  void *unused = NULL;
  tarn__array old = history->places;
  tarn__array wider = TARN__ARRAY_OF(place);
  TARN__TRY(tarn__array_grow(history->budget, &wider, count, &unused));
  history->places = wider;
  const place *places = old.items;
  for (size_t i = 0; i < old.count; i++) {
    if (places[i].block == 0) continue;
    *find_place(history, places[i].address) = places[i];
  }
  tarn__array_free(history->budget, &old);
  return TARN_OK;
}

// The place of |address|, with room for one more block. Valid until the next
// call.
static tarn_status open_place(tarn__trace_history *history, uint64_t address,
                              place **out_place) {
  enum { LEAST_PLACES = 16 };
  size_t count = history->places.count;
  *out_place = NULL;
  if ((history->place_count + 1) * 2 > count) {
    TARN__TRY(rehash(history, count == 0 ? LEAST_PLACES : count * 2));
  }
  *out_place = find_place(history, address);
  return TARN_OK;
}

// --- sums ------------------------------------------------------------------

// Adds the block's size to |*sum|.
static tarn_status add_size(const tarn__trace_history *history,
                            const tarn_trace_block *block, uint64_t *sum) {
  if (tarn_size_add(*sum, block->size, sum)) return TARN_OK;
  return corrupt(history, block->address,
                 "more than 2^64 bytes are alive at once with a block of %llu "
                 "bytes",
                 (unsigned long long)block->size);
}

static tarn_status count_old(tarn__trace_history *history,
                             const tarn_trace_block *block) {
  TARN__TRY(add_size(history, block, &history->trace.live_peak_bytes));
  history->live_bytes += block->size;  // both are at most the peak
  history->trace.baseline_bytes += block->size;
  history->trace.baseline_count++;
  return TARN_OK;
}

static tarn_status count_born(tarn__trace_history *history,
                              const tarn_trace_block *block) {
  TARN__TRY(add_size(history, block, &history->live_bytes));
  if (history->live_bytes > history->trace.live_peak_bytes) {
    history->trace.live_peak_bytes = history->live_bytes;
    history->trace.live_peak_event = block->born;
  }
  return TARN_OK;
}

// --- blocks and events -----------------------------------------------------

static tarn_status append_block(tarn__trace_history *history,
                                const tarn_trace_block *block,
                                uint32_t *out_index) {
  void *fresh = NULL;
  size_t index = history->blocks.count;
  if (index >= TARN_TRACE_NO_BLOCK - 1) {
    return tarn__fail(TARN_E_UNSUPPORTED, "%s: more than 2^32 blocks",
                      history->name);
  }
  TARN__TRY(tarn__array_reserve(history->budget, &history->blocks, 1));
  TARN__TRY(block->born == TARN_TRACE_BASELINE ? count_old(history, block)
                                               : count_born(history, block));
  TARN__TRY(tarn__array_grow(history->budget, &history->blocks, 1, &fresh));
  *(tarn_trace_block *)fresh = *block;
  *out_index = (uint32_t)index;
  return TARN_OK;
}

static tarn_status check_extent(const tarn__trace_history *history,
                                uint64_t address, uint64_t size) {
  size_t end = 0;
  if (size == 0) return corrupt(history, address, "a block of 0 bytes");
  if (tarn_size_add(address, size, &end)) return TARN_OK;
  return corrupt(history, address,
                 "a block of %llu bytes beyond the address space",
                 (unsigned long long)size);
}

// Appends |block| and makes it the newest at its address, which is |at|.
static tarn_status settle_block(tarn__trace_history *history, place *at,
                                const tarn_trace_block *block,
                                uint32_t *out_index) {
  TARN__TRY(append_block(history, block, out_index));
  if (at->block == 0) history->place_count++;
  *at = (place){.address = block->address,
                .block = *out_index + 1,
                .lives = true,
                .met = at->met};
  return TARN_OK;
}

// Room for one more event, before its block is added, so that neither is added
// alone.
static tarn_status expect_event(tarn__trace_history *history) {
  if (history->events.count >= TARN_TRACE_NO_BLOCK - 1) {
    return tarn__fail(TARN_E_UNSUPPORTED, "%s: more than 2^32 events",
                      history->name);
  }
  return tarn__array_reserve(history->budget, &history->events, 1);
}

static tarn_status append_event(tarn__trace_history *history,
                                const tarn_trace_event *event) {
  void *fresh = NULL;
  TARN__TRY(expect_event(history));
  TARN__TRY(tarn__array_grow(history->budget, &history->events, 1, &fresh));
  *(tarn_trace_event *)fresh = *event;
  if (event->kind == TARN_TRACE_ALLOC || event->kind == TARN_TRACE_FREE) {
    history->trace.request_count++;
  }
  return TARN_OK;
}

// The newest event is the death of |block|.
static void end_block(tarn__trace_history *history, uint32_t block) {
  block_at(history, block)->died = (uint32_t)history->events.count - 1;
  history->live_bytes -= block_at(history, block)->size;
}

// The block that |event| shows first, born at |born|.
static tarn_status begin_block(tarn__trace_history *history, place *at,
                               const tarn_trace_event *event, uint32_t born,
                               uint32_t *out_block) {
  bool old = born == TARN_TRACE_BASELINE;
  tarn_trace_block block = {.size = event->size,
                            .address = event->address,
                            .stream = event->stream,
                            .born = born,
                            .died = TARN_TRACE_NEVER,
                            .stack = old ? TARN_TRACE_NO_STACK : event->stack,
                            .tag = event->tag};
  return settle_block(history, at, &block, out_block);
}

static tarn_status find_born(tarn__trace_history *history, place *at,
                             const tarn_trace_event *event,
                             uint32_t *out_block) {
  if (!at->lives) {
    return begin_block(history, at, event, (uint32_t)history->events.count,
                       out_block);
  }
  return corrupt(history, event->address,
                 "an alloc of %llu bytes where a block of %llu lives",
                 (unsigned long long)event->size,
                 (unsigned long long)block_at(history, at->block - 1)->size);
}

// The block of a free: a living one of the same size, or a new one of the
// baseline.
static tarn_status find_freed(tarn__trace_history *history, place *at,
                              const tarn_trace_event *event,
                              uint32_t *out_block) {
  if (at->block == 0) {
    return begin_block(history, at, event, TARN_TRACE_BASELINE, out_block);
  }
  *out_block = at->block - 1;
  if (!at->lives) {
    return corrupt(history, event->address, "a free of a block freed before");
  }
  uint64_t size = block_at(history, *out_block)->size;
  if (event->size == size) return TARN_OK;
  return corrupt(history, event->address,
                 "a free of %llu bytes of a block of %llu",
                 (unsigned long long)event->size, (unsigned long long)size);
}

// Adds |event|, which concerns a block.
static tarn_status add_to_block(tarn__trace_history *history,
                                tarn_trace_event *event) {
  place *at = NULL;
  TARN__TRY(open_place(history, event->address, &at));
  if (history->frees_without_size && event->size == 0 &&
      event->kind != TARN_TRACE_ALLOC) {
    if (!at->lives) {
      history->trace.unknown_count++;
      return TARN_OK;
    }
    event->size = block_at(history, at->block - 1)->size;
  }
  TARN__TRY(check_extent(history, event->address, event->size));
  TARN__TRY(event->kind == TARN_TRACE_ALLOC
                ? find_born(history, at, event, &event->block)
                : find_freed(history, at, event, &event->block));
  TARN__TRY(append_event(history, event));
  if (event->kind == TARN_TRACE_FREE) {
    end_block(history, event->block);
    at->lives = false;
  }
  return TARN_OK;
}

tarn_status tarn__history_event(tarn__trace_history *history,
                                const tarn_trace_event *event) {
  tarn_trace_event found = *event;
  TARN__TRY(expect_event(history));
  found.block = TARN_TRACE_NO_BLOCK;
  if (event->kind == TARN_TRACE_ALLOC || event->kind == TARN_TRACE_FREE ||
      event->kind == TARN_TRACE_FREE_REQUESTED) {
    return add_to_block(history, &found);
  }
  return append_event(history, &found);
}

// --- blocks without an event of their own ----------------------------------

// Adds |block| to the baseline, at the empty place |at|.
static tarn_status settle_old(tarn__trace_history *history, place *at,
                              const tarn_trace_block *block) {
  uint32_t unused = 0;
  tarn_trace_block old = *block;
  old.born = TARN_TRACE_BASELINE;
  old.died = TARN_TRACE_NEVER;
  return settle_block(history, at, &old, &unused);
}

tarn_status tarn__history_old(tarn__trace_history *history,
                              const tarn_trace_block *block) {
  place *at = NULL;
  TARN__TRY(check_extent(history, block->address, block->size));
  TARN__TRY(open_place(history, block->address, &at));
  if (at->block != 0) {
    return corrupt(history, block->address, "a second block of the baseline");
  }
  return settle_old(history, at, block);
}

tarn_status tarn__history_held(tarn__trace_history *history,
                               const tarn_trace_block *block) {
  place *at = NULL;
  TARN__TRY(check_extent(history, block->address, block->size));
  TARN__TRY(open_place(history, block->address, &at));
  if (at->met) {
    return corrupt(history, block->address, "a second active block");
  }
  if (at->block == 0) {
    TARN__TRY(settle_old(history, at, block));
  } else if (!at->lives) {
    history->trace.ignored_count++;
    TARN__TRY(add_size(history, block, &history->trace.ignored_bytes));
  }
  at->met = true;
  return TARN_OK;
}

tarn_status tarn__history_segment(tarn__trace_history *history,
                                  const tarn_trace_segment *segment) {
  void *fresh = NULL;
  TARN__TRY(tarn__array_grow(history->budget, &history->segments, 1, &fresh));
  *(tarn_trace_segment *)fresh = *segment;
  return TARN_OK;
}

tarn_status tarn__history_tag(tarn__trace_history *history, const char *name,
                              size_t size, uint32_t *out_tag) {
  tarn__trace_stacks *stacks = &history->stacks;
  *out_tag = TARN_TRACE_NO_TAG;
  if (history->tags.spans.count == 0) {
    TARN__TRY(
        tarn__intern_put(&history->tags, history->budget, "", 1, out_tag));
  }
  TARN__TRY(tarn__stacks_zero_ended(stacks, name, size));
  return tarn__intern_put(&history->tags, history->budget,
                          stacks->scratch.items, size + 1, out_tag);
}

void tarn__history_thread(tarn__trace_history *history, uint32_t thread) {
  history->thread = thread;
}

tarn_status tarn__history_birth(tarn__trace_history *history, uint64_t size,
                                uint32_t stack, uint32_t *out_block) {
  tarn_trace_event event = {.kind = TARN_TRACE_ALLOC,
                            .size = size,
                            .stack = stack,
                            .thread = history->thread};
  tarn_trace_block block = {.size = size,
                            .born = (uint32_t)history->events.count,
                            .died = TARN_TRACE_NEVER,
                            .stack = stack};
  TARN__TRY(append_block(history, &block, out_block));
  event.block = *out_block;
  return append_event(history, &event);
}

tarn_status tarn__history_death(tarn__trace_history *history, uint32_t block) {
  tarn_trace_event event = {.kind = TARN_TRACE_FREE,
                            .block = block,
                            .size = block_at(history, block)->size,
                            .stack = block_at(history, block)->stack,
                            .thread = history->thread};
  TARN__TRY(append_event(history, &event));
  end_block(history, block);
  return TARN_OK;
}
