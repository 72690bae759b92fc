// Reads files a chunk at a time, many at once, and takes them in the order in
// which they lie in the file: compares the checksum, and gives each run in it
// its bytes.
//
//   file     |  chunk  |  chunk  |  chunk  |
//   runs         |== rows of this rank ==|
//   jobs     |  room   | in place|  room   |      read whole for the checksum
//
// A chunk that is all of one run, and as it will be in the table, is read to
// where it belongs. What the page cache does not have is read past it, if
// offset and memory are aligned for that.
//
// What it has costs time of the processor only, whoever asks for it, and a
// checksum of bytes that have left the processor's caches costs half as much
// again. So this thread reads it when its turn comes, a piece at a time:
//
//   page cache ──► piece, or room ──► checksum, and the table
//
// Where the checksum can be made while bytes are copied, they go to the table
// that way, past the caches.
#include "table/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"

enum {
  CHUNK = TARN__TABLE_CHUNK,
  BLOCK = TARN__TABLE_BLOCK,
  PIECE = 256 << 10,  // stays in the processor's caches
  MOST_JOBS = 64,
};

// A part of a file that is read at once.
typedef struct job {
  tarn__io_request request;
  size_t file;
  uint64_t begin;  // the bytes of the file that are wanted
  uint64_t end;
  unsigned char *room;   // its own: CHUNK bytes
  unsigned char *bytes;  // where they are read to: |room|, or the table
  bool direct;
  bool here;  // read by this thread when it is the first
  bool done;
} job;

struct tarn__table_reader {
  const tarn__table_source *source;
  tarn__io *io;
  unsigned char *rooms;  // of all jobs, and the piece
  unsigned char *piece;
  job *jobs;  // a ring of |count|: |used| of them, from |head| on
  size_t count;
  size_t head;
  size_t used;
  // The run that the next job begins with; |size| 0: there is none.
  tarn__table_cursor ahead;
  tarn__table_run next;
  // The run whose bytes come next.
  tarn__table_cursor behind;
  tarn__table_run current;
  // The beginning of a row whose end is in the next job.
  unsigned char *row;
  size_t row_room;
  size_t row_size;
  tarn__table_tally tally;
};

// --- begin and end ---------------------------------------------------------

static void advance(const tarn__table_reader *r, tarn__table_cursor *cursor,
                    tarn__table_run *run) {
  if (!tarn__table_next_run(r->source, cursor, run))
    *run = (tarn__table_run){.size = 0};
}

static size_t longest_row(const tarn__table_source *source) {
  size_t longest = 1;
  for (size_t i = 0; i < source->array_count; i++)
    if (source->arrays[i].rows.row > longest)
      longest = source->arrays[i].rows.row;
  return longest;
}

static size_t rooms_size(const tarn__table_reader *r) {
  return r->count * CHUNK + PIECE;
}

static tarn_status make_rooms(tarn__table_reader *r, size_t buffer) {
  r->count = tarn__lesser(buffer / CHUNK, MOST_JOBS);
  if (r->count == 0) r->count = 1;
  r->jobs = tarn__host_array(r->count, sizeof *r->jobs);
  r->rooms = tarn__os_map(rooms_size(r));
  r->row_room = longest_row(r->source);
  r->row = tarn__host_alloc(r->row_room);
  if (r->jobs == NULL || r->row == NULL) return TARN_E_NOMEM;
  if (r->rooms == NULL) {
    return tarn__fail(TARN_E_NOMEM, "table: no %zu bytes for buffers",
                      rooms_size(r));
  }
  r->piece = r->rooms + r->count * CHUNK;
  for (size_t i = 0; i < r->count; i++)
    r->jobs[i].room = r->rooms + i * CHUNK;
  return TARN_OK;
}

static tarn_status begin(tarn__table_reader *r, size_t buffer, bool threads) {
  TARN__TRY(make_rooms(r, buffer));
  const tarn__io_options options = {
      .depth = r->count,
      .threads = threads || !tarn__table_allows_ring(r->source)};
  TARN__TRY(tarn__io_open(&options, &r->io));
  advance(r, &r->ahead, &r->next);
  advance(r, &r->behind, &r->current);
  return TARN_OK;
}

tarn_status tarn__reader_create(const tarn__table_source *source, size_t buffer,
                                bool threads, tarn__table_reader **out_reader) {
  tarn__table_reader *r = tarn__host_alloc(sizeof *r);
  *out_reader = NULL;
  if (r == NULL) return TARN_E_NOMEM;
  r->source = source;
  tarn_status status = begin(r, buffer, threads);
  if (status == TARN_OK) {
    *out_reader = r;
  } else {
    tarn__reader_destroy(r);
  }
  return status;
}

