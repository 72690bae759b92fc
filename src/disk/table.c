// Tables on disks: from open to close, in steps that all ranks take together.
//
//   every rank for itself               all ranks together
//   ---------------------               -------------------------------------
//   options; what its file says         agree; create: the same options?
//                                       open: one table, and an epoch that
//                                       all have; create: its id
//                                       whole memory, divided as files say
//   create: its file                    agree
//   open its file as of the epoch       agree
//   the embedding                       agree
//
// A flush is three steps, each of which all ranks take before any takes the
// next: records are written; they and the map are synced; the root is.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/hostmem.h"
#include "base/os.h"
#include "base/os_peer.h"
#include "base/status.h"
#include "comm/comm.h"
#include "disk/table.h"
#include "embedding/embedding.h"
#include "table/course.h"
#include "table/file.h"

enum {
  WORDS = 256,  // bytes of what ranks compare
  ALL_FLAGS = TARN_DISK_CREATE | TARN_DISK_CACHED | TARN_DISK_THREADS,
};

static bool creates(const tarn_disk *disk) {
  return (disk->options.flags & TARN_DISK_CREATE) != 0;
}

static bool learns(const tarn_disk *disk) {
  return disk->note.optimizer != 0;
}

// --- options ---------------------------------------------------------------

static tarn_status check_new_table(const tarn_disk_options *o) {
  size_t bytes = 0;
  size_t element = tarn_dtype_size(o->dtype);
  bool floats = o->dtype == TARN_DTYPE_F32 || o->dtype == TARN_DTYPE_F16 ||
                o->dtype == TARN_DTYPE_BF16;
  if (element == 0) {
    return tarn__fail(TARN_E_INVALID, "disk options: unknown dtype %d",
                      (int)o->dtype);
  }
  if (o->optimizer != NULL && !floats) {
    return tarn__fail(TARN_E_INVALID,
                      "disk options: a table that learns is f32, f16 or bf16, "
                      "not %s",
                      tarn_dtype_name(o->dtype));
  }
  if (o->rows > 0 && o->width > 0 && o->width <= UINT32_MAX &&
      tarn_size_mul(o->width * (element + 2 * sizeof(float)) + 8, o->rows,
                    &bytes)) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_INVALID, "disk options: %zu rows of %zu x %s",
                    o->rows, o->width, tarn_dtype_name(o->dtype));
}

static tarn_status find_path(tarn_disk *disk, const char *path) {
  if (path == NULL)
    return tarn__fail(TARN_E_INVALID, "disk options: the path is NULL");
  if (tarn__file_name_part(disk->path, sizeof disk->path, path,
                           tarn_comm_rank(disk->comm),
                           tarn_comm_size(disk->comm))) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_INVALID, "disk: '%.100s...': the path is too long",
                    path);
}

// What the program does not give is as the file says.
static void take_note(tarn_disk *disk, const tarn__disk_table_note *note) {
  disk->note = *note;
  if (disk->options.optimizer == NULL && learns(disk))
    disk->optimizer = tarn__table_note_optimizer(note);
}

// What the program gives, and what the file says.
static tarn_status read_file(tarn_disk *disk,
                             const tarn_embedding_options *optimizer,
                             tarn__disk_table_offer *offer) {
  tarn__disk_records_info info;
  const tarn__disk_table_note *note = &offer->note;
  TARN__TRY(tarn__records_ask(disk->path, &info));
  TARN__TRY(tarn__table_note_read(disk->path, &info, &offer->note));
  offer->newest = info.newest;
  offer->before = info.before;
  if (note->rank != tarn_comm_rank(disk->comm) ||
      note->ranks != tarn_comm_size(disk->comm)) {
    return tarn__fail(TARN_E_INVALID,
                      "disk: '%s': it is of rank %" PRIu64 " of %" PRIu64
                      ", not of rank %zu of %zu",
                      disk->path, note->rank, note->ranks,
                      tarn_comm_rank(disk->comm), tarn_comm_size(disk->comm));
  }
  TARN__TRY(
      tarn__table_note_compare(disk->path, note, &disk->options, optimizer));
  take_note(disk, note);
  return TARN_OK;
}

