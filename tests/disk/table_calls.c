// Tables on disks: rows by index from every place, files, caches, and what is
// refused.
#include <stdatomic.h>
#include <sys/wait.h>

#include "base/convert.h"
#include "disk/table.h"
#include "disk/table_kit.h"
#include "folder.h"
#include "support/effort.h"
#include "support/mix.h"
#include "tarn/cache.h"

static const ground *where;  // set before ranks are forked

static const scene small = {"adam",         TARN_OPTIMIZER_ADAM, 0, 0, 0, 0,
                            TARN_DTYPE_F32, TARN_DTYPE_F32,      8};
static const scene halves = {
    "halves",       TARN_OPTIMIZER_ADAGRAD, 0, 0, 0, .5f,
    TARN_DTYPE_F16, TARN_DTYPE_F32,         9};

// --- rows by index ---------------------------------------------------------

// Indices of some rows, of each rank others, some out of range; and dense rows
// of |dtype| for them, at |place|.
typedef struct request {
  tarn_whole_rows rows;
  tarn_place place;
  tarn_addr memory;
  size_t size;
} request;

static request ask(size_t seed, tarn_place place, tarn_dtype dtype,
                   const tarn_whole_tensor *t, tarn_dtype index, bool apart) {
  size_t count = 40 + seed % 3;
  size_t row = t->width * tarn_dtype_size(dtype);
  size_t each = tarn_dtype_size(index);
  request r = {.place = place, .size = count * (row + each)};
  unsigned char *bytes = calloc(1, r.size);
  MUST(bytes != NULL);
  for (size_t i = 0; i < count; i++) {
    int64_t wide = scene_index(seed, i) % (int64_t)t->rows;
    if (apart) wide = (int64_t)((i * my.ranks + my.rank) % t->rows);
    if (i == 3) wide = -1;
    if (i == 4) wide = (int64_t)t->rows;
    int32_t narrow = (int32_t)wide;
    memcpy(bytes + i * each,
           index == TARN_DTYPE_I32 ? (void *)&narrow : (void *)&wide, each);
    for (size_t k = 0; k < t->width; k++) {
      float value = (float)(seed + i + k) / 8;
      tarn__convert(dtype,
                    bytes + count * each + i * row + k * tarn_dtype_size(dtype),
                    TARN_DTYPE_F32, &value, 1);
    }
  }
  if (place.kind == TARN_PLACE_DEVICE) {
    MUST_BE(tarn_device_allocate(place, r.size, &r.memory), TARN_OK);
    poke(place, r.memory, bytes, r.size);
    free(bytes);
  } else {
    r.memory = (tarn_addr)(uintptr_t)bytes;
  }
  r.rows = (tarn_whole_rows){.struct_size = sizeof r.rows,
                             .place = place,
                             .dense = r.memory + count * each,
                             .dense_dtype = dtype,
                             .indices = r.memory,
                             .index_dtype = index,
                             .index_count = count,
                             .flags = TARN_ROWS_SKIP_BAD};
  return r;
}

static unsigned char *bytes_of(const request *r) {
  unsigned char *bytes = malloc(r->size);
  MUST(bytes != NULL);
  peek(r->place, r->memory, bytes, r->size);
  return bytes;
}

static void end_request(request *r) {
  if (r->place.kind == TARN_PLACE_DEVICE) {
    MUST_BE(tarn_device_deallocate(r->place, r->memory, r->size), TARN_OK);
  } else {
    free(host_bytes(r->memory));
  }
}

// Both have the same, and both requests got the same.
static void end_both(request *a, request *b) {
  unsigned char *x = bytes_of(a);
  unsigned char *y = bytes_of(b);
  MUST(memcmp(x, y, a->size) == 0);
  free(x);
  free(y);
  end_request(a);
  end_request(b);
}

typedef tarn_status move(const tarn_whole_tensor *table,
                         const tarn_whole_rows *rows, tarn_stream *stream);

