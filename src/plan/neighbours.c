// A sweep over the sections finds each pair of pieces that share one, when the
// later of the two begins. It runs twice: to count, and to fill the lists.
// Items with several pieces may meet more than once; duplicates are removed at
// the end.
//
// The offsets that a fixed item forbids a neighbour are those between where the
// neighbour is just below it and where it is just above. Several such ranges
// may overlap; they are sorted by where they begin.
#include "plan/neighbours.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"

typedef struct sweep {
  tarn__plan_neighbours *n;
  tarn__plan_memory *lists;  // of |n|
  const uint32_t *owner;     // by piece: its item
  uint32_t *order;           // pieces by their first section
  uint32_t *active;          // pieces that may not have ended
  uint32_t
      *fill;  // by item: edges so far; while removing duplicates: where one was
  uint64_t edges;
  uint64_t most_edges;
  bool filling;
  tarn__plan_memory memory;
} sweep;

// --- pairs -------------------------------------------------------------------

static void add_edge(sweep *s, uint32_t from, uint32_t to) {
  tarn__plan_neighbours *n = s->n;
  uint32_t item = s->owner[from];
  uint32_t edge = n->first[item] + s->fill[item]++;
  if (!s->filling) return;
  n->item[edge] = s->owner[to];
  if (n->above == NULL) return;
  n->above[edge] = n->in->pieces[from].size;
  n->below[edge] = n->in->pieces[to].size;
}

// Pairs |piece| with what is active, and drops what has ended.
static size_t meet(sweep *s, uint32_t piece, size_t active) {
  const tarn__plan_piece *pieces = s->n->in->pieces;
  size_t kept = 0;
  for (size_t i = 0; i < active; i++) {
    uint32_t other = s->active[i];
    if (pieces[other].last <= pieces[piece].first) continue;
    s->active[kept++] = other;
    if (s->owner[other] == s->owner[piece]) continue;
    add_edge(s, piece, other);
    add_edge(s, other, piece);
    s->edges += 2;
  }
  s->active[kept++] = piece;
  return kept;
}

static bool sweep_over(sweep *s) {
  size_t active = 0;
  s->edges = 0;
  memset(s->fill, 0, s->n->in->item_count * sizeof *s->fill);
  for (size_t i = 0; i < s->n->in->piece_count; i++) {
    active = meet(s, s->order[i], active);
    if (s->edges > s->most_edges) return false;
  }
  return true;
}

// --- duplicates --------------------------------------------------------------

static void keep_edge(tarn__plan_neighbours *n, uint32_t to, uint32_t from) {
  n->item[to] = n->item[from];
  if (n->above == NULL) return;
  n->above[to] = n->above[from];
  n->below[to] = n->below[from];
}

static void widen_edge(tarn__plan_neighbours *n, uint32_t edge, uint32_t by) {
  if (n->above == NULL) return;
  if (n->above[edge] < n->above[by]) n->above[edge] = n->above[by];
  if (n->below[edge] < n->below[by]) n->below[edge] = n->below[by];
}

static void thin_out(sweep *s) {
  tarn__plan_neighbours *n = s->n;
  uint32_t to = 0;
  uint32_t from = 0;
  memset(s->fill, 0xff, n->in->item_count * sizeof *s->fill);
  for (uint32_t i = 0; i < n->in->item_count; i++) {
    uint32_t start = to;
    for (uint32_t end = n->first[i + 1]; from < end; from++) {
      uint32_t *seen = &s->fill[n->item[from]];
      if (*seen != UINT32_MAX && *seen >= start) {
        widen_edge(n, *seen, from);
      } else {
        *seen = to;
        keep_edge(n, to++, from);
      }
    }
    n->first[i] = start;
  }
  n->first[n->in->item_count] = to;
}

// --- the lists ---------------------------------------------------------------

static bool is_uneven(const tarn__plan_instance *in) {
  for (size_t i = 0; i < in->item_count; i++) {
    const tarn__plan_piece *pieces = tarn__plan_pieces(in, &in->items[i]);
    for (uint32_t p = 1; p < in->items[i].piece_count; p++) {
      if (pieces[p].size != pieces[0].size) return true;
    }
  }
  return false;
}

