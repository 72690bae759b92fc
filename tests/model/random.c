// Nets by chance at work: rounds with steps left out, at four pairs of places,
// on streams that lag, with other batches and places in between. What a part
// holds is compared byte by byte, through every name it has, wherever it is
// asked for: bytes of parts that share its memory must never show.
//
// TARN_MODEL_SEEDS is how many nets more there are to be; by hand:
// test_model_random SEED COUNT.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "random_net.h"
#include "support/effort.h"
#include "support/run.h"
#include "tarn/sim.h"

enum { SEEDS = EFFORT(100, 12), ROUNDS = 6, NO_STREAM = -1 };

static rn_net net;

static struct {
  unsigned long accesses, refused, unknown, joined, pushed, rounds, replaced;
} seen;

static void at(const char *what) {
  snprintf(sm_now_at.what, sizeof sm_now_at.what, "time %lld of %zu, %s",
           (long long)net.now, 2 * net.steps, what);
  sm_now_at.operation++;
}

// --- one access ------------------------------------------------------------

typedef struct wish {
  rn_part *part;
  unsigned place;
  int stream;
  uint32_t mode;
  size_t offset;
  size_t size;
} wish;

static bool knows(const wish *w) {
  for (size_t i = w->offset; i < w->offset + w->size; i++) {
    if (!w->part->known[i]) return false;
  }
  return true;
}

static bool says(const char *text) {
  return strstr(tarn_last_error(), text) != NULL;
}

static void store(const wish *w, const tarn_access *access) {
  unsigned char *bytes = w->part->bytes + w->offset;
  for (size_t i = 0; i < w->size; i++) {
    bytes[i] = (unsigned char)sg_random();
    w->part->known[w->offset + i] = true;
  }
  sg_store(access, w->place, w->stream, bytes);
  if (w->size > 0) rn_wrote(&net, w->part);
}

static void use(const wish *w) {
  tarn_stream *stream = w->stream < 0 ? NULL : sg_stream[w->stream];
  tarn_access access;
  at(w->part->tensor != NULL ? w->part->tensor->name : "an entry");
  tarn_status status =
      tarn_synced_begin(rn_buffer(w->part), w->offset, w->size,
                        sg_name_of(w->place), w->mode, stream, &access);
  if (!w->part->active && w->size > 0) {
    sm_status(status, TARN_E_STATE);
    sm_require(says("its lifetime in the plan has not begun or is over"));
    seen.refused++;
    return;
  }
  if (w->size == 0 && status == TARN_E_STATE) return;
  if (w->mode != TARN_WRITE_DISCARD && !knows(w)) {
    sm_status(status, TARN_E_STATE);
    seen.unknown++;
    return;
  }
  sm_status(status, TARN_OK);
  seen.accesses++;
  if (w->mode != TARN_WRITE_DISCARD) {
    sg_check(&access, w->place, w->stream, w->part->bytes + w->offset);
  }
  if (w->mode != TARN_READ) store(w, &access);
  sm_status(tarn_synced_end(&access), TARN_OK);
}

// --- chance ----------------------------------------------------------------

static int some_stream(void) {
  return sg_below(4) == 0 ? NO_STREAM : (int)sg_below(sg_streams);
}

static rn_part *some_part(void) {
  size_t step = sg_below(net.steps);
  rn_part *extra = &net.extras[step][sg_below(RN_EXTRAS)];
  if (sg_below(8) == 0 && rn_is_there(extra)) return extra;
  rn_part *part = NULL;
  for (int i = 0; i < 6; i++) {
    part = &net.parts[sg_below(net.part_count)];
    if (part->active && rn_is_there(part)) break;
  }
  return rn_is_there(part) ? part : NULL;
}

static uint32_t some_mode(void) {
  static const uint32_t modes[] = {TARN_READ, TARN_READ, TARN_WRITE_DISCARD,
                                   TARN_WRITE_DISCARD, TARN_READ_WRITE};
  return modes[sg_below(5)];
}

static void choose_range(wish *w) {
  size_t size = rn_size(w->part);
  w->size = size;
  if (sg_below(3) != 0 || size == 0) return;
  w->offset = sg_below(size);
  w->size = 1 + sg_below(size - w->offset);
}

// In the step in which one takes the place of another, both are used at one
// place on one stream.
typedef struct custom {
  unsigned place;
  int stream;
} custom;

static void use_some(custom c) {
  wish w = {.part = some_part(),
            .place = (unsigned)sg_below(sm_place_count),
            .stream = some_stream(),
            .mode = some_mode()};
  if (w.part == NULL || w.part->spoiled) return;
  if (rn_is_in_pair(&net, w.part)) {
    w.place = c.place;
    w.stream = c.stream;
  }
  choose_range(&w);
  use(&w);
}

