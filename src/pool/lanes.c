// The lanes of a pool: when they begin, opening and closing them, settling what
// they have counted, and giving back what they have idle. All with the pool's
// lock.
#include "pool/lanes.h"

#include "base/hostmem.h"
#include "base/os.h"
#include "pool/state.h"
#include "pool/statistics.h"
#include "pool/strategy.h"

enum {
  TURNS = 16,       // close to each other, after which lanes begin
  CLOSE = 256,      // requests between two turns, at most
  IDLE_PARTS = 32,  // of the live peak, one part may be idle in bins
  LEASE_PARTS = 32,
};

static const size_t LEAST_IDLE = (size_t)512 << 10;  // of all lanes together
static const size_t LEAST_LEASED = (size_t)1 << 20;
static const size_t MOST_LEASED = (size_t)64 << 20;

// --- taking turns ----------------------------------------------------------

// What forbids lanes needs one order of all requests, or of all that is done
// for each of them.
static bool may_have_lanes(const tarn_pool *pool) {
  return pool->current->lanes != 0 &&
         (pool->flags & ~(uint32_t)TARN_POOL_DRY) == 0 &&
         tarn__debug_of(pool) == NULL &&
         !tarn__front_counts(pool, TARN_COUNT_EVENTS) &&
         tarn__os_can_fence_threads();
}

bool tarn__lanes_turn(tarn_pool *pool) {
  tarn__pool_lanes *lanes = &pool->lanes;
  if (lanes->begun || lanes->last == tarn__seats) return lanes->begun;
  tarn__steps_settle(pool, &pool->steps);
  uint64_t now = pool->stats.allocs + pool->stats.frees;
  lanes->turns = now - lanes->last_at <= CLOSE ? lanes->turns + 1 : 0;
  lanes->last = tarn__seats;
  lanes->last_at = now;
  lanes->begun = lanes->turns >= TURNS && may_have_lanes(pool);
  return lanes->begun;
}

// --- settling --------------------------------------------------------------

static void settle_tag(tarn_pool *pool, tarn__pool_lane_tag *count) {
  tarn_pool_tag_stats *tag = &pool->tags[count->tag];
  tarn__front_raise_tag(pool, tag);
  tag->live_bytes += count->bytes;
  tag->live_blocks += count->blocks;
  tarn__front_raise_tag(pool, tag);
  count->bytes = count->blocks = 0;
}

// The lease ends. Its owner is not inside.
static void settle(tarn_pool *pool, tarn__pool_lane *lane) {
  tarn_pool_stats *stats = &pool->stats;
  for (int i = 0; i < TARN__LANE_TAGS; i++) {
    if (lane->tags[i].used) settle_tag(pool, &lane->tags[i]);
  }
  stats->live_bytes -= lane->lease;
  stats->live_blocks += lane->allocs - lane->frees;
  stats->allocs += lane->allocs;
  stats->hits += lane->allocs;
  stats->frees += lane->frees;
  pool->lanes.leased -= lane->leased;
  lane->leased = lane->lease = 0;
  lane->allocs = lane->frees = 0;
}

static size_t clamp(size_t value, size_t least, size_t most) {
  if (value < least) return least;
  return value < most ? value : most;
}

static void grant(tarn_pool *pool, tarn__pool_lane *lane) {
  tarn__pool_lanes *lanes = &pool->lanes;
  size_t all =
      clamp(pool->stats.live_bytes / LEASE_PARTS, LEAST_LEASED, MOST_LEASED);
  lane->leased = lane->lease = all / lanes->owned;
  lanes->leased += lane->leased;
  pool->stats.live_bytes += lane->leased;
  tarn__raise_peak(2 * lanes->leased, &lanes->leased_most);
  tarn__front_raise_live(pool);
}

// --- giving back -----------------------------------------------------------

static void give_back(tarn_pool *pool, tarn__pool_piece *piece) {
  piece->next = NULL;
  tarn__piece_end(piece);
  piece->freed_on = piece->waits_on = 0;
  (void)tarn__front_send_home(pool, piece);
}

static bool give_back_list(tarn_pool *pool, tarn__pool_piece *piece) {
  bool any = piece != NULL;
  while (piece != NULL) {
    tarn__pool_piece *next = piece->next;
    give_back(pool, piece);
    piece = next;
  }
  return any;
}

// Down to |target| idle bytes.
static bool drop_idle(tarn_pool *pool, tarn__pool_lane *lane, size_t target) {
  bool any = false;
  while (lane->idle > target) {
    give_back(pool, tarn__lane_drop(lane));
    any = true;
  }
  return any;
}

