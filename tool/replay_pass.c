// Serves the requests of a trace.
#include "replay_pass.h"

#include <stdlib.h>
#include <unistd.h>

// What one thread does at a request, beside serving it.
typedef bool serve_fn(replay_pass *p, const request *r, size_t place);

// ---------------------------------------------------------------------------
// One request
// ---------------------------------------------------------------------------

void replay_pass_note(replay_pass *p) {
  if (!p->counts) return;
  pthread_mutex_lock(&p->lock);
  if (p->failed++ == 0) {
    snprintf(p->first_failure, REPLAY_TEXT_SIZE, "%s", tarn_last_error());
  }
  pthread_mutex_unlock(&p->lock);
}

// Through the device, where the host cannot reach.
static bool touch(const replay_pass *p, tarn_addr address, size_t size) {
  void *bytes = p->plain ? (void *)(uintptr_t)address : NULL;
  if (!p->host_touches) {
    return tarn_device_set(p->place.device, address, 1, size, NULL) == TARN_OK;
  }
  if (!p->plain &&
      tarn_device_host_view(p->place, address, size, &bytes) != TARN_OK) {
    return false;
  }
  for (size_t at = 0; at < size; at += p->page)
    ((volatile unsigned char *)bytes)[at] = 1;
  return true;
}

// A failed call leaves the block zero: not out.
static bool take(replay_pass *p, const request *r) {
  tarn_block *block = &p->blocks[r->slot];
  return tarn_pool_alloc(p->pool, r->size, 0, NULL, block) == TARN_OK &&
         (!p->touches || touch(p, block->address, r->size));
}

static bool give(replay_pass *p, const request *r) {
  tarn_block block = p->blocks[r->slot];
  if (block.pool == NULL) return true;  // its alloc had been refused
  p->blocks[r->slot].pool = NULL;
  return tarn_pool_free(&block, NULL) == TARN_OK;
}

static bool serve_it(replay_pass *p, const request *r, size_t place) {
  (void)place;
  return r->size > 0 ? take(p, r) : give(p, r);
}

static bool serve_timed(replay_pass *p, const request *r, size_t place) {
  bool is_nothing = r->size == 0 && p->blocks[r->slot].pool == NULL;
  uint64_t begin = stopwatch_now(p->watch);
  bool served = serve_it(p, r, place);
  uint64_t ticks = stopwatch_now(p->watch) - begin;
  p->ticks[place] = is_nothing ? REPLAY_NOT_SERVED : ticks;
  return served;
}

// ---------------------------------------------------------------------------
// All of them
// ---------------------------------------------------------------------------

typedef struct shared_pass {
  replay_pass *pass;
  serve_fn *serve;
} shared_pass;

static bool run_side(void *context, const crossing_side *side) {
  const shared_pass *s = context;
  for (size_t i = 0; i < side->requests.count; i++) {
    const request *r = &side->requests.items[i];
    if (!crossing_ready(side, r, side->first_pass)) return false;
    if (!s->serve(s->pass, r, side->places[i])) replay_pass_note(s->pass);
    crossing_tell(side, r, side->first_pass);
  }
  return true;
}

static void run_alone(replay_pass *p, serve_fn *serve) {
  for (size_t i = 0; i < p->requests->count; i++) {
    if (!serve(p, &p->requests->items[i], i)) replay_pass_note(p);
  }
}

// Nobody refuses, since refusals are passed over.
static void run(replay_pass *p, serve_fn *serve) {
  shared_pass shared = {.pass = p, .serve = serve};
  if (p->crossing == NULL) {
    run_alone(p, serve);
  } else {
    (void)crossing_run(p->crossing, run_side, &shared, 1);
  }
}

static void begin(replay_pass *p) {
  if (p->crossing == NULL) return;
  crossing_reset(p->crossing, p->trace->baseline_count);
}

double replay_pass_run(replay_pass *p) {
  begin(p);
  uint64_t begin_ticks = stopwatch_now(p->watch);
  run(p, serve_it);
  return stopwatch_pass_ns(p->watch, begin_ticks);
}

void replay_pass_sample(replay_pass *p) {
  begin(p);
  run(p, serve_timed);
}

// ---------------------------------------------------------------------------
// Outside of passes
// ---------------------------------------------------------------------------

static tarn_block *block_at(const replay_pass *p, uint32_t block) {
  return &p->blocks[p->crossing != NULL ? crossing_slot(p->crossing, block)
                                        : block];
}

bool replay_pass_is_out(const replay_pass *p, uint32_t block) {
  return block_at(p, block)->pool != NULL;
}

bool replay_pass_take(replay_pass *p, uint32_t block) {
  return tarn_pool_alloc(p->pool, p->trace->blocks[block].size, 0, NULL,
                         block_at(p, block)) == TARN_OK;
}

bool replay_pass_give(replay_pass *p, uint32_t block) {
  tarn_block dead = *block_at(p, block);
  *block_at(p, block) = (tarn_block){0};
  return tarn_pool_free(&dead, NULL) == TARN_OK;
}

tarn_addr replay_pass_address(const replay_pass *p, uint32_t block) {
  return block_at(p, block)->address;
}

// ---------------------------------------------------------------------------
// From the first to the last
// ---------------------------------------------------------------------------

// Whether what the device allocates is where the host would write to it.
static bool is_plain(const replay_pass *p) {
  tarn_addr address = 0;
  void *view = NULL;
  if (tarn_device_allocate(p->place, p->page, &address) != TARN_OK)
    return false;
  bool plain =
      tarn_device_host_view(p->place, address, p->page, &view) == TARN_OK &&
      view == (void *)(uintptr_t)address;
  return tarn_device_deallocate(p->place, address, p->page) == TARN_OK && plain;
}

static void look_at_device(replay_pass *p, tarn_device *device) {
  tarn_device_info info = {.struct_size = sizeof info};
  long page = sysconf(_SC_PAGESIZE);
  p->place = tarn_place_on(device);
  p->page = page > 0 ? (size_t)page : 4096;
  p->host_touches =
      tarn_device_query(device, &info) == TARN_OK && info.host_accessible;
  p->plain = p->touches && p->host_touches && is_plain(p);
}

bool replay_pass_open(replay_pass *p, const tarn_trace *trace,
                      tarn_device *device, size_t threads) {
  p->trace = trace;
  pthread_mutex_init(&p->lock, NULL);
  look_at_device(p, device);
  p->own = requests_make(trace);
  p->requests = &p->own;
  p->ticks = tool_array_ready(p->own.count, sizeof *p->ticks);
  if (threads > 1) {
    p->crossing = crossing_create(&p->own, threads, false);
    if (p->crossing == NULL) return false;
    p->requests = crossing_requests(p->crossing);
  }
  p->blocks = tool_array_ready(p->requests->slot_count, sizeof *p->blocks);
  return true;
}

void replay_pass_close(replay_pass *p) {
  if (p->trace == NULL) return;
  crossing_destroy(p->crossing);
  requests_deinit(&p->own);
  free(p->blocks);
  free(p->ticks);
  pthread_mutex_destroy(&p->lock);
}