static tarn_status begin_and_end(const tarn_whole_tensor *table,
                                 const tarn_whole_rows *rows,
                                 tarn_stream *stream) {
  tarn_whole_fetch *fetch = NULL;
  (void)stream;
  tarn_status status = tarn_whole_gather_begin(table, rows, &fetch);
  return status == TARN_OK ? tarn_whole_gather_end(fetch) : status;
}

static void move_both(const tarn_whole_tensor *a, const tarn_whole_tensor *b,
                      tarn_place place) {
  static move *const moves[] = {tarn_whole_scatter, tarn_whole_gather,
                                tarn_whole_scatter_add, begin_and_end};
  static const tarn_dtype dtypes[] = {TARN_DTYPE_F32, TARN_DTYPE_F16};
  for (size_t i = 0; i < 16; i++) {
    tarn_dtype index = i % 8 < 4 ? TARN_DTYPE_I64 : TARN_DTYPE_I32;
    bool apart = moves[i % 4] == tarn_whole_scatter;
    request x = ask(my.rank + i, place, dtypes[i / 8], a, index, apart);
    request y = ask(my.rank + i, place, dtypes[i / 8], b, index, apart);
    MUST_BE(moves[i % 4](a, &x.rows, NULL), TARN_OK);
    MUST_BE(moves[i % 4](b, &y.rows, NULL), TARN_OK);
    end_both(&x, &y);
    see_same(a, b);
  }
}

static void move_rows(void) {
  tarn_whole_tensor part;
  tarn_whole_tensor other;
  tarn_place place = open_ground(where);
  tarn_disk *disk = open_disk(now, TARN_DISK_CREATE);
  tarn_whole_tensor a = tarn_disk_table(disk);
  tarn_whole_tensor b =
      make(TARN_WHOLE_DISTRIBUTED, TARN_WHOLE_PARTS, TARN_HOST);
  fill_by_scatter(&a);
  move_both(&a, &b, place);
  MUST_BE(tarn_whole_tensor_sub(&a, 17, 250, 2, 7, &part), TARN_OK);
  MUST_BE(tarn_whole_tensor_sub(&b, 17, 250, 2, 7, &other), TARN_OK);
  move_both(&part, &other, place);
  see_same(&a, &b);
  close_disk(disk);
  MUST_BE(tarn_whole_destroy(b.whole), TARN_OK);
  close_ground(place);
}

TEST_LOOP(rows_are_those_of_memory, ON_GROUNDS(2 * GROUNDS)) {
  where = ground_at(_i / 2);
  now = _i % 2 == 0 ? &small : &halves;
  make_folder();
  run_ranks(3, where->text, move_rows);
  remove_folder();
}

static void (*go_ahead)(void *, const uint64_t *, size_t);
static atomic_size_t begun;

static void count_ahead(void *context, const uint64_t *blocks, size_t count) {
  const tarn_disk *disk = context;
  go_ahead(context, blocks, count);
  begun += tarn__records_has_begun(disk->records);
}

