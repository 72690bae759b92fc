// Chunked wholes on a device without ranges: allocations of one rank that the
// others open by handles. What such a device cannot do is refused with the
// reason, and nothing is left if a rank fails, dies or stops.
#include "kit.h"
#include "support/document.h"
#include "support/faults.h"
#include "support/strategy.h"

enum { ROWS = 1000, WIDTH = 33, DRIVER_CALLS = EFFORT(60, 25) };

static size_t victim;  // the rank that something happens to

// --- ground ----------------------------------------------------------------

static tarn_place open_bare(void) {
  char name[32];
  tarn_device *device = NULL;
  tarn_device_info info = {.struct_size = sizeof info};
  tarn_sim_options options = {.struct_size = sizeof options,
                              .devices = my.ranks,
                              .capacity = 64 * KIT_MIB,
                              .no_ranges = 1};
  MUST_BE(tarn_sim_configure(&options), TARN_OK);
  snprintf(name, sizeof name, "sim:%zu", my.rank);
  MUST_BE(tarn_device_open(name, &device), TARN_OK);
  MUST_BE(tarn_device_query(device, &info), TARN_OK);
  MUST((info.extensions & TARN_EXTENSION_RANGES) == 0);
  MUST((info.extensions & TARN_EXTENSION_HANDLES) != 0);
  return tarn_place_on(device);
}

static tarn_whole_table_options table_on(tarn_place place) {
  return (tarn_whole_table_options){
      .struct_size = sizeof(tarn_whole_table_options),
      .type = TARN_WHOLE_CHUNKED,
      .place = place,
      .dtype = TARN_DTYPE_F32,
      .rows = ROWS,
      .width = WIDTH};
}

static tarn_whole_tensor make_table(tarn_place place) {
  tarn_whole_table_options o = table_on(place);
  tarn_whole_tensor table;
  MUST_BE(tarn_whole_table_create(my.comm, &o, &table), TARN_OK);
  return table;
}

// As warm_up_plainly, without the type that there is not.
static void warm(tarn_place place) {
  MUST_BE(use_strategy(place, "no_pool"), TARN_OK);
  for (size_t i = 0; i < WARM_UP; i++) {
    MUST_BE(tarn_whole_destroy(make_table(place).whole), TARN_OK);
    (void)look_around(place);
  }
}

// --- rows ------------------------------------------------------------------

typedef struct rows_here {
  float dense[ROWS][WIDTH];
  int32_t indices[ROWS];
} rows_here;

static rows_here *here;

static tarn_whole_rows all_rows(void) {
  if (here == NULL) here = malloc(sizeof *here);
  MUST(here != NULL);
  for (int32_t i = 0; i < ROWS; i++)
    here->indices[i] = i;
  return (tarn_whole_rows){.struct_size = sizeof(tarn_whole_rows),
                           .place = TARN_HOST,
                           .dense = (tarn_addr)(uintptr_t)here->dense,
                           .indices = (tarn_addr)(uintptr_t)here->indices,
                           .index_dtype = TARN_DTYPE_I32,
                           .index_count = ROWS};
}

static void must_all_be(const tarn_whole_tensor *table, float base) {
  tarn_whole_rows rows = all_rows();
  MUST_BE(tarn_whole_gather(table, &rows, NULL), TARN_OK);
  for (size_t i = 0; i < ROWS; i++)
    for (size_t k = 0; k < WIDTH; k++)
      MUST(here->dense[i][k] == base + (float)i);
}

// Row i becomes base + i, written by the rank behind its owner.
static void fill_neighbours(const tarn_whole_tensor *table, float base) {
  tarn_whole_rows rows = all_rows();
  size_t first = 0;
  size_t count = 0;
  size_t next = (my.rank + 1) % my.ranks;
  MUST_BE(tarn_whole_tensor_rows(table, next, &first, &count), TARN_OK);
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < WIDTH; k++)
      here->dense[first + i][k] = base + (float)(first + i);
  rows.dense += first * sizeof here->dense[0];
  rows.indices += first * sizeof here->indices[0];
  rows.index_count = count;
  if (count > 0) MUST_BE(tarn_whole_scatter(table, &rows, NULL), TARN_OK);
  meet_all();
}

