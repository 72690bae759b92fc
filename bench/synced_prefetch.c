// The prefetch loop: a loader writes batches on the host, a stream copies them,
// and the device computes on the copied ones.
//
//   loader    | write 3 |         | write 4 |
//   copies       | copy 3 ------ | copy 4 ------ |
//   computes     | use 2 ------- | use 3 ------- |
//
// As in Caffe, the layer that gets a batch may change it where it is: its use
// is a TARN_READ_WRITE, after which the device has the only copy. There the
// host's next mutable_cpu_data brings it back, to be overwritten; here the
// loader says that it overwrites.
//
// The use is a callback on a stream of the device, which computes in registers
// for as long as the copy takes: the case that hides least. On a simulated
// device it takes one processor, the copy another, and memory is the copy's
// alone. The loader writes a number into each image and no more, as what it
// takes to read pictures is not the question; the batch is copied whole.
#include <stdio.h>
#include <string.h>

#include "kit/stopwatch.h"
#include "probe.h"
#include "synced_figures.h"

enum {
  IMAGE = 3 * 224 * 224 * 4,  // bytes of floats
  BATCHES = 3,                // in rotation
  STARTING = 4,               // iterations until the loop is steady
  TIMED = 8,                  // that are
  ENDING = 3,                 // during which it still is
  ITERATIONS = STARTING + TIMED + ENDING,
  ALONE = 4,    // copies, or uses, that are timed by themselves
  COUNTED = 9,  // iterations that are only counted
  PASSES = 9,
  PASSES_MOST = 1001,
  ROUNDS = 1 << 20  // of computing, to find out how long one takes
};

typedef struct loop {
  const synced_scene *scene;
  size_t size;  // of a batch
  tarn_stream *copies;
  tarn_stream *computes;
  tarn_synced *batches[BATCHES];
  synced_pair pairs[BATCHES];    // as large, for copies by hand
  uint64_t rounds;               // of a use
  uint64_t used;                 // uses that have ended: the computing thread's
  uint64_t ends_ns[ITERATIONS];  // when, on the clock
} loop;

// ---------------------------------------------------------------------------
// The use
// ---------------------------------------------------------------------------

// Each round needs the one before it, and no memory. The result is given out,
// or there would be nothing to compute.
static void compute(uint64_t rounds) {
  uint64_t state = 1;
  for (uint64_t i = 0; i < rounds; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    __asm__ volatile("" : "+r"(state));
  }
}

// Behind what is on the stream, on the thread that runs it.
static void use(void *context, tarn_status status) {
  loop *l = context;
  (void)status;
  compute(l->rounds);
  if (l->used < ITERATIONS) l->ends_ns[l->used] = stopwatch_clock_ns();
  l->used++;
}

static bool queue_use(loop *l, tarn_synced *batch) {
  tarn_access access;
  if (tarn_synced_begin(batch, 0, TARN_ALL, l->scene->place, TARN_READ_WRITE,
                        l->computes, &access) != TARN_OK) {
    return false;
  }
  bool added = tarn_stream_add_callback(l->computes, use, l) == TARN_OK;
  return tarn_synced_end(&access) == TARN_OK && added;
}

// ---------------------------------------------------------------------------
// The loop
// ---------------------------------------------------------------------------

// The first value of the |image|-th image of iteration |number|.
static uint64_t stamp_of(uint64_t number, size_t image) {
  return (number + 1) << 32 | image;
}

static bool load(const loop *l, tarn_synced *batch, uint64_t number) {
  tarn_access access;
  if (tarn_synced_begin(batch, 0, TARN_ALL, TARN_HOST, TARN_WRITE_DISCARD, NULL,
                        &access) != TARN_OK) {
    return false;
  }
  for (size_t i = 0; i < l->size / IMAGE; i++) {
    uint64_t stamp = stamp_of(number, i);
    memcpy((char *)access.pointer + i * IMAGE, &stamp, sizeof stamp);
  }
  return tarn_synced_end(&access) == TARN_OK;
}

