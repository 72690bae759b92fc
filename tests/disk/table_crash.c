// Tables on disks of several ranks, beside twins in memory, through losses of
// power at any moment: rows, states and counts are those of one flush at all
// ranks.
//
// A loss of power hits all ranks at moments that could be one: in the part of a
// flush in which each prepares its file, or in the part in which each commits
// it, or in an open, or between calls. Each rank draws its own moment in it.
#include "base/convert.h"
#include "crash.h"
#include "disk/table.h"
#include "disk/table_kit.h"
#include "embedding/embedding.h"
#include "support/mix.h"

SECONDS(3000);

enum {
  ROWS = 400,
  MOST = 24,       // rows of a call, of each rank
  KEPT = 3,        // epochs whose twins are kept
  MOST_WHOLES = 2  // of a twin: rows, states
};

static const scene kinds[] = {
    {"adam", TARN_OPTIMIZER_ADAM, 0, 0, .01f, 0, TARN_DTYPE_F32, TARN_DTYPE_F32,
     16},
    {"adagrad by rows", TARN_OPTIMIZER_ADAGRAD, TARN_EMBEDDING_ROW_WISE, 0, 0,
     .5f, TARN_DTYPE_F32, TARN_DTYPE_F32, 61},
    {"stochastic bf16", TARN_OPTIMIZER_SGD, TARN_EMBEDDING_STOCHASTIC, .9f, 0,
     0, TARN_DTYPE_BF16, TARN_DTYPE_F32, 32},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

// When the power is lost.
typedef enum phase { NEVER, PREPARING, COMMITTING, OPENING } phase;

static struct {
  size_t steps;
  uint64_t seed;
  uint64_t drawn;      // by all ranks together
  uint64_t own_drawn;  // by this one
  char file[200];
  char lost[208];
  tarn_disk *disk;
  tarn_whole_tensor table;
  tarn_embedding *twin;
  tarn_whole_tensor twin_table;
  tarn_whole *wholes[MOST_WHOLES];
  size_t whole_count;
  uint64_t epoch;
  unsigned char *kept[KEPT][MOST_WHOLES];  // of epoch e at e % KEPT
  uint64_t kept_applies[KEPT];
  float kept_rates[KEPT];
  phase now;
  phase loses_in;
  size_t looks;  // in that phase
  size_t losses[OPENING + 1];
  size_t went_back;  // losses in a commit that left the epoch before
} m;

// The same at all ranks.
static size_t draw(size_t below) {
  return (size_t)(mix(m.seed, m.drawn++) % below);
}

static size_t draw_own(size_t below) {
  return (size_t)(mix(m.seed + 77 + my.rank, m.own_drawn++) % below);
}

// --- losses of power -------------------------------------------------------

// Each look of the phase is as likely to be the one.
static void look(void) {
  if (m.now != m.loses_in || m.now == NEVER) return;
  if (draw_own(++m.looks) == 0) crash_leave(m.lost, m.own_drawn);
}

static int before(void *context, tarn__io_request *request) {
  return crash_watch.before(context, request);
}

// What is synced first in a flush is what the root will name.
static int64_t after(void *context, const tarn__io_request *request,
                     int64_t result) {
  result = crash_watch.after(context, request, result);
  if (request->action == TARN__IO_DATASYNC && m.now == PREPARING)
    m.now = COMMITTING;
  return result;
}

static const tarn__io_watch watch = {NULL, before, after};

// --- twins -----------------------------------------------------------------

static void make_twin(void) {
  const tarn_embedding_options o = scene_options(now);
  const tarn_whole_table_options options = {.struct_size = sizeof options,
                                            .type = TARN_WHOLE_DISTRIBUTED,
                                            .place = TARN_HOST,
                                            .dtype = now->table,
                                            .rows = ROWS,
                                            .width = now->width};
  MUST_BE(tarn_whole_table_create(my.comm, &options, &m.twin_table), TARN_OK);
  MUST_BE(tarn_embedding_create(&m.twin_table, &o, &m.twin), TARN_OK);
  m.wholes[0] = m.twin_table.whole;
  m.wholes[1] = m.twin->states.whole;
  m.whole_count = 2;
}

static tarn_whole_part part_of(size_t i) {
  tarn_whole_part part;
  MUST_BE(tarn_whole_local(m.wholes[i], &part), TARN_OK);
  return part;
}

static void keep_twin(uint64_t epoch) {
  for (size_t i = 0; i < m.whole_count; i++) {
    tarn_whole_part part = part_of(i);
    unsigned char **kept = &m.kept[epoch % KEPT][i];
    if (*kept == NULL) *kept = malloc(part.size + 1);
    MUST(*kept != NULL);
    memcpy(*kept, host_bytes(part.address), part.size);
  }
  m.kept_applies[epoch % KEPT] = m.twin->applies;
  m.kept_rates[epoch % KEPT] = m.twin->optimizer.options.learning_rate;
}

static void restore_twin(uint64_t epoch) {
  meet_all();
  for (size_t i = 0; i < m.whole_count; i++) {
    tarn_whole_part part = part_of(i);
    memcpy(host_bytes(part.address), m.kept[epoch % KEPT][i], part.size);
  }
  m.twin->applies = m.kept_applies[epoch % KEPT];
  MUST_BE(tarn_embedding_set_learning_rate(m.twin, m.kept_rates[epoch % KEPT]),
          TARN_OK);
  meet_all();
}

static void end_twin(void) {
  MUST_BE(tarn_embedding_destroy(m.twin), TARN_OK);
  MUST_BE(tarn_whole_destroy(m.twin_table.whole), TARN_OK);
  for (size_t i = 0; i < KEPT; i++)
    for (size_t k = 0; k < MOST_WHOLES; k++)
      free(m.kept[i][k]);
}

static void see_all_the_same(void) {
  size_t count = 0;
  tarn_whole_named x[TARN_EMBEDDING_TENSORS];
  tarn_whole_named y[TARN_EMBEDDING_TENSORS];
  MUST_BE(tarn_embedding_tensors(tarn_disk_embedding(m.disk), x, &count),
          TARN_OK);
  MUST_BE(tarn_embedding_tensors(m.twin, y, &count), TARN_OK);
  for (size_t i = 0; i < count; i++)
    see_same(&x[i].tensor, &y[i].tensor);
}

// --- from open to close ----------------------------------------------------

static void open_table(uint64_t flags) {
  const tarn_embedding_options o = scene_options(now);
  tarn_disk_options options = disk_options(now, flags, &o);
  options.rows = ROWS;
  if ((flags & TARN_DISK_CREATE) == 0) {
    options.optimizer = NULL;
    crash_record(m.file, look);
  }
  m.now = OPENING;
  MUST_BE(tarn__disk_open(my.comm, &options, &watch, &m.disk), TARN_OK);
  m.now = NEVER;
  if ((flags & TARN_DISK_CREATE) != 0) crash_record(m.file, look);
  m.table = tarn_disk_table(m.disk);
}

static uint64_t epoch_now(void) {
  tarn_disk_info info = {.struct_size = sizeof info};
  MUST_BE(tarn_disk_query(m.disk, &info), TARN_OK);
  MUST(tell(0, info.epoch) == info.epoch);
  return info.epoch;
}

// What is on the disk is what was left at the moment of the loss.
static void lose_and_open(uint64_t least, uint64_t most) {
  MUST_BE(tarn_disk_close(m.disk), TARN_OK);
  MUST(rename(m.lost, m.file) == 0);
  meet_all();
  open_table(0);
  m.epoch = epoch_now();
  MUST(m.epoch >= least && m.epoch <= most);
  restore_twin(m.epoch);
  see_all_the_same();
}

static void plan_to_lose(phase in) {
  m.loses_in = in;
  m.looks = 0;
}

static void lose_in_a_flush(void) {
  phase in = draw(2) == 0 ? PREPARING : COMMITTING;
  plan_to_lose(in);
  m.now = PREPARING;
  MUST_BE(tarn_disk_flush(m.disk), TARN_OK);
  m.now = NEVER;
  MUST(m.looks > 0);
  keep_twin(m.epoch + 1);
  uint64_t before_it = m.epoch;
  lose_and_open(before_it, before_it + (in == COMMITTING));
  m.went_back += in == COMMITTING && m.epoch == before_it;
  m.losses[in]++;
}

// The table has been opened as of the epoch before, by a loss in a commit, or
// as it was; the power is lost while it is opened.
static void lose_in_an_open(void) {
  MUST_BE(tarn_disk_close(m.disk), TARN_OK);
  plan_to_lose(OPENING);
  open_table(0);
  plan_to_lose(NEVER);
  restore_twin(m.epoch);
  m.losses[OPENING]++;
  bool all = true;
  for (size_t r = 0; r < my.ranks; r++)
    all = tell(r, m.looks > 0) != 0 && all;
  if (all) lose_and_open(m.epoch, m.epoch);
}

static void lose_between_calls(void) {
  crash_leave(m.lost, draw_own(SIZE_MAX));
  lose_and_open(m.epoch, m.epoch);
  m.losses[NEVER]++;
}

// --- operations ------------------------------------------------------------

static span draw_rows(tarn_dtype dtype, bool apart) {
  size_t count = draw_own(MOST + 1);
  span s = take_span(&m.table, 0, 0);
  give_span(&s);
  size_t row = now->width * tarn_dtype_size(dtype);
  s.size = count * row;
  s.indices = malloc(count * sizeof *s.indices + 1);
  s.bytes = calloc(s.size + 1, 1);
  MUST(s.indices != NULL && s.bytes != NULL);
  for (size_t i = 0; i < count; i++) {
    size_t at = draw_own(ROWS) * draw_own(ROWS) / ROWS;
    if (apart) at = at / my.ranks * my.ranks + my.rank;
    s.indices[i] = (int64_t)(at < ROWS ? at : my.rank);
  }
  for (size_t i = 0; i < s.size; i += tarn_dtype_size(dtype)) {
    float value = (float)(int)(draw_own(2001) - 1000) / 1000;
    tarn__convert(dtype, s.bytes + i, TARN_DTYPE_F32, &value, 1);
  }
  s.rows = (tarn_whole_rows){.struct_size = sizeof s.rows,
                             .place = TARN_HOST,
                             .dense = (tarn_addr)(uintptr_t)s.bytes,
                             .dense_dtype = dtype,
                             .indices = (tarn_addr)(uintptr_t)s.indices,
                             .index_dtype = TARN_DTYPE_I64,
                             .index_count = count};
  return s;
}

static void apply_some(void) {
  span s = draw_rows(TARN_DTYPE_F32, false);
  MUST_BE(tarn_embedding_apply(tarn_disk_embedding(m.disk), &s.rows, NULL),
          TARN_OK);
  MUST_BE(tarn_embedding_apply(m.twin, &s.rows, NULL), TARN_OK);
  give_span(&s);
}

// A row that comes up twice has one value.
static void scatter_some(void) {
  span s = draw_rows(now->table, true);
  if (s.rows.index_count > 1) s.rows.index_count = 1;
  MUST_BE(tarn_whole_scatter(&m.table, &s.rows, NULL), TARN_OK);
  MUST_BE(tarn_whole_scatter(&m.twin_table, &s.rows, NULL), TARN_OK);
  give_span(&s);
}

static void gather_some(void) {
  span s = draw_rows(now->table, false);
  unsigned char *bytes = malloc(s.size + 1);
  MUST(bytes != NULL);
  MUST_BE(tarn_whole_gather(&m.table, &s.rows, NULL), TARN_OK);
  memcpy(bytes, s.bytes, s.size);
  MUST_BE(tarn_whole_gather(&m.twin_table, &s.rows, NULL), TARN_OK);
  MUST(memcmp(bytes, s.bytes, s.size) == 0);
  free(bytes);
  give_span(&s);
}

// It is of the flush as well.
static void change_the_rate(void) {
  float rate = (float)(1 + draw(100)) / 1000;
  MUST_BE(tarn_embedding_set_learning_rate(m.twin, rate), TARN_OK);
  MUST_BE(tarn_embedding_set_learning_rate(tarn_disk_embedding(m.disk), rate),
          TARN_OK);
}

static void flush_all(void) {
  plan_to_lose(NEVER);
  MUST_BE(tarn_disk_flush(m.disk), TARN_OK);
  m.epoch++;
  MUST(epoch_now() == m.epoch);
  keep_twin(m.epoch);
}

static void open_again(void) {
  plan_to_lose(NEVER);
  MUST_BE(tarn_disk_close(m.disk), TARN_OK);
  open_table(0);
  MUST(epoch_now() == m.epoch);
  restore_twin(m.epoch);
}

static void step(void) {
  size_t kind = draw(1000);
  if (kind < 20) {
    change_the_rate();
  } else if (kind < 450) {
    gather_some();
  } else if (kind < 880) {
    apply_some();
  } else if (kind < 940) {
    scatter_some();
  } else if (kind < 975) {
    flush_all();
  } else if (kind < 988) {
    lose_in_a_flush();
  } else if (kind < 992) {
    lose_in_an_open();
  } else if (kind < 996) {
    lose_between_calls();
  } else {
    open_again();
  }
}

static void run(void) {
  snprintf(m.file, sizeof m.file, "%s_part_%zu_of_%zu", in_folder("table"),
           my.rank, my.ranks);
  snprintf(m.lost, sizeof m.lost, "%s.lost", m.file);
  make_twin();
  open_table(TARN_DISK_CREATE);
  m.epoch = 1;
  keep_twin(1);
  for (size_t i = 0; i < m.steps; i++)
    step();
  see_all_the_same();
  MUST_BE(tarn_disk_close(m.disk), TARN_OK);
  end_twin();
  for (size_t i = 0; i <= OPENING; i++)
    MUST(m.losses[i] > 0);
  MUST(m.went_back > 0);
}

static void run_random(int i, size_t steps) {
  size_t ranks = 1 + (size_t)i % 3;
  now = &kinds[i / 3];
  m.steps = steps;
  m.seed = mix(5, (uint64_t)i);
  make_folder();
  run_ranks(ranks, now->name, run);
  remove_folder();
}

TEST_LOOP(a_loss_of_power_leaves_one_flush_at_all_ranks, 3 * KINDS) {
  run_random(_i, EFFORT(3000, 1500));
}

// --- a million -------------------------------------------------------------

PART("million");

TEST_LOOP(a_million_operations, 3 * KINDS) {
  run_random(_i, EFFORT(1000000, 50000) / (3 * KINDS));
}