// Many rows in a call, so that the disk brings some while others are moved, in
// all of the threads and ranks that want them.
static void move_many(void) {
  enum { ROWS = 200000, WIDTH = 16, COUNT = ROWS / 2, ROUNDS = EFFORT(3, 1) };
  const tarn_disk_options options = {.struct_size = sizeof options,
                                     .path = in_folder("table"),
                                     .flags = TARN_DISK_CREATE,
                                     .dtype = TARN_DTYPE_F32,
                                     .rows = ROWS,
                                     .width = WIDTH,
                                     .memory = (size_t)5 << 20};
  tarn_disk *disk = NULL;
  tarn_whole_fetch *fetch = NULL;
  MUST_BE(tarn_disk_open(my.comm, &options, &disk), TARN_OK);
  go_ahead = disk->pager.ahead;
  disk->pager.ahead = count_ahead;
  tarn_whole_tensor table = tarn_disk_table(disk);
  span mine = take_span(&table, 0, COUNT);
  span all = take_span(&table, 0, COUNT);
  span beside = take_span(&table, 0, COUNT);
  float *out = (float *)(void *)mine.bytes;
  const float *in = (const float *)(const void *)all.bytes;
  const float *in_beside = (const float *)(const void *)beside.bytes;
  for (size_t n = 0; n < ROUNDS; n++) {
    for (size_t i = 0; i < COUNT; i++) {
      mine.indices[i] = (int64_t)((i * 7919 % COUNT) * my.ranks + my.rank);
      all.indices[i] = (int64_t)(mix(n, i) % ROWS);
      beside.indices[i] = (int64_t)(mix(n + 10, i) % ROWS);
      for (size_t k = 0; k < WIDTH; k++)
        out[i * WIDTH + k] = (float)(mine.indices[i] + (int64_t)((n + 1) * k));
    }
    MUST_BE(tarn_whole_scatter(&table, &mine.rows, NULL), TARN_OK);
    MUST_BE(tarn_comm_barrier(my.comm), TARN_OK);
    MUST_BE(tarn_whole_gather_begin(&table, &beside.rows, &fetch), TARN_OK);
    MUST_BE(tarn_whole_gather(&table, &all.rows, NULL), TARN_OK);
    MUST_BE(tarn_whole_gather_end(fetch), TARN_OK);
    for (size_t i = 0; i < COUNT * WIDTH; i++) {
      size_t k = i % WIDTH;
      MUST(in[i] == (float)(all.indices[i / WIDTH] + (int64_t)((n + 1) * k)));
      MUST(in_beside[i] ==
           (float)(beside.indices[i / WIDTH] + (int64_t)((n + 1) * k)));
    }
    MUST_BE(tarn_disk_flush(disk), TARN_OK);
  }
  tarn_disk_info info = {.struct_size = sizeof info};
  MUST_BE(tarn_disk_query(disk, &info), TARN_OK);
  MUST(info.blocks_read > 0 && info.lines < ROWS / my.ranks);
  MUST(begun > 0);
  give_span(&mine);
  give_span(&all);
  give_span(&beside);
  close_disk(disk);
}

TEST(many_rows_are_brought_while_others_move) {
  make_folder();
  run_ranks(2, "many rows", move_many);
  remove_folder();
}

// --- files and caches ------------------------------------------------------

static void use_files(void) {
  tarn_disk *disk = open_disk(now, TARN_DISK_CREATE);
  tarn_whole_tensor a = tarn_disk_table(disk);
  tarn_whole_tensor b =
      make(TARN_WHOLE_DISTRIBUTED, TARN_WHOLE_PARTS, TARN_HOST);
  const tarn_file_options wide = {.struct_size = sizeof wide,
                                  .dtype = TARN_DTYPE_F32};
  MUST_BE(tarn_whole_store(&b, in_folder("b.npy"), &wide, NULL), TARN_OK);
  MUST_BE(tarn_whole_load(&a, in_folder("b.npy"), NULL, NULL), TARN_OK);
  see_same(&a, &b);
  apply(tarn_disk_embedding(disk), 0, TARN_HOST);
  MUST_BE(tarn_embedding_store(tarn_disk_embedding(disk),
                               in_folder("a.safetensors"), NULL, NULL),
          TARN_OK);
  tarn_embedding *e = NULL;
  const tarn_embedding_options o = scene_options(now);
  MUST_BE(tarn_embedding_create(&b, &o, &e), TARN_OK);
  MUST_BE(tarn_embedding_load(e, in_folder("a.safetensors"), NULL, NULL),
          TARN_OK);
  apply(e, 1, TARN_HOST);
  apply(tarn_disk_embedding(disk), 1, TARN_HOST);
  see_same(&a, &b);
  MUST_BE(tarn_embedding_destroy(e), TARN_OK);
  MUST_BE(tarn_whole_destroy(b.whole), TARN_OK);
  close_disk(disk);
}

TEST_LOOP(files_fill_them_and_hold_them, 2) {
  now = _i == 0 ? &small : &halves;
  make_folder();
  run_ranks(2, "files", use_files);
  remove_folder();
}