static void add_one_each(const tarn_whole_tensor *table) {
  tarn_whole_rows rows = all_rows();
  for (size_t i = 0; i < ROWS; i++)
    for (size_t k = 0; k < WIDTH; k++)
      here->dense[i][k] = 1;
  MUST_BE(tarn_whole_scatter_add(table, &rows, NULL), TARN_OK);
  meet_all();
}

static void see_parts(const tarn_whole_tensor *table) {
  tarn_addr address = 0;
  tarn_reference reference;
  MUST_BE(tarn_whole_global(table->whole, &address), TARN_E_UNSUPPORTED);
  MUST_BE(tarn_whole_reference(table->whole, &reference), TARN_OK);
  MUST(reference.count == my.ranks);
  for (size_t r = 0; r < my.ranks; r++) {
    tarn_whole_part part;
    MUST_BE(tarn_whole_of_rank(table->whole, r, &part), TARN_OK);
    MUST((part.size > 0) == (part.address != 0));
  }
}

static void use_a_table(void) {
  tarn_place place = open_bare();
  warm(place);
  for (size_t i = 0; i < WARM_UP; i++) {  // until exchanges have their room
    tarn_whole_tensor table = make_table(place);
    add_one_each(&table);
    MUST_BE(tarn_whole_destroy(table.whole), TARN_OK);
  }
  belongings before = look_around(place);
  for (int round = 0; round < 3; round++) {
    tarn_whole_info info = {.struct_size = sizeof info};
    tarn_whole_tensor table = make_table(place);
    MUST_BE(tarn_whole_query(table.whole, &info), TARN_OK);
    MUST(info.charged >= 64 * KIT_KIB && info.piece_granularity == 0);
    see_parts(&table);
    fill_neighbours(&table, 5);
    must_all_be(&table, 5);
    meet_all();
    add_one_each(&table);
    must_all_be(&table, 5 + (float)my.ranks);
    MUST_BE(tarn_whole_destroy(table.whole), TARN_OK);
    see_nothing_left(place, before);
  }
  close_ground(place);
}

TEST(any_number_of_ranks) {
  for (size_t ranks = 1; ranks <= MOST_RANKS; ranks++)
    run_ranks(ranks, "handles", use_a_table);
}

static void leave_ranks_empty(void) {
  static const size_t uneven[] = {0, 700, 0, 300};
  tarn_place place = open_bare();
  tarn_whole_table_options o = table_on(place);
  tarn_whole_tensor table;
  o.partition = uneven;
  MUST_BE(tarn_whole_table_create(my.comm, &o, &table), TARN_OK);
  see_parts(&table);
  fill_neighbours(&table, 1);
  must_all_be(&table, 1);
  meet_all();
  MUST_BE(tarn_whole_destroy(table.whole), TARN_OK);
  close_ground(place);
}

WHOLE_TEST(ranks_without_rows, 4, "empty ranks", leave_ranks_empty)

// --- what is refused -------------------------------------------------------

static void ask_for_a_range(void) {
  tarn_place place = open_bare();
  tarn_whole_table_options o = table_on(place);
  tarn_whole_tensor table;
  o.type = TARN_WHOLE_CONTINUOUS;
  MUST_BE(tarn_whole_table_create(my.comm, &o, &table), TARN_E_UNSUPPORTED);
  MUST_SAY(
      "whole memory that is continuous on sim needs the extension 'ranges'");
  close_ground(place);
}

WHOLE_TEST(continuous_needs_ranges, 2, "continuous", ask_for_a_range)

// A plug-in with the 22 functions and nothing else.
static void ask_a_plain_device(void) {
  tarn_place place = tarn_place_on(document_open(2));
  tarn_whole_table_options o = table_on(place);
  tarn_whole_tensor table;
  MUST_BE(tarn_whole_table_create(my.comm, &o, &table), TARN_E_UNSUPPORTED);
  MUST_SAY(
      "whole memory that is chunked on plain needs the extension 'ranges' or "
      "'handles', which the device lacks");
  close_ground(place);
}

