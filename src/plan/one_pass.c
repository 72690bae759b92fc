// Ranges of units, used or free, lie beside each other up to |top|;
// no two free ones touch. Free ones hang in bins by size, four to each power
// of two. All of a bin beyond that of a size are large enough for it; of its
// own bin a few are looked at.
//
// All ranges are whole grains.
//
// A range's place in |ranges| stays while it is there: an item's range is
// found again when the item ends.
#include "base/status.h"
#include "plan/greedy.h"
#include "plan/placements.h"

enum {
  BINS = 256,
  LOOKED_AT = 8,
};

#define NONE UINT32_MAX

typedef struct range {
  uint64_t low;
  uint64_t size;
  uint32_t before;  // its neighbours; while it is not in use, the next unused
  uint32_t after;
  uint32_t bin_before;  // free: in its bin
  uint32_t bin_after;
  bool free;
} range;

typedef struct passing {
  const tarn__plan_instance *in;
  uint64_t grain;
  uint32_t *begin;   // by section: where its part of |begins| starts
  uint32_t *begins;  // items
  uint32_t *end;
  uint32_t *ends;
  uint32_t *held;  // by item: its range
  range *ranges;
  uint32_t count;  // of them that were ever in use
  size_t room;
  uint32_t unused;
  uint32_t last;  // the highest
  uint64_t top;
  uint32_t bins[BINS];
  uint64_t filled[BINS / 64];  // a bit for each bin
  tarn__plan_memory memory;
} passing;

// --- bins --------------------------------------------------------------------

static uint32_t bin_of(uint64_t size) {
  uint32_t power = 63 - (uint32_t)__builtin_clzll(size | 1);
  uint32_t quarter = power < 2 ? 0 : (uint32_t)(size >> (power - 2)) & 3;
  return power * 4 + quarter;
}

static void hang(passing *p, uint32_t index) {
  range *r = &p->ranges[index];
  uint32_t bin = bin_of(r->size);
  r->free = true;
  r->bin_before = NONE;
  r->bin_after = p->bins[bin];
  if (r->bin_after != NONE) p->ranges[r->bin_after].bin_before = index;
  p->bins[bin] = index;
  p->filled[bin / 64] |= UINT64_C(1) << bin % 64;
}

static void unhang(passing *p, uint32_t index) {
  range *r = &p->ranges[index];
  uint32_t bin = bin_of(r->size);
  r->free = false;
  if (r->bin_after != NONE) p->ranges[r->bin_after].bin_before = r->bin_before;
  if (r->bin_before != NONE) {
    p->ranges[r->bin_before].bin_after = r->bin_after;
    return;
  }
  p->bins[bin] = r->bin_after;
  if (r->bin_after == NONE) p->filled[bin / 64] &= ~(UINT64_C(1) << bin % 64);
}

// The first bin from |bin| on that has something; BINS: none.
static uint32_t filled_from(const passing *p, uint32_t bin) {
  for (uint32_t word = bin / 64; word < BINS / 64; word++) {
    uint64_t bits = p->filled[word];
    if (word == bin / 64) bits &= ~UINT64_C(0) << bin % 64;
    if (bits != 0) return word * 64 + (uint32_t)__builtin_ctzll(bits);
  }
  return BINS;
}

// The closest of a few in its own bin, or any of the next.
static uint32_t find_free(const passing *p, uint64_t size) {
  uint32_t bin = bin_of(size);
  uint32_t best = NONE;
  uint32_t at = p->bins[bin];
  for (int i = 0; i < LOOKED_AT && at != NONE; i++) {
    const range *r = &p->ranges[at];
    bool fits = r->size >= size;
    if (fits && (best == NONE || r->size < p->ranges[best].size)) best = at;
    at = r->bin_after;
  }
  if (best != NONE || bin + 1 == BINS) return best;
  bin = filled_from(p, bin + 1);
  return bin == BINS ? NONE : p->bins[bin];
}

// --- ranges ------------------------------------------------------------------

// Room for the three ranges that one item can make.
static bool make_room(passing *p) {
  p->ranges = tarn__plan_grow(&p->memory, p->ranges, &p->room,
                              (size_t)p->count + 3, sizeof *p->ranges);
  return !p->memory.failed;
}

// A used one, beside and above |before|.
static uint32_t add_after(passing *p, uint32_t before, uint64_t low,
                          uint64_t size) {
  uint32_t index = p->unused;
  if (index == NONE) {
    index = p->count++;
  } else {
    p->unused = p->ranges[index].before;
  }
  uint32_t after = before == NONE ? NONE : p->ranges[before].after;
  p->ranges[index] =
      (range){.low = low, .size = size, .before = before, .after = after};
  if (before != NONE) p->ranges[before].after = index;
  if (after != NONE) p->ranges[after].before = index;
  if (after == NONE) p->last = index;
  return index;
}

