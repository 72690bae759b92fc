// One lane: its bins of idle pieces, its parcel and its inbox; requests and
// frees that need no lock.
#include "pool/lanes.h"

#include "pool/state.h"

// --- the gate --------------------------------------------------------------

_Thread_local tarn__pool_seat tarn__seats[TARN__SEATS]
    __attribute__((tls_model("initial-exec")));
atomic_uint tarn__seats_epoch;

// The store of |inside| comes first; the fence that whoever closes the lane has
// all processors run makes up for the one that is missing here. Only the
// compiler has to be kept from reordering.
static inline bool enter(tarn__pool_lane *lane) {
  atomic_store_explicit(&lane->inside, true, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst);
  if (!atomic_load_explicit(&lane->closed, memory_order_relaxed)) return true;
  atomic_store_explicit(&lane->inside, false, memory_order_release);
  return false;
}

static inline void leave(tarn__pool_lane *lane) {
  atomic_store_explicit(&lane->inside, false, memory_order_release);
}

// NULL: this thread has no lane here, or it is closed. Pools must not be called
// in callbacks: the way with the lock says so.
static inline tarn__pool_lane *enter_own(const tarn_pool *pool) {
  if (!tarn__lane_is_here(pool) || tarn__callbacks_running != 0) return NULL;
  tarn__pool_lane *lane = tarn__seat_for(pool)->lane;
  return enter(lane) ? lane : NULL;
}

// --- bins ------------------------------------------------------------------

static inline unsigned bin_of(size_t units) {
  if (units < 32) return (unsigned)units;
  unsigned power = 63u - (unsigned)__builtin_clzll(units);
  return 32 + (power - 5) * 16 + ((unsigned)(units >> (power - 4)) & 15);
}

static inline void put(tarn__pool_lane *lane, tarn__pool_piece *piece) {
  tarn__pool_piece **bin = &lane->bins[bin_of(piece->size / TARN__LANE_UNIT)];
  piece->next = *bin;
  *bin = piece;
  lane->idle += piece->size;
}

static inline tarn__pool_piece *pop(tarn__pool_lane *lane,
                                    tarn__pool_piece **bin) {
  tarn__pool_piece *piece = *bin;
  *bin = piece->next;
  piece->next = NULL;
  lane->idle -= piece->size;
  return piece;
}

// The newest piece of the bin for that size, if it is large enough, else of the
// next one, where all are: little is wasted.
static inline tarn__pool_piece *find(tarn__pool_lane *lane, size_t size,
                                     size_t align) {
  unsigned bin = bin_of((size + TARN__LANE_UNIT - 1) / TARN__LANE_UNIT);
  for (unsigned i = bin; i < bin + 2 && i < TARN__LANE_BINS; i++) {
    const tarn__pool_piece *piece = lane->bins[i];
    bool fits = piece != NULL && piece->size >= size &&
                (align == 0 || (piece->address & (align - 1)) == 0);
    if (fits) return pop(lane, &lane->bins[i]);
  }
  return NULL;
}

tarn__pool_piece *tarn__lane_drop(tarn__pool_lane *lane) {
  for (unsigned i = 0; i < TARN__LANE_BINS; i++) {
    tarn__pool_piece **bin = &lane->bins[lane->next_bin];
    if (*bin != NULL) return pop(lane, bin);
    lane->next_bin = (lane->next_bin + 1) % TARN__LANE_BINS;
  }
  return NULL;
}

// --- the inbox and the parcel ----------------------------------------------

tarn__pool_piece *tarn__lane_clear_inbox(tarn__pool_lane *lane) {
  atomic_store_explicit(&lane->inbox_bytes, 0, memory_order_relaxed);
  return atomic_exchange(&lane->inbox, NULL);
}

void tarn__lane_unpack(tarn__pool_lane *lane) {
  if (atomic_load_explicit(&lane->inbox, memory_order_relaxed) == NULL) return;
  tarn__pool_piece *piece = tarn__lane_clear_inbox(lane);
  while (piece != NULL) {
    tarn__pool_piece *next = piece->next;
    put(lane, piece);
    piece = next;
  }
}

static tarn__pool_lane *lane_at(const tarn_pool *pool, uint8_t number) {
  return atomic_load_explicit(&pool->lanes.by_number[number],
                              memory_order_acquire);
}

// The bytes are counted first, and by the way: they decide when an inbox is
// emptied, not what is in it.
void tarn__lane_send(tarn_pool *pool, tarn__pool_lane *lane) {
  tarn__pool_parcel *parcel = &lane->parcel;
  if (parcel->count == 0) return;
  tarn__pool_lane *to = lane_at(pool, lane->to);
  atomic_fetch_add_explicit(&to->inbox_bytes, parcel->bytes,
                            memory_order_relaxed);
  tarn__pool_piece *head =
      atomic_load_explicit(&to->inbox, memory_order_relaxed);
  do {
    parcel->last->next = head;
  } while (!atomic_compare_exchange_weak(&to->inbox, &head, parcel->first));
  *parcel = (tarn__pool_parcel){.count = 0};
}

// Whether a parcel that was just sent there has to be taken out by others: a
// lane that is no thread's is emptied, and then marked as that; one of the two
// threads sees what the other did.
static bool overflows(const tarn_pool *pool, uint8_t number) {
  const tarn__pool_lane *to = lane_at(pool, number);
  size_t share = atomic_load_explicit(&pool->lanes.share, memory_order_relaxed);
  return !atomic_load(&to->owned) ||
         atomic_load_explicit(&to->inbox_bytes, memory_order_relaxed) > share;
}