static tarn_status read_options(tarn_disk *disk, const tarn_disk_options *given,
                                tarn__disk_table_offer *offer) {
  tarn_disk_options *o = &disk->options;
  const tarn_embedding_options *optimizer = NULL;
  TARN__TRY(tarn__take_struct("disk options", given,
                              TARN__SIZE_UP_TO(tarn_disk_options, name), o,
                              sizeof *o));
  TARN__TRY(find_path(disk, o->path));
  if ((o->flags & ~(uint64_t)ALL_FLAGS) != 0) {
    return tarn__fail(TARN_E_INVALID, "disk options: unknown flags 0x%" PRIx64,
                      o->flags);
  }
  if (o->optimizer != NULL) {
    TARN__TRY(tarn__embedding_read_options(o->optimizer, &disk->optimizer));
    optimizer = &disk->optimizer;
  }
  if (!creates(disk)) return read_file(disk, optimizer, offer);
  TARN__TRY(check_new_table(o));
  tarn__table_note_fill(o, optimizer, &disk->note);
  return TARN_OK;
}

// --- together --------------------------------------------------------------

// Of the optimizer that the program gives: what files say of theirs may be of
// different epochs.
static uint32_t sum_of_numbers(const tarn_disk *disk) {
  tarn__disk_table_note given = {.optimizer = 0};
  if (disk->options.optimizer != NULL)
    tarn__table_note_take(&given, &disk->optimizer);
  uint32_t sum = tarn__crc32c(0, given.numbers, sizeof given.numbers);
  return tarn__crc32c(sum, &given.seed, sizeof given.seed);
}

// Agrees on |status|, and compares what must be the same at all ranks.
static tarn_status compare(const tarn_disk *disk, tarn_status status) {
  char words[WORDS] = "";
  if (status == TARN_OK) {
    const tarn__disk_table_note *n = &disk->note;
    const char *optimizer = tarn_optimizer_name((tarn_optimizer)n->optimizer);
    snprintf(words, sizeof words,
             "tarn_disk_open with flags %u of %" PRIu64 " rows of %" PRIu64
             " x %s, %s with flags %u and numbers with the sum %08x",
             (unsigned)disk->options.flags, n->rows, n->width,
             tarn_dtype_name((tarn_dtype)n->dtype),
             optimizer != NULL ? optimizer : "no optimizer", (unsigned)n->flags,
             (unsigned)sum_of_numbers(disk));
  }
  return tarn__comm_agree_on(disk->comm, status, words, sizeof words, words);
}

// An id for a new table.
static tarn_status make_id(tarn_disk *disk) {
  uint64_t id[2] = {0, 0};
  tarn_status status = TARN_OK;
  if (tarn_comm_rank(disk->comm) == 0 && !tarn__os_random(id, sizeof id))
    status = tarn__fail(TARN_E_IO, "disk: no random number for a new table");
  TARN__TRY(tarn_comm_agree(disk->comm, status));
  TARN__TRY(tarn_comm_broadcast(disk->comm, 0, id, sizeof id));
  memcpy(disk->note.id, id, sizeof id);
  return TARN_OK;
}

static tarn_status check_partition(const tarn_disk *disk,
                                   const size_t *partition, size_t ranks) {
  const size_t *given = disk->options.partition;
  for (size_t r = 0; given != NULL && r < ranks; r++) {
    if (given[r] == partition[r]) continue;
    return tarn__fail(TARN_E_INVALID,
                      "disk: '%s': rank %zu has %zu rows in the files, not %zu",
                      disk->path, r, partition[r], given[r]);
  }
  return TARN_OK;
}

// What all ranks have. |partition|: of each, its rows.
static tarn_status meet(tarn_disk *disk, const tarn__disk_table_offer *own,
                        uint64_t *out_epoch, size_t *partition) {
  size_t ranks = tarn_comm_size(disk->comm);
  tarn__disk_table_offer *offers = tarn__host_array(ranks, sizeof *offers);
  tarn_status status =
      tarn_comm_agree(disk->comm, offers != NULL ? TARN_OK : TARN_E_NOMEM);
  if (status == TARN_OK)
    status = tarn_comm_allgather(disk->comm, own, sizeof *own, offers);
  if (status == TARN_OK)
    status =
        tarn__table_choose_epoch(disk, offers, ranks, out_epoch, partition);
  tarn__host_free_array(offers, ranks, sizeof *offers);
  TARN__TRY(status);
  return tarn_comm_agree(disk->comm, check_partition(disk, partition, ranks));
}