void tarn__reader_destroy(tarn__table_reader *r) {
  if (r == NULL) return;
  tarn__io_close(r->io);
  if (r->rooms != NULL) tarn__os_unmap(r->rooms, rooms_size(r));
  tarn__host_free_array(r->jobs, r->count, sizeof *r->jobs);
  tarn__host_free(r->row, r->row_room);
  tarn__host_free(r, sizeof *r);
}

const tarn__table_tally *tarn__reader_tally(const tarn__table_reader *reader) {
  return &reader->tally;
}

const char *tarn__reader_method(const tarn__table_reader *reader) {
  return tarn__io_method(reader->io);
}

// --- what to read next -----------------------------------------------------

static const tarn__table_file *file_of(const tarn__table_reader *r,
                                       const job *j) {
  return &r->source->files[j->file];
}

static bool is_checked(const tarn__table_file *file) {
  return file->sum_count > 0;
}

// Takes the runs that begin in the chunk of the next one. Sets |*out_whole| if
// that is one run only.
static void take_runs(tarn__table_reader *r, job *j, bool *out_whole) {
  const tarn__table_file *file = &r->source->files[r->next.file];
  uint64_t first = is_checked(file) ? file->begin : 0;
  uint64_t chunk = first + (r->next.at - first) / CHUNK * CHUNK;
  size_t runs = 0;
  j->file = r->next.file;
  j->begin = r->next.at;
  j->end = j->begin;
  while (r->next.size > 0 && r->next.file == j->file &&
         r->next.at < chunk + CHUNK) {
    uint64_t some = tarn__lesser(r->next.size, chunk + CHUNK - r->next.at);
    j->end = r->next.at + some;
    runs++;
    r->next.at += some;
    r->next.offset += some;
    r->next.size -= some;
    if (r->next.size == 0) advance(r, &r->ahead, &r->next);
  }
  if (is_checked(file)) {
    uint64_t end = tarn__lesser(chunk + CHUNK, file->begin + file->length);
    *out_whole = runs == 1 && j->begin == chunk && j->end == end;
    j->begin = chunk;
    j->end = end;
  } else {
    *out_whole = runs == 1;
  }
}

static bool is_aligned(uint64_t value) {
  return value % BLOCK == 0;
}

// Where the job would be read in place; NULL: nowhere.
static unsigned char *place_of(const tarn__table_run *run, const job *j) {
  return tarn__table_rows_at(run->rows, run->offset + (j->begin - run->at));
}

static void choose_way(tarn__table_reader *r, job *j, unsigned char *place) {
  const tarn__table_file *file = file_of(r, j);
  uint64_t block = j->begin - j->begin % BLOCK;
  bool cached = (file->direct >= 0 || is_checked(file)) &&
                tarn__os_is_cached(file->fd, block, (size_t)(j->end - block));
  j->direct = file->direct >= 0 && !cached;
  j->here = is_checked(file) && cached;
  bool aligned = is_aligned(j->begin) && is_aligned(j->end) &&
                 is_aligned((uintptr_t)place);
  if (place != NULL && j->direct && !aligned) place = NULL;
  if (j->direct) j->begin = block;
  j->bytes = place != NULL ? place : j->room;
}

static void submit(tarn__table_reader *r, job *j) {
  const tarn__table_file *file = file_of(r, j);
  uint64_t size = j->end - j->begin;
  if (j->direct && !is_aligned(size)) size += BLOCK - size % BLOCK;
  j->done = j->here;
  if (j->here) return;
  j->request = (tarn__io_request){.action = TARN__IO_READ,
                                  .fd = j->direct ? file->direct : file->fd,
                                  .data = j->bytes,
                                  .size = size,
                                  .offset = j->begin,
                                  .owner = j};
  tarn__io_submit(r->io, &j->request);
}

static bool start_next(tarn__table_reader *r) {
  if (r->used == r->count || r->next.size == 0) return false;
  job *j = &r->jobs[(r->head + r->used) % r->count];
  tarn__table_run run = r->next;
  bool whole = false;
  take_runs(r, j, &whole);
  choose_way(r, j, whole ? place_of(&run, j) : NULL);
  submit(r, j);
  r->used++;
  return true;
}

// --- what was read ---------------------------------------------------------

static tarn_status check_read(const tarn__table_reader *r, const job *j) {
  const tarn__table_file *file = file_of(r, j);
  uint64_t at = j->begin + j->request.done;
  if (j->request.error != 0) {
    return tarn__fail(TARN_E_IO, "table: '%s': byte %" PRIu64 ": %s",
                      file->path, at, strerror(j->request.error));
  }
  if (at >= j->end) return TARN_OK;
  return tarn__fail(TARN_E_CORRUPT,
                    "table: '%s': the file ends at byte %" PRIu64
                    ", where it had %" PRIu64 " before",
                    file->path, at, file->size);
}