// True: the lane that got the parcel has too much now.
static bool put_in_parcel(tarn_pool *pool, tarn__pool_lane *lane,
                          tarn__pool_piece *piece, uint8_t home) {
  tarn__pool_parcel *parcel = &lane->parcel;
  bool too_much = false;
  if (lane->to != home && parcel->count > 0) {
    tarn__lane_send(pool, lane);
    too_much = overflows(pool, lane->to);
  }
  lane->to = home;
  piece->next = parcel->first;
  parcel->first = piece;
  if (parcel->last == NULL) parcel->last = piece;
  parcel->bytes += piece->size;
  if (++parcel->count < TARN__PARCEL_PIECES && parcel->bytes < lane->most / 4) {
    return too_much;
  }
  tarn__lane_send(pool, lane);
  return too_much || overflows(pool, lane->to);
}

// --- serving and freeing ---------------------------------------------------

// NULL: the lane does not count |tag|.
static inline tarn__pool_lane_tag *count_of(tarn__pool_lane *lane,
                                            tarn_tag tag) {
  for (int i = 0; i < TARN__LANE_TAGS; i++) {
    if (lane->tags[i].used && lane->tags[i].tag == tag) return &lane->tags[i];
  }
  return NULL;
}

static inline void hand_out(tarn_pool *pool, tarn__pool_piece *piece,
                            const tarn__pool_note *what, bool counted,
                            tarn_block *out_block) {
  uint32_t generation = tarn__piece_advance(piece);
  tarn__piece_set_tag(piece, what->tag);
  piece->requested = what->size;
  piece->counted = counted;
  *out_block = (tarn_block){.pool = pool,
                            .address = piece->address,
                            .size = piece->size,
                            .id = piece->id,
                            .generation = generation};
  tarn__piece_begin(piece, tarn__piece_home(piece));
}

// What is wrong is left to the way with the lock, which says what.
static inline bool can_serve(const tarn__pool_lane *lane,
                             const tarn__pool_note *what,
                             const tarn__pool_lane_tag *count) {
  bool counted = count != NULL || (!lane->counts_tags && what->tag == 0);
  return counted && what->size <= lane->lease &&
         (what->align & (what->align - 1)) == 0;
}

bool tarn__lane_serve(tarn_pool *pool, tarn__pool_lane *lane,
                      const tarn__pool_note *what, tarn_block *out_block) {
  tarn__pool_lane_tag *count =
      lane->counts_tags ? count_of(lane, what->tag) : NULL;
  if (!can_serve(lane, what, count)) return false;
  tarn__pool_piece *piece = find(lane, what->size, what->align);
  if (piece == NULL) {
    tarn__lane_unpack(lane);
    piece = find(lane, what->size, what->align);
    if (piece == NULL) return false;
  }
  lane->lease -= what->size;
  lane->allocs++;
  if (count != NULL) {
    count->bytes += what->size;
    count->blocks++;
  }
  hand_out(pool, piece, what, lane->counts_tags, out_block);
  return true;
}

bool tarn__lane_take(tarn_pool *pool, const tarn__pool_note *what,
                     tarn_block *out_block) {
  if (what->size - 1 >= TARN__LANE_LARGEST) return false;
  tarn__pool_lane *lane = enter_own(pool);
  if (lane == NULL) return false;
  bool served = tarn__lane_serve(pool, lane, what, out_block);
  leave(lane);
  return served;
}

// Nothing else of the piece is read before the block is this thread's: another
// may have freed it, by mistake, and have begun the next one there.
static tarn__pool_gift give(tarn_pool *pool, tarn__pool_lane *lane,
                            tarn__pool_piece *piece, uint32_t generation) {
  uint8_t home = tarn__piece_home(piece);
  if (home == 0 || tarn__piece_generation(piece) != generation ||
      !tarn__piece_free(piece, home)) {
    return TARN__LANE_REFUSED;
  }
  tarn__pool_lane_tag *count =
      piece->counted ? count_of(lane, piece->tag) : NULL;
  bool fits = piece->owner == lane->strategy && (count || !piece->counted);
  if (!fits) {
    tarn__piece_begin(piece, home);
    return TARN__LANE_REFUSED;
  }
  lane->lease += piece->requested;
  lane->frees++;
  if (count != NULL) {
    count->bytes -= piece->requested;
    count->blocks--;
  }
  piece->counted = false;
  // What is freed and not settled makes the sums too high, as leases do.
  bool full = lane->lease > 2 * lane->leased;
  if (home != lane->number) {
    full = put_in_parcel(pool, lane, piece, home) || full;
  } else {
    put(lane, piece);
    full = lane->idle > lane->most || full;
  }
  return full ? TARN__LANE_FULL : TARN__LANE_TAKEN;
}

tarn__pool_gift tarn__lane_give(tarn_pool *pool, tarn__pool_piece *piece,
                                uint32_t generation) {
  tarn__pool_lane *lane = enter_own(pool);
  if (lane == NULL) return TARN__LANE_REFUSED;
  tarn__pool_gift gift = give(pool, lane, piece, generation);
  leave(lane);
  return gift;
}
