// From events to blocks.
//
// A block is known by the address at which it lives. |places| holds for each
// address that was ever seen the newest block there; whether it lives still,
// its |died| tells. So an address that is not in |places| belonged to nobody
// yet, and a free of it must be of a block that is older than the trace.
//
//       address seen?   newest block   ALLOC     FREE             held
//       no              -              birth     baseline, dies   baseline
//       yes             lives          corrupt   dies             is that one
//       yes             dead           birth     corrupt          is ignored
//
// A free must name the size of its block, and each address is held once.
//
// Sums. A block of the baseline shows itself late, but has lived at every
// moment before: it raises the peak so far, wherever that was, by its size. So
// the peak's event is known at each step without a second pass.
//
// Invariants: at most one living block per address; blocks stand in order of
// discovery until finish, which moves the baseline to the front; no sum of
// bytes exceeds live_peak_bytes but ignored_bytes.
#include "trace/history.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/hostmem.h"
#include "base/status.h"

void tarn__history_init(tarn__history *history, tarn__budget *budget,
                        const char *name) {
  *history = (tarn__history){.budget = budget,
                             .name = name,
                             .unit = "byte",
                             .seed = tarn__hash_seed(),
                             .events = TARN__ARRAY_OF(tarn_trace_event),
                             .blocks = TARN__ARRAY_OF(tarn_trace_block),
                             .segments = TARN__ARRAY_OF(tarn_trace_segment),
                             .places = TARN__ARRAY_OF(uint32_t),
                             .live_peak_event = TARN_TRACE_BASELINE};
  tarn__intern_init(&history->tags);
  tarn__stacks_init(&history->stacks, budget);
}

void tarn__history_deinit(tarn__history *history) {
  tarn__stacks_deinit(&history->stacks);
  tarn__intern_deinit(&history->tags, history->budget);
  tarn__array_free(history->budget, &history->places);
  tarn__array_free(history->budget, &history->segments);
  tarn__array_free(history->budget, &history->blocks);
  tarn__array_free(history->budget, &history->events);
}

__attribute__((format(printf, 3, 4), cold)) static tarn_status corrupt(
    const tarn__history *history, uint64_t address, const char *format, ...) {
  char text[160];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return tarn__fail(TARN_E_CORRUPT, "%s: %s %zu: %s at address 0x%llx",
                    history->name, history->unit, history->byte, text,
                    (unsigned long long)address);
}

static tarn_trace_block *block_at(const tarn__history *history,
                                  uint32_t block) {
  return (tarn_trace_block *)history->blocks.items + block;
}

// --- places ----------------------------------------------------------------

// A place with this bit has been met by a held block; block numbers are below.
#define MET (UINT32_C(1) << 31)

static uint32_t block_in(uint32_t place) {
  return (place & ~MET) - 1;
}