// Bins in use are cut by half, so that the next few frees find room.
static void keep_within_share(tarn_pool *pool, tarn__pool_lane *lane) {
  size_t all =
      clamp(pool->stats.live_peak_bytes / IDLE_PARTS, LEAST_IDLE, SIZE_MAX);
  lane->most = all / pool->lanes.owned;
  atomic_store_explicit(&pool->lanes.share, lane->most, memory_order_relaxed);
  if (lane->idle > lane->most) (void)drop_idle(pool, lane, lane->most / 2);
}

static bool empty(tarn_pool *pool, tarn__pool_lane *lane) {
  tarn__lane_send(pool, lane);
  bool any = drop_idle(pool, lane, 0);
  return give_back_list(pool, tarn__lane_clear_inbox(lane)) || any;
}

// --- opening and closing ---------------------------------------------------

static tarn__pool_lane *lane_at(const tarn_pool *pool, size_t number) {
  return atomic_load_explicit(&pool->lanes.by_number[number],
                              memory_order_relaxed);
}

static bool is_open(const tarn__pool_lane *lane) {
  return !atomic_load_explicit(&lane->closed, memory_order_relaxed);
}

static void wait_until_out(const tarn__pool_lane *lane) {
  for (unsigned i = 0;
       atomic_load_explicit(&lane->inside, memory_order_acquire); i++)
    tarn__os_back_off(i);
}

// This thread is inside none of its lanes: it holds the lock.
void tarn__lanes_close(tarn_pool *pool) {
  tarn__pool_lanes *lanes = &pool->lanes;
  if (lanes->open == 0) return;
  for (size_t i = 1; i <= lanes->count; i++)
    atomic_store_explicit(&lane_at(pool, i)->closed, true,
                          memory_order_relaxed);
  tarn__os_fence_threads();
  for (size_t i = 1; i <= lanes->count; i++) {
    wait_until_out(lane_at(pool, i));
    settle(pool, lane_at(pool, i));
  }
  lanes->open = 0;
}

bool tarn__lanes_empty(tarn_pool *pool) {
  bool any = pool->lanes.open != 0;
  tarn__lanes_close(pool);
  // A parcel may be for any other.
  for (size_t i = 1; i <= pool->lanes.count; i++)
    tarn__lane_send(pool, lane_at(pool, i));
  for (size_t i = 1; i <= pool->lanes.count; i++)
    any = empty(pool, lane_at(pool, i)) || any;
  return any;
}

// Inboxes that have too much, and those of no thread.
static void clear_full_inboxes(tarn_pool *pool) {
  size_t share = atomic_load_explicit(&pool->lanes.share, memory_order_relaxed);
  for (size_t i = 1; i <= pool->lanes.count; i++) {
    tarn__pool_lane *lane = lane_at(pool, i);
    if (!atomic_load(&lane->owned) ||
        atomic_load_explicit(&lane->inbox_bytes, memory_order_relaxed) >
            share) {
      (void)give_back_list(pool, tarn__lane_clear_inbox(lane));
    }
  }
}

// --- whose they are --------------------------------------------------------

static tarn__pool_lane *lane_of(const tarn_pool *pool, const void *owner) {
  for (size_t i = 1; i <= pool->lanes.count; i++) {
    if (lane_at(pool, i)->owner == owner) return lane_at(pool, i);
  }
  return NULL;
}

// NULL: there are as many as there can be, or no host memory.
static tarn__pool_lane *make_lane(tarn_pool *pool) {
  tarn__pool_lanes *lanes = &pool->lanes;
  if (lanes->count == TARN__LANES_MOST) return NULL;
  tarn__pool_lane *lane = tarn__host_alloc(sizeof *lane);
  if (lane == NULL) return NULL;
  lane->number = (uint8_t)++lanes->count;
  atomic_init(&lane->closed, true);
  atomic_store_explicit(&lanes->by_number[lane->number], lane,
                        memory_order_release);
  return lane;
}

static tarn__pool_lane *adopt_lane(tarn_pool *pool) {
  if (pool->lanes.owned >= pool->current->lanes) return NULL;
  tarn__pool_lane *lane = lane_of(pool, NULL);
  if (lane == NULL) lane = make_lane(pool);
  if (lane == NULL) return NULL;
  lane->owner = tarn__seats;
  atomic_store(&lane->owned, true);
  pool->lanes.owned++;
  return lane;
}