WHOLE_TEST(plain_devices_have_no_mapped_types, 2, "plain", ask_a_plain_device)

// One rank's device has ranges and the other's has not.
static void differ(void) {
  tarn_sim_options options = {.struct_size = sizeof options,
                              .capacity = 64 * KIT_MIB,
                              .no_ranges = my.rank};
  tarn_place place = {.kind = TARN_PLACE_DEVICE};
  tarn_whole_tensor table;
  MUST_BE(tarn_sim_configure(&options), TARN_OK);
  MUST_BE(tarn_device_open("sim:0", &place.device), TARN_OK);
  tarn_whole_table_options o = table_on(place);
  MUST_BE(tarn_whole_table_create(my.comm, &o, &table), TARN_E_INVALID);
  MUST_SAY("rank 1 has a table that is chunked on sim by handles");
  close_ground(place);
}

WHOLE_TEST(all_ranks_go_the_same_way, 2, "different devices", differ)

// --- faults ----------------------------------------------------------------

static void settle(tarn_status status, const tarn_whole_tensor *table) {
  MUST((table->whole != NULL) == (status == TARN_OK));
  must_be_the_same_everywhere(status);
  MUST_BE(tarn_whole_destroy(table->whole), TARN_OK);
}

static void fail_host_memory(void) {
  tarn_place place = open_bare();
  tarn_whole_table_options o = table_on(place);
  tarn_whole_tensor table;
  bool struck = true;
  warm(place);
  belongings before = look_around(place);
  for (size_t n = 1; struck; n++) {
    if (my.rank == victim) faults_arm(n, FAULTS_ONCE);
    tarn_status status = tarn_whole_table_create(my.comm, &o, &table);
    struck = my.rank == victim && faults_disarm();
    MUST(status == TARN_OK || status == TARN_E_NOMEM || status == TARN_FULL);
    settle(status, &table);
    see_nothing_left(place, before);
    struck = tell(victim, struck) != 0;
    MUST(struck || n > 3);
  }
  close_ground(place);
}

TEST(host_memory_fails) {
  for (victim = 0; victim < 2; victim++)
    run_ranks(2, "host memory", fail_host_memory);
}

static void fail_the_driver(void) {
  tarn_place place = open_bare();
  tarn_whole_table_options o = table_on(place);
  size_t failures = 0;
  warm(place);
  belongings before = look_around(place);
  for (size_t n = 1; n <= DRIVER_CALLS; n++) {
    char plan[32];
    tarn_whole_tensor table;
    snprintf(plan, sizeof plan, "*@%zu", n);
    if (my.rank == victim) MUST_BE(tarn_sim_faults(plan), TARN_OK);
    tarn_status status = tarn_whole_table_create(my.comm, &o, &table);
    MUST_BE(tarn_sim_faults(NULL), TARN_OK);
    MUST(status == TARN_OK || status == TARN_FULL || status == TARN_E_DEVICE);
    if (status != TARN_OK) failures++;
    settle(status, &table);
    see_nothing_left(place, before);
  }
  MUST(failures >= 4);  // allocate, set, export, import
  close_ground(place);
}

TEST(the_driver_fails) {
  for (victim = 0; victim < 2; victim++)
    run_ranks(2, "the driver", fail_the_driver);
}

// --- a rank that dies ------------------------------------------------------

// What it has made can be read until it is let go of.
static void outlive_one(tarn_comm *comm, void *context) {
  (void)context;
  my.comm = comm;
  my.rank = tarn_comm_rank(comm);
  my.ranks = tarn_comm_size(comm);
  tarn_place place = open_bare();
  warm(place);
  belongings before = look_around(place);
  tarn_whole_tensor table = make_table(place);
  fill_neighbours(&table, 9);
  if (my.rank == victim) ranks_die();
  MUST_BE(tarn_comm_barrier(comm), TARN_E_PEER_LOST);
  must_all_be(&table, 9);
  MUST_BE(tarn_whole_destroy(table.whole), TARN_E_PEER_LOST);
  belongings now = look_around(place);
  MUST(now.device_free == before.device_free);
  MUST(now.pool_live == before.pool_live);
  MUST(now.mappings == before.mappings);
  MUST(now.descriptors == before.descriptors);
  close_ground(place);
  MUST_BE(tarn_comm_destroy(comm), TARN_OK);
  _exit(0);
}