static bool finish(const loop *l) {
  bool copied = tarn_stream_synchronize(l->copies) == TARN_OK;
  return tarn_stream_synchronize(l->computes) == TARN_OK && copied;
}

static bool run_loop(loop *l, uint64_t iterations) {
  l->used = 0;
  for (uint64_t i = 0; i < iterations; i++) {
    tarn_synced *batch = l->batches[i % BATCHES];
    if (!load(l, batch, i) ||
        tarn_synced_push(batch, 0, TARN_ALL, l->copies, NULL) != TARN_OK ||
        !queue_use(l, batch)) {
      return false;
    }
  }
  return finish(l);
}

// ---------------------------------------------------------------------------
// Making and ending it
// ---------------------------------------------------------------------------

// First touches cost page faults, which are no part of a copy.
static bool touch(const loop *l, size_t index) {
  const synced_pair *pair = &l->pairs[index];
  void *bytes = (void *)(uintptr_t)pair->here.address;
  memset(bytes, 0x5a, l->size);
  return tarn_copy_h2d(l->scene->device, pair->there.address, bytes, l->size,
                       NULL) == TARN_OK;
}

static bool take_pairs(loop *l) {
  for (size_t i = 0; i < BATCHES; i++) {
    if (!synced_pair_take(l->scene, l->size, &l->pairs[i]) || !touch(l, i))
      return false;
  }
  return true;
}

static bool make_loop(loop *l) {
  tarn_synced_options options = {.struct_size = sizeof options,
                                 .name = "batch",
                                 .device = l->scene->device};
  for (size_t i = 0; i < BATCHES; i++) {
    if (tarn_synced_create(l->size, &options, &l->batches[i]) != TARN_OK)
      return false;
  }
  return tarn_stream_create(l->scene->device, &l->copies) == TARN_OK &&
         tarn_stream_create(l->scene->device, &l->computes) == TARN_OK;
}

// The queued work ends with the streams, before the memory that it uses.
static void end_loop(loop *l) {
  if (l->computes != NULL) (void)tarn_stream_destroy(l->computes);
  if (l->copies != NULL) (void)tarn_stream_destroy(l->copies);
  for (size_t i = 0; i < BATCHES; i++) {
    (void)tarn_synced_destroy(l->batches[i]);
    synced_pair_give(&l->pairs[i]);
  }
}

static loop loop_on(const synced_scene *s) {
  return (loop){.scene = s, .size = s->bench->images * IMAGE};
}

// ---------------------------------------------------------------------------
// What it copies
// ---------------------------------------------------------------------------

static bool say(char *why, const char *what) {
  snprintf(why, BENCH_TEXT_SIZE, "%s", what);
  return false;
}

static bool reset_counts(const loop *l) {
  for (size_t i = 0; i < BATCHES; i++) {
    if (tarn_synced_traffic_reset(l->batches[i]) != TARN_OK) return false;
  }
  return true;
}

static bool sum_counts(const loop *l, synced_moved *out) {
  *out = (synced_moved){0};
  for (size_t i = 0; i < BATCHES; i++) {
    synced_moved one;
    if (!synced_read_moved(l->batches[i], &one)) return false;
    out->bytes_in += one.bytes_in;
    out->bytes_out += one.bytes_out;
  }
  return true;
}

static bool is_stamped(const tarn_access *access, uint64_t number,
                       size_t images) {
  for (size_t i = 0; i < images; i++) {
    uint64_t stamp = stamp_of(number, i);
    const char *image = (const char *)access->pointer + i * IMAGE;
    if (memcmp(image, &stamp, sizeof stamp) != 0) return false;
  }
  return true;
}

// Whether the device has what iteration |number| wrote: the host reads it back,
// as the device has the only copy.
static bool check_batch(const loop *l, uint64_t number, char *why) {
  tarn_access access;
  tarn_synced *batch = l->batches[number % BATCHES];
  if (tarn_synced_begin(batch, 0, TARN_ALL, TARN_HOST, TARN_READ, NULL,
                        &access) != TARN_OK) {
    return synced_refused(why);
  }
  bool right = is_stamped(&access, number, l->size / IMAGE);
  if (tarn_synced_end(&access) != TARN_OK) return synced_refused(why);
  return right || say(why, "a batch at the device is not what was loaded");
}