static tarn__pool_lane *own_lane(tarn_pool *pool) {
  tarn__pool_seat *seat = tarn__seat_for(pool);
  unsigned epoch =
      atomic_load_explicit(&tarn__seats_epoch, memory_order_relaxed);
  if (seat->pool == pool && seat->epoch == epoch) return seat->lane;
  tarn__pool_lane *lane = lane_of(pool, tarn__seats);
  if (lane == NULL) lane = adopt_lane(pool);
  *seat = (tarn__pool_seat){
      .pool = lane != NULL ? pool : NULL, .lane = lane, .epoch = epoch};
  return lane;
}

// A thread that is left alone needs none.
static void end_lanes(tarn_pool *pool) {
  (void)tarn__lanes_empty(pool);
  pool->lanes.begun = false;
  pool->lanes.turns = 0;
}

void tarn__lanes_retire(tarn_pool *pool, const void *owner) {
  tarn__pool_lane *lane = lane_of(pool, owner);
  if (lane == NULL) return;
  if (is_open(lane)) {
    atomic_store_explicit(&lane->closed, true, memory_order_relaxed);
    settle(pool, lane);
    pool->lanes.open--;
  }
  tarn__lane_send(pool, lane);
  atomic_store(&lane->owned, false);
  lane->owner = NULL;
  pool->lanes.owned--;
  (void)empty(pool, lane);
  clear_full_inboxes(pool);  // the parcel may have been for no thread's lane
  if (pool->lanes.owned <= 1) end_lanes(pool);
}

void tarn__lanes_retire_others(tarn_pool *pool, const void *owner) {
  for (size_t i = 1; i <= pool->lanes.count; i++) {
    const void *other = lane_at(pool, i)->owner;
    if (other != NULL && other != owner) tarn__lanes_retire(pool, other);
  }
}

// --- for one request -------------------------------------------------------

static bool count_tag(tarn_pool *pool, tarn__pool_lane *lane, tarn_tag tag) {
  lane->counts_tags = tarn__front_counts(pool, TARN_COUNT_TAGS);
  for (int i = 0; i < TARN__LANE_TAGS; i++) {
    if (lane->tags[i].used && lane->tags[i].tag == tag) return true;
  }
  if (tarn__front_prepare_tag(pool, tag) != TARN_OK) return false;
  // The lane is settled: any count may be left.
  for (int i = TARN__LANE_TAGS - 1; i > 0; i--)
    lane->tags[i] = lane->tags[i - 1];
  lane->tags[0] = (tarn__pool_lane_tag){.tag = tag, .used = true};
  return true;
}

tarn__pool_lane *tarn__lanes_open(tarn_pool *pool, tarn_tag tag) {
  tarn__pool_lane *lane = may_have_lanes(pool) ? own_lane(pool) : NULL;
  if (lane == NULL) return NULL;
  settle(pool, lane);
  tarn__lane_unpack(lane);
  keep_within_share(pool, lane);
  if (!count_tag(pool, lane, tag)) return NULL;
  lane->strategy = pool->current;
  grant(pool, lane);
  if (!is_open(lane)) {
    atomic_store_explicit(&lane->closed, false, memory_order_relaxed);
    pool->lanes.open++;
  }
  return lane;
}

void tarn__lanes_relieve(tarn_pool *pool) {
  tarn__front_reenter(pool);
  tarn__pool_lane *lane = lane_of(pool, tarn__seats);
  if (lane != NULL && is_open(lane)) {
    settle(pool, lane);
    keep_within_share(pool, lane);
    grant(pool, lane);
  }
  clear_full_inboxes(pool);
  tarn__front_leave(pool);
}

size_t tarn__lanes_count_idle(const tarn_pool *pool) {
  size_t count = 0;
  for (size_t i = 1; i <= pool->lanes.count; i++) {
    const tarn__pool_lane *lane = lane_at(pool, i);
    count += lane->parcel.count;
    for (int bin = 0; bin < TARN__LANE_BINS; bin++) {
      for (const tarn__pool_piece *p = lane->bins[bin]; p != NULL; p = p->next)
        count++;
    }
    for (const tarn__pool_piece *p = lane->inbox; p != NULL; p = p->next)
      count++;
  }
  return count;
}

void tarn__lanes_deinit(tarn_pool *pool) {
  if (pool->lanes.count == 0) return;
  atomic_fetch_add_explicit(&tarn__seats_epoch, 1, memory_order_relaxed);
  for (size_t i = 1; i <= pool->lanes.count; i++)
    tarn__host_free(lane_at(pool, i), sizeof(tarn__pool_lane));
}
