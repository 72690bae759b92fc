// Tables into files. A temporary file takes the place of the old one when all
// of it is on the disk.
//
//   rank 0                        the others
//   makes it, writes a number     open it, and read the number
//   ---------------------------- agree: the same file
//   gives it its size
//   ---------------------------- agree
//   writes own rows, syncs        the same
//   ---------------------------- all done: checksums go to rank 0
//   writes header and checksums,
//   syncs, renames, syncs folder
//   ---------------------------- agree
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/os_peer.h"
#include "base/status.h"
#include "table/plan.h"
#include "whole/whole.h"

// What rank 0 tells the others of the file.
typedef struct token {
  unsigned char id[TARN__SUMS_ID];
  char path[PATH_MAX];  // of the temporary file
} token;

typedef struct store {
  tarn__table_call call;
  bool parts;            // each rank has a file of its own
  char place[PATH_MAX];  // at ranks that make a file: where it will be
  tarn__table_plan plan;
  tarn__table_source source;
  tarn__table_file file;
  tarn__table_writer *writer;
  tarn__os_new_file made;  // at rank 0
  token token;
  tarn__table_piece *pieces;  // at rank 0, of all ranks
  size_t piece_count;
} store;

static tarn_status refuse(const store *s, const char *what) {
  int error = errno;
  return tarn__fail(TARN_E_IO, "table: '%s': cannot %s: %s", s->call.path, what,
                    strerror(error));
}

// --- the temporary file ----------------------------------------------------

static bool copy_path(store *s) {
  int length = snprintf(s->place, sizeof s->place, "%s", s->call.path);
  return length >= 0 && (size_t)length < sizeof s->place;
}

// PATH, or PATH_part_I_of_N.
static tarn_status find_place(store *s) {
  const tarn__table_call *call = &s->call;
  bool fits = s->parts
                  ? tarn__file_name_part(s->place, sizeof s->place, call->path,
                                         call->rank, call->ranks)
                  : copy_path(s);
  if (fits) return TARN_OK;
  return tarn__fail(TARN_E_IO, "table: '%.100s...': the path is too long",
                    call->path);
}

static tarn_status make_file(store *s) {
  token *t = &s->token;
  TARN__TRY(find_place(s));
  TARN__TRY(tarn__os_file_begin(s->place, &s->made));
  if (s->made.temporary == NULL)
    return tarn__fail(TARN_E_IO, "table: '%s': not a regular file", s->place);
  int length = snprintf(t->path, sizeof t->path, "%s", s->made.temporary);
  if (length < 0 || (size_t)length >= sizeof t->path) {
    return tarn__fail(TARN_E_IO, "table: '%.100s...': the path is too long",
                      s->place);
  }
  if (!tarn__os_random(t->id, sizeof t->id)) return refuse(s, "get a number");
  if (!tarn__os_write_at(s->made.fd, 0, t->id, sizeof t->id) ||
      !tarn__os_sync(s->made.fd)) {
    return refuse(s, "write to it");
  }
  return TARN_OK;
}

// Each rank opens it by its path, rank 0 too.
static tarn_status open_file(store *s) {
  unsigned char id[TARN__SUMS_ID];
  size_t got = 0;
  s->file.fd = tarn__os_open(s->token.path, TARN__OS_TO_WRITE);
  if (s->file.fd < 0) {
    int error = errno;
    return tarn__fail(TARN_E_IO,
                      "table: '%s': the file that rank 0 has made is not "
                      "there: %s",
                      s->token.path, strerror(error));
  }
  if (!tarn__os_read_at(s->file.fd, 0, id, sizeof id, &got))
    return refuse(s, "read it");
  if (got == sizeof id && memcmp(id, s->token.id, sizeof id) == 0)
    return TARN_OK;
  return tarn__fail(TARN_E_IO,
                    "table: '%s' is another file than the one that rank 0 has "
                    "made",
                    s->token.path);
}

static tarn_status make_room(store *s, uint64_t size) {
  if (tarn__os_allows_file(size) && tarn__os_resize(s->file.fd, size))
    return TARN_OK;
  return refuse(s, "make room for it");
}

static tarn_status agree_on_file(store *s) {
  tarn_comm *comm = s->call.comm;
  bool first = s->call.rank == 0;
  TARN__TRY(tarn_comm_agree(comm, first ? make_file(s) : TARN_OK));
  TARN__TRY(tarn_comm_broadcast(comm, 0, &s->token, sizeof s->token));
  TARN__TRY(tarn_comm_agree(comm, open_file(s)));
  return tarn_comm_agree(comm, first ? make_room(s, s->plan.size) : TARN_OK);
}

