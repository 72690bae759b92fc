// Rows of wholes where something fails: host memory, the driver, descriptors
// and other ranks. All ranks get the same answer, nothing is left, and where
// the communicator lives, the next exchange is as good as ever.
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "rows_kit.h"
#include "support/faults.h"
#include "support/ranks.h"

enum { DRIVER_CALLS = EFFORT(60, 40) };

static const ground *where;  // set before ranks are forked
static size_t victim;        // the rank where calls fail

static const shape plain = {.text = "plain",
                            .table = TARN_DTYPE_F32,
                            .dense = TARN_DTYPE_F64,
                            .index = TARN_DTYPE_I32,
                            .rows = 50,
                            .width = 6,
                            .count = 40};

// --- answers ---------------------------------------------------------------

// An exchange whose outcome is open.
static tarn_status try_out(const scene *c, action a) {
  dense d = make_dense(c->s, &c->tensor, a, my.rank);
  void *narrow = narrowed(c->s, &d);
  tarn_whole_rows request = request_of(c, &d, (tarn_addr)(uintptr_t)d.rows,
                                       (tarn_addr)(uintptr_t)narrow);
  tarn_status status = act(a, &c->tensor, &request, NULL);
  free(narrow);
  free_dense(&d);
  return status;
}

// --- host memory -----------------------------------------------------------

// What is there when pools have given back what they can, which they do when
// they are looked at.
static belongings look_again(tarn_place place) {
  (void)look_around(place);
  return look_around(place);
}

// A simulated device's own books grow and shrink by a few entries.
static void must_not_have_grown(tarn_place place, belongings before) {
  belongings now = look_again(place);
  MUST(now.host_bytes <= before.host_bytes + 256);
  MUST(now.descriptors == before.descriptors);
  MUST(now.mappings == before.mappings);
  MUST(now.device_free == before.device_free);
  MUST(now.pool_live == before.pool_live);
}

// A whole for each fault, for what an exchange needs is made by the first.
static bool fail_host_memory(tarn_place place, size_t n, faults_mode mode) {
  bool struck = false;
  scene c = {.s = &plain, .place = place, .at = TARN_HOST};
  raise_scene(&c, TARN_WHOLE_DISTRIBUTED);
  if (my.rank == victim) faults_arm(n, mode);
  tarn_status status = try_out(&c, GATHER);
  if (my.rank == victim) struck = faults_disarm();
  MUST(status == TARN_OK || status == TARN_E_NOMEM || status == TARN_FULL ||
       status == TARN_E_DEVICE);
  must_be_the_same_everywhere(status);
  play(&c, GATHER);
  strike_scene(&c);
  return tell(victim, struck) != 0;
}

static void sweep_host_memory(tarn_place place, faults_mode mode) {
  size_t n = 1;
  MUST(!fail_host_memory(place, SIZE_MAX, mode));
  belongings before = look_again(place);
  while (fail_host_memory(place, n, mode)) {
    must_not_have_grown(place, before);
    n++;
  }
  // The memory of the exchange, and that of its staging.
  MUST(n > 2);
}

static void lack_host_memory(void) {
  configure_sim();
  tarn_place place = open_place(where->device, where->kind);
  sweep_host_memory(place, FAULTS_ONCE);
  sweep_host_memory(place, FAULTS_FROM_NOW);
  close_ground(place);
}

TEST_LOOP(host_memory_fails, 3) {
  static const int grounds_here[] = {0, 2, 4};
  where = ground_at(grounds_here[_i]);
  for (victim = 0; victim < 2; victim++)
    run_ranks(2, where->text, lack_host_memory);
}

// --- the driver ------------------------------------------------------------

static bool fail_driver(scene *c, action a, size_t n) {
  char plan[32];
  snprintf(plan, sizeof plan, "*@%zu", n);
  if (my.rank == victim) MUST_BE(tarn_sim_faults(plan), TARN_OK);
  tarn_status status = try_out(c, a);
  MUST_BE(tarn_sim_faults(NULL), TARN_OK);
  MUST(status == TARN_OK || status == TARN_FULL || status == TARN_E_DEVICE ||
       status == TARN_E_NOMEM || status == TARN_E_STATE);
  must_be_the_same_everywhere(status);
  return status != TARN_OK;
}

static void sweep_driver(tarn_place place, tarn_whole_type type, action a) {
  size_t failures = 0;
  scene c = {.s = &plain, .place = place, .at = TARN_HOST};
  raise_scene(&c, type);
  for (size_t n = 1; n <= DRIVER_CALLS; n++)
    if (fail_driver(&c, a, n)) failures++;
  MUST(failures > 0 && failures < DRIVER_CALLS);
  strike_scene(&c);
}