static bool check_batches(const loop *l, uint64_t iterations, char *why) {
  for (uint64_t i = iterations - BATCHES; i < iterations; i++) {
    if (!check_batch(l, i, why)) return false;
  }
  return true;
}

static bool count_bytes(loop *l, double *out, char *why) {
  synced_moved moved;
  if (!make_loop(l) || !run_loop(l, BATCHES) || !reset_counts(l) ||
      !run_loop(l, COUNTED) || !sum_counts(l, &moved)) {
    return synced_refused(why);
  }
  *out = (double)moved.bytes_out / COUNTED;
  if (moved.bytes_in != (uint64_t)COUNTED * l->size)
    return say(why, "not each batch was copied to the device once");
  return check_batches(l, COUNTED, why);
}

bool synced_prefetch_bytes(const synced_scene *s, double *out, char *why) {
  loop l = loop_on(s);
  bool done = count_bytes(&l, out, why);
  end_loop(&l);
  return done;
}

// ---------------------------------------------------------------------------
// How long it takes
// ---------------------------------------------------------------------------

// Nanoseconds of one copy by hand, on the same stream; negative if it fails.
static double time_copies(const loop *l) {
  bool queued = true;
  uint64_t begin = stopwatch_clock_ns();
  for (size_t i = 0; i < ALONE && queued; i++) {
    const synced_pair *pair = &l->pairs[i % BATCHES];
    const void *source = (const void *)(uintptr_t)pair->here.address;
    queued = tarn_copy_h2d(l->scene->device, pair->there.address, source,
                           l->size, l->copies) == TARN_OK;
  }
  if (!finish(l) || !queued) return -1;
  return (double)(stopwatch_clock_ns() - begin) / ALONE;
}

static double time_uses(loop *l) {
  bool queued = true;
  uint64_t begin = stopwatch_clock_ns();
  for (size_t i = 0; i < ALONE && queued; i++)
    queued = tarn_stream_add_callback(l->computes, use, l) == TARN_OK;
  if (!finish(l) || !queued) return -1;
  return (double)(stopwatch_clock_ns() - begin) / ALONE;
}

// From the end of one use to that of a later one, while the loop goes on.
static double time_loop(loop *l) {
  if (!run_loop(l, ITERATIONS)) return -1;
  uint64_t ns = l->ends_ns[STARTING + TIMED - 1] - l->ends_ns[STARTING - 1];
  return (double)ns / TIMED;
}

static bool time_pass(loop *l, double *out_ratio) {
  double copying = time_copies(l);
  double computing = time_uses(l);
  double iteration = time_loop(l);
  if (copying < 0 || computing < 0 || iteration < 0) return false;
  *out_ratio = iteration / (copying > computing ? copying : computing);
  return true;
}

// As many rounds as take as long as a copy.
static bool settle_use(loop *l) {
  l->rounds = ROUNDS;
  (void)time_copies(l);  // starts the workers
  (void)time_uses(l);
  double copying = time_copies(l);
  double some = time_uses(l);
  if (copying < 0 || some < 0) return false;
  l->rounds = (uint64_t)(ROUNDS * copying / some);
  return true;
}

static bool time_passes(loop *l, double *out) {
  double ratios[PASSES_MOST];
  size_t passes = synced_passes(l->scene, PASSES, PASSES_MOST);
  if (!make_loop(l) || !take_pairs(l) || !settle_use(l) ||
      !run_loop(l, BATCHES)) {
    return false;
  }
  for (size_t i = 0; i < passes; i++) {
    if (!time_pass(l, &ratios[i])) return false;
  }
  *out = probe_median(ratios, passes);
  return true;
}

bool synced_prefetch_time(const synced_scene *s, double *out, char *why) {
  loop l = loop_on(s);
  bool done = time_passes(&l, out) || synced_refused(why);
  done = done && check_batches(&l, ITERATIONS, why);
  end_loop(&l);
  return done;
}
