// The ladder: what is tried before a request is refused.
//
//   callback    the program's own function frees, trims, raises the limit
//   streams     holes of several streams become one when their work is done
//   replaced    strategies that were replaced give back what they still have
//   returning   memory on its way to the device arrives there
//   trim        idle memory goes back to the device
//   finished    holes of streams that are done become one: nobody waits
//      ▲
//   the strategy has no room
//
// From the bottom up, cheap ones first. After each rung that made room the
// strategy is asked again; above the last a new round begins if any of this one
// has helped, since others may have been quicker to use it. Not for ever, since
// what is asked for may be more than ever comes free.
#include "pool/ladder.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/status.h"
#include "pool/front.h"
#include "pool/on_full.h"
#include "pool/room.h"
#include "pool/settle.h"

enum {
  ROUNDS = 16,
  HOLDERS = 3,  // that an error text names
};

// --- surveys ---------------------------------------------------------------

// False: the present strategy cannot say.
static bool survey(tarn_pool *pool, tarn__survey *out) {
  tarn__strategy *strategy = pool->current;
  *out = (tarn__survey){.idle = 0};
  if (strategy->type->survey == NULL) return false;
  strategy->type->survey(strategy, out);
  return true;
}

// --- what streams used last ------------------------------------------------

// Makes what streams used last nobody's: of those that are done, or, if
// |waits|, of all, when they are. What others free meanwhile may be behind
// newer work of the same stream: then only the strategy can be asked again.
// False: it would make no difference.
static bool settle(tarn__ladder *ladder, bool waits) {
  tarn_pool *pool = ladder->pool;
  tarn__strategy *strategy = pool->current;
  tarn__survey found;
  if (strategy->type->settle == NULL || !survey(pool, &found)) return false;
  if (found.streams.count == 0 || found.idle < ladder->request->size) {
    return false;
  }
  bool settled = tarn__settle_streams(strategy, &found.streams, waits);
  if (strategy != pool->current) tarn__front_retire(pool, strategy);
  return settled;
}

// --- the rungs -------------------------------------------------------------

static bool settle_finished(tarn__ladder *ladder) {
  return settle(ladder, false);
}

static bool end_quarantine(tarn__ladder *ladder) {
  return tarn__debug_flush(ladder->pool);
}

// Of what the pool is to keep a block may have its own size in another form;
// what is charged is no memory of the pool's.
static size_t target_of(const tarn__ladder *ladder) {
  const tarn__request *request = ladder->request;
  size_t kept = ladder->pool->kept;
  if (request->charge) return kept;
  return kept > request->size ? kept - request->size : 0;
}

static bool trim_idle(tarn__ladder *ladder) {
  tarn_pool *pool = ladder->pool;
  uint64_t frees = pool->stats.device_frees;
  uint64_t joins = pool->joins;
  (void)tarn__front_trim_as(pool, target_of(ladder),
                            TARN__TRIM_KEPT | tarn__trim_for(ladder->request));
  return pool->stats.device_frees != frees || pool->joins != joins;
}

static bool wait_for_returns(tarn__ladder *ladder) {
  tarn_pool *pool = ladder->pool;
  size_t before = pool->returning;
  if (before == 0) return false;
  tarn__front_wait(pool);
  // Who owned the lock has only come to hold it, and was told nothing.
  if (pool->returning >= before) tarn__front_wait(pool);
  return true;
}

// Each once: the list may change meanwhile, so it is turned.
static bool trim_replaced(tarn__ladder *ladder) {
  tarn_pool *pool = ladder->pool;
  uint64_t frees = pool->stats.device_frees;
  size_t count = 0;
  const tarn_list *node = NULL;
  tarn_list_for_each (node, &pool->replaced)
    count++;
  for (; count > 0 && !tarn_list_empty(&pool->replaced); count--) {
    tarn__strategy *old =
        tarn_list_entry(pool->replaced.next, tarn__strategy, node);
    tarn_list_del(&old->node);
    tarn_list_add_tail(&pool->replaced, &old->node);
    old->inside++;
    (void)old->type->trim(old, 0, tarn__trim_for(ladder->request));
    old->inside--;
    tarn__front_retire(pool, old);
  }
  return pool->stats.device_frees != frees;
}

static bool wait_for_streams(tarn__ladder *ladder) {
  return settle(ladder, true);
}