static tarn_status make_part(store *s) {
  TARN__TRY(make_file(s));
  TARN__TRY(open_file(s));
  return make_room(s, tarn__table_run_bytes(&s->source));
}

// --- rows ------------------------------------------------------------------

// Of copies, the ranks of rank 0's machine write theirs.
static bool writes(const tarn_whole_tensor *tensor) {
  const tarn_whole *whole = tensor->whole;
  return whole->spread != TARN_WHOLE_COPIES || whole->offsets[1] > 0;
}

static tarn_status take_array(store *s, size_t i) {
  tarn__table_array *array = &s->source.arrays[i];
  const tarn_whole_tensor *tensor = &s->call.tensors[i].tensor;
  TARN__TRY(tarn__table_rows_begin(tensor, tarn__table_plan_dtype(&s->call, i),
                                   &array->rows));
  if (!writes(tensor)) array->rows.count = 0;
  array->files = 1;
  array->at = s->plan.at[i];
  array->length = tensor->rows;
  if (s->parts) array->rows.first = 0;  // of this rank's file
  return TARN_OK;
}

static tarn_status take_arrays(store *s) {
  tarn__table_source *source = &s->source;
  const tarn_file_options *o = &s->call.options;
  source->arrays = tarn__host_array(s->call.count, sizeof *source->arrays);
  if (source->arrays == NULL) return TARN_E_NOMEM;
  source->array_count = s->call.count;
  source->files = &s->file;
  source->file_count = 1;
  for (size_t i = 0; i < s->call.count; i++)
    TARN__TRY(take_array(s, i));
  tarn__table_sort(source);
  return tarn__writer_create(source, o->buffer,
                             (o->flags & TARN_FILE_THREADS) != 0, &s->writer);
}

static tarn_status prepare(store *s) {
  s->file = (tarn__table_file){.path = s->call.path, .fd = -1, .direct = -1};
  TARN__TRY(tarn__table_plan_make(&s->call, &s->plan));
  s->file.begin = s->plan.begin;
  s->file.length = s->plan.length;
  s->file.checked = s->plan.checked;
  return take_arrays(s);
}

static tarn_status go_on(void *self, uint64_t until, bool *out_done) {
  return tarn__writer_go_on(self, until, out_done);
}

static tarn_status write_rows(store *s) {
  const tarn_file_options *o = &s->call.options;
  const tarn__table_course course = {.comm = s->call.comm,
                                     .go_on = go_on,
                                     .self = s->writer,
                                     .tally = tarn__writer_tally(s->writer),
                                     .all = tarn__table_run_bytes(&s->source),
                                     .progress = o->progress,
                                     .user = o->user};
  return tarn__table_course_run(&course, TARN_OK);
}

// --- checksums to rank 0 ---------------------------------------------------

// Sizes and offsets of what each rank sends and receives.
typedef struct table_of_sizes {
  size_t *send, *send_at, *receive, *receive_at;
} table_of_sizes;

static tarn_status exchange_pieces(store *s, size_t *numbers,
                                   uint64_t *counts) {
  size_t ranks = s->call.ranks;
  size_t count = 0;
  const tarn__table_piece *own = tarn__writer_pieces(s->writer, &count);
  const table_of_sizes t = {numbers, numbers + ranks, numbers + 2 * ranks,
                            numbers + 3 * ranks};
  uint64_t mine = count;
  assert(numbers != NULL && counts != NULL);
  TARN__TRY(tarn_comm_allgather(s->call.comm, &mine, sizeof mine, counts));
  t.send[0] = count * sizeof *own;
  for (size_t r = 0; s->call.rank == 0 && r < ranks; r++) {
    t.receive[r] = (size_t)counts[r] * sizeof *own;
    t.receive_at[r] = s->piece_count * sizeof *own;
    s->piece_count += (size_t)counts[r];
  }
  tarn_status status = TARN_OK;
  if (s->piece_count > 0) {
    s->pieces = tarn__host_array(s->piece_count, sizeof *own);
    if (s->pieces == NULL) status = TARN_E_NOMEM;
  }
  TARN__TRY(tarn_comm_agree(s->call.comm, status));
  return tarn_comm_alltoallv(s->call.comm, own, t.send, t.send_at, s->pieces,
                             t.receive, t.receive_at);
}

static tarn_status gather_pieces(store *s) {
  size_t ranks = s->call.ranks;
  size_t *numbers = tarn__host_array(4 * ranks, sizeof *numbers);
  uint64_t *counts = tarn__host_array(ranks, sizeof *counts);
  bool both = numbers != NULL && counts != NULL;
  tarn_status status =
      tarn_comm_agree(s->call.comm, both ? TARN_OK : TARN_E_NOMEM);
  if (status == TARN_OK) status = exchange_pieces(s, numbers, counts);
  tarn__host_free_array(numbers, 4 * ranks, sizeof *numbers);
  tarn__host_free_array(counts, ranks, sizeof *counts);
  return status;
}

