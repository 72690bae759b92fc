// The scenes. What comes out right is looked at too: a rank that goes on with
// wrong bytes is as bad as one that hangs.
#include "whole_scenes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/ranks.h"
#include "support/run.h"
#include "tarn/sim.h"

enum { MOST = 3, WIDTH = 64, ROWS = 96, PICKED = 40 };

// --- what was told ---------------------------------------------------------

void scene_calls(scene_part *part) {
  part->called = ranks_seconds();
}

bool scene_told(scene_part *part, tarn_status status) {
  scene_word *word = part->word;
  if (status == TARN_OK || word->status != TARN_OK) return status == TARN_OK;
  word->called = part->called;
  word->answered = ranks_seconds();
  snprintf(word->text, sizeof word->text, "%s", tarn_last_error());
  word->status = status;
  return false;
}

// --- places ----------------------------------------------------------------

// A simulated device is a rank's own.
tarn_place scene_open(const scene *it, size_t rank) {
  tarn_place place = {.device = NULL, .kind = it->kind};
  tarn_sim_options options = {
      .struct_size = sizeof options, .devices = MOST, .capacity = 32u << 20};
  char name[32];
  if (it->device == NULL) return TARN_HOST;
  bool sim = strcmp(it->device, "sim") == 0;
  if (sim) assert_ok(tarn_sim_configure(&options));
  snprintf(name, sizeof name, "%s:%zu", it->device, sim ? rank : 0);
  assert_ok(tarn_device_open(name, &place.device));
  return place;
}

void scene_close(tarn_place place) {
  if (place.device != NULL) assert_ok(tarn_device_close(place.device));
}

// --- words -----------------------------------------------------------------

static void meet(const scene *it, scene_part *part) {
  (void)it;
  (void)SCENE_OK(part, tarn_comm_barrier(part->comm));
}

static bool send_around(scene_part *part) {
  enum { LARGE = 700000 };  // more than a round takes
  unsigned char *bytes = calloc(1, LARGE);
  require(bytes != NULL);
  if (tarn_comm_rank(part->comm) == 1) memset(bytes, 7, LARGE);
  bool good = SCENE_OK(part, tarn_comm_broadcast(part->comm, 1, bytes, LARGE));
  require(!good || (bytes[0] == 7 && bytes[LARGE - 1] == 7));
  free(bytes);
  return good;
}

static bool gather_all(scene_part *part) {
  enum { EACH = 1000 };
  unsigned char bytes[MOST * EACH] = {0};
  size_t rank = tarn_comm_rank(part->comm);
  memset(bytes + rank * EACH, (int)rank + 1, EACH);
  bool good = SCENE_OK(
      part, tarn_comm_allgather(part->comm, bytes + rank * EACH, EACH, bytes));
  for (size_t r = 0; good && r < tarn_comm_size(part->comm); r++)
    require(bytes[r * EACH] == r + 1 && bytes[r * EACH + EACH - 1] == r + 1);
  return good;
}

static bool give_each(scene_part *part) {
  enum { EACH = 900 };
  unsigned char out[MOST * EACH];
  unsigned char in[MOST * EACH] = {0};
  size_t sizes[MOST] = {EACH, EACH, EACH};
  size_t offsets[MOST] = {0, EACH, (size_t)2 * EACH};
  memset(out, (int)tarn_comm_rank(part->comm) + 1, sizeof out);
  bool good = SCENE_OK(part, tarn_comm_alltoallv(part->comm, out, sizes,
                                                 offsets, in, sizes, offsets));
  for (size_t r = 0; good && r < tarn_comm_size(part->comm); r++)
    require(in[offsets[r]] == r + 1);
  return good;
}

// All get the failure of one.
static bool agree(scene_part *part) {
  tarn_status own = TARN_OK;
  if (tarn_comm_rank(part->comm) == 0) own = TARN_FULL;
  scene_calls(part);
  tarn_status status = tarn_comm_agree(part->comm, own);
  return scene_told(part, status == TARN_FULL ? TARN_OK : status);
}

static void talk(const scene *it, scene_part *part) {
  (void)it;
  if (!SCENE_OK(part, tarn_comm_same(part->comm, "same", 4, "a word"))) return;
  if (!send_around(part) || !gather_all(part) || !give_each(part)) return;
  if (agree(part)) meet(it, part);
}

// --- descriptors -----------------------------------------------------------