static tarn_status check_sum(tarn__table_reader *r, const job *j,
                             uint32_t sum) {
  const tarn__table_file *file = file_of(r, j);
  uint32_t wanted = file->sums[(j->begin - file->begin) / CHUNK];
  r->tally.checked += j->end - j->begin;
  if (sum == wanted) return TARN_OK;
  return tarn__fail(TARN_E_CORRUPT,
                    "table: '%s': bytes %" PRIu64 " to %" PRIu64
                    " are damaged: their checksum is %08" PRIx32
                    ", and was %08" PRIx32 " when they were stored",
                    file->path, j->begin, j->end - 1, sum, wanted);
}

// Bytes of the job, with their checksum, out of the page cache.
static tarn_status read_here(tarn__table_reader *r, const job *j,
                             uint32_t *out_sum) {
  bool copies = j->bytes != j->room && tarn__crc32c_copies(j->bytes);
  uint64_t size = j->end - j->begin;
  uint32_t sum = 0;
  size_t some = 0;
  for (size_t i = 0; i < size; i += some) {
    unsigned char *to = copies ? r->piece : j->bytes + i;
    some = (size_t)tarn__lesser(size - i, PIECE);
    TARN__TRY(tarn__file_read(file_of(r, j), j->begin + i, to, some));
    sum = copies ? tarn__crc32c_copy(sum, j->bytes + i, to, some)
                 : tarn__crc32c(sum, to, some);
  }
  *out_sum = sum;
  return TARN_OK;
}

// Reads it, or sees what came of reading it.
static tarn_status take_bytes(tarn__table_reader *r, const job *j) {
  uint32_t sum = 0;
  if (j->here) {
    tarn__io_start(r->io);
    TARN__TRY(read_here(r, j, &sum));
    return check_sum(r, j, sum);
  }
  TARN__TRY(check_read(r, j));
  if (j->direct) r->tally.direct += j->end - j->begin;
  if (!is_checked(file_of(r, j))) return TARN_OK;
  sum = tarn__crc32c(0, j->bytes, (size_t)(j->end - j->begin));
  return check_sum(r, j, sum);
}

// Gives |rows| the |size| bytes that follow those given before.
static tarn_status give(tarn__table_reader *r, const tarn__table_rows *rows,
                        uint64_t offset, const unsigned char *bytes,
                        size_t size) {
  if (rows->linear) return tarn__table_rows_put(rows, offset, bytes, size);
  if (r->row_size > 0) {
    size_t some = tarn__lesser(rows->row - r->row_size, size);
    memcpy(r->row + r->row_size, bytes, some);
    r->row_size += some;
    if (r->row_size < rows->row) return TARN_OK;
    TARN__TRY(tarn__table_rows_put(rows, offset + some - rows->row, r->row,
                                   rows->row));
    r->row_size = 0;
    offset += some;
    bytes += some;
    size -= some;
  }
  r->row_size = size % rows->row;
  size -= r->row_size;
  memcpy(r->row, bytes + size, r->row_size);
  return size > 0 ? tarn__table_rows_put(rows, offset, bytes, size) : TARN_OK;
}

// Gives the runs that the job has bytes of those.
static tarn_status give_all(tarn__table_reader *r, const job *j) {
  tarn__table_run *run = &r->current;
  while (run->size > 0 && run->file == j->file && run->at < j->end) {
    size_t some = (size_t)tarn__lesser(run->size, j->end - run->at);
    if (j->bytes == j->room) {
      TARN__TRY(give(r, run->rows, run->offset, j->bytes + (run->at - j->begin),
                     some));
    }
    r->tally.moved += some;
    run->at += some;
    run->offset += some;
    run->size -= some;
    if (run->size == 0) advance(r, &r->behind, run);
  }
  return TARN_OK;
}

static tarn_status finish_first(tarn__table_reader *r) {
  job *j = &r->jobs[r->head];
  while (!j->done) {
    tarn__io_request *request = tarn__io_wait(r->io);
    ((job *)request->owner)->done = true;
  }
  r->head = (r->head + 1) % r->count;
  r->used--;
  TARN__TRY(take_bytes(r, j));
  return give_all(r, j);
}

tarn_status tarn__reader_go_on(tarn__table_reader *r, uint64_t until,
                               bool *out_done) {
  do {
    while (start_next(r)) {
    }
    *out_done = r->used == 0;
    if (*out_done) return TARN_OK;
    TARN__TRY(finish_first(r));
  } while (tarn__os_now_ns() < until);
  return TARN_OK;
}