static tarn_status make_edges(sweep *s, bool uneven) {
  tarn__plan_neighbours *n = s->n;
  uint32_t sum = 0;
  for (size_t i = 0; i < n->in->item_count; i++) {
    n->first[i] = sum;
    sum += s->fill[i];
  }
  n->first[n->in->item_count] = sum;
  size_t room = (size_t)sum + 1;
  n->item = tarn__plan_array(s->lists, room, sizeof *n->item);
  if (uneven) {
    n->above = tarn__plan_array(s->lists, room, sizeof *n->above);
    n->below = tarn__plan_array(s->lists, room, sizeof *n->below);
  }
  return tarn__plan_memory_status(s->lists);
}

static tarn_status list_sections(sweep *s, size_t most) {
  tarn__plan_neighbours *n = s->n;
  const tarn__plan_instance *in = n->in;
  uint64_t sum = 0;
  for (size_t p = 0; p < in->piece_count; p++) {
    sum += in->pieces[p].last - in->pieces[p].first;
  }
  if (sum > most / sizeof *n->present || sum >= UINT32_MAX) return TARN_FULL;
  for (size_t p = 0; p < in->piece_count; p++) {
    for (uint32_t t = in->pieces[p].first; t < in->pieces[p].last; t++) {
      n->begin[t + 2]++;
    }
  }
  for (size_t t = 0; t <= in->section_count; t++)
    n->begin[t + 1] += n->begin[t];
  n->present = tarn__plan_array(s->lists, (size_t)sum + 1, sizeof *n->present);
  if (n->present == NULL) return TARN_E_NOMEM;
  for (size_t p = 0; p < in->piece_count; p++) {
    for (uint32_t t = in->pieces[p].first; t < in->pieces[p].last; t++) {
      n->present[n->begin[t + 1]++] = s->owner[p];
    }
  }
  return TARN_OK;
}

static tarn_status make_lists(sweep *s, size_t most) {
  tarn__plan_neighbours *n = s->n;
  const tarn__plan_instance *in = n->in;
  tarn__plan_memory *memory = &s->memory;
  uint32_t *begin;
  s->active = tarn__plan_array(memory, in->piece_count + 1, sizeof *s->active);
  s->fill = tarn__plan_array(memory, in->item_count + 1, sizeof *s->fill);
  n->first = tarn__plan_array(s->lists, in->item_count + 2, sizeof *n->first);
  n->begin =
      tarn__plan_array(s->lists, in->section_count + 2, sizeof *n->begin);
  if (memory->failed || s->lists->failed) return TARN_E_NOMEM;
  bool uneven = is_uneven(in);
  s->most_edges = most / (uneven ? 20 : 4);
  if (s->most_edges >= UINT32_MAX) s->most_edges = UINT32_MAX - 1;
  TARN__TRY(tarn__plan_bucket(memory, &in->pieces->first, sizeof *in->pieces,
                              in->piece_count, in->section_count, &begin,
                              &s->order));
  if (!sweep_over(s)) return TARN_FULL;
  TARN__TRY(make_edges(s, uneven));
  s->filling = true;
  if (!sweep_over(s)) return TARN_FULL;
  thin_out(s);
  return list_sections(s, most);
}

// --- fixed items -------------------------------------------------------------

static void find_blocked(tarn__plan_neighbours *n, uint32_t item) {
  const tarn__plan_item *own = &n->in->items[item];
  tarn__plan_range *blocked = n->blocked + n->first[item];
  uint32_t count = 0;
  for (uint32_t e = n->first[item]; e < n->first[item + 1]; e++) {
    uint32_t other = n->item[e];
    if (!n->in->items[other].fixed) continue;
    uint64_t at = n->in->items[other].offset;
    uint64_t above = tarn__plan_above(n, item, e);
    tarn__plan_range b = {at < above ? 0 : at - above + 1,
                          at + tarn__plan_below(n, e)};
    if (own->fixed && b.low <= own->offset && own->offset < b.high) {
      n->fixed_collide = true;
    }
    blocked[count++] = b;
  }
  tarn__plan_ranges_sort(blocked, count);
  n->blocked_count[item] = count;
}