static bool call_program(tarn__ladder *ladder) {
  tarn_pool *pool = ladder->pool;
  const tarn_pool_stats *stats = &pool->stats;
  tarn__survey found;
  if (ladder->refused || !tarn__on_full_is_set(pool)) return false;
  bool can_fit = tarn__room_can_fit(pool, ladder->request);
  size_t limit = tarn__front_limit(pool);
  bool known = survey(pool, &found);
  tarn_pool_need need = {
      .struct_size = sizeof need,
      .size = ladder->request->size,
      .align = ladder->request->align,
      .tag = ladder->tag,
      .attempt = ladder->rounds,
      .reserved_bytes = stats->reserved_bytes,
      .live_bytes = stats->live_bytes,
      .limit_bytes = stats->limit_bytes,
      .idle_bytes = known ? found.idle : TARN_POOL_UNKNOWN,
      .largest_hole = known ? found.largest : TARN_POOL_UNKNOWN,
      .charged_bytes = stats->charged_bytes,
      .can_fit = can_fit,
  };
  tarn__front_leave(pool);
  bool again = tarn__on_full_call(pool, &need);
  tarn__front_enter(pool);
  if (again && !can_fit) {
    again = tarn__front_limit(pool) > limit ||
            tarn__room_can_fit(pool, ladder->request);
  }
  ladder->refused = !again;
  return again;
}

bool tarn__front_make_room(tarn_pool *pool) {
  const tarn__request any = {.size = SIZE_MAX};
  tarn__ladder ladder = {.pool = pool, .request = &any};
  return end_quarantine(&ladder) || trim_idle(&ladder) ||
         wait_for_returns(&ladder);
}

typedef struct rung {
  bool (*climb)(tarn__ladder *ladder);
  bool waits;    // the host may, for streams: not for who must not wait
  bool returns;  // memory, to the device: it helps those only who may grow
  bool asks;     // the program
} rung;

// What streams may still be at work in trim_idle and trim_replaced leave alone
// for who must not wait.
static const rung rungs[] = {
    {.climb = settle_finished},
    {.climb = end_quarantine, .waits = true},
    {.climb = trim_idle, .returns = true},
    {.climb = wait_for_returns, .waits = true, .returns = true},
    {.climb = trim_replaced, .returns = true},
    {.climb = wait_for_streams, .waits = true},
    {.climb = call_program, .asks = true},
};
enum { RUNGS = sizeof rungs / sizeof *rungs };

static bool is_allowed(const rung *r, const tarn__request *request) {
  return !(r->waits && request->no_wait) && !(r->returns && request->no_grow) &&
         !(r->asks && request->no_callback);
}

// --- climbing --------------------------------------------------------------

void tarn__ladder_begin(tarn__ladder *ladder, tarn_pool *pool,
                        const tarn__request *request, tarn_tag tag) {
  *ladder =
      (tarn__ladder){.pool = pool, .request = request, .tag = tag, .rounds = 1};
}

// Idle memory would not be enough, even if all of it came free: only the
// program can help. And in a capture nothing may be waited for, nor given back.
static bool is_hopeless(const tarn__ladder *ladder) {
  const tarn_pool *pool = ladder->pool;
  return tarn__front_keeps(pool) || ladder->request->beyond ||
         ladder->request->size > tarn__front_limit(pool);
}

// Another round, if the last one has helped.
static bool begin_round(tarn__ladder *ladder) {
  if (!ladder->helped || ladder->rounds == ROUNDS) return false;
  ladder->helped = false;
  ladder->rounds++;
  ladder->rung = 0;
  return true;
}

bool tarn__ladder_climb(tarn__ladder *ladder) {
  snprintf(ladder->reason, sizeof ladder->reason, "%s", tarn_last_error());
  do {
    while (ladder->rung < RUNGS) {
      const rung *next = &rungs[ladder->rung++];
      if (!is_allowed(next, ladder->request)) continue;
      if (!next->asks && is_hopeless(ladder)) continue;
      if (!next->climb(ladder)) continue;
      ladder->helped = true;
      return true;
    }
  } while (begin_round(ladder));
  return false;
}

// --- what is said ----------------------------------------------------------

