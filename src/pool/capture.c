// Pools for captured graphs: permitted calls, and deferred frees.
//
//              begin_capture              end_capture
//       OPEN ─────────────────► RUNNING ──────────────► HELD ──┐
//        ▲                         ▲     begin_capture   │     │
//        │                         └─────────────────────┘     │
//        └──────────────────────── release ────────────────────┘
//
//   OPEN      an ordinary pool
//   RUNNING   requests are served, but with no memory that their stream would
//             have to wait for; the free of a block by the stream that it was
//             taken for is done at once, any other is put off
//   HELD      a graph uses the memory: no requests
//
// In RUNNING and HELD no memory leaves the pool or moves inside it. A deferred
// free leaves its piece live, so that all sums stay right, and linked in
// |deferred|.
#include "pool/capture.h"

#include "base/status.h"
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
    [TARN__CAPTURE_RUNNING] = {"a capture is under way", true, false},
    [TARN__CAPTURE_HELD] = {"a captured graph uses its memory", false, false},
};

static tarn_status refuse(const tarn_pool *pool, const char *what) {
  return tarn__fail(TARN_E_STATE, "pool: no %s now: %s", what,
                    states[pool->capture].name);
}

// --- permitted calls -------------------------------------------------------

tarn_status tarn__capture_admit_request(const tarn_pool *pool,
                                        tarn__pool_request *request) {
  const rules *now = &states[pool->capture];
  if (!now->serves) return refuse(pool, "request");
  if (request->zero && !now->shares) return refuse(pool, "cleared block");
  request->captured = !now->shares;
  request->own_only = request->own_only || request->captured;
  return TARN_OK;
}

// Whether the block was taken for that stream in this capture: no other stream
// has work in its memory.
static bool is_own(const tarn__pool_piece *piece, uint64_t serial) {
  return piece->captured && piece->taken_on == serial;
}

tarn_status tarn__capture_admit_resize(const tarn_pool *pool,
                                       const tarn__pool_piece *piece,
                                       uint64_t serial) {
  const rules *now = &states[pool->capture];
  bool own = now->shares || (now->serves && is_own(piece, serial));
  return own ? TARN_OK : refuse(pool, "resizing of this block");
}

tarn_status tarn__capture_admit_trim(const tarn_pool *pool) {
  return states[pool->capture].shares ? TARN_OK : refuse(pool, "trimming");
}

// --- frees that wait -------------------------------------------------------

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
  if (now->shares) return false;
  bool own = is_own(piece, serial) && !tarn__uses_any(&piece->uses);
  bool at_once = !now->serves || own;
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

// The first failure is returned.
static tarn_status settle_all(tarn_pool *pool) {
  tarn_status first = TARN_OK;
  tarn__pool_piece *rest = pool->deferred;
  pool->deferred = NULL;
  while (rest != NULL) {
    tarn__pool_piece *piece = rest;
    rest = piece->next;
    piece->next = NULL;
    tarn__keep_first(&first, settle(pool, piece));
  }
  return first;
}

// --- from state to state ---------------------------------------------------

static tarn_status change(tarn_pool *pool, event what) {
  bool running = pool->capture == TARN__CAPTURE_RUNNING;
  if (running != events[what].running) return refuse(pool, events[what].name);
  pool->capture = events[what].next;
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