// Reads the giver and writes the taker, both open at once, in one place.
static void join_pair(const rn_pair *pair, custom c) {
  rn_part *giver = pair->giver;
  rn_part *taker = pair->taker;
  size_t size =
      rn_size(giver) < rn_size(taker) ? rn_size(giver) : rn_size(taker);
  wish read = {
      .part = giver, .place = c.place, .stream = c.stream, .size = size};
  if (giver->spoiled || taker->spoiled || size == 0 || !knows(&read)) return;
  at("in place");
  tarn_stream *stream = c.stream < 0 ? NULL : sg_stream[c.stream];
  tarn_access from;
  tarn_access to;
  sm_status(tarn_synced_begin(rn_buffer(giver), 0, size, sm_places[c.place],
                              TARN_READ, stream, &from),
            TARN_OK);
  sm_status(tarn_synced_begin(rn_buffer(taker), 0, size, sm_places[c.place],
                              TARN_WRITE_DISCARD, stream, &to),
            TARN_OK);
  bool planned_here = net.planned_at[c.place];
  if (planned_here) {
    sm_require(from.address == to.address);
    sg_check(&to, c.place, c.stream, giver->bytes);
  }
  wish write = read;
  write.part = taker;
  store(&write, &to);
  sm_status(tarn_synced_end(&to), TARN_OK);
  sm_status(tarn_synced_end(&from), TARN_OK);
  seen.joined++;
}

static void join_some(custom c) {
  for (size_t i = 0; i < net.pair_count; i++) {
    const rn_pair *pair = &net.pairs[i];
    bool here = pair->time == net.now && rn_is_in_pair(&net, pair->taker) &&
                rn_is_in_pair(&net, pair->giver);
    if (here && pair->giver->active && pair->taker->active && sg_below(2) == 0)
      join_pair(pair, c);
  }
}

// --- caches ----------------------------------------------------------------

static void push(size_t step) {
  size_t index = net.pushed[step];
  if (index < net.described[step]) {
    const tarn_tensor *tensor = rn_cache(&net, step, index);
    tarn_synced *buffer = NULL;
    sm_status(tarn_step_push(net.step[step], tensor->dtype,
                             tarn_tensor_count(tensor), tensor->bits, &buffer),
              TARN_OK);
    sm_require(buffer == tensor->data);
    net.counts[step][net.pushed[step]++] = tarn_tensor_count(tensor);
    return;
  }
  size_t extra = index - net.described[step];
  if (extra == RN_EXTRAS) return;
  rn_part *part = &net.extras[step][extra];
  size_t size = part->extra != NULL && sg_below(3) != 0 ? part->extra_size
                                                        : sg_below(SM_SIZE);
  sm_status(
      tarn_step_push(net.step[step], TARN_DTYPE_I8, size, false, &part->extra),
      TARN_OK);
  sm_require(tarn_synced_size(part->extra) == size);
  part->extra_size = size;
  part->active = true;
  net.pushed[step]++;
  seen.pushed++;
}

static void pop(size_t step) {
  tarn_synced *buffer = NULL;
  if (net.pushed[step] == 0) {
    sm_status(tarn_step_pop(net.step[step], TARN_DTYPE_I8, 1, false, &buffer),
              TARN_E_STATE);
    return;
  }
  size_t index = net.pushed[step] - 1;
  if (index < net.described[step]) {
    const tarn_tensor *tensor = rn_cache(&net, step, index);
    sm_status(tarn_step_pop(net.step[step], tensor->dtype,
                            net.counts[step][index], tensor->bits, &buffer),
              TARN_OK);
    sm_require(buffer == tensor->data);
  } else {
    const rn_part *part = &net.extras[step][index - net.described[step]];
    sm_status(tarn_step_pop(net.step[step], TARN_DTYPE_I8, part->extra_size,
                            false, &buffer),
              TARN_OK);
    sm_require(buffer == part->extra);
  }
  net.pushed[step]--;
}

static void use_caches(void) {
  if (!net.trains || sg_below(2) == 0) return;
  at("a cache");
  if (net.now < net.steps) {
    push((size_t)net.now);
  } else {
    pop(2 * net.steps - 1 - (size_t)net.now);
  }
}

// --- rounds ----------------------------------------------------------------

static tarn_status enter(uint64_t time) {
  size_t n = net.steps;
  size_t index = (size_t)(time < n ? time : 2 * n - 1 - time);
  return tarn_model_enter(net.step[index],
                          time < n ? TARN_FORWARD : TARN_BACKWARD);
}

static void try_wrong_step(void) {
  if (net.now == UINT64_MAX || net.now < 2 || sg_below(4) != 0) return;
  at("a step back");
  sm_status(enter(1 + sg_below((size_t)net.now - 1)), TARN_E_STATE);
  sm_require(says("a step back in time"));
}

static void play_step(void) {
  custom c = {(unsigned)sg_below(sm_place_count), some_stream()};
  for (size_t i = sg_below(10); i > 0; i--)
    use_some(c);
  use_caches();
  join_some(c);
  for (size_t i = sg_below(4); i > 0; i--)
    use_some(c);
  use_caches();
}