// The whole memory whose blocks the records are.
static tarn_status make_table(tarn_disk *disk, const size_t *partition) {
  tarn_whole *whole = NULL;
  const tarn__disk_table_note *n = &disk->note;
  const tarn_whole_options options = {
      .struct_size = sizeof options,
      .type = TARN_WHOLE_DISTRIBUTED,
      .place = TARN_HOST,
      .size = (size_t)(n->rows * n->record),
      .granularity = (size_t)n->record,
      .partition = partition,
      .name = disk->options.name,
  };
  const tarn__whole_request wish = {.call = TARN__WHOLE_DISK_OPEN,
                                    .options = &options,
                                    .dtype = (tarn_dtype)n->dtype,
                                    .width = (size_t)n->width,
                                    .pager = &disk->pager};
  disk->pager = tarn__table_pager(disk);
  TARN__TRY(tarn__whole_create(disk->comm, &wish, &whole));
  disk->table = (tarn_whole_tensor){
      .whole = whole,
      .dtype = (tarn_dtype)n->dtype,
      .dims = 2,
      .rows = (size_t)n->rows,
      .width = (size_t)n->width,
      .stride = (size_t)n->record / tarn_dtype_size((tarn_dtype)n->dtype)};
  return TARN_OK;
}

// --- this rank's file ------------------------------------------------------

static tarn_status check_part(const tarn_disk *disk) {
  size_t rank = tarn_comm_rank(disk->comm);
  if (disk->note.count < UINT32_MAX) return TARN_OK;
  return tarn__fail(TARN_E_UNSUPPORTED,
                    "disk: rank %zu owns %" PRIu64 " rows, more than %llu",
                    rank, disk->note.count, (unsigned long long)UINT32_MAX - 1);
}

static tarn_status create_file(tarn_disk *disk) {
  tarn__disk_table_note *n = &disk->note;
  unsigned char bytes[TARN__RECORDS_NOTE] = {0};
  size_t first = 0;
  size_t count = 0;
  n->ranks = tarn_comm_size(disk->comm);
  n->rank = tarn_comm_rank(disk->comm);
  TARN__TRY(
      tarn_whole_tensor_rows(&disk->table, (size_t)n->rank, &first, &count));
  n->first = first;
  n->count = count;
  TARN__TRY(check_part(disk));
  memcpy(bytes, n, sizeof *n);
  const tarn__disk_records_shape shape = {(size_t)n->record,
                                          count > 0 ? count : 1};
  return tarn__records_create(disk->path, &shape, bytes);
}

// ADAGRAD may begin with other states than zero.
static tarn_status make_blank(tarn_disk *disk) {
  const tarn__disk_table_note *n = &disk->note;
  if (!learns(disk) || disk->optimizer.initial == 0) return TARN_OK;
  disk->blank = tarn__host_alloc((size_t)n->record);
  if (disk->blank == NULL) return TARN_E_NOMEM;
  tarn__embedding_blank((tarn_dtype)n->dtype, (size_t)n->width,
                        &disk->optimizer, disk->blank);
  return TARN_OK;
}

static tarn_status open_file(tarn_disk *disk, uint64_t epoch) {
  const tarn_disk_options *o = &disk->options;
  TARN__TRY(make_blank(disk));
  const tarn__disk_records_options options = {
      .budget = o->memory,
      .depth = o->depth,
      .threads = (o->flags & TARN_DISK_THREADS) != 0,
      .cached = (o->flags & TARN_DISK_CACHED) != 0,
      .blank = disk->blank,
      .watch = disk->watch};
  TARN__TRY(tarn__records_open(disk->path, epoch, &options, &disk->records));
  tarn__disk_table_note note;
  tarn__disk_records_info info = tarn__records_tell(disk->records);
  TARN__TRY(tarn__table_note_read(disk->path, &info, &note));
  take_note(disk, &note);
  return TARN_OK;
}

static tarn_status open_embedding(tarn_disk *disk) {
  if (!learns(disk)) return TARN_OK;
  return tarn__embedding_make(&disk->table, &disk->optimizer,
                              disk->note.applies, &disk->embedding);
}

// --- open ------------------------------------------------------------------

static void release(tarn_disk *disk) {
  tarn__embedding_free(disk->embedding);
  tarn__records_close(disk->records);
  tarn__host_free(disk->blank, (size_t)disk->note.record);
  pthread_mutex_destroy(&disk->lock);
  tarn__host_free(disk, sizeof *disk);
}

static void ended(tarn__whole_user *user) {
  release(tarn_list_entry(user, tarn_disk, user));
}

// Of the whole memory that the ranks have made, if they have come so far.
static void give_up(tarn_disk *disk, tarn_status status) {
  bool ended = false;
  tarn__failure failure = tarn__failure_of(status);
  if (disk->table.whole != NULL)
    (void)!tarn__whole_end(disk->table.whole, &ended);
  release(disk);
  (void)!tarn__failure_tell(&failure);
}