// |index| takes over the one above it.
static void swallow(passing *p, uint32_t index) {
  range *r = &p->ranges[index];
  uint32_t gone = r->after;
  r->size += p->ranges[gone].size;
  r->after = p->ranges[gone].after;
  if (r->after != NONE) p->ranges[r->after].before = index;
  if (r->after == NONE) p->last = index;
  p->ranges[gone].before = p->unused;
  p->unused = gone;
}

static void give_back(passing *p, uint32_t index) {
  uint32_t after = p->ranges[index].after;
  if (after != NONE && p->ranges[after].free) {
    unhang(p, after);
    swallow(p, index);
  }
  uint32_t before = p->ranges[index].before;
  if (before != NONE && p->ranges[before].free) {
    unhang(p, before);
    swallow(p, before);
    index = before;
  }
  hang(p, index);
}

// At the top, also out of what is free there.
static uint32_t extend(passing *p, uint64_t size, uint64_t alignment) {
  uint32_t index = p->last;
  if (index != NONE && p->ranges[index].free) {
    unhang(p, index);
  } else {
    index = add_after(p, index, p->top, 0);
  }
  range *r = &p->ranges[index];
  uint64_t need = tarn__plan_align_up(r->low, alignment) + size - r->low;
  if (r->size < need) r->size = need;
  p->top = r->low + r->size;
  return index;
}

// A used range of exactly |size|, in grains, aligned.
static uint32_t take(passing *p, uint64_t size, uint64_t alignment) {
  uint32_t index = find_free(p, size + (alignment - p->grain));
  if (index == NONE) {
    index = extend(p, size, alignment);
  } else {
    unhang(p, index);
  }
  range *r = &p->ranges[index];
  uint64_t low = tarn__plan_align_up(r->low, alignment);
  uint64_t high = r->low + r->size;
  if (high > low + size) {
    r->size = low + size - r->low;
    hang(p, add_after(p, index, low + size, high - (low + size)));
  }
  r = &p->ranges[index];
  if (low == r->low) return index;
  r->size = low - r->low;
  hang(p, index);
  return add_after(p, index, low, size);
}

// --- the pass ----------------------------------------------------------------

static bool begin_section(passing *p, size_t section, uint64_t *offsets) {
  for (uint32_t i = p->begin[section]; i < p->begin[section + 1]; i++) {
    uint32_t index = p->begins[i];
    const tarn__plan_item *item = &p->in->items[index];
    if (item->fixed) continue;
    if (!make_room(p)) return false;
    uint64_t size = tarn__plan_align_up(item->size, p->grain);
    p->held[index] = take(p, size, item->alignment);
    offsets[index] = p->ranges[p->held[index]].low;
  }
  return true;
}

static void end_section(passing *p, size_t section) {
  for (uint32_t i = p->end[section]; i < p->end[section + 1]; i++) {
    uint32_t index = p->ends[i];
    if (!p->in->items[index].fixed) give_back(p, p->held[index]);
  }
}

static void lie_above_fixed(passing *p, uint64_t *offsets) {
  for (size_t i = 0; i < p->in->item_count; i++) {
    const tarn__plan_item *item = &p->in->items[i];
    if (!item->fixed) continue;
    offsets[i] = item->offset;
    if (p->top < item->offset + item->size) {
      p->top = item->offset + item->size;
    }
  }
  p->top = tarn__plan_align_up(p->top, p->grain);
}

// Items in the order of the sections that they begin in, and end before.
static tarn_status sort_items(passing *p) {
  const tarn__plan_instance *in = p->in;
  tarn__plan_memory *memory = &p->memory;
  p->held = tarn__plan_array(memory, in->item_count + 1, sizeof *p->held);
  TARN__TRY(tarn__plan_bucket(memory, &in->items->first, sizeof *in->items,
                              in->item_count, in->section_count + 1, &p->begin,
                              &p->begins));
  return tarn__plan_bucket(memory, &in->items->last, sizeof *in->items,
                           in->item_count, in->section_count + 1, &p->end,
                           &p->ends);
}

tarn_status tarn__plan_one_pass(const tarn__plan_instance *in,
                                uint64_t *out_offsets) {
  passing p = {
      .in = in, .grain = tarn__plan_grain(in), .unused = NONE, .last = NONE};
  for (int i = 0; i < BINS; i++)
    p.bins[i] = NONE;
  lie_above_fixed(&p, out_offsets);
  bool good = sort_items(&p) == TARN_OK;
  for (size_t section = 0; good && section < in->section_count; section++) {
    end_section(&p, section);
    good = begin_section(&p, section, out_offsets);
  }
  tarn__plan_memory_free(&p.memory);
  return good ? TARN_OK : TARN_E_NOMEM;
}