static void use_a_cache(void) {
  tarn_place place = open_ground(where);
  tarn_disk *disk = open_disk(now, TARN_DISK_CREATE);
  tarn_whole_tensor t = tarn_disk_table(disk);
  tarn_whole_tensor b =
      make(TARN_WHOLE_DISTRIBUTED, TARN_WHOLE_PARTS, TARN_HOST);
  tarn_cache *cache = NULL;
  const tarn_cache_options options = {.struct_size = sizeof options,
                                      .mode = TARN_CACHE_WRITE_BACK,
                                      .place = place,
                                      .rows = 32};
  fill_by_scatter(&t);
  MUST_BE(tarn_cache_create(&t, &options, &cache), TARN_OK);
  for (size_t i = 0; i < 4; i++) {
    request x =
        ask(my.rank + i, place, TARN_DTYPE_F32, &t, TARN_DTYPE_I64, true);
    request y =
        ask(my.rank + i, place, TARN_DTYPE_F32, &b, TARN_DTYPE_I64, true);
    x.rows.flags = y.rows.flags = TARN_ROWS_SKIP_BAD;
    MUST_BE(tarn_cache_scatter(cache, &x.rows, NULL), TARN_OK);
    MUST_BE(tarn_whole_scatter(&b, &y.rows, NULL), TARN_OK);
    MUST_BE(tarn_cache_gather(cache, &x.rows, NULL), TARN_OK);
    MUST_BE(tarn_whole_gather(&b, &y.rows, NULL), TARN_OK);
    end_both(&x, &y);
  }
  MUST_BE(tarn_cache_write_back(cache), TARN_OK);
  MUST_BE(tarn_disk_flush(disk), TARN_OK);
  see_same(&t, &b);
  MUST_BE(tarn_cache_destroy(cache), TARN_OK);
  MUST_BE(tarn_whole_destroy(b.whole), TARN_OK);
  close_disk(disk);
  close_ground(place);
}

TEST_LOOP(caches_are_in_front, ON_GROUNDS(GROUNDS)) {
  where = ground_at(_i);
  now = &small;
  make_folder();
  run_ranks(2, where->text, use_a_cache);
  remove_folder();
}

// --- what is refused -------------------------------------------------------

static void refuse(const tarn_disk_options *o, tarn_status expected,
                   const char *says) {
  tarn_disk *disk = (tarn_disk *)&small;
  tarn_status status = tarn_disk_open(my.comm, o, &disk);
  must_be_the_same_everywhere(status);
  MUST_BE(status, expected);
  MUST_SAY(says);
  MUST(disk == NULL);
}

static void refuse_options(void) {
  const tarn_embedding_options adam = scene_options(&small);
  const tarn_disk_options good = disk_options(&small, TARN_DISK_CREATE, &adam);
  tarn_embedding_options wrong = adam;
  size_t partition[2] = {200, 99};
  tarn_disk_options o = good;
  o.path = NULL;
  refuse(&o, TARN_E_INVALID, "the path is NULL");
  o = good;
  o.flags = 1u << 9;
  refuse(&o, TARN_E_INVALID, "unknown flags 0x200");
  o = good;
  o.dtype = TARN_DTYPE_I32;
  refuse(&o, TARN_E_INVALID, "f32, f16 or bf16, not i32");
  o.dtype = (tarn_dtype)99;
  refuse(&o, TARN_E_INVALID, "unknown dtype 99");
  o = good;
  o.rows = 0;
  refuse(&o, TARN_E_INVALID, "0 rows of 8 x f32");
  o.rows = SIZE_MAX / 8;
  refuse(&o, TARN_E_INVALID, "rows of 8 x f32");
  o = good;
  o.width = 7 + my.rank;
  refuse(&o, TARN_E_INVALID, "ranks differ: rank 0 has tarn_disk_open with");
  o = good;
  o.partition = partition;
  refuse(&o, TARN_E_INVALID, "299");
  o = good;
  o.memory = 5000;
  refuse(&o, TARN_E_INVALID, "a budget of 5000 bytes: ");
  o = good;
  wrong.beta2 = 2;
  o.optimizer = &wrong;
  refuse(&o, TARN_E_INVALID, "beta2 is 2");
  o = good;
  o.path = "/nowhere/table";
  refuse(&o, TARN_E_IO, "/nowhere/table_part_0_of_2");
  o.flags = 0;
  refuse(&o, TARN_E_IO, "/nowhere/table_part_0_of_2");
  o = good;
  o.struct_size = 12;
  refuse(&o, TARN_E_INVALID, "struct_size");
  MUST_BE(tarn_disk_open(NULL, &good, NULL), TARN_E_INVALID);
  MUST_BE(tarn_disk_flush(NULL), TARN_E_INVALID);
  MUST_BE(tarn_disk_query(NULL, NULL), TARN_E_INVALID);
  MUST_BE(tarn_disk_close(NULL), TARN_OK);
  MUST(tarn_disk_table(NULL).whole == NULL);
  MUST(tarn_disk_embedding(NULL) == NULL);
}

