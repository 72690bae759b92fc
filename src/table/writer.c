// Writes runs a part at a time, many at once, out of the table where they are
// there as they are in the file, else out of a room of the job. The checksum of
// each part is made before it goes, a piece for each chunk that it touches.
#include "table/writer.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"

enum { CHUNK = TARN__TABLE_CHUNK, MOST_JOBS = 64, FIRST_PIECES = 64 };

typedef struct job {
  tarn__io_request request;
  struct job *next;     // of those that are free
  unsigned char *room;  // its own
} job;

struct tarn__table_writer {
  const tarn__table_source *source;
  tarn__io *io;
  unsigned char *rooms;  // of all jobs
  size_t room;           // bytes of one: a chunk, or a row if that is longer
  job *jobs;
  size_t count;
  job *free;
  tarn__io_request sync;
  bool syncs;  // it was submitted
  // What comes next; |size| 0: nothing.
  tarn__table_cursor cursor;
  tarn__table_run run;
  bool checked;
  tarn__table_piece *pieces;
  size_t piece_count;
  size_t piece_room;
  tarn__table_tally tally;
};

// --- begin and end ---------------------------------------------------------

static void advance(tarn__table_writer *w) {
  if (!tarn__table_next_run(w->source, &w->cursor, &w->run))
    w->run = (tarn__table_run){.size = 0};
}

static size_t longest_row(const tarn__table_source *source) {
  size_t longest = CHUNK;
  for (size_t i = 0; i < source->array_count; i++)
    if (source->arrays[i].rows.row > longest)
      longest = source->arrays[i].rows.row;
  return longest;
}

static tarn_status make_rooms(tarn__table_writer *w, size_t buffer) {
  w->room = longest_row(w->source);
  w->count = tarn__lesser(buffer / w->room, MOST_JOBS);
  if (w->count == 0) w->count = 1;
  w->jobs = tarn__host_array(w->count, sizeof *w->jobs);
  w->rooms = tarn__host_array(w->count, w->room);
  if (w->jobs == NULL || w->rooms == NULL) return TARN_E_NOMEM;
  for (size_t i = 0; i < w->count; i++) {
    w->jobs[i].room = w->rooms + i * w->room;
    w->jobs[i].next = w->free;
    w->free = &w->jobs[i];
  }
  return TARN_OK;
}

tarn_status tarn__writer_create(const tarn__table_source *source, size_t buffer,
                                bool threads, tarn__table_writer **out_writer) {
  tarn__table_writer *w = tarn__host_alloc(sizeof *w);
  *out_writer = NULL;
  if (w == NULL) return TARN_E_NOMEM;
  w->source = source;
  w->checked = source->files[0].checked;
  tarn_status status = make_rooms(w, buffer);
  const tarn__io_options options = {.depth = w->count, .threads = threads};
  if (status == TARN_OK) status = tarn__io_open(&options, &w->io);
  if (status == TARN_OK) {
    advance(w);
    *out_writer = w;
  } else {
    tarn__writer_destroy(w);
  }
  return status;
}

void tarn__writer_destroy(tarn__table_writer *w) {
  if (w == NULL) return;
  tarn__io_close(w->io);
  tarn__host_free_array(w->rooms, w->count, w->room);
  tarn__host_free_array(w->jobs, w->count, sizeof *w->jobs);
  tarn__host_free_array(w->pieces, w->piece_room, sizeof *w->pieces);
  tarn__host_free(w, sizeof *w);
}

const tarn__table_tally *tarn__writer_tally(const tarn__table_writer *writer) {
  return &writer->tally;
}

const char *tarn__writer_method(const tarn__table_writer *writer) {
  return tarn__io_method(writer->io);
}

const tarn__table_piece *tarn__writer_pieces(const tarn__table_writer *writer,
                                             size_t *out_count) {
  *out_count = writer->piece_count;
  return writer->pieces;
}

// --- checksums -------------------------------------------------------------

