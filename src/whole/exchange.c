// Rows that ranks move together: arguments and indices are looked at by all
// before the first row moves; then exchange_loop.c does it, or, where ranks
// have neither common memory nor messages, exchange_rounds.c.
//
//   every rank for itself             all ranks together
//   ---------------------             ---------------------------------------
//   arguments, the stream, indices    agree; the same order?
//                                     staging, the first time
//                                     rows
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "whole/exchange.h"

// --- what is kept ----------------------------------------------------------

// Those whose memory messages may still read or write: until the process ends.
static struct {
  pthread_mutex_t lock;
  tarn_list all;
} given_up = {PTHREAD_MUTEX_INITIALIZER, {&given_up.all, &given_up.all}};

// Arrays of ranks + 1 numbers, or of pairs of 32 bits.
enum { ARRAYS = 9 };

static size_t kept_size(size_t ranks) {
  return sizeof(tarn__whole_exchange) + ARRAYS * (ranks + 1) * sizeof(size_t);
}

static void find_places(tarn__whole_exchange *kept, const tarn__comm_near *near,
                        size_t ranks, size_t rank) {
  size_t count = near->comm != NULL ? tarn_comm_size(near->comm) : 1;
  kept->self = rank;
  kept->near_ranks = near->comm != NULL ? near->ranks : &kept->self;
  for (size_t r = 0; r < ranks; r++)
    kept->places[r] = TARN__FAR;
  for (size_t i = 0; i < count; i++)
    kept->places[tarn__near_rank(kept, i)] = (uint32_t)i;
  kept->far.count = ranks - count;
  kept->by_collectives =
      kept->far.count > 0 && !tarn__comm_has_messages(kept->comm);
  if (kept->by_collectives) tarn__rounds_lay_out(kept);
}

// Where not all of the memory is mapped, but some of other ranks is.
static bool may_buy(const tarn_whole *whole, const tarn__whole_exchange *kept) {
  return whole->inner != NULL && !whole->mapped && !kept->by_collectives;
}

// The arrays of ranks.
static void lay_out(tarn__whole_exchange *kept, size_t ranks) {
  size_t each = ranks + 1;
  size_t *numbers = kept->numbers;
  kept->far.notes = (void **)numbers;
  kept->far.finished = (uint64_t *)(numbers + 2 * each);
  kept->places = (uint32_t *)(numbers + 3 * each);
  kept->sorted.firsts = numbers + 4 * each;
  kept->sorted.next = numbers + 5 * each;
  kept->sorted.ends = numbers + 6 * each;
  kept->sorted.buckets = (uint32_t *)(numbers + 7 * each);
  kept->offsets = numbers + 8 * each;
  kept->sorted.regions = kept->regions;
  kept->sorted.homes = kept->homes;
  kept->sorted.indices = kept->indices;
  kept->sorted.entries = kept->entries;
}

static tarn_status keep(tarn_whole *whole, tarn_comm *comm,
                        tarn__whole_exchange **io_kept) {
  if (*io_kept != NULL) return TARN_OK;
  tarn__whole_exchange *kept = tarn__host_alloc(kept_size(whole->ranks));
  if (kept == NULL) return TARN_E_NOMEM;
  const tarn__comm_near near = tarn__comm_near_of(comm);
  kept->comm = comm;
  kept->ranks = whole->ranks;
  kept->sorted.rank = whole->rank;
  kept->sorted.ranks = whole->ranks;
  kept->sorted.copies = whole->spread == TARN_WHOLE_COPIES;
  lay_out(kept, whole->ranks);
  find_places(kept, &near, whole->ranks, whole->rank);
  kept->buys = may_buy(whole, kept);
  if (whole->pager != NULL && tarn__paged_keep(kept) != TARN_OK) {
    tarn__host_free(kept, kept_size(whole->ranks));
    return TARN_E_NOMEM;
  }
  *io_kept = kept;
  return TARN_OK;
}

static void drop_rooms(tarn__whole_exchange *kept, bool after_fork) {
  size_t lanes = tarn__buy_lanes_size(kept->ranks, kept->staging.count);
  tarn__host_free_array(kept->serving_room, TARN__SERVINGS, kept->staging.room);
  tarn__host_free(kept->lanes, lanes);
  tarn__host_free(kept->bounce, kept->staging.room);
  kept->serving_room = kept->bounce = NULL;
  kept->lanes = NULL;
  if (after_fork) {
    tarn__wants_forget(kept);
  } else {
    tarn__wants_drop(kept);
  }
  if (after_fork) {
    tarn__staging_forget(&kept->staging);
  } else {
    tarn__staging_drop(&kept->staging);
  }
}

// Openings of a call that failed may still be on their way.
static void leave_far(tarn__whole_exchange *kept) {
  bool settled = false;
  if (kept->far.count == 0 || kept->by_collectives) return;
  tarn_status status = tarn__far_is_settled(kept, &settled);
  if (status != TARN_OK || !settled) tarn__far_drop(kept);
}

// Memory that messages may still read or write stays.
void tarn__exchange_end(tarn__whole_exchange *kept, bool after_fork) {
  if (kept == NULL) return;
  if (!after_fork) leave_far(kept);
  if (kept->given_up && !after_fork) {
    pthread_mutex_lock(&given_up.lock);
    tarn_list_add_tail(&given_up.all, &kept->node);
    pthread_mutex_unlock(&given_up.lock);
    return;
  }
  drop_rooms(kept, after_fork);
  tarn__paged_drop(kept);
  tarn__host_free(kept, kept_size(kept->ranks));
}

// --- what is asked for -----------------------------------------------------