// What the files say is not needed, and compared where it is given.
static void refuse_other_files(void) {
  const tarn_embedding_options adam = scene_options(&small);
  const tarn_embedding_options other = scene_options(&halves);
  const size_t partition[2] = {100, 200};
  tarn_disk_options o = disk_options(&small, TARN_DISK_CREATE, &adam);
  tarn_disk *disk = NULL;
  o.partition = partition;
  MUST_BE(tarn_disk_open(my.comm, &o, &disk), TARN_OK);
  refuse(
      &(tarn_disk_options){
          .struct_size = sizeof o, .path = o.path, .memory = o.memory},
      TARN_E_STATE, "it is open already");
  apply(tarn_disk_embedding(disk), 0, TARN_HOST);
  MUST_BE(tarn_disk_flush(disk), TARN_OK);
  close_disk(disk);
  o.flags = 0;
  o.rows = 299;
  refuse(&o, TARN_E_INVALID, "the table has rows: 300, not 299");
  o.rows = 0;
  o.width = 9;
  refuse(&o, TARN_E_INVALID, "the table has a width of 8, not 9");
  o.width = 0;
  o.dtype = TARN_DTYPE_F16;
  refuse(&o, TARN_E_INVALID, "the table is of f32, not f16");
  o.dtype = TARN_DTYPE_NONE;
  o.optimizer = &other;
  refuse(&o, TARN_E_INVALID, "the table has adam with flags 0");
  o.optimizer = NULL;
  o.partition = (const size_t[]){150, 150};
  refuse(&o, TARN_E_INVALID, "rank 0 has 100 rows in the files, not 150");
  o.partition = NULL;
  MUST_BE(tarn_disk_open(my.comm, &o, &disk), TARN_OK);
  tarn_disk_info info = {.struct_size = sizeof info};
  MUST_BE(tarn_disk_query(disk, &info), TARN_OK);
  MUST(info.epoch == 2 && info.record == 8 * 12 + 4 && info.block == 4096);
  MUST(tarn_disk_table(disk).rows == SCENE_ROWS);
  MUST(tarn_disk_embedding(disk) != NULL);
  close_disk(disk);
}

