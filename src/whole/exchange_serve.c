// Serving what others ask.
#include "base/status.h"
#include "whole/exchange.h"

size_t tarn__course_most(const tarn__whole_course *c, size_t row_bytes) {
  const tarn__whole_staging *staging = &c->kept->staging;
  size_t room = staging->room - 63;  // before the rows, at most
  size_t fit = room / (row_bytes + tarn__course_number(c));
  return tarn__lesser(fit, TARN__UNDER_WAY / staging->slots);
}

tarn_status tarn__serve_check(const tarn__whole_course *c, size_t rank,
                              const tarn__whole_ask *ask) {
  size_t all = c->order->table.width;
  bool whole =
      ask->element < all && ask->width > 0 && ask->width <= all - ask->element;
  size_t most =
      whole ? tarn__course_most(c, ask->width * tarn_dtype_size(c->dtype)) : 0;
  if (ask->count <= most) return TARN_OK;
  return tarn__fail(TARN_E_CORRUPT,
                    "whole rows: rank %zu asks for %u rows of %llu elements "
                    "from %llu on, of which a slot has room for %zu",
                    rank, (unsigned)ask->count, (unsigned long long)ask->width,
                    (unsigned long long)ask->element, most);
}

tarn_status tarn__serve_one(const tarn__whole_course *c, size_t rank,
                            const tarn__whole_ask *ask, unsigned char *room) {
  tarn__whole_span span = {.element = ask->element,
                           .width = ask->width,
                           .row_bytes = ask->width * tarn_dtype_size(c->dtype)};
  if (c->failure.status != TARN_OK || ask->count == 0) return TARN_OK;
  return tarn__move_owned(c, &span, c->whole->rank, rank, room, ask->count,
                          room + tarn__course_list(c, ask->count));
}

// --- ranks of this machine -------------------------------------------------

// The ask stands where its rank can write: it is read once.
static tarn_status serve_slot(const tarn__whole_course *c, size_t near,
                              size_t slot) {
  size_t rank = tarn__near_rank(c->kept, near);
  tarn__whole_slot asked = tarn__staging_slot(&c->kept->staging, near, slot);
  const tarn__whole_ask ask = *asked.ask;
  tarn_status status = tarn__serve_check(c, rank, &ask);
  if (status == TARN_OK) status = tarn__serve_one(c, rank, &ask, asked.room);
  atomic_store_explicit(asked.served, 1, memory_order_release);
  return status;
}

// The slot of the bits in |posted| that was posted first.
static size_t find_first(const tarn__whole_course *c, size_t near,
                         uint64_t posted) {
  const tarn__whole_staging *staging = &c->kept->staging;
  size_t first = staging->slots;
  uint64_t number = UINT64_MAX;
  for (size_t i = 0; i < staging->slots; i++) {
    if ((posted >> i & 1) == 0) continue;
    uint64_t own = tarn__staging_slot(staging, near, i).ask->number;
    if (first < staging->slots && own >= number) continue;
    first = i;
    number = own;
  }
  return first;
}

static tarn_status serve_rank(tarn__whole_course *c, size_t near) {
  const tarn__whole_staging *staging = &c->kept->staging;
  atomic_ullong *word =
      &tarn__staging_board(staging, staging->self)->of[near].posted;
  if (atomic_load_explicit(word, memory_order_relaxed) == 0) return TARN_OK;
  uint64_t posted = atomic_exchange_explicit(word, 0, memory_order_acquire);
  size_t slot = 0;
  tarn_status status = TARN_OK;
  c->moved = true;
  while ((slot = find_first(c, near, posted)) < staging->slots) {
    posted &= ~(UINT64_C(1) << slot);
    tarn__keep_first(&status, serve_slot(c, near, slot));
  }
  return status;
}

bool tarn__serve_is_done_with(const tarn__whole_course *c, size_t near) {
  const tarn__whole_staging *staging = &c->kept->staging;
  const tarn__whole_board *board = tarn__staging_board(staging, staging->self);
  return atomic_load_explicit(&board->of[near].finished,
                              memory_order_acquire) == c->kept->serial &&
         atomic_load_explicit(&board->of[near].posted, memory_order_relaxed) ==
             0 &&
         atomic_load_explicit(&board->of[near].offered, memory_order_relaxed) ==
             0;
}

tarn_status tarn__serve_near(tarn__whole_course *c) {
  const tarn__whole_staging *staging = &c->kept->staging;
  for (size_t i = 1; i < staging->count; i++) {
    size_t near = (staging->self + i) % staging->count;
    bool waits =
        tarn__course_adds(c) && tarn__near_rank(c->kept, near) != c->turn;
    if (!waits) TARN__TRY(serve_rank(c, near));
  }
  return TARN_OK;
}