static void set_some_batch(void) {
  int64_t most = (int64_t)net.most_batch;
  sm_status(
      tarn_model_set_batch(net.model, (int64_t)sg_below(net.most_batch + 1)),
      TARN_OK);
  sm_status(tarn_model_set_batch(net.model, most + 1), TARN_E_INVALID);
}

static void play_round(void) {
  uint64_t end = net.trains ? 2 * net.steps : net.steps;
  seen.rounds++;
  for (uint64_t time = 0; time < end; time++) {
    if (sg_below(7) == 0) continue;
    if (net.now != UINT64_MAX && time != 0 && time < net.now) continue;
    if (sg_below(40) == 0) return;
    at("entering");
    sm_status(enter(time), TARN_OK);
    rn_entered(&net, time);
    play_step();
    try_wrong_step();
    if (sg_below(10) == 0) set_some_batch();
  }
}

// --- between them ----------------------------------------------------------

static void plan_and_place(void) {
  // The host, a device, and each with the other to compute at.
  unsigned where = (unsigned)sg_below(4);
  tarn_plan_options solver = {.struct_size = sizeof solver, .node_limit = 2000};
  tarn_model_plan_options options = {
      .struct_size = sizeof options,
      .mode = sg_below(4) == 0 ? TARN_INFER : TARN_TRAIN,
      .align = sg_below(2) == 0 ? 0 : 1,
      .solver = &solver};
  if (where == 1 || where == 3) options.home = sm_places[1];
  if (where == 2) options.compute = sm_places[1];
  if (where == 3) {
    options.compute = (tarn_place){sm_places[1].device, TARN_PLACE_HOST};
  }
  net.trains = options.mode == TARN_TRAIN;
  net.planned_at[0] = where != 1;
  net.planned_at[1] = where != 0;
  at("planning");
  sm_status(tarn_model_plan(net.model, &options), TARN_OK);
  rn_planned(&net);
  sm_status(tarn_model_place(net.model), TARN_OK);
  rn_placed(&net);
}

static void change_something(void) {
  size_t what = sg_below(8);
  if (what == 0) {
    at("another place");
    sm_status(tarn_model_release(net.model), TARN_OK);
    sm_status(tarn_model_forget(net.model), TARN_OK);
    rn_gone(&net);
    plan_and_place();
    seen.replaced++;
  } else if (what == 1) {
    at("another largest batch");
    net.most_batch = 1 + sg_below(RN_MOST_BATCH + 1);
    sm_status(tarn_model_set_max_batch(net.model, (int64_t)net.most_batch),
              TARN_OK);
    rn_gone(&net);
    rn_planned(&net);
    rn_placed(&net);
    seen.replaced++;
  } else if (what < 5) {
    at("leaving");
    sm_status(tarn_model_leave(net.model), TARN_OK);
    rn_entered(&net, UINT64_MAX);
  }
}

// --- a net -----------------------------------------------------------------

static void run_seed(unsigned long seed) {
  static const uint64_t latencies[] = {0, 30000, 200000, 100000};
  sg_config config = {.devices = 1, .latency_ns = latencies[seed % 4]};
  sm_now_at.seed = seed;
  sg_seed(seed);
  sg_open(&config);
  rn_make(&net);
  net.most_batch = (size_t)tarn_model_batch(net.model);
  plan_and_place();
  for (int i = 0; i < ROUNDS; i++) {
    play_round();
    change_something();
  }
  at("the end");
  sm_status(tarn_model_destroy(net.model), TARN_OK);
  sg_close();
}

static int seeds(void) {
  const char *more = getenv("TARN_MODEL_SEEDS");
  return SEEDS + (more == NULL ? 0 : atoi(more));
}

TEST_LOOP(bytes_are_as_they_were_written, seeds()) {
  run_seed((unsigned long)_i);
}

// In one process, so that it is seen that the walk was not past everything.
static bool run_in_child(unsigned long seed, bool tell) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    run_seed(seed);
    if (tell) {
      printf(
          "seed %lu: %lu accesses, %lu out of time, %lu of nothing, %lu in "
          "place, %lu pushed\n",
          seed, seen.accesses, seen.refused, seen.unknown, seen.joined,
          seen.pushed);
    }
    fflush(stdout);
    _exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0;
}

static int run_by_hand(unsigned long first, unsigned long count) {
  unsigned long failed = 0;
  for (unsigned long i = first; i < first + count; i++) {
    if (run_in_child(i, count < 20)) continue;
    printf("seed %lu FAILED\n", i);
    failed++;
  }
  printf("%lu seeds, %lu failed\n", count, failed);
  return failed == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
  if (argc == 3) {
    return run_by_hand(strtoul(argv[1], NULL, 10), strtoul(argv[2], NULL, 10));
  }
  return run_tests();
}