TEST(survivors_free_what_is_theirs) {
  my.text = "death";
  for (victim = 0; victim < 3; victim++)
    ranks_run(&(ranks_plan){
        .size = 3, .body = outlive_one, .killed = UINT64_C(1) << victim});
}

// --- a child of a rank -----------------------------------------------------

static int stay[2];  // children stay until the other end is closed

static _Noreturn void be_child(const tarn_whole_tensor *table, int ready) {
  char byte = 0;
  alarm(60);
  close(stay[1]);
  MUST_BE(tarn_whole_destroy(table->whole), TARN_OK);
  MUST_BE(tarn_comm_destroy(my.comm), TARN_OK);
  MUST(write(ready, &byte, 1) == 1);
  MUST(read(stay[0], &byte, 1) == 0);
  _exit(0);
}

static void leave_a_child(const tarn_whole_tensor *table) {
  int ready[2];
  char byte = 0;
  MUST(pipe(ready) == 0);
  pid_t child = fork();
  MUST(child >= 0);
  if (child == 0) be_child(table, ready[1]);
  close(ready[1]);
  MUST(read(ready[0], &byte, 1) == 1);
  close(ready[0]);
}

// A child that has destroyed its copy holds nothing of the others.
static void outlive_a_parent(tarn_comm *comm, void *context) {
  (void)context;
  my.comm = comm;
  my.rank = tarn_comm_rank(comm);
  my.ranks = tarn_comm_size(comm);
  tarn_place place = open_bare();
  belongings before = look_around(place);
  tarn_whole_tensor table = make_table(place);
  ranks_set_timeout(comm, 5000);
  if (my.rank == victim) leave_a_child(&table);
  if (my.rank == victim) ranks_die();
  MUST_BE(tarn_comm_barrier(comm), TARN_E_PEER_LOST);
  MUST_BE(tarn_whole_destroy(table.whole), TARN_E_PEER_LOST);
  MUST(look_around(place).device_free == before.device_free);
  close_ground(place);
  MUST_BE(tarn_comm_destroy(comm), TARN_OK);
  _exit(0);
}

TEST(children_hold_nothing) {
  my.text = "a child";
  victim = 1;
  ck_assert_int_eq(pipe(stay), 0);
  ranks_run(&(ranks_plan){
      .size = 2, .body = outlive_a_parent, .killed = UINT64_C(1) << victim});
  close(stay[0]);
  close(stay[1]);
}

// --- a rank that stops -----------------------------------------------------

// A rank that stands still has the others' memory open: it must not go.
static void wait_for_one(tarn_comm *comm, void *context) {
  (void)context;
  my.comm = comm;
  my.rank = tarn_comm_rank(comm);
  my.ranks = tarn_comm_size(comm);
  tarn_place place = open_bare();
  belongings before = look_around(place);
  tarn_whole_tensor table = make_table(place);
  fill_neighbours(&table, 3);
  ranks_set_timeout(comm, 300);
  if (my.rank == victim) ranks_stop();
  if (my.rank == victim) _exit(0);
  MUST_BE(tarn_comm_barrier(comm), TARN_E_TIMEOUT);
  MUST_BE(tarn_whole_destroy(table.whole), TARN_E_TIMEOUT);
  MUST(look_around(place).device_free < before.device_free);
  MUST_BE(tarn_device_close(place.device), TARN_E_STATE);
  _exit(0);
}

TEST(what_others_have_open_stays) {
  my.text = "a stop";
  victim = 1;
  ranks_run(&(ranks_plan){
      .size = 2, .body = wait_for_one, .stopped = UINT64_C(1) << victim});
}

int main(void) {
  faults_install();
  return run_tests();
}