// Whether |text| has |number| in it, as a number of its own.
static bool mentions(const char *text, size_t number) {
  static const char digits[] = "0123456789";
  char wanted[24];
  size_t length = (size_t)snprintf(wanted, sizeof wanted, "%zu", number);
  for (text += strcspn(text, digits); *text != '\0';
       text += strcspn(text, digits)) {
    size_t found = strspn(text, digits);
    if (found == length && strncmp(text, wanted, length) == 0) return true;
    text += found;
  }
  return false;
}

// The reason is the strategy's or the device's, in its own words: a figure that
// it gives is not repeated.
static void describe_request(const tarn__ladder *ladder, char *out,
                             size_t out_size) {
  const tarn__request *request = ladder->request;
  char size[TARN__BYTES_TEXT];
  char align[TARN__BYTES_TEXT];
  bool said = mentions(ladder->reason, request->size);
  bool aligned = request->align > ladder->pool->natural_align;
  snprintf(out, out_size, "%s%s%s%s%.40s",
           said ? tarn__bytes_short(request->size, size)
                : tarn__bytes_text(request->size, size),
           aligned ? " aligned to " : "",
           aligned ? tarn__bytes_text(request->align, align) : "",
           ladder->tag != 0 ? " for " : "",
           ladder->tag != 0 ? tarn_pool_tag_name(ladder->tag) : "");
}

static size_t percent_fragmented(const tarn__survey *found) {
  double part = (double)found->largest / (double)found->idle;
  return (size_t)(100.0 - 100.0 * part);
}

static void describe_holes(const tarn__survey *found, char *out,
                           size_t out_size) {
  char hole[TARN__BYTES_TEXT];
  if (found->largest == found->idle) {
    snprintf(out, out_size, " in one hole");
  } else {
    snprintf(out, out_size, ", the largest hole %s, %zu%% fragmented",
             tarn__bytes_text(found->largest, hole), percent_fragmented(found));
  }
}

static const char *part_of(size_t all, size_t part,
                           char out[TARN__BYTES_TEXT]) {
  return part == all ? "all of it" : tarn__bytes_text(part, out);
}

static void describe_idle(tarn_pool *pool, char *out, size_t out_size) {
  char text[TARN__BYTES_TEXT];
  char holes[112];
  tarn__survey found;
  if (!survey(pool, &found)) {
    snprintf(out, out_size, ", idle bytes unknown");
  } else if (found.idle != 0) {
    describe_holes(&found, holes, sizeof holes);
    snprintf(out, out_size, ", %s idle%s",
             part_of(pool->stats.reserved_bytes, found.idle, text), holes);
  } else {
    snprintf(out, out_size, ", nothing idle");
  }
}

// What is held, how much of that is live, and how much idle.
static void describe_held(const tarn__ladder *ladder, char *out,
                          size_t out_size) {
  const tarn_pool_stats *stats = &ladder->pool->stats;
  char reserved[TARN__BYTES_TEXT];
  char text[TARN__BYTES_TEXT];
  char idle[192];
  char live[TARN__BYTES_TEXT + 8] = "";
  if (stats->reserved_bytes == 0) {
    snprintf(out, out_size, "nothing reserved");
    return;
  }
  bool said = mentions(ladder->reason, stats->reserved_bytes);
  tarn__bytes_text(stats->reserved_bytes, reserved);
  if (stats->live_bytes != 0) {
    snprintf(live, sizeof live, ", %s live",
             part_of(stats->reserved_bytes, stats->live_bytes, text));
  }
  describe_idle(ladder->pool, idle, sizeof idle);
  snprintf(out, out_size, "%s reserved%s%s", said ? "that much is" : reserved,
           live, idle);
}

// What is wanted and why not stand first, since a text may be cut at its end.
tarn_status tarn__ladder_fail(const tarn__ladder *ladder) {
  tarn_pool *pool = ladder->pool;
  char place[64];
  char request[192];
  char held[320];
  char holders[320];
  char charged[TARN__CHARGES_SIZE];
  describe_request(ladder, request, sizeof request);
  describe_held(ladder, held, sizeof held);
  tarn__front_describe_charges(pool, charged);
  tarn__front_top_holders(pool, HOLDERS, holders, sizeof holders);
  bool waited = !ladder->request->no_wait;
  return tarn__fail(TARN_FULL, "pool of %s: no room for %s%s: %s; %s%s%s%s",
                    tarn_place_text(pool->place, place, sizeof place), request,
                    waited ? "" : ", and waiting was not allowed",
                    ladder->reason, held, charged, *holders ? "; most: " : "",
                    holders);
}
