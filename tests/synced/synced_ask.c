// What is asked of a buffer, what is done to streams, and calls that are wrong.
#include <string.h>

#include "support/run.h"
#include "synced_scene.h"

// ---------------------------------------------------------------------------
// Questions
// ---------------------------------------------------------------------------

static void count_opens(const sm_root *r, sp_range g, tarn_synced_info *info) {
  for (size_t i = 0; i < SM_OPENS; i++) {
    const sm_open *o = &r->opens[i];
    if (!o->open || o->size == 0 || g.size == 0) continue;
    if (o->offset >= g.at + g.size || g.at >= o->offset + o->size) continue;
    if (o->mode == TARN_READ) {
      info->readers++;
    } else {
      info->writers++;
    }
  }
}

static tarn_synced_info expected_info(const sm_root *r, unsigned place,
                                      sp_range g) {
  tarn_synced_info info = {.struct_size = sizeof info};
  const sm_side *side = &r->sides[place];
  if (side->own || side->outside != NULL) info.memory = r->size;
  info.borrowed = side->outside != NULL && !side->outside->deleter;
  for (size_t i = g.at; i < g.at + g.size; i++) {
    info.unwritten += !r->written[i];
    info.lost += sm_is_lost(r, i);
    info.valid += (r->valid[i] >> place & 1) != 0;
  }
  count_opens(r, g, &info);
  return info;
}

void sp_play_query(sm_root *r) {
  sm_handle *h = sp_some_handle(r);
  sp_range g = sp_some_range(h);
  unsigned place = sp_some_place();
  SP_NOW("query of %zu bytes at %zu, place %u", g.size, g.at, place);
  bool settled = sg_below(4) == 0;
  if (settled) sg_wait_all();
  tarn_synced_info e = expected_info(r, place, g);
  tarn_synced_info i = {.struct_size = sizeof i};
  sm_status(
      tarn_synced_query(h->real, g.offset, g.asked, sg_name_of(place), &i),
      TARN_OK);
  if (i.memory != e.memory || i.borrowed != e.borrowed || i.valid != e.valid ||
      i.unwritten != e.unwritten || i.lost != e.lost ||
      i.readers != e.readers || i.writers != e.writers) {
    sm_fail(
        "memory %zu, borrowed %d, valid %zu, unwritten %zu, lost %zu, "
        "readers %zu, writers %zu, not %zu, %d, %zu, %zu, %zu, %zu, %zu",
        i.memory, i.borrowed, i.valid, i.unwritten, i.lost, i.readers,
        i.writers, e.memory, e.borrowed, e.valid, e.unwritten, e.lost,
        e.readers, e.writers);
  }
  sm_require(i.own_accesses == h->opens);
  sm_require(i.pending <= i.valid);
  sm_require(!settled || i.pending == 0);
  sm_require((i.range_count == 0) == (r->size == 0));
  sm_require(i.range_count <= r->size);
  sp_note(SP_QUERY, TARN_OK);
}

void sp_play_head(sm_root *r) {
  sm_handle *h = sp_some_handle(r);
  SP_NOW("head of %zu bytes at %zu", h->size, h->offset);
  sg_wait_all();
  tarn_synced_state expected = sm_head(r, h->offset, h->size);
  tarn_synced_state got = tarn_synced_head(h->real);
  if (got != expected) {
    sm_fail("%s, not %s", tarn_synced_state_name(got),
            tarn_synced_state_name(expected));
  }
  sp_note(SP_HEAD, TARN_OK);
}

typedef struct sums {
  sm_counts counts[SM_PLACES][SM_PLACES];
  uint64_t kept[SM_PLACES];
  uint64_t discarded[SM_PLACES];
} sums;

static tarn_status add_traffic(void *context, const tarn_traffic *t) {
  sums *s = context;
  unsigned from = sm_place_index(t->from);
  unsigned to = sm_place_index(t->to);
  sm_require(from < SM_PLACES && to < SM_PLACES);
  s->counts[from][to].copies += t->copies;
  s->counts[from][to].moved += t->bytes_moved;
  if (t->bytes_valid > 0) sm_require(from == to);
  s->kept[to] += t->bytes_valid;
  s->discarded[to] += t->bytes_discarded;
  return TARN_OK;
}

void sp_play_traffic(sm_root *r) {
  SP_NOW("traffic");
  sums got;
  memset(&got, 0, sizeof got);
  sm_status(tarn_synced_traffic(sp_some_handle(r)->real, add_traffic, &got),
            TARN_OK);
  sm_require(memcmp(got.counts, r->counts, sizeof got.counts) == 0);
  for (unsigned i = 0; i < sm_place_count; i++) {
    if (got.kept[i] != r->kept[i]) {
      sm_fail("%llu bytes were valid at place %u, not %llu",
              (unsigned long long)got.kept[i], i,
              (unsigned long long)r->kept[i]);
    }
  }
  sm_require(memcmp(got.discarded, r->discarded, sizeof got.discarded) == 0);
  sp_note(SP_TRAFFIC, TARN_OK);
  if (sg_below(3) != 0) return;
  sm_status(tarn_synced_traffic_reset(sp_some_handle(r)->real), TARN_OK);
  memset(r->counts, 0, sizeof r->counts);
  memset(r->kept, 0, sizeof r->kept);
  memset(r->discarded, 0, sizeof r->discarded);
}

