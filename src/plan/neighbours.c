// A sweep over the sections finds each pair of pieces that share one, when the
// later of the two begins. It is done twice: to count, and to fill the lists.
// Items with several pieces may meet more than once; the lists are thinned out
// at the end.
#include "plan/neighbours.h"

#include <string.h>

#include "base/hostmem.h"

typedef struct sweep {
  tarn__plan_neighbours *n;
  uint32_t *owner;   // by piece: its item
  uint32_t *order;   // pieces by their first section
  uint32_t *active;  // pieces that may not have ended
  uint32_t *fill;    // by item: edges so far; while thinning: where one was
  uint64_t edges;
  uint64_t most_edges;
  bool filling;
} sweep;

static tarn_status make_room(sweep *s) {
  const tarn__plan_instance *in = s->n->in;
  s->owner = tarn__host_array(in->piece_count + 1, sizeof *s->owner);
  s->order = tarn__host_array(in->piece_count + 1, sizeof *s->order);
  s->active = tarn__host_array(in->piece_count + 1, sizeof *s->active);
  s->fill = tarn__host_array(in->item_count + 1, sizeof *s->fill);
  s->n->first = tarn__host_array(in->item_count + 2, sizeof *s->n->first);
  s->n->begin = tarn__host_array(in->section_count + 2, sizeof *s->n->begin);
  bool made = s->owner != NULL && s->order != NULL && s->active != NULL &&
              s->fill != NULL && s->n->first != NULL && s->n->begin != NULL;
  return made ? TARN_OK : TARN_E_NOMEM;
}

static void free_sweep(sweep *s) {
  const tarn__plan_instance *in = s->n->in;
  tarn__host_free_array(s->owner, in->piece_count + 1, sizeof *s->owner);
  tarn__host_free_array(s->order, in->piece_count + 1, sizeof *s->order);
  tarn__host_free_array(s->active, in->piece_count + 1, sizeof *s->active);
  tarn__host_free_array(s->fill, in->item_count + 1, sizeof *s->fill);
}

static void name_owners(sweep *s) {
  const tarn__plan_instance *in = s->n->in;
  for (uint32_t i = 0; i < in->item_count; i++) {
    for (uint32_t p = 0; p < in->items[i].piece_count; p++) {
      s->owner[in->items[i].piece + p] = i;
    }
  }
}

// A counting sort; |begin| of the sections is free for it yet.
static void order_pieces(sweep *s) {
  const tarn__plan_instance *in = s->n->in;
  uint32_t *begin = s->n->begin;
  for (size_t p = 0; p < in->piece_count; p++)
    begin[in->pieces[p].first + 1]++;
  for (size_t t = 0; t < in->section_count; t++)
    begin[t + 1] += begin[t];
  for (uint32_t p = 0; p < in->piece_count; p++) {
    s->order[begin[in->pieces[p].first]++] = p;
  }
  memset(begin, 0, (in->section_count + 2) * sizeof *begin);
}

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

// --- thinning ----------------------------------------------------------------

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

// --- the whole ---------------------------------------------------------------

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
  n->edge_room = (size_t)sum + 1;
  n->item = tarn__host_array(n->edge_room, sizeof *n->item);
  if (n->item == NULL) return TARN_E_NOMEM;
  if (!uneven) return TARN_OK;
  n->above = tarn__host_array(n->edge_room, sizeof *n->above);
  n->below = tarn__host_array(n->edge_room, sizeof *n->below);
  return n->above != NULL && n->below != NULL ? TARN_OK : TARN_E_NOMEM;
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
  n->present = tarn__host_array((size_t)sum + 1, sizeof *n->present);
  if (n->present == NULL) return TARN_E_NOMEM;
  for (size_t p = 0; p < in->piece_count; p++) {
    for (uint32_t t = in->pieces[p].first; t < in->pieces[p].last; t++) {
      n->present[n->begin[t + 1]++] = s->owner[p];
    }
  }
  return TARN_OK;
}

static tarn_status make(sweep *s, size_t most) {
  tarn_status status = make_room(s);
  if (status != TARN_OK) return status;
  bool uneven = is_uneven(s->n->in);
  s->most_edges = most / (uneven ? 20 : 4);
  if (s->most_edges >= UINT32_MAX) s->most_edges = UINT32_MAX - 1;
  name_owners(s);
  order_pieces(s);
  if (!sweep_over(s)) return TARN_FULL;
  status = make_edges(s, uneven);
  if (status != TARN_OK) return status;
  s->filling = true;
  if (!sweep_over(s)) return TARN_FULL;
  thin_out(s);
  return list_sections(s, most);
}

tarn_status tarn__plan_neighbours_make(const tarn__plan_instance *instance,
                                       size_t most,
                                       tarn__plan_neighbours *out) {
  *out = (tarn__plan_neighbours){.in = instance};
  sweep s = {.n = out};
  tarn_status status = make(&s, most);
  free_sweep(&s);
  if (status != TARN_OK) tarn__plan_neighbours_free(out);
  return status;
}

void tarn__plan_neighbours_free(tarn__plan_neighbours *n) {
  if (n->in == NULL) return;
  size_t sections = n->in->section_count;
  size_t present = n->present == NULL ? 0 : n->begin[sections];
  tarn__host_free_array(n->present, present + 1, sizeof *n->present);
  tarn__host_free_array(n->first, n->in->item_count + 2, sizeof *n->first);
  tarn__host_free_array(n->begin, sections + 2, sizeof *n->begin);
  tarn__host_free_array(n->item, n->edge_room, sizeof *n->item);
  tarn__host_free_array(n->above, n->edge_room, sizeof *n->above);
  tarn__host_free_array(n->below, n->edge_room, sizeof *n->below);
  *n = (tarn__plan_neighbours){0};
}