static void have_a_failing_driver(void) {
  configure_sim();
  tarn_place place = open_place("sim", TARN_PLACE_DEVICE);
  sweep_driver(place, TARN_WHOLE_DISTRIBUTED, GATHER);
  sweep_driver(place, TARN_WHOLE_DISTRIBUTED, SCATTER);
  sweep_driver(place, TARN_WHOLE_CHUNKED, SCATTER_ADD);
  close_ground(place);
}

TEST(the_driver_fails) {
  for (victim = 0; victim < 2; victim++)
    run_ranks(2, "a failing driver", have_a_failing_driver);
}

// Rows that one rank alone moves fail at that rank alone.
static void fail_alone(void) {
  configure_sim();
  tarn_place place = open_place("sim", TARN_PLACE_DEVICE);
  scene c = {.s = &plain, .place = place, .at = TARN_HOST};
  size_t failures = 0;
  raise_scene(&c, TARN_WHOLE_CONTINUOUS);
  for (size_t n = 1; my.rank == 0 && n <= DRIVER_CALLS; n++) {
    char plan[32];
    snprintf(plan, sizeof plan, "*@%zu", n);
    MUST_BE(tarn_sim_faults(plan), TARN_OK);
    tarn_status status = try_out(&c, GATHER);
    MUST_BE(tarn_sim_faults(NULL), TARN_OK);
    MUST(status == TARN_OK || status == TARN_FULL || status == TARN_E_DEVICE ||
         status == TARN_E_NOMEM);
    if (status != TARN_OK) failures++;
  }
  MUST(my.rank != 0 || failures > 0);
  play(&c, GATHER);
  strike_scene(&c);
  close_ground(place);
}

WHOLE_TEST(mapped_rows_fail_alone, 2, "alone", fail_alone)

// --- one rank alone, at once and on a stream --------------------------------

// What one rank asks for, uploaded before anything fails.
typedef struct asked_rows {
  dense d;
  void *narrow;
  tarn_addr rows;
  tarn_addr indices;
  size_t index_size;
} asked_rows;

static asked_rows prepare_rows(const scene *c, action a) {
  asked_rows r = {.d = make_dense(c->s, &c->tensor, a, my.rank)};
  r.narrow = narrowed(c->s, &r.d);
  r.index_size = r.d.count * tarn_dtype_size(c->s->index);
  r.indices = upload(c, r.narrow, r.index_size);
  r.rows = upload(c, r.d.rows, r.d.rows_size);
  return r;
}

static void drop_rows(const scene *c, asked_rows *r) {
  drop(c, r->rows, r->d.rows_size);
  drop(c, r->indices, r->index_size);
  free(r->narrow);
  free_dense(&r->d);
}

// A stream of its own for each fault, for what has failed stays failed.
static tarn_status move_on_a_stream(const scene *c, action a,
                                    const asked_rows *r) {
  tarn_stream *stream = NULL;
  tarn_whole_rows request = request_of(c, &r->d, r->rows, r->indices);
  tarn_status status = tarn_stream_create(c->at.device, &stream);
  if (status != TARN_OK) return status;
  status = act(a, &c->tensor, &request, stream);
  if (status == TARN_OK) status = tarn_stream_synchronize(stream);
  tarn_status ended = tarn_stream_destroy(stream);
  return status == TARN_OK ? ended : status;
}

static tarn_status move_alone(const scene *c, action a, const asked_rows *r,
                              bool streams) {
  tarn_whole_rows request = request_of(c, &r->d, r->rows, r->indices);
  if (streams) return move_on_a_stream(c, a, r);
  return act(a, &c->tensor, &request, NULL);
}

static bool is_shortage(tarn_status status) {
  return status == TARN_OK || status == TARN_E_NOMEM || status == TARN_FULL ||
         status == TARN_E_DEVICE;
}

// The |n|-th call for host memory fails, and then it goes as if none had.
static bool lack_memory_once(const scene *c, action a, const asked_rows *r,
                             size_t n, bool streams) {
  faults_arm(n, FAULTS_ONCE);
  tarn_status status = move_alone(c, a, r, streams);
  bool struck = faults_disarm();
  MUST(is_shortage(status));
  MUST_BE(move_alone(c, a, r, streams), TARN_OK);
  return struck;
}

static void lack_memory_alone(scene *c, action a, bool streams) {
  size_t n = 1;
  if (my.rank != 0) return;
  asked_rows r = prepare_rows(c, a);
  (void)lack_memory_once(c, a, &r, SIZE_MAX, streams);
  belongings before = look_again(c->place);
  while (lack_memory_once(c, a, &r, n, streams)) {
    must_not_have_grown(c->place, before);
    n++;
  }
  MUST(n > 1);
  drop_rows(c, &r);
}

