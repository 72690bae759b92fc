// The ranks of a launcher, which machines they are on, and what they measure.
//
//   machine A              machine B
//   rank 0 ◄── TCP, MPI ──► rank 2       the ends of the link: the first ranks
//   rank 1 ◄───── MPI ────► rank 3       of the first two machines
#include "hosts_bench.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hosts_scene.h"
#include "kit/tool.h"

// ---------------------------------------------------------------------------
// Machines
// ---------------------------------------------------------------------------

typedef char machine_name[PLACE_NAME_SIZE];

// Numbers machines in the order of their first ranks, which are told too, and
// returns how many there are.
static size_t number_machines(machine_name *names, size_t ranks, size_t *out_of,
                              size_t *out_first) {
  size_t count = 0;
  for (size_t r = 0; r < ranks; r++) {
    size_t m = 0;
    while (m < count && strcmp(names[out_first[m]], names[r]) != 0)
      m++;
    if (m == count) out_first[count++] = r;
    out_of[r] = m;
  }
  return count;
}

static size_t find_machines(tarn_comm *comm, size_t *out_of,
                            size_t *out_first) {
  machine_name own;
  machine_name *names = tool_array(tarn_comm_size(comm), sizeof *names);
  place_machine(own);
  size_t count = 0;
  if (tarn_comm_allgather(comm, own, sizeof own, names) == TARN_OK)
    count = number_machines(names, tarn_comm_size(comm), out_of, out_first);
  free(names);
  return count;
}

size_t hosts_count(tarn_comm *comm) {
  size_t *numbers = tool_array(2 * tarn_comm_size(comm), sizeof *numbers);
  size_t count = find_machines(comm, numbers, numbers + tarn_comm_size(comm));
  free(numbers);
  return count;
}

// ---------------------------------------------------------------------------
// The peer
// ---------------------------------------------------------------------------

// It is not closed: nor is the MPI that it belongs to.
static void open_peer(hosts_scene *s, char *why) {
  const hosts_bench *b = s->bench;
  s->sends = dlsym(RTLD_DEFAULT, ALLTOALLV_SENDS);
  if (b->peer == NULL) {
    snprintf(why, WHOLE_TEXT_SIZE, "%s", b->why_not);
    return;
  }
  if (!s->whole.is_plain) {
    snprintf(why, WHOLE_TEXT_SIZE, "MPI does not reach %s", b->whole.device);
    return;
  }
  void *library = dlopen(b->peer, RTLD_NOW | RTLD_LOCAL);
  if (library != NULL) s->peer = dlsym(library, ALLTOALLV_NAME);
  if (s->peer == NULL)
    snprintf(why, WHOLE_TEXT_SIZE, "%s cannot be loaded", b->peer);
}

// All ranks have it, or none.
static bool start_peer(hosts_scene *s, char *why) {
  uint64_t lacking = 0;
  open_peer(s, why);
  if (!whole_agree(&s->whole, true, s->peer == NULL, &lacking)) return false;
  if (lacking != 0 && s->peer != NULL)
    snprintf(why, WHOLE_TEXT_SIZE, "another rank lacks it");
  if (lacking != 0) s->peer = NULL;
  return true;
}

// ---------------------------------------------------------------------------
// All
// ---------------------------------------------------------------------------

static bool prepare(hosts_scene *s, hosts_result *out) {
  const whole_bench *b = &s->bench->whole;
  size_t least = b->row_bytes[0];
  for (size_t i = 1; i < b->row_count; i++) {
    if (b->row_bytes[i] < least) least = b->row_bytes[i];
  }
  s->numbers = tool_array_ready(whole_batch_rows(b, least), sizeof *s->numbers);
  s->asked = tool_array_ready(b->table_bytes / least, 1);
  s->machines = find_machines(s->whole.comm, s->machine_of, s->first_of);
  out->ranks = b->ranks;
  out->machines = s->machines;
  return s->machines != 0;
}

// The first one is left in |s->whole|.
static bool make_tables(hosts_scene *s) {
  whole_made made = {0};
  for (size_t i = HOSTS_TYPES; i-- > 0;) {
    s->whole.whole = NULL;
    s->whole.kind.type = hosts_types[i];
    if (!whole_table_make(&s->whole, &made)) return false;
    s->tables[i] = s->whole.whole;
  }
  return true;
}

static bool end_tables(hosts_scene *s) {
  bool did = whole_table_end(&s->whole);
  for (size_t i = 1; i < HOSTS_TYPES; i++) {
    s->whole.whole = s->tables[i];
    did = whole_table_end(&s->whole) && did;
  }
  return did;
}

static bool run(hosts_scene *s, hosts_result *out) {
  return prepare(s, out) && whole_scene_open(&s->whole) && hosts_link_open(s) &&
         start_peer(s, out->peer_skipped) && make_tables(s) &&
         hosts_measure(s, out);
}

bool hosts_bench_run(const hosts_bench *bench, hosts_result *out) {
  hosts_scene s = {.bench = bench, .socket = -1};
  s.whole = (whole_scene){.bench = &bench->whole,
                          .comm = bench->whole.comm,
                          .rank = tarn_comm_rank(bench->whole.comm),
                          .kind = {.type = TARN_WHOLE_DISTRIBUTED}};
  bool did = run(&s, out);
  if (!did) snprintf(out->failed, sizeof out->failed, "%s", s.whole.why);
  if (!end_tables(&s) && did)
    snprintf(out->failed, sizeof out->failed, "%s", s.whole.why);
  hosts_link_close(&s);
  whole_scene_close(&s.whole);
  free(s.asked);
  free(s.numbers);
  return out->count > 0;
}