static void share(const scene *it, scene_part *part) {
  int fds[MOST] = {-1, -1, -1};
  int own = memfd_create("scene", MFD_CLOEXEC);
  require(own >= 0);
  bool good = SCENE_OK(part, tarn_comm_share(part->comm, own, fds));
  for (size_t r = 0; r < tarn_comm_size(part->comm); r++) {
    require((fds[r] >= 0) == (good && r != tarn_comm_rank(part->comm)));
    if (fds[r] >= 0) close(fds[r]);
  }
  close(own);
  if (good) meet(it, part);
}

static void split(const scene *it, scene_part *part) {
  tarn_comm *group = NULL;
  (void)it;
  bool good = SCENE_OK(
      part, tarn_comm_split(part->comm, 5, (int64_t)tarn_comm_rank(part->comm),
                            &group));
  require((group != NULL) == good);
  if (good) part->elsewhere = !SCENE_OK(part, tarn_comm_barrier(group));
  assert_ok(tarn_comm_destroy(group));
}

// --- wholes ----------------------------------------------------------------

// Rows of ones, to and from the host, whichever place the whole has.
typedef struct picked {
  float rows[PICKED * WIDTH];
  int32_t indices[PICKED];
} picked;

static tarn_whole_rows rows_of(picked *some) {
  for (int i = 0; i < PICKED; i++)
    some->indices[i] = i * 7 % ROWS;
  return (tarn_whole_rows){.struct_size = sizeof(tarn_whole_rows),
                           .place = TARN_HOST,
                           .dense = (tarn_addr)(uintptr_t)some->rows,
                           .indices = (tarn_addr)(uintptr_t)some->indices,
                           .index_dtype = TARN_DTYPE_I32,
                           .index_count = PICKED};
}

// Each rank adds ones to the same rows, which then have as many.
static void move_rows(scene_part *part, const tarn_whole_tensor *table) {
  static picked some;
  tarn_whole_rows rows = rows_of(&some);
  for (int i = 0; i < PICKED * WIDTH; i++)
    some.rows[i] = 1;
  if (!SCENE_OK(part, tarn_whole_scatter_add(table, &rows, NULL))) return;
  if (!SCENE_OK(part, tarn_comm_barrier(part->comm))) return;
  if (!SCENE_OK(part, tarn_whole_gather(table, &rows, NULL))) return;
  float sum = (float)tarn_comm_size(part->comm);
  for (int i = 0; i < PICKED * WIDTH; i++)
    require(some.rows[i] == sum);
  (void)SCENE_OK(part, tarn_comm_barrier(part->comm));
}

static void make_whole(const scene *it, scene_part *part) {
  tarn_whole_table_options options = {.struct_size = sizeof options,
                                      .type = it->type,
                                      .place = part->place,
                                      .dtype = TARN_DTYPE_F32,
                                      .rows = ROWS,
                                      .width = WIDTH};
  tarn_whole_tensor table;
  bool good =
      SCENE_OK(part, tarn_whole_table_create(part->comm, &options, &table));
  require((table.whole != NULL) == good);
  if (good) move_rows(part, &table);
  if (good) (void)SCENE_OK(part, tarn_whole_destroy(table.whole));
}

// --- all of them -----------------------------------------------------------

#define CPU "cpu", TARN_PLACE_DEVICE
#define SIM "sim", TARN_PLACE_DEVICE
#define HOST_FOR_SIM "sim", TARN_PLACE_HOST
#define HOST NULL, TARN_PLACE_HOST

const scene scenes[] = {
    {.name = "join", .joins = true, .play = meet},
    {.name = "talk", .play = talk},
    {.name = "share", .play = share},
    {.name = "split", .play = split},
    {"continuous on cpu", false, make_whole, TARN_WHOLE_CONTINUOUS, CPU},
    {"chunked on cpu", false, make_whole, TARN_WHOLE_CHUNKED, CPU},
    {"continuous on sim", false, make_whole, TARN_WHOLE_CONTINUOUS, SIM},
    {"chunked on sim", false, make_whole, TARN_WHOLE_CHUNKED, SIM},
    {"continuous on the host for sim", false, make_whole, TARN_WHOLE_CONTINUOUS,
     HOST_FOR_SIM},
    {"chunked on the host", false, make_whole, TARN_WHOLE_CHUNKED, HOST},
    {"distributed on sim", false, make_whole, TARN_WHOLE_DISTRIBUTED, SIM},
    {"distributed on the host", false, make_whole, TARN_WHOLE_DISTRIBUTED,
     HOST},
};

const size_t scene_count = sizeof scenes / sizeof *scenes;