// The slot of |address|, or the empty one where it would stand.
static uint32_t *find_place(const tarn__history *history, uint64_t address) {
  uint32_t *places = history->places.items;
  size_t mask = history->places.count - 1;
  assert(places != NULL);
  size_t at =
      (size_t)tarn__hash(history->seed, &address, sizeof address) & mask;
  while (places[at] != 0 &&
         block_at(history, block_in(places[at]))->address != address) {
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
    *find_place(history, block_at(history, block_in(places[i]))->address) =
        places[i];
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
  return slot == 0 ? TARN_TRACE_NO_BLOCK : block_in(slot);
}

static bool lives(const tarn__history *history, uint32_t block) {
  return block_at(history, block)->died == TARN_TRACE_NEVER;
}

// --- sums ------------------------------------------------------------------

// Adds the block's size to |*sum|.
static tarn_status add_size(const tarn__history *history,
                            const tarn_trace_block *block, uint64_t *sum) {
  if (tarn_size_add(*sum, block->size, sum)) return TARN_OK;
  return corrupt(history, block->address,
                 "more than 2^64 bytes are alive at once with a block of %llu "
                 "bytes",
                 (unsigned long long)block->size);
}

static tarn_status count_old(tarn__history *history,
                             const tarn_trace_block *block) {
  tarn_status status = add_size(history, block, &history->live_peak_bytes);
  if (status != TARN_OK) return status;
  history->live_bytes += block->size;  // both are at most the peak
  history->baseline_bytes += block->size;
  return TARN_OK;
}

static tarn_status count_born(tarn__history *history,
                              const tarn_trace_block *block) {
  tarn_status status = add_size(history, block, &history->live_bytes);
  if (status != TARN_OK) return status;
  if (history->live_bytes > history->live_peak_bytes) {
    history->live_peak_bytes = history->live_bytes;
    history->live_peak_event = block->born;
  }
  return TARN_OK;
}

static tarn_status count_ignored(tarn__history *history,
                                 const tarn_trace_block *block) {
  history->ignored_count++;
  return add_size(history, block, &history->ignored_bytes);
}

// --- blocks and events -----------------------------------------------------

static tarn_status append_block(tarn__history *history,
                                const tarn_trace_block *block,
                                uint32_t *out_index) {
  void *fresh = NULL;
  size_t index = history->blocks.count;
  if (index >= MET - 1) {
    return tarn__fail(TARN_E_UNSUPPORTED, "%s: more than 2^31 blocks",
                      history->name);
  }
  tarn_status status =
      tarn__array_reserve(history->budget, &history->blocks, 1);
  if (status == TARN_OK) {
    status = block->born == TARN_TRACE_BASELINE ? count_old(history, block)
                                                : count_born(history, block);
  }
  if (status == TARN_OK) {
    status = tarn__array_grow(history->budget, &history->blocks, 1, &fresh);
  }
  if (status != TARN_OK) return status;
  *(tarn_trace_block *)fresh = *block;
  *out_index = (uint32_t)index;
  return TARN_OK;
}

static tarn_status check_extent(const tarn__history *history, uint64_t address,
                                uint64_t size) {
  size_t end = 0;
  if (size == 0) return corrupt(history, address, "a block of 0 bytes");
  if (tarn_size_add(address, size, &end)) return TARN_OK;
  return corrupt(history, address,
                 "a block of %llu bytes beyond the address space",
                 (unsigned long long)size);
}

// Appends |block| and makes it the newest at its address.
static tarn_status settle_block(tarn__history *history,
                                const tarn_trace_block *block,
                                uint32_t *out_index) {
  tarn_status status = widen(history);
  if (status == TARN_OK) status = append_block(history, block, out_index);
  if (status != TARN_OK) return status;
  uint32_t *place = find_place(history, block->address);
  if (*place == 0) history->place_count++;
  *place = *out_index + 1;
  return TARN_OK;
}

// Room for one more event, before its block is added: the one is not to be
// there without the other.
static tarn_status expect_event(tarn__history *history) {
  if (history->events.count >= TARN_TRACE_NO_BLOCK - 1) {
    return tarn__fail(TARN_E_UNSUPPORTED, "%s: more than 2^32 events",
                      history->name);
  }
  return tarn__array_reserve(history->budget, &history->events, 1);
}

static tarn_status append_event(tarn__history *history,
                                const tarn_trace_event *event) {
  void *fresh = NULL;
  tarn_status status = expect_event(history);
  if (status == TARN_OK) {
    status = tarn__array_grow(history->budget, &history->events, 1, &fresh);
  }
  if (status != TARN_OK) return status;
  *(tarn_trace_event *)fresh = *event;
  if (event->kind == TARN_TRACE_ALLOC || event->kind == TARN_TRACE_FREE) {
    history->request_count++;
  }
  return TARN_OK;
}

// The newest event is the death of |block|.
static void end_block(tarn__history *history, uint32_t block) {
  block_at(history, block)->died = (uint32_t)history->events.count - 1;
  history->live_bytes -= block_at(history, block)->size;
}

static tarn_status find_born(tarn__history *history,
                             const tarn_trace_event *event,
                             uint32_t *out_block) {
  uint32_t newest = newest_at(history, event->address);
  if (newest != TARN_TRACE_NO_BLOCK && lives(history, newest)) {
    return corrupt(history, event->address,
                   "an alloc of %llu bytes where a block of %llu lives",
                   (unsigned long long)event->size,
                   (unsigned long long)block_at(history, newest)->size);
  }
  tarn_trace_block block = {.size = event->size,
                            .address = event->address,
                            .stream = event->stream,
                            .born = (uint32_t)history->events.count,
                            .died = TARN_TRACE_NEVER,
                            .stack = event->stack,
                            .tag = event->tag};
  return settle_block(history, &block, out_block);
}

// A free names the size that its alloc named.
static tarn_status check_free(const tarn__history *history,
                              const tarn_trace_event *event, uint32_t block) {
  uint64_t size = block_at(history, block)->size;
  if (!lives(history, block)) {
    return corrupt(history, event->address, "a free of a block freed before");
  }
  if (event->size == size) return TARN_OK;
  return corrupt(history, event->address,
                 "a free of %llu bytes of a block of %llu",
                 (unsigned long long)event->size, (unsigned long long)size);
}

// The block that a free concerns: one that lives, or one of the baseline that
// shows itself by this.
static tarn_status find_freed(tarn__history *history,
                              const tarn_trace_event *event,
                              uint32_t *out_block) {
  uint32_t newest = newest_at(history, event->address);
  if (newest != TARN_TRACE_NO_BLOCK) {
    *out_block = newest;
    return check_free(history, event, newest);
  }
  tarn_trace_block block = {.size = event->size,
                            .address = event->address,
                            .stream = event->stream,
                            .born = TARN_TRACE_BASELINE,
                            .died = TARN_TRACE_NEVER,
                            .stack = TARN_TRACE_NO_STACK,
                            .tag = event->tag};
  return settle_block(history, &block, out_block);
}

static bool concerns_block(tarn_trace_kind kind) {
  return kind == TARN_TRACE_ALLOC || kind == TARN_TRACE_FREE ||
         kind == TARN_TRACE_FREE_REQUESTED;
}

static tarn_status find_block(tarn__history *history,
                              const tarn_trace_event *event,
                              uint32_t *out_block) {
  *out_block = TARN_TRACE_NO_BLOCK;
  if (!concerns_block(event->kind)) return TARN_OK;
  tarn_status status = check_extent(history, event->address, event->size);
  if (status != TARN_OK) return status;
  return event->kind == TARN_TRACE_ALLOC
             ? find_born(history, event, out_block)
             : find_freed(history, event, out_block);
}

// Whether |event|, which names no size, concerns a block that is known; then
// it names that block's.
static bool find_size(tarn__history *history, tarn_trace_event *event) {
  uint32_t newest = newest_at(history, event->address);
  if (newest == TARN_TRACE_NO_BLOCK || !lives(history, newest)) {
    history->unknown_count++;
    return false;
  }
  event->size = block_at(history, newest)->size;
  return true;
}

static bool lacks_size(const tarn__history *history,
                       const tarn_trace_event *event) {
  return history->frees_without_size && event->size == 0 &&
         (event->kind == TARN_TRACE_FREE ||
          event->kind == TARN_TRACE_FREE_REQUESTED);
}

tarn_status tarn__history_event(tarn__history *history,
                                const tarn_trace_event *event) {
  tarn_trace_event found = *event;
  if (lacks_size(history, event) && !find_size(history, &found)) {
    return TARN_OK;
  }
  tarn_status status = expect_event(history);
  if (status == TARN_OK) status = find_block(history, &found, &found.block);
  if (status == TARN_OK) status = append_event(history, &found);
  if (status == TARN_OK && event->kind == TARN_TRACE_FREE) {
    end_block(history, found.block);
  }
  return status;
}

// --- blocks without an event of their own ----------------------------------

tarn_status tarn__history_old(tarn__history *history,
                              const tarn_trace_block *block) {
  uint32_t index = 0;
  tarn_trace_block old = *block;
  old.born = TARN_TRACE_BASELINE;
  old.died = TARN_TRACE_NEVER;
  tarn_status status = check_extent(history, old.address, old.size);
  if (status != TARN_OK) return status;
  if (newest_at(history, old.address) != TARN_TRACE_NO_BLOCK) {
    return corrupt(history, old.address, "a second block of the baseline");
  }
  return settle_block(history, &old, &index);
}

static tarn_status hold_known(tarn__history *history,
                              const tarn_trace_block *block, uint32_t newest) {
  uint32_t *place = find_place(history, block->address);
  if ((*place & MET) != 0) {
    return corrupt(history, block->address, "a second active block");
  }
  *place |= MET;
  if (lives(history, newest)) return TARN_OK;
  return count_ignored(history, block);
}

tarn_status tarn__history_held(tarn__history *history,
                               const tarn_trace_block *block) {
  uint32_t newest = newest_at(history, block->address);
  uint32_t index = 0;
  tarn_status status = check_extent(history, block->address, block->size);
  if (status != TARN_OK) return status;
  if (newest != TARN_TRACE_NO_BLOCK) return hold_known(history, block, newest);
  tarn_trace_block held = *block;
  held.born = TARN_TRACE_BASELINE;
  held.died = TARN_TRACE_NEVER;
  status = settle_block(history, &held, &index);
  if (status == TARN_OK) *find_place(history, block->address) |= MET;
  return status;
}

tarn_status tarn__history_segment(tarn__history *history,
                                  const tarn_trace_segment *segment) {
  void *fresh = NULL;
  tarn_status status =
      tarn__array_grow(history->budget, &history->segments, 1, &fresh);
  if (status == TARN_OK) *(tarn_trace_segment *)fresh = *segment;
  return status;
}

tarn_status tarn__history_tag(tarn__history *history, const char *name,
                              size_t size, uint32_t *out_tag) {
  tarn__stacks *stacks = &history->stacks;
  *out_tag = TARN_TRACE_NO_TAG;
  if (history->tags.spans.count == 0) {
    tarn_status status =
        tarn__intern_put(&history->tags, history->budget, "", 1, out_tag);
    if (status != TARN_OK) return status;
  }
  tarn_status status = tarn__stacks_zero_ended(stacks, name, size);
  if (status != TARN_OK) return status;
  return tarn__intern_put(&history->tags, history->budget,
                          stacks->scratch.items, size + 1, out_tag);
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
  if (status == TARN_OK) end_block(history, block);
  return status;
}
