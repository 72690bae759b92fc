// Pools for captured graphs: permitted calls, and deferred frees.
//
//              begin_capture              end_capture
//       OPEN ─────────────────► RUNNING ──────────────► HELD ──┐
//       ▲ ▲                        ▲     begin_capture   │     │
//       │ │                        ├─────────────────────┘     │
//       │ └────────────── release ─┼───────────────────────────┘
//       │                          │ begin_capture
//       └──────► NOTICED ──────────┘
//          a stream captures, or none any more
//
//   OPEN      an ordinary pool
//   NOTICED   a stream captures, and nobody told the pool: as RUNNING, but all
//             frees are put off. What that stream gets is the graph's until the
//             release, whatever becomes of the pool's state
//   RUNNING   requests are served, but with no memory that their stream would
//             have to wait for; the free of a block by the stream that it was
//             taken for is done at once, any other is put off
//   HELD      a graph uses the memory: no requests
//
// In all but OPEN no memory leaves the pool or moves inside it. A deferred free
// leaves its piece live, so that all sums stay right, and linked in |deferred|.
#include "pool/capture.h"

#include "base/status.h"
#include "device/memory.h"
#include "pool/piece.h"

typedef enum event { BEGIN, END, RELEASE } event;

static const struct {
  const char *name;
  bool running;  // where it is allowed: in RUNNING only, or in the others only
  tarn__pool_capture_state next;
} events[] = {
    [BEGIN] = {"begin_capture", false, TARN__CAPTURE_RUNNING},
    [END] = {"end_capture", true, TARN__CAPTURE_HELD},
    [RELEASE] = {"release", false, TARN__CAPTURE_OPEN},
};

typedef struct rules {
  const char *name;
  bool serves;  // requests
  bool shares;  // calls that move memory to other blocks, or give it back
} rules;

static const rules states[] = {
    [TARN__CAPTURE_OPEN] = {"no capture was begun", true, true},
    [TARN__CAPTURE_NOTICED] = {"a stream captures a graph", true, false},
    [TARN__CAPTURE_RUNNING] = {"a capture is under way", true, false},
    [TARN__CAPTURE_HELD] = {"a captured graph uses its memory", false, false},
};

static tarn_status refuse_in(tarn__pool_capture_state state, const char *what) {
  return tarn__fail(TARN_E_STATE, "pool: no %s now: %s", what,
                    states[state].name);
}

static tarn_status refuse(const tarn_pool *pool, const char *what) {
  return refuse_in(pool->capture, what);
}

// --- frees that wait -------------------------------------------------------

// Whether the block was taken for that stream in this capture: no other stream
// has work in its memory.
static bool is_own(const tarn__pool_piece *piece, uint64_t serial) {
  return piece->captured && piece->taken_on == serial;
}

static void put_off(tarn_pool *pool, tarn__pool_piece *piece, uint64_t serial) {
  piece->deferred = true;
  piece->freed_on = serial;
  piece->next = pool->deferred;
  pool->deferred = piece;
}

// Without room on the host for it, memory would leave the pool, or be waited
// for.
static bool is_expected(tarn__pool_piece *piece, uint64_t serial) {
  uint64_t last = serial != 0 ? serial : piece->waits_on;
  return piece->owner->type->expect(piece->owner, piece, last);
}

bool tarn__capture_defer_free(tarn_pool *pool, tarn__pool_piece *piece,
                              uint64_t serial) {
  const rules *now = &states[pool->capture];
  if (now->shares && !piece->noticed) return false;
  bool own = is_own(piece, serial) && !tarn__uses_any(&piece->uses);
  bool at_once = !piece->noticed && (!now->serves || own);
  if (at_once && is_expected(piece, serial)) return false;
  put_off(pool, piece, serial);
  return true;
}

