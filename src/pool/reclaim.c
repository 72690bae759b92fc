// Reclaim: the steps before a request is refused.
//
//   callback    the program's own function frees, trims, raises the limit
//   streams     holes of several streams merge after waiting for their work
//   replaced    strategies that were replaced give back what they still have
//   returning   memory on its way to the device arrives there
//   trim        idle memory goes back to the device
//   finished    holes of streams that are done merge, without waiting
//   lanes       what threads keep goes back to the strategy; sums are exact
//      ▲
//   the strategy has no room
//
// Steps are tried from the bottom up, cheap ones first. After each step that
// made room the strategy is asked again. After the last step a new round begins
// if any step of this one has helped, since other threads may have taken the
// room. The number of rounds is limited: the request may need more than ever
// becomes free.
#include "pool/reclaim.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/status.h"
#include "pool/front.h"
#include "pool/on_full.h"
#include "pool/strategy.h"

enum {
  ROUNDS = 16,
  HOLDERS = 3,  // that an error text names
};

// --- surveys ---------------------------------------------------------------

// False: the present strategy cannot say.
static bool survey(tarn_pool *pool, tarn__pool_survey *out) {
  tarn__pool_strategy *strategy = pool->current;
  *out = (tarn__pool_survey){.idle = 0};
  if (strategy->type->survey == NULL) return false;
  strategy->type->survey(strategy, out);
  return true;
}

// --- the steps -------------------------------------------------------------

static bool recall_lanes(tarn__pool_reclaim *reclaim) {
  return tarn__lanes_empty(reclaim->pool);
}

// False, and the strategy is not asked again, if that made no difference.
static bool settle_finished(tarn__pool_reclaim *reclaim) {
  return tarn__settle_streams(reclaim->pool->current, reclaim->request->size,
                              false);
}

static bool end_quarantine(tarn__pool_reclaim *reclaim) {
  return tarn__debug_flush(reclaim->pool);
}

// Of the reserved memory, as much as the block needs may be given back, and
// allocated again in another form; charged memory is not the pool's.
static size_t target_of(const tarn__pool_reclaim *reclaim) {
  const tarn__pool_request *request = reclaim->request;
  size_t kept = reclaim->pool->kept;
  if (request->charge) return kept;
  return kept > request->size ? kept - request->size : 0;
}

static bool trim_idle(tarn__pool_reclaim *reclaim) {
  tarn_pool *pool = reclaim->pool;
  uint64_t frees = pool->stats.device_frees;
  uint64_t joins = pool->joins;
  (void)tarn__front_trim_as(pool, target_of(reclaim),
                            TARN__TRIM_KEPT | tarn__trim_for(reclaim->request));
  return pool->stats.device_frees != frees || pool->joins != joins;
}

static bool wait_for_returns(tarn__pool_reclaim *reclaim) {
  tarn_pool *pool = reclaim->pool;
  size_t before = pool->returning;
  if (before == 0) return false;
  tarn__front_wait(pool);
  // The previous owner has only taken the lock, and was not notified.
  if (pool->returning >= before) tarn__front_wait(pool);
  return true;
}

// Each strategy once: the list may change during it, so it is rotated.
static bool trim_replaced(tarn__pool_reclaim *reclaim) {
  tarn_pool *pool = reclaim->pool;
  uint64_t frees = pool->stats.device_frees;
  size_t count = 0;
  const tarn_list *node = NULL;
  tarn_list_for_each (node, &pool->replaced)
    count++;
  for (; count > 0 && !tarn_list_empty(&pool->replaced); count--) {
    tarn__pool_strategy *old =
        tarn_list_entry(pool->replaced.next, tarn__pool_strategy, node);
    tarn_list_del(&old->node);
    tarn_list_add_tail(&pool->replaced, &old->node);
    (void)tarn__strategy_trim(old, 0, tarn__trim_for(reclaim->request));
  }
  return pool->stats.device_frees != frees;
}

static bool wait_for_streams(tarn__pool_reclaim *reclaim) {
  return tarn__settle_streams(reclaim->pool->current, reclaim->request->size,
                              true);
}