// Files of which one is damaged, of another table, or from another time.
static void refuse_damage(void) {
  tarn_disk *disk = open_disk(&small, TARN_DISK_CREATE);
  const tarn_embedding_options adam = scene_options(&small);
  const tarn_disk_options o = disk_options(&small, 0, &adam);
  char mine[200];
  snprintf(mine, sizeof mine, "%s_part_%zu_of_2", o.path, my.rank);
  char old[208];
  snprintf(old, sizeof old, "%s.old", mine);
  if (my.rank == 1) folder_copy(mine, old);
  for (size_t n = 0; n < 3; n++) {
    apply(tarn_disk_embedding(disk), n, TARN_HOST);
    MUST_BE(tarn_disk_flush(disk), TARN_OK);
  }
  close_disk(disk);
  if (my.rank == 1) MUST(rename(old, mine) == 0);
  meet_all();
  refuse(&o, TARN_E_CORRUPT,
         "ranks have no flush in common: the file of rank "
         "0 has 4 and 3, that of rank 1 1 and 0");
  close_disk(open_disk(&small, TARN_DISK_CREATE));
  if (my.rank == 0) folder_copy(mine, old);
  meet_all();
  close_disk(open_disk(&small, TARN_DISK_CREATE));
  if (my.rank == 0) MUST(rename(old, mine) == 0);
  meet_all();
  refuse(&o, TARN_E_CORRUPT,
         "the file of rank 1 is of another table than that of rank 0");
  disk = open_disk(&small, TARN_DISK_CREATE);
  tarn_whole_tensor t = tarn_disk_table(disk);
  fill_by_scatter(&t);
  MUST_BE(tarn_disk_flush(disk), TARN_OK);
  close_disk(disk);
  // The first place is a block of rows.
  if (my.rank == 1) folder_flip(mine, 8192 + 100, 1);
  meet_all();
  disk = open_disk(&small, 0);
  t = tarn_disk_table(disk);
  span s = take_span(&t, 0, SCENE_ROWS);
  tarn_status status = tarn_whole_gather(&t, &s.rows, NULL);
  must_be_the_same_everywhere(status);
  MUST_BE(status, TARN_E_CORRUPT);
  MUST_SAY("table_part_1_of_2': bytes 8192 to 12287: a block is damaged");
  give_span(&s);
  close_disk(disk);
}

static void have_no_addresses(void) {
  tarn_disk *disk = open_disk(&small, TARN_DISK_CREATE);
  tarn_whole_tensor t = tarn_disk_table(disk);
  tarn_whole_tensor wrong = t;
  tarn_whole_part part;
  tarn_addr address = 1;
  tarn_reference reference;
  tarn_embedding *e = NULL;
  tarn_whole_info info = {.struct_size = sizeof info};
  const tarn_embedding_options adam = scene_options(&small);
  MUST_BE(tarn_whole_local(t.whole, &part), TARN_E_UNSUPPORTED);
  MUST_SAY("on a disk");
  MUST_BE(tarn_whole_global(t.whole, &address), TARN_E_UNSUPPORTED);
  MUST_BE(tarn_whole_reference(t.whole, &reference), TARN_E_UNSUPPORTED);
  MUST_BE(tarn_whole_tensor_local(&t, &address), TARN_E_UNSUPPORTED);
  MUST_SAY("on a disk");
  MUST_BE(tarn_whole_query(t.whole, &info), TARN_OK);
  MUST(info.type == TARN_WHOLE_DISTRIBUTED && info.charged == 0);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_E_STATE);
  MUST_SAY("tarn_disk_close");
  MUST_BE(tarn_embedding_destroy(tarn_disk_embedding(disk)), TARN_E_STATE);
  MUST_SAY("tarn_disk_close");
  MUST_BE(tarn_embedding_create(&t, &adam, &e), TARN_E_UNSUPPORTED);
  MUST_SAY("tarn_disk_open");
  wrong.stride = 8;
  span s = take_span(&t, 0, 1);
  MUST_BE(tarn_whole_gather(&wrong, &s.rows, NULL), TARN_E_INVALID);
  MUST_SAY("are not within records of 100");
  give_span(&s);
  close_disk(disk);
}

static void use_in_a_child(tarn_disk *disk) {
  tarn_whole_tensor t = tarn_disk_table(disk);
  span s = take_span(&t, 0, 1);
  tarn_disk_info info = {.struct_size = sizeof info};
  alarm(30);
  MUST_BE(tarn_disk_flush(disk), TARN_E_STATE);
  MUST_BE(tarn_disk_query(disk, &info), TARN_E_STATE);
  MUST_BE(tarn_whole_gather(&t, &s.rows, NULL), TARN_E_STATE);
  MUST_BE(tarn_disk_close(disk), TARN_OK);
  _exit(0);
}