static tarn_status add_piece(tarn__table_writer *w, uint64_t at,
                             const unsigned char *bytes, size_t size) {
  if (w->piece_count == w->piece_room) {
    tarn__table_piece *grown =
        tarn__host_grow(w->pieces, &w->piece_room, w->piece_count + 1,
                        FIRST_PIECES, sizeof *grown);
    if (grown == NULL) return TARN_E_NOMEM;
    w->pieces = grown;
  }
  w->pieces[w->piece_count++] = (tarn__table_piece){
      .at = at, .size = (uint32_t)size, .sum = tarn__crc32c(0, bytes, size)};
  w->tally.checked += size;
  return TARN_OK;
}

static uint64_t left_of_chunk(const tarn__table_writer *w, uint64_t at) {
  uint64_t begin = w->source->files[0].begin;
  return CHUNK - (at - begin) % CHUNK;
}

// Of bytes at |at|, in as many chunks as they touch.
static tarn_status add_pieces(tarn__table_writer *w, uint64_t at,
                              const unsigned char *bytes, size_t size) {
  size_t some = 0;
  if (!w->checked) return TARN_OK;
  for (size_t i = 0; i < size; i += some) {
    some = (size_t)tarn__lesser(size - i, left_of_chunk(w, at + i));
    TARN__TRY(add_piece(w, at + i, bytes + i, some));
  }
  return TARN_OK;
}

// --- writing ---------------------------------------------------------------

// How much of the run goes next: up to the end of its chunk where any bytes
// may, else whole rows.
static size_t choose_size(const tarn__table_writer *w) {
  const tarn__table_run *run = &w->run;
  size_t row = run->rows->row;
  if (run->rows->linear)
    return (size_t)tarn__lesser(run->size, left_of_chunk(w, run->at));
  return (size_t)tarn__lesser(run->size, w->room / row * row);
}

static tarn_status write_next(tarn__table_writer *w) {
  tarn__table_run *run = &w->run;
  job *j = w->free;
  assert(j != NULL);
  size_t size = choose_size(w);
  unsigned char *bytes = tarn__table_rows_at(run->rows, run->offset);
  if (bytes == NULL) {
    bytes = j->room;
    TARN__TRY(tarn__table_rows_get(run->rows, run->offset, bytes, size));
  }
  TARN__TRY(add_pieces(w, run->at, bytes, size));
  w->free = j->next;
  j->request = (tarn__io_request){.action = TARN__IO_WRITE,
                                  .fd = w->source->files[0].fd,
                                  .data = bytes,
                                  .size = size,
                                  .offset = run->at,
                                  .owner = j};
  tarn__io_submit(w->io, &j->request);
  run->at += size;
  run->offset += size;
  run->size -= size;
  if (run->size == 0) advance(w);
  return TARN_OK;
}

static void sync(tarn__table_writer *w) {
  w->syncs = true;
  w->sync = (tarn__io_request){.action = TARN__IO_DATASYNC,
                               .fd = w->source->files[0].fd};
  tarn__io_submit(w->io, &w->sync);
}

static tarn_status fail(const tarn__table_writer *w,
                        const tarn__io_request *request, const char *why) {
  const char *path = w->source->files[0].path;
  if (request == &w->sync)
    return tarn__fail(TARN_E_IO, "table: '%s': cannot bring it to the disk: %s",
                      path, why);
  return tarn__fail(TARN_E_IO, "table: '%s': cannot write byte %" PRIu64 ": %s",
                    path, request->offset + request->done, why);
}

static tarn_status finish(tarn__table_writer *w, tarn__io_request *request) {
  job *j = request->owner;
  if (request->error != 0) return fail(w, request, strerror(request->error));
  if (j == NULL) return TARN_OK;
  if (request->done < request->size)
    return fail(w, request, "the system takes no more");
  w->tally.moved += request->done;
  j->next = w->free;
  w->free = j;
  return TARN_OK;
}

tarn_status tarn__writer_go_on(tarn__table_writer *w, uint64_t until,
                               bool *out_done) {
  do {
    while (w->free != NULL && w->run.size > 0)
      TARN__TRY(write_next(w));
    if (tarn__io_count(w->io) == 0 && !w->syncs) sync(w);
    *out_done = tarn__io_count(w->io) == 0;
    if (*out_done) return TARN_OK;
    TARN__TRY(finish(w, tarn__io_wait(w->io)));
  } while (tarn__os_now_ns() < until);
  return TARN_OK;
}