// The call that ranks are in.
static void call(const tarn_disk *disk, const tarn__comm_caller *caller) {
  tarn__comm_call_for(disk->comm, caller);
}

static tarn_status open_table(tarn_disk *disk,
                              const tarn__disk_table_offer *own,
                              size_t *partition, uint64_t *out_epoch) {
  *out_epoch = 1;
  if (creates(disk)) {
    TARN__TRY(make_id(disk));
    return make_table(disk, disk->options.partition);
  }
  TARN__TRY(meet(disk, own, out_epoch, partition));
  return make_table(disk, partition);
}

static tarn_status open_files(tarn_disk *disk, uint64_t epoch) {
  if (creates(disk)) TARN__TRY(tarn_comm_agree(disk->comm, create_file(disk)));
  tarn_status status = check_part(disk);
  if (status == TARN_OK) status = open_file(disk, epoch);
  TARN__TRY(tarn_comm_agree(disk->comm, status));
  return tarn_comm_agree(disk->comm, open_embedding(disk));
}

static tarn_status open_all(tarn_disk *disk, const tarn_disk_options *options,
                            size_t *partition,
                            const tarn__comm_caller *caller) {
  tarn__disk_table_offer own = {.newest = 0};
  uint64_t epoch = 0;
  tarn_status status =
      partition != NULL ? read_options(disk, options, &own) : TARN_E_NOMEM;
  call(disk, caller);
  TARN__TRY(compare(disk, status));
  TARN__TRY(open_table(disk, &own, partition, &epoch));
  call(disk, caller);
  return open_files(disk, epoch);
}

// table_pager.c takes it twice.
static void make_lock(tarn_disk *disk) {
  pthread_mutexattr_t recursive;
  pthread_mutexattr_init(&recursive);
  pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&disk->lock, &recursive);
  pthread_mutexattr_destroy(&recursive);
}

// A rank without memory takes part in the first collective, and fails at all.
static tarn_status open_or_fail(tarn_comm *comm,
                                const tarn_disk_options *options,
                                const tarn__io_watch *watch,
                                const tarn__comm_caller *caller,
                                tarn_disk **out_disk) {
  size_t ranks = tarn_comm_size(comm);
  tarn_disk *disk = tarn__host_alloc(sizeof *disk);
  size_t *partition = tarn__host_array(ranks, sizeof *partition);
  if (disk == NULL) {
    tarn__host_free_array(partition, ranks, sizeof *partition);
    tarn__comm_call_for(comm, caller);
    const char words[WORDS] = "";
    return tarn__comm_agree_on(comm, TARN_E_NOMEM, words, sizeof words, words);
  }
  disk->comm = comm;
  disk->watch = watch;
  make_lock(disk);
  tarn_status status = open_all(disk, options, partition, caller);
  tarn__host_free_array(partition, ranks, sizeof *partition);
  if (status == TARN_OK) {
    disk->user.own = disk->table.whole;
    disk->user.ended = ended;
    tarn__whole_use(disk->table.whole, &disk->user);
    *out_disk = disk;
  } else {
    give_up(disk, status);
  }
  return status;
}

tarn_status tarn__disk_open(tarn_comm *comm, const tarn_disk_options *options,
                            const tarn__io_watch *watch, tarn_disk **out_disk) {
  const tarn__whole_subject subject = {.call = TARN__WHOLE_DISK_OPEN,
                                       .name = ""};
  tarn__comm_caller caller = tarn__whole_caller(&subject);
  if (comm == NULL || out_disk == NULL)
    return tarn__fail(TARN_E_INVALID, "disk: NULL");
  *out_disk = NULL;
  TARN__TRY(tarn__not_in_callback());
  TARN__TRY(tarn__comm_state(comm));
  tarn_status status = open_or_fail(comm, options, watch, &caller, out_disk);
  tarn__comm_call_for(comm, NULL);
  return status;
}

tarn_status tarn_disk_open(tarn_comm *comm, const tarn_disk_options *options,
                           tarn_disk **out_disk) {
  return tarn__disk_open(comm, options, NULL, out_disk);
}

void tarn_disk_give_up(void *disk) {
  tarn_disk *given = disk;
  if (given != NULL) atomic_store(&given->user.given_up, true);
}

tarn_status tarn_disk_close(tarn_disk *disk) {
  bool ended = false;
  if (disk == NULL) return TARN_OK;
  tarn_status status = tarn__whole_end(disk->table.whole, &ended);
  if (ended) release(disk);
  return status;
}

// --- flush -----------------------------------------------------------------