static void fork_with_a_table(void) {
  tarn_disk *disk = open_disk(&small, TARN_DISK_CREATE);
  apply(tarn_disk_embedding(disk), 0, TARN_HOST);
  pid_t child = fork();
  if (child == 0) use_in_a_child(disk);
  int status = 0;
  MUST(waitpid(child, &status, 0) == child && status == 0);
  apply(tarn_disk_embedding(disk), 1, TARN_HOST);
  MUST_BE(tarn_disk_flush(disk), TARN_OK);
  close_disk(disk);
}

// A gather that was begun reads beside a flush.
static void gather_beside_a_flush(void) {
  tarn_disk *disk = open_disk(&small, TARN_DISK_CREATE);
  tarn_whole_tensor t = tarn_disk_table(disk);
  tarn_whole_tensor b =
      make(TARN_WHOLE_DISTRIBUTED, TARN_WHOLE_PARTS, TARN_HOST);
  fill_by_scatter(&t);
  for (size_t i = 0; i < 20; i++) {
    tarn_whole_fetch *fetch = NULL;
    request x = ask(i, TARN_HOST, TARN_DTYPE_F32, &t, TARN_DTYPE_I64, false);
    request y = ask(i, TARN_HOST, TARN_DTYPE_F32, &b, TARN_DTYPE_I64, false);
    MUST_BE(tarn_whole_gather_begin(&t, &x.rows, &fetch), TARN_OK);
    MUST_BE(tarn_disk_close(disk), TARN_E_STATE);
    MUST_BE(tarn_disk_flush(disk), TARN_OK);
    MUST_BE(tarn_whole_gather_end(fetch), TARN_OK);
    MUST_BE(tarn_whole_gather(&b, &y.rows, NULL), TARN_OK);
    end_both(&x, &y);
  }
  MUST_BE(tarn_whole_destroy(b.whole), TARN_OK);
  close_disk(disk);
}

TEST_LOOP(calls, 6) {
  static void (*const works[])(void) = {
      refuse_options,    refuse_other_files, refuse_damage,
      have_no_addresses, fork_with_a_table,  gather_beside_a_flush};
  now = &small;
  make_folder();
  run_ranks(2, "calls", works[_i]);
  remove_folder();
}

// Files are of as many ranks as there were; fewer rows than ranks.
static void make_a_small_table(void) {
  tarn_disk *disk = NULL;
  const tarn_disk_options o = {.struct_size = sizeof o,
                               .path = in_folder("table"),
                               .flags = TARN_DISK_CREATE,
                               .dtype = TARN_DTYPE_I64,
                               .rows = 2,
                               .width = 3,
                               .memory = KIT_MEMORY};
  MUST_BE(tarn_disk_open(my.comm, &o, &disk), TARN_OK);
  tarn_whole_tensor t = tarn_disk_table(disk);
  MUST(tarn_disk_embedding(disk) == NULL);
  span s = take_span(&t, 0, 2);
  memset(s.bytes, 7, s.size);
  MUST_BE(tarn_whole_scatter(&t, &s.rows, NULL), TARN_OK);
  memset(s.bytes, 0, s.size);
  MUST_BE(tarn_disk_flush(disk), TARN_OK);
  MUST_BE(tarn_whole_gather(&t, &s.rows, NULL), TARN_OK);
  for (size_t i = 0; i < s.size; i++)
    MUST(s.bytes[i] == 7);
  give_span(&s);
  close_disk(disk);
}

static void open_as_two(void) {
  const tarn_disk_options o = {.struct_size = sizeof o,
                               .path = in_folder("table"),
                               .memory = KIT_MEMORY};
  refuse(&o, TARN_E_IO, "table_part_0_of_2': cannot open it");
}

TEST(ranks_without_rows_and_other_numbers_of_ranks) {
  now = &small;
  make_folder();
  run_ranks(3, "small", make_a_small_table);
  run_ranks(2, "two", open_as_two);
  remove_folder();
}

SECONDS(120);