static const sm_open *oldest_open(const sm_root *r) {
  const sm_open *oldest = NULL;
  for (size_t i = 0; i < SM_OPENS; i++) {
    const sm_open *o = &r->opens[i];
    if (o->open && (oldest == NULL || o->order < oldest->order)) oldest = o;
  }
  return oldest;
}

static tarn_status see_open(void *context, const tarn_synced_open *open) {
  size_t *seen = context;
  for (size_t k = 0; k < SP_ROOTS; k++) {
    const sm_root *r = &sp_roots[k];
    if (!r->alive || r->id != open->id) continue;
    *seen += 1;
    sm_require(strcmp(r->name, open->name) == 0 && r->size == open->size);
    sm_require(open->handles == sp_count_handles(r));
    size_t accesses = 0;
    for (size_t i = 0; i < SM_OPENS; i++)
      accesses += r->opens[i].open;
    sm_require(open->accesses == accesses);
    size_t own = 0;
    size_t borrowed = 0;
    for (unsigned i = 0; i < sm_place_count; i++) {
      own += r->sides[i].own;
      borrowed += r->sides[i].outside != NULL;
    }
    sm_require(open->memory == own * r->size);
    sm_require(open->borrowed == borrowed * r->size);
    const sm_open *o = oldest_open(r);
    if (o == NULL) return TARN_OK;
    unsigned place = o->size > 0 ? o->place : 0;
    sm_require(sm_place_index(open->place) == place);
    sm_require((open->mode & 3) == o->mode);
    sm_require(open->access_offset == o->offset);
    sm_require(open->access_size == o->size);
    return TARN_OK;
  }
  sm_fail("buffer %llu is none", (unsigned long long)open->id);
}

void sp_play_report(void) {
  SP_NOW("report");
  size_t expected = 0;
  for (size_t k = 0; k < SP_ROOTS; k++)
    expected += sp_roots[k].alive;
  size_t seen = 0;
  sm_status(tarn_synced_each_open(see_open, &seen), TARN_OK);
  sm_require(seen == expected);
  sp_note(SP_REPORT, TARN_OK);
}

// ---------------------------------------------------------------------------
// Streams, and calls that are wrong
// ---------------------------------------------------------------------------

void sp_play_stream(void) {
  int stream = (int)sg_below(sg_streams);
  SP_NOW("renewal of stream %d", stream);
  for (size_t k = 0; k < SP_ROOTS; k++) {
    for (size_t i = 0; i < SM_OPENS; i++) {
      const sm_open *o = &sp_roots[k].opens[i];
      if (sp_roots[k].alive && o->open && o->stream == stream) return;
    }
  }
  sg_renew((unsigned)stream);
  sp_note(SP_STREAM, TARN_OK);
}

void sp_play_wait(void) {
  SP_NOW("wait");
  if (sg_below(4) == 0) {
    sg_wait_all();
  } else {
    sg_wait((unsigned)sg_below(sg_streams));
  }
  sp_note(SP_WAIT, TARN_OK);
}

static void require_nothing_in(const tarn_access *a) {
  sm_require(a->buffer == NULL && a->address == 0 && a->size == 0);
}

// None of them may change anything.
void sp_play_misuse(sm_root *r) {
  SP_NOW("misuse");
  sm_handle *h = sp_some_handle(r);
  unsigned place = sp_some_place();
  tarn_place name = sm_places[place];
  tarn_access a;
  tarn_synced *view = h->real;
  size_t more = h->size + 1;
  sm_need_nothing(r);
  tarn_status got = TARN_OK;
  switch (sg_below(8)) {
    case 0:
      got = tarn_synced_begin(h->real, more, 0, name, TARN_READ, NULL, &a);
      require_nothing_in(&a);
      break;
    case 1:
      got = tarn_synced_begin(h->real, 0, more, name, TARN_READ, NULL, &a);
      require_nothing_in(&a);
      break;
    case 2:
      got = tarn_synced_begin(h->real, 0, 0, name, 4, NULL, &a);
      require_nothing_in(&a);
      break;
    case 3:
      got = tarn_synced_begin(h->real, 1, SIZE_MAX - 1, name, 1, NULL, &a);
      require_nothing_in(&a);
      break;
    case 4:
      got = tarn_synced_view(h->real, more, TARN_ALL, &view);
      sm_require(view == NULL);
      break;
    case 5:
      got = tarn_synced_invalidate(h->real, h->size, 1);
      break;
    case 6:
      memset(&a, 0, sizeof a);
      got = tarn_synced_end(&a);
      break;
    default:
      got = tarn_synced_wrap(h->real, name, 0, NULL);
  }
  sm_status(got, TARN_E_INVALID);
  sm_heard(r);
  sp_note(SP_MISUSE, TARN_E_INVALID);
}