// --- the end ---------------------------------------------------------------

static tarn_status commit(store *s) {
  TARN__TRY(tarn__os_file_commit(&s->made));
  if (tarn__os_sync_folder(s->place)) return TARN_OK;
  return refuse(s, "bring its name to the disk");
}

static tarn_status complete(store *s) {
  TARN__TRY(tarn__table_plan_complete(&s->plan, &s->call, s->file.fd,
                                      s->token.id, s->pieces, s->piece_count));
  if (!tarn__os_sync(s->file.fd)) return refuse(s, "bring it to the disk");
  return commit(s);
}

static tarn_status run_parts(store *s) {
  TARN__TRY(tarn_comm_agree(s->call.comm, make_part(s)));
  TARN__TRY(write_rows(s));
  return tarn_comm_agree(s->call.comm, commit(s));
}

static tarn_status run(store *s) {
  TARN__TRY(tarn_comm_agree(s->call.comm, prepare(s)));
  if (s->parts) return run_parts(s);
  TARN__TRY(agree_on_file(s));
  TARN__TRY(write_rows(s));
  TARN__TRY(gather_pieces(s));
  return tarn_comm_agree(s->call.comm,
                         s->call.rank == 0 ? complete(s) : TARN_OK);
}

static void end(store *s) {
  tarn__table_source *source = &s->source;
  tarn__writer_destroy(s->writer);
  for (size_t i = 0; i < source->array_count; i++)
    tarn__table_rows_end(&source->arrays[i].rows);
  tarn__host_free_array(source->arrays, source->array_count,
                        sizeof *source->arrays);
  tarn__host_free_array(s->pieces, s->piece_count, sizeof *s->pieces);
  tarn__file_close(&s->file);
  tarn__os_file_cancel(&s->made);
  tarn__table_plan_end(&s->plan);
}

static void tell(const store *s, tarn_file_report *out_report) {
  const tarn__table_tally *tally = tarn__writer_tally(s->writer);
  const tarn_file_report report = {.rows = s->call.tensors[0].tensor.rows,
                                   .bytes = tally->moved,
                                   .checked = tally->checked,
                                   .method = tarn__writer_method(s->writer)};
  tarn__table_call_report(&report, out_report);
}

static tarn_status go(store *s, tarn_status status,
                      tarn_file_report *out_report) {
  if (status == TARN_OK)
    status = tarn__table_call_check_report(&s->call, out_report);
  TARN__TRY(tarn__table_call_compare(&s->call, status));
  status = run(s);
  if (status == TARN_OK) tell(s, out_report);
  end(s);
  return status;
}

static tarn_status store_all(store *s, const tarn_file_options *options,
                             tarn_file_report *out_report) {
  tarn_status status = TARN_OK;
  s->made.fd = s->file.fd = s->file.direct = -1;
  TARN__TRY(tarn__table_call_begin(&s->call, options, &status));
  status = go(s, status, out_report);
  tarn__table_call_end(&s->call);
  return status;
}

tarn_status tarn_whole_store(const tarn_whole_tensor *tensor, const char *path,
                             const tarn_file_options *options,
                             tarn_file_report *out_report) {
  tarn_whole_named one;
  store s = {
      .call = tarn__table_call_of_one(TARN__TABLE_STORE, "tarn_whole_store",
                                      TARN_FILE_BY_NAME, tensor, path, &one)};
  return store_all(&s, options, out_report);
}

tarn_status tarn_whole_store_named(const tarn_whole_named *tensors,
                                   size_t count, const char *path,
                                   const tarn_file_options *options,
                                   tarn_file_report *out_report) {
  store s = {.call = {.verb = TARN__TABLE_STORE,
                      .name = "tarn_whole_store_named",
                      .format = TARN_FILE_SAFETENSORS,
                      .path = path,
                      .tensors = tensors,
                      .count = count}};
  return store_all(&s, options, out_report);
}

tarn_status tarn_whole_store_raw(const tarn_whole_tensor *tensor,
                                 const char *prefix,
                                 const tarn_file_options *options,
                                 tarn_file_report *out_report) {
  tarn_whole_named one;
  store s = {
      .call = tarn__table_call_of_one(TARN__TABLE_STORE, "tarn_whole_store_raw",
                                      TARN_FILE_RAW, tensor, prefix, &one),
      .parts = true};
  return store_all(&s, options, out_report);
}