static tarn_status make_blocked(const sweep *s) {
  tarn__plan_neighbours *n = s->n;
  const tarn__plan_instance *in = n->in;
  n->any_offset = true;
  for (size_t i = 0; i < in->item_count; i++) {
    n->any_fixed |= in->items[i].fixed;
    n->any_offset &= !in->items[i].fixed && in->items[i].alignment == 1;
  }
  if (!n->any_fixed) return TARN_OK;
  size_t edges = n->first[in->item_count];
  n->blocked = tarn__plan_array(s->lists, edges + 1, sizeof *n->blocked);
  n->blocked_count =
      tarn__plan_array(s->lists, in->item_count + 1, sizeof *n->blocked_count);
  if (s->lists->failed) return TARN_E_NOMEM;
  for (uint32_t i = 0; i < in->item_count; i++)
    find_blocked(n, i);
  return TARN_OK;
}

// --- making them -------------------------------------------------------------

tarn_status tarn__plan_neighbours_make(const tarn__plan_instance *instance,
                                       size_t most, tarn__plan_memory *memory,
                                       tarn__plan_neighbours *out) {
  *out = (tarn__plan_neighbours){.in = instance};
  sweep s = {.n = out, .lists = memory, .owner = instance->item_of_piece};
  tarn_status status = make_lists(&s, most);
  if (status == TARN_OK) status = make_blocked(&s);
  tarn__plan_memory_free(&s.memory);
  return status;
}

// --- offsets -----------------------------------------------------------------

uint64_t tarn__plan_settle_among(const tarn__plan_neighbours *n, uint32_t item,
                                 uint64_t from) {
  uint64_t alignment = n->in->items[item].alignment;
  from = tarn__plan_align_up(from, alignment);
  if (!n->any_fixed) return from;
  (void)tarn__plan_lift(n->blocked + n->first[item], 0, n->blocked_count[item],
                        1, alignment, &from);
  return from;
}

bool tarn__plan_lay_out(const tarn__plan_neighbours *n, uint64_t capacity,
                        uint64_t *at, uint64_t *least) {
  bool all = true;
  for (uint32_t i = 0; i < n->in->item_count; i++) {
    bool fixed = n->in->items[i].fixed;
    at[i] = fixed ? n->in->items[i].offset : tarn__plan_settle(n, i, 0);
    least[i] = fixed ? TARN__PLAN_DOWN : at[i];
    all &= tarn__plan_ends_within(n->in, i, at[i], capacity);
  }
  return all;
}

uint64_t tarn__plan_fixed_above(const tarn__plan_neighbours *n,
                                uint32_t section, uint64_t floor) {
  uint64_t sum = 0;
  for (uint32_t i = n->begin[section]; i < n->begin[section + 1]; i++) {
    uint32_t item = n->present[i];
    if (!n->in->items[item].fixed) continue;
    const tarn__plan_piece *piece =
        tarn__plan_pieces(n->in, &n->in->items[item]);
    while (piece->last <= section)
      piece++;
    uint64_t at = n->in->items[item].offset;
    uint64_t from = at < floor ? floor : at;
    uint64_t top = at + piece->size;
    if (from < top) sum += top - from;
  }
  return sum;
}

// --- identical items ---------------------------------------------------------

typedef struct candidate {
  const tarn__plan_item *item;
  const tarn__plan_piece *pieces;
} candidate;

// In any order, as long as identical ones are beside each other.
static int by_nature(const void *x, const void *y) {
  const candidate *a = x;
  const candidate *b = y;
  if (a->item->piece_count != b->item->piece_count) {
    return a->item->piece_count < b->item->piece_count ? -1 : 1;
  }
  if (a->item->alignment != b->item->alignment) {
    return a->item->alignment < b->item->alignment ? -1 : 1;
  }
  return memcmp(a->pieces, b->pieces, a->item->piece_count * sizeof *a->pieces);
}

static int by_nature_and_index(const void *x, const void *y) {
  const candidate *a = x;
  const candidate *b = y;
  int order = by_nature(x, y);
  return order != 0 ? order : (a->item > b->item) - (a->item < b->item);
}

static void close_ring(const tarn__plan_instance *in, const candidate *sorted,
                       size_t begin, size_t end, uint32_t *next) {
  for (size_t i = begin; i < end; i++) {
    size_t after = i + 1 < end ? i + 1 : begin;
    next[sorted[i].item - in->items] =
        (uint32_t)(sorted[after].item - in->items);
  }
}