// Between the records of two goes, a gather that was begun may read.
static tarn_status write_some(void *self, uint64_t until, bool *out_done) {
  tarn_disk *disk = self;
  do {
    pthread_mutex_lock(&disk->lock);
    tarn_status status =
        tarn__records_write(disk->records, &disk->from, out_done);
    pthread_mutex_unlock(&disk->lock);
    TARN__TRY(status);
  } while (!*out_done && tarn__os_now_ns() < until);
  return TARN_OK;
}

static tarn_status write_all(tarn_disk *disk) {
  static const tarn__table_tally none;
  const tarn__table_course course = {
      .comm = disk->comm, .go_on = write_some, .self = disk, .tally = &none};
  disk->from = 0;
  return tarn__table_course_run(&course, TARN_OK);
}

static tarn_status commit(tarn_disk *disk) {
  unsigned char bytes[TARN__RECORDS_NOTE] = {0};
  if (disk->embedding != NULL) {
    disk->note.applies = disk->embedding->applies;
    tarn__table_note_take(&disk->note, &disk->embedding->optimizer.options);
  }
  memcpy(bytes, &disk->note, sizeof disk->note);
  return tarn__records_commit(disk->records, bytes);
}

// Nothing else is written meanwhile: the root names what was there when it was
// prepared.
static tarn_status prepare_and_commit(tarn_disk *disk) {
  TARN__TRY(tarn_comm_agree(disk->comm, tarn__records_prepare(disk->records)));
  tarn_status status = tarn_comm_agree(disk->comm, commit(disk));
  disk->broken = status != TARN_OK;
  return status;
}

static tarn_status flush(tarn_disk *disk) {
  TARN__TRY(write_all(disk));
  pthread_mutex_lock(&disk->lock);
  tarn_status status = prepare_and_commit(disk);
  pthread_mutex_unlock(&disk->lock);
  return status;
}

tarn_status tarn_disk_flush(tarn_disk *disk) {
  if (disk == NULL) return tarn__fail(TARN_E_INVALID, "disk: NULL");
  TARN__TRY(tarn__whole_check(disk->table.whole));
  if (disk->broken) {
    return tarn__fail(TARN_E_STATE,
                      "disk: '%s': a flush has failed, and the table must be "
                      "opened again",
                      disk->path);
  }
  tarn__whole_subject subject =
      tarn__whole_subject_of(TARN__WHOLE_DISK_FLUSH, disk->table.whole);
  tarn__comm_caller caller = tarn__whole_caller(&subject);
  call(disk, &caller);
  tarn_status status = flush(disk);
  call(disk, NULL);
  return status;
}

// --- what it is ------------------------------------------------------------

tarn_whole_tensor tarn_disk_table(const tarn_disk *disk) {
  return disk != NULL ? disk->table : (tarn_whole_tensor){.whole = NULL};
}

tarn_embedding *tarn_disk_embedding(const tarn_disk *disk) {
  return disk != NULL ? disk->embedding : NULL;
}

tarn_status tarn_disk_query(tarn_disk *disk, tarn_disk_info *out_info) {
  tarn__disk_records_tally t;
  size_t size = 0;
  if (disk == NULL || out_info == NULL)
    return tarn__fail(TARN_E_INVALID, "disk info: NULL");
  if (!tarn__struct_size(out_info->struct_size,
                         TARN__SIZE_UP_TO(tarn_disk_info, method),
                         sizeof *out_info, &size)) {
    return tarn__fail(TARN_E_INVALID, "disk info: struct_size is %zu",
                      out_info->struct_size);
  }
  TARN__TRY(tarn__whole_check(disk->table.whole));
  pthread_mutex_lock(&disk->lock);
  tarn__records_count(disk->records, &t);
  pthread_mutex_unlock(&disk->lock);
  const tarn_disk_info info = {
      .struct_size = size,
      .epoch = tarn__records_tell(disk->records).newest,
      .asked = t.asked,
      .hits = t.hits,
      .blocks_read = t.blocks_read,
      .blocks_merged = t.blocks_merged,
      .blocks_written = t.blocks_written,
      .records_written = t.records_written,
      .bytes_read = t.bytes_read,
      .bytes_written = t.bytes_written,
      .most_under_way = t.most_under_way,
      .record = (size_t)disk->note.record,
      .block = t.block,
      .lines = t.lines,
      .used = t.used,
      .dirty = t.dirty,
      .memory = t.memory,
      .direct = t.direct,
      .method = t.method};
  memcpy(out_info, &info, size);
  return TARN_OK;
}