static bool call_program(tarn__pool_reclaim *reclaim) {
  tarn_pool *pool = reclaim->pool;
  const tarn_pool_stats *stats = &pool->stats;
  tarn__pool_survey found;
  if (reclaim->refused || !tarn__on_full_is_set(pool)) return false;
  bool can_fit = tarn__room_can_fit(pool, reclaim->request);
  size_t limit = tarn__front_limit(pool);
  bool known = survey(pool, &found);
  tarn__lanes_close(pool);  // other threads may have opened theirs
  tarn_pool_need need = {
      .struct_size = sizeof need,
      .size = reclaim->request->size,
      .align = reclaim->request->align,
      .tag = reclaim->request->tag,
      .attempt = reclaim->rounds,
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
  tarn__front_reenter(pool);
  if (again && !can_fit) {
    again = tarn__front_limit(pool) > limit ||
            tarn__room_can_fit(pool, reclaim->request);
  }
  reclaim->refused = !again;
  return again;
}

bool tarn__front_make_room(tarn_pool *pool) {
  const tarn__pool_request any = {.size = SIZE_MAX};
  tarn__pool_reclaim reclaim = tarn__reclaim_of(pool, &any);
  return end_quarantine(&reclaim) || trim_idle(&reclaim) ||
         wait_for_returns(&reclaim);
}

typedef struct step {
  bool (*run)(tarn__pool_reclaim *reclaim);
  bool waits;     // the host waits for streams
  bool returns;   // memory goes back to the device: helps only requests that
                  // need new memory
  bool asks;      // the program
  bool corrects;  // the sums that may have said that there cannot be room
} step;

// For requests that must not wait, trim_idle and trim_replaced leave memory
// alone that streams may still use.
static const step steps[] = {
    {.run = recall_lanes, .corrects = true},
    {.run = settle_finished},
    {.run = end_quarantine, .waits = true},
    {.run = trim_idle, .returns = true},
    {.run = wait_for_returns, .waits = true, .returns = true},
    {.run = trim_replaced, .returns = true},
    {.run = wait_for_streams, .waits = true},
    {.run = call_program, .asks = true},
};
enum { STEPS = sizeof steps / sizeof *steps };

static bool is_allowed(const step *r, const tarn__pool_request *request) {
  return !(r->waits && request->no_wait) && !(r->returns && request->no_grow) &&
         !(r->asks && request->no_callback);
}

// --- reclaiming ------------------------------------------------------------

// All idle memory together would not be enough: only the program can help. In a
// capture, memory may neither be waited for nor given back.
static bool is_hopeless(const tarn__pool_reclaim *reclaim) {
  const tarn_pool *pool = reclaim->pool;
  return tarn__front_keeps(pool) || reclaim->request->beyond ||
         reclaim->request->size > tarn__front_limit(pool);
}

// Begins another round, if the last one has helped.
static bool begin_round(tarn__pool_reclaim *reclaim) {
  if (!reclaim->helped || reclaim->rounds == ROUNDS) return false;
  reclaim->helped = false;
  reclaim->rounds++;
  reclaim->step = 0;
  return true;
}

bool tarn__reclaim_next(tarn__pool_reclaim *reclaim) {
  snprintf(reclaim->reason, sizeof reclaim->reason, "%s", tarn_last_error());
  do {
    while (reclaim->step < STEPS) {
      const step *next = &steps[reclaim->step++];
      if (!is_allowed(next, reclaim->request)) continue;
      bool any_way = next->asks || next->corrects;
      if (!any_way && is_hopeless(reclaim)) continue;
      if (!next->run(reclaim)) continue;
      reclaim->helped = true;
      return true;
    }
  } while (begin_round(reclaim));
  return false;
}

// --- texts -----------------------------------------------------------------

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
static void describe_request(const tarn__pool_reclaim *reclaim, char *out,
                             size_t out_size) {
  const tarn__pool_request *request = reclaim->request;
  char size[TARN__BYTES_TEXT];
  char align[TARN__BYTES_TEXT];
  bool said = mentions(reclaim->reason, request->size);
  bool aligned = request->align > reclaim->pool->natural_align;
  snprintf(out, out_size, "%s%s%s%s%.40s",
           said ? tarn__bytes_short(request->size, size)
                : tarn__bytes_text(request->size, size),
           aligned ? " aligned to " : "",
           aligned ? tarn__bytes_text(request->align, align) : "",
           request->tag != 0 ? " for " : "",
           request->tag != 0 ? tarn_pool_tag_name(request->tag) : "");
}

static size_t percent_fragmented(const tarn__pool_survey *found) {
  double part = (double)found->largest / (double)found->idle;
  return (size_t)(100.0 - 100.0 * part);
}

static void describe_holes(const tarn__pool_survey *found, char *out,
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
  tarn__pool_survey found;
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

// The held bytes, and how many of them are live and idle.
static void describe_held(const tarn__pool_reclaim *reclaim, char *out,
                          size_t out_size) {
  const tarn_pool_stats *stats = &reclaim->pool->stats;
  char reserved[TARN__BYTES_TEXT];
  char text[TARN__BYTES_TEXT];
  char idle[192];
  char live[TARN__BYTES_TEXT + 8] = "";
  if (stats->reserved_bytes == 0) {
    snprintf(out, out_size, "nothing reserved");
    return;
  }
  bool said = mentions(reclaim->reason, stats->reserved_bytes);
  tarn__bytes_text(stats->reserved_bytes, reserved);
  if (stats->live_bytes != 0) {
    snprintf(live, sizeof live, ", %s live",
             part_of(stats->reserved_bytes, stats->live_bytes, text));
  }
  describe_idle(reclaim->pool, idle, sizeof idle);
  snprintf(out, out_size, "%s reserved%s%s", said ? "that much is" : reserved,
           live, idle);
}

// The request and the reason come first, since a text may be cut at its end.
tarn_status tarn__reclaim_fail(const tarn__pool_reclaim *reclaim) {
  tarn_pool *pool = reclaim->pool;
  char place[64];
  char request[192];
  char held[320];
  char holders[320];
  char charged[TARN__CHARGES_SIZE];
  tarn__lanes_close(pool);
  describe_request(reclaim, request, sizeof request);
  describe_held(reclaim, held, sizeof held);
  tarn__front_describe_charges(pool, charged);
  tarn__front_top_holders(pool, HOLDERS, holders, sizeof holders);
  bool waited = !reclaim->request->no_wait;
  return tarn__fail(TARN_FULL, "pool of %s: no room for %s%s: %s; %s%s%s%s",
                    tarn_place_text(pool->place, place, sizeof place), request,
                    waited ? "" : ", and waiting was not allowed",
                    reclaim->reason, held, charged, *holders ? "; most: " : "",
                    holders);
}