// Graphs of one pool run one after the other, so a later capture need not wait
// for memory that an earlier one used: each block's memory goes to the stream
// that it was taken for, which will request it again. Memory that was taken
// before the capture is ordered as usual, except that there is no stream that
// could wait.
static tarn_status settle(tarn_pool *pool, tarn__pool_piece *piece) {
  uint64_t serial = piece->freed_on;
  uint64_t first = piece->waits_on;
  tarn_status ordered = TARN_OK;
  if (piece->captured) {
    serial = piece->taken_on;
  } else if (tarn__uses_any(&piece->uses)) {
    piece->resizing = true;
    ordered = tarn__uses_settle(pool, piece, NULL, &serial);
    piece->resizing = false;
  } else if (serial == 0) {
    serial = first;
  } else if (first != 0 && first != serial) {
    ordered = tarn__front_follow(pool, NULL, first);
  }
  if (tarn__front_keeps(pool) && !is_expected(piece, serial)) {
    put_off(pool, piece, piece->freed_on);
    return TARN_E_NOMEM;
  }
  tarn__uses_clear(&piece->uses);
  piece->deferred = false;
  pool->stats.frees++;
  TARN__TRY(tarn__front_give(pool, piece, serial));
  return ordered;
}

// Those of blocks that a noticed capture took stay. The first failure is
// returned.
static tarn_status settle_all(tarn_pool *pool) {
  tarn_status first = TARN_OK;
  tarn__pool_piece *rest = pool->deferred;
  pool->deferred = NULL;
  while (rest != NULL) {
    tarn__pool_piece *piece = rest;
    rest = piece->next;
    piece->next = NULL;
    if (piece->noticed) {
      put_off(pool, piece, piece->freed_on);
    } else {
      tarn__keep_first(&first, settle(pool, piece));
    }
  }
  return first;
}

// --- captures that nobody told of ------------------------------------------

static void end_noticed(tarn_pool *pool) {
  pool->capture = TARN__CAPTURE_OPEN;
  (void)settle_all(pool);  // a failure sticks to its stream
}

// The pool may change while the lock is released, by an explicit call or by
// another thread that looks.
bool tarn__capture_ask(tarn_pool *pool, uint64_t serial, bool waits) {
  uint64_t before = pool->capturing;
  if (pool->capture != TARN__CAPTURE_OPEN &&
      pool->capture != TARN__CAPTURE_NOTICED) {
    return false;
  }
  bool noticed = pool->capture == TARN__CAPTURE_NOTICED;
  if (serial == 0 && !noticed) return false;
  tarn__front_leave(pool);
  bool captures = serial != 0 && tarn__stream_is_capturing(serial);
  bool goes_on = captures || (noticed && tarn__stream_is_capturing(before));
  tarn__front_enter(pool);
  if (captures && pool->capture == TARN__CAPTURE_OPEN) {
    pool->capture = TARN__CAPTURE_NOTICED;
  }
  if (captures) pool->capturing = serial;
  bool over = !goes_on && pool->capture == TARN__CAPTURE_NOTICED &&
              pool->capturing == before;
  if (over && waits) end_noticed(pool);
  return captures;
}

// From now on they are blocks as any other.
static void release_noticed(tarn_pool *pool) {
  for (size_t id = 0; id < tarn__pieces_count(&pool->pieces); id++)
    tarn__pieces_at(&pool->pieces, (uint32_t)id)->noticed = false;
}

// --- permitted calls -------------------------------------------------------

tarn_status tarn__capture_admit_request(tarn_pool *pool,
                                        tarn__pool_request *request) {
  bool told = tarn__capture_look(pool, request->serial, !request->no_wait);
  const rules *now = &states[pool->capture];
  if (!now->serves) return refuse(pool, "request");
  if (request->zero && !now->shares) return refuse(pool, "cleared block");
  request->noticed = told && pool->capture == TARN__CAPTURE_NOTICED;
  request->captured =
      request->noticed || pool->capture == TARN__CAPTURE_RUNNING;
  request->own_only = request->own_only || !now->shares;
  return TARN_OK;
}