tarn_status tarn__plan_identical(const tarn__plan_instance *instance,
                                 uint32_t *next) {
  size_t count = instance->item_count;
  candidate *sorted = tarn__host_array(count + 1, sizeof *sorted);
  if (sorted == NULL) return TARN_E_NOMEM;
  for (size_t i = 0; i < count; i++) {
    const tarn__plan_item *item = &instance->items[i];
    sorted[i] = (candidate){item, tarn__plan_pieces(instance, item)};
  }
  qsort(sorted, count, sizeof *sorted, by_nature_and_index);
  for (size_t begin = 0, end = 0; begin < count; begin = end) {
    while (end < count && by_nature(&sorted[begin], &sorted[end]) == 0)
      end++;
    close_ring(instance, sorted, begin, end, next);
  }
  tarn__host_free_array(sorted, count + 1, sizeof *sorted);
  return TARN_OK;
}

// --- marks -------------------------------------------------------------------

// The stride is such that the lists of all marks together are no longer than a
// few times the number of items, however long the items live.
enum { LISTED_PER_ITEM = 4 };

static void choose_stride(tarn__plan_spans *s) {
  const tarn__plan_instance *in = s->in;
  uint64_t sections = 0;
  for (size_t i = 0; i < in->item_count; i++)
    sections += in->items[i].last - in->items[i].first;
  s->stride = (uint32_t)(sections / (LISTED_PER_ITEM * in->item_count + 1)) + 1;
  s->marks = (uint32_t)(in->section_count / s->stride) + 1;
}

// The marks that |item| crosses are [first, last).
static void marks_of(const tarn__plan_spans *s, const tarn__plan_item *item,
                     uint32_t *first, uint32_t *last) {
  *first = item->first / s->stride + 1;
  *last = (item->last - 1) / s->stride + 1;
}

static void count_crossings(tarn__plan_spans *s) {
  uint32_t sum = 0;
  for (size_t i = 0; i < s->in->item_count; i++) {
    uint32_t first, last;
    marks_of(s, &s->in->items[i], &first, &last);
    for (uint32_t m = first; m < last; m++)
      s->mark[m]++;
  }
  for (uint32_t m = 0; m <= s->marks; m++)
    s->mark[m] = sum += s->mark[m];
}

static void list_crossings(tarn__plan_spans *s) {
  for (size_t i = s->in->item_count; i-- > 0;) {
    uint32_t first, last;
    marks_of(s, &s->in->items[i], &first, &last);
    for (uint32_t m = first; m < last; m++)
      s->across[--s->mark[m]] = (uint32_t)i;
  }
}

tarn_status tarn__plan_spans_make(const tarn__plan_instance *in,
                                  tarn__plan_memory *memory,
                                  tarn__plan_spans *s) {
  *s = (tarn__plan_spans){.in = in};
  choose_stride(s);
  s->mark = tarn__plan_array(memory, (size_t)s->marks + 1, sizeof *s->mark);
  TARN__TRY(tarn__plan_bucket(memory, &in->items->first, sizeof *in->items,
                              in->item_count, in->section_count, &s->begin,
                              &s->items));
  count_crossings(s);
  s->across = tarn__plan_array(memory, (size_t)s->mark[s->marks] + 1,
                               sizeof *s->across);
  if (memory->failed) return TARN_E_NOMEM;
  list_crossings(s);
  return TARN_OK;
}

size_t tarn__plan_spans_meet(const tarn__plan_spans *s, uint32_t first,
                             uint32_t last, uint32_t *out) {
  const tarn__plan_item *items = s->in->items;
  uint32_t mark = first / s->stride;
  size_t count = 0;
  for (uint32_t i = s->mark[mark]; i < s->mark[mark + 1]; i++) {
    if (items[s->across[i]].last > first) out[count++] = s->across[i];
  }
  for (uint32_t i = s->begin[(size_t)mark * s->stride]; i < s->begin[last];
       i++) {
    if (items[s->items[i]].last > first) out[count++] = s->items[i];
  }
  return count;
}

uint32_t tarn__plan_spans_count(const tarn__plan_spans *s,
                                const tarn__plan_item *item) {
  uint32_t mark = item->first / s->stride;
  return s->mark[mark + 1] - s->mark[mark] + s->begin[item->last] -
         s->begin[item->first];
}