static tarn_status look(const tarn__whole_rows_order *order,
                        tarn__whole_exchange *kept) {
  tarn_rows rows = order->rows;
  rows.table_count = order->table.rows;
  if (order->stream != NULL) {
    TARN__TRY(tarn_stream_synchronize(order->stream));
  }
  return tarn__rows_check_indices(order->place, &rows, kept->sorted.indices,
                                  TARN__PIECE);
}

// Agrees on |status|, and compares what must be the same at all ranks, in
// words.
static tarn_status compare(tarn_comm *comm, const tarn__whole_rows_order *order,
                           const tarn__whole_subject *subject,
                           tarn_status status) {
  char call[128];
  char mine[192] = "";
  char words[sizeof call + sizeof mine + 2];
  const tarn__whole_tensor *table = &order->table;
  if (status != TARN_OK) {
    return tarn__comm_agree_on(comm, status, mine, sizeof mine, "");
  }
  snprintf(mine, sizeof mine,
           "%zu rows of %zu x %s with a stride of %zu and an offset of %zu "
           "bytes, and dense rows of %s",
           table->rows, table->width, tarn_dtype_name(table->dtype),
           table->stride, table->offset,
           tarn_dtype_name(order->rows.dense_dtype));
  tarn__whole_say(subject, call, sizeof call);
  snprintf(words, sizeof words, "%s: %s", call, mine);
  return tarn__comm_agree_on(comm, status, mine, sizeof mine, words);
}

static void begin_course(tarn_whole *whole, tarn__whole_exchange *kept,
                         const tarn__whole_rows_order *order) {
  assert(kept != NULL);
  tarn__sorted_look_at(&kept->sorted, &order->table, whole->offsets);
  tarn__tensor_rows(&order->table, whole->rank, &kept->own_first,
                    &kept->own_rows);
  tarn__open_begin(kept, whole, order);
}

// --- together --------------------------------------------------------------

// Each slot has as many positions as rows.
static void share_positions(tarn__whole_exchange *kept) {
  size_t slots = kept->staging.slots;
  for (size_t i = 0; i < slots; i++)
    kept->posted[i].positions = kept->positions + i * (TARN__UNDER_WAY / slots);
}

static tarn_status make_for_far(tarn__whole_exchange *kept) {
  size_t lanes = tarn__buy_lanes_size(kept->ranks, kept->staging.count);
  TARN__TRY(tarn__far_make(kept));
  if (!kept->buys) return TARN_OK;
  kept->lanes = tarn__host_alloc(lanes);
  kept->bounce = tarn__host_alloc(kept->staging.room);
  bool both = kept->lanes != NULL && kept->bounce != NULL;
  return both ? TARN_OK : TARN_E_NOMEM;
}

static void say_wants(tarn__whole_exchange *kept,
                      const tarn__whole_rows_order *order) {
  assert(kept != NULL);
  if (kept->buys && kept->staging.size != 0)
    tarn__wants_say(kept, order->rows.index_count);
}

static tarn_status make_rooms(tarn_whole *whole, tarn__whole_exchange *kept,
                              const tarn__whole_rows_order *order) {
  assert(kept != NULL);
  const tarn__comm_near near = tarn__comm_near_of(kept->comm);
  if (kept->by_collectives || kept->staging.size != 0) return TARN_OK;
  TARN__TRY(tarn__staging_make(whole, kept->comm, &near, &kept->staging));
  share_positions(kept);
  if (kept->far.count == 0) return TARN_OK;
  say_wants(kept, order);
  tarn_status status = tarn_comm_agree(kept->comm, make_for_far(kept));
  if (status != TARN_OK) drop_rooms(kept, false);
  return status;
}

static tarn_status fit_wants(tarn_whole *whole, tarn__whole_exchange *kept,
                             const tarn__whole_rows_order *order) {
  assert(kept != NULL);
  bool buys = kept->buys && order->action == TARN__ROWS_GATHER;
  return buys ? tarn__wants_fit(whole, kept) : TARN_OK;
}

tarn_status tarn__exchange_prepare(tarn_whole *whole, tarn_comm *comm,
                                   const tarn__whole_subject *subject,
                                   const tarn__whole_rows_order *order,
                                   tarn_status status,
                                   tarn__whole_exchange **io_kept) {
  tarn__comm_caller caller = tarn__whole_caller(subject);
  if (status == TARN_OK) status = keep(whole, comm, io_kept);
  if (status == TARN_OK) status = look(order, *io_kept);
  status = tarn__whole_say_call(subject, status);
  tarn__comm_call_for(comm, &caller);
  if (status == TARN_OK) begin_course(whole, *io_kept, order);
  if (status == TARN_OK) say_wants(*io_kept, order);
  status = compare(comm, order, subject, status);
  assert(status != TARN_OK || *io_kept != NULL);
  if (status == TARN_OK) status = make_rooms(whole, *io_kept, order);
  if (status == TARN_OK) status = fit_wants(whole, *io_kept, order);
  tarn__comm_call_for(comm, NULL);
  return status;
}

tarn_status tarn__exchange_run(tarn_whole *whole,
                               const tarn__whole_rows_order *order,
                               tarn_status status) {
  bool applies = order->sink != NULL;
  tarn__whole_subject subject = tarn__whole_subject_of(
      applies ? TARN__WHOLE_APPLY : (tarn__whole_call)order->action, whole);
  tarn__comm_caller caller = tarn__whole_caller(&subject);
  TARN__TRY(tarn__exchange_prepare(whole, whole->comm, &subject, order, status,
                                   &whole->exchange));
  tarn__comm_call_for(whole->comm, &caller);
  status = tarn__exchange_go(whole->exchange, whole, order);
  tarn__comm_call_for(whole->comm, NULL);
  return status;
}