// By way of a block, and by a device that reaches both ends.
static void lack_memory_on_mapped_types(void) {
  configure_sim();
  tarn_place place = open_place("sim", TARN_PLACE_DEVICE);
  for (size_t t = 0; t < TYPES - 1; t++) {
    scene c = {.s = &plain, .place = place, .at = TARN_HOST};
    raise_scene(&c, type_at(t));
    for (action a = GATHER; a < SCATTER_ADD; a++) {
      c.at = TARN_HOST;
      lack_memory_alone(&c, a, false);
      c.at = place;
      lack_memory_alone(&c, a, true);
    }
    strike_scene(&c);
  }
  close_ground(place);
}

WHOLE_TEST(mapped_rows_lack_memory, 2, "mapped", lack_memory_on_mapped_types)

// --- descriptors -----------------------------------------------------------

static void lack_descriptors(void) {
  struct rlimit before;
  struct rlimit none;
  scene c = {.s = &plain, .place = TARN_HOST, .at = TARN_HOST};
  raise_scene(&c, TARN_WHOLE_DISTRIBUTED);
  MUST(getrlimit(RLIMIT_NOFILE, &before) == 0);
  none = before;
  none.rlim_cur = 3;
  if (my.rank == 1) MUST(setrlimit(RLIMIT_NOFILE, &none) == 0);
  MUST_BE(try_out(&c, GATHER), TARN_E_IO);
  MUST_SAY("rank 1");
  MUST(setrlimit(RLIMIT_NOFILE, &before) == 0);
  play(&c, GATHER);
  strike_scene(&c);
}

WHOLE_TEST(descriptors_are_used_up, 3, "descriptors", lack_descriptors)

// --- ranks that end, or stop -----------------------------------------------

static struct {
  unsigned after_us;
  bool stops;
  action what;
  tarn_whole_type type;
} fate;

static void meet_it(int signal) {
  (void)signal;
  kill(getpid(), fate.stops ? SIGSTOP : SIGKILL);
}

static void set_fate(void) {
  struct itimerval when = {.it_value.tv_usec = (suseconds_t)fate.after_us};
  MUST(signal(SIGALRM, meet_it) != SIG_ERR);
  MUST(setitimer(ITIMER_REAL, &when, NULL) == 0);
}

static void must_be_lost(tarn_status status) {
  if (my.rank == 1) {  // stopped, and let go again
    MUST(status == TARN_E_TIMEOUT || status == TARN_E_PEER_LOST);
    return;
  }
  MUST_BE(status, fate.stops ? TARN_E_TIMEOUT : TARN_E_PEER_LOST);
  MUST_SAY("rank 1");
}

static void exchange_until_lost(tarn_comm *comm, void *context) {
  (void)context;
  my.comm = comm;
  my.rank = tarn_comm_rank(comm);
  my.ranks = tarn_comm_size(comm);
  my.text = fate.stops ? "a rank stops" : "a rank ends";
  tarn_status status = TARN_OK;
  size_t mappings = count_file_mappings();
  scene c = {.s = &plain, .place = TARN_HOST, .at = TARN_HOST};
  raise_scene(&c, fate.type);
  if (fate.stops) ranks_set_timeout(comm, 5000);
  if (my.rank == 1) set_fate();
  while (status == TARN_OK)
    status = try_out(&c, fate.what);
  must_be_lost(status);
  must_be_lost(try_out(&c, fate.what));
  free(c.model);
  must_be_lost(tarn_whole_destroy(c.whole));
  MUST(count_file_mappings() == mappings);
  MUST_BE(tarn_comm_destroy(comm), TARN_OK);
  _exit(0);  // pools of the host keep what they have
}

static void lose_a_rank(unsigned after_us, bool stops) {
  fate.after_us = after_us;
  fate.stops = stops;
  for (fate.what = GATHER; fate.what < ACTIONS; fate.what++) {
    fate.type = fate.what == SCATTER_ADD ? TARN_WHOLE_CONTINUOUS
                                         : TARN_WHOLE_DISTRIBUTED;
    ranks_run(&(ranks_plan){.size = 3,
                            .body = exchange_until_lost,
                            .killed = stops ? 0 : 2,
                            .stopped = stops ? 2 : 0});
  }
}

TEST(a_rank_ends) {
  for (unsigned us = 50; us < 20000; us = us * 3 + 17)
    lose_a_rank(us, false);
}

TEST(a_rank_stops) {
  lose_a_rank(100, true);
  lose_a_rank(5000, true);
}

int main(void) {
  faults_install();
  return run_tests();
}