// A block that is not much larger; its memory has the stream's work only.
static bool fits_again(const tarn__pool_piece *piece,
                       const tarn__pool_request *request) {
  enum { WASTED_PARTS = 8 };
  size_t size = request->size;
  uint64_t serial = request->serial;
  return piece->noticed && piece->taken_on == serial &&
         piece->freed_on == serial && !tarn__uses_any(&piece->uses) &&
         piece->size >= size && piece->size - size <= size / WASTED_PARTS &&
         (piece->address & (request->align - 1)) == 0;
}

// The link to the smallest that fits; NULL: none does.
static tarn__pool_piece **find_again(tarn_pool *pool,
                                     const tarn__pool_request *request) {
  tarn__pool_piece **best = NULL;
  for (tarn__pool_piece **at = &pool->deferred; *at != NULL;
       at = &(*at)->next) {
    bool better = best == NULL || (*at)->size < (*best)->size;
    if (better && fits_again(*at, request)) best = at;
  }
  return best;
}

// The free takes effect now, for this request alone.
bool tarn__capture_find_again(tarn_pool *pool, tarn__pool_request *request,
                              tarn__pool_piece **out_piece) {
  if (!tarn__capture_look(pool, request->serial, false) ||
      pool->capture != TARN__CAPTURE_NOTICED) {
    return false;
  }
  if (request->counted &&
      tarn__front_prepare_tag(pool, request->tag) != TARN_OK)
    return false;
  tarn__pool_piece **link = find_again(pool, request);
  if (link == NULL) return false;
  tarn__pool_piece *piece = *link;
  *link = piece->next;
  piece->next = NULL;
  piece->deferred = false;
  pool->stats.frees++;
  tarn__front_set_aside(pool, piece, request->serial);
  piece->owner->live--;
  request->noticed = request->captured = true;
  *out_piece = piece;
  return true;
}

tarn_status tarn__capture_admit_resize(const tarn_pool *pool,
                                       const tarn__pool_piece *piece,
                                       uint64_t serial) {
  static const char what[] = "resizing of this block";
  const rules *now = &states[pool->capture];
  if (piece->noticed) return refuse_in(TARN__CAPTURE_HELD, what);
  bool own = now->shares || (now->serves && is_own(piece, serial));
  return own ? TARN_OK : refuse(pool, what);
}

tarn_status tarn__capture_admit_trim(tarn_pool *pool) {
  (void)tarn__capture_look(pool, 0, true);
  return states[pool->capture].shares ? TARN_OK : refuse(pool, "trimming");
}

// --- from state to state ---------------------------------------------------

static tarn_status change(tarn_pool *pool, event what) {
  (void)tarn__capture_look(pool, 0, true);
  bool running = pool->capture == TARN__CAPTURE_RUNNING;
  bool early = what == RELEASE && pool->capture == TARN__CAPTURE_NOTICED;
  if (running != events[what].running || early) {
    return refuse(pool, events[what].name);
  }
  pool->capture = events[what].next;
  if (what == RELEASE) release_noticed(pool);
  return what == BEGIN ? TARN_OK : settle_all(pool);
}

static tarn_status change_pool(tarn_pool *pool, event what) {
  TARN__TRY(tarn__front_check_pool(pool));
  if ((pool->flags & TARN_POOL_DEFER) == 0) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "pool: %s needs a pool made with TARN_POOL_DEFER",
                      events[what].name);
  }
  tarn__front_enter(pool);
  tarn_status status = change(pool, what);
  tarn__front_leave(pool);
  return status;
}

tarn_status tarn_pool_begin_capture(tarn_pool *pool) {
  return change_pool(pool, BEGIN);
}

tarn_status tarn_pool_end_capture(tarn_pool *pool) {
  return change_pool(pool, END);
}

tarn_status tarn_pool_end_graphs(tarn_pool *pool) {
  return change_pool(pool, RELEASE);
}
