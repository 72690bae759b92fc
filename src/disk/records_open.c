// Stores of records: their files, and how a budget is divided.
//
//   budget   | map of the file | notes on a turn | buffers | lines and sieve |
//
// The note of a root begins with what the records are:
//
//    0  "RECORDS1"
//    8  8 bytes: bytes of a record
//   16  8 bytes: how many records
//   24  40 zero bytes
//   64  the note of whoever flushes
#include <inttypes.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "disk/records_store.h"

enum {
  UNIT = TARN__BLOCKS_UNIT,
  NOTE_AT = TARN__ROOT_NOTE - TARN__RECORDS_NOTE,
  DEPTH = 128,
  BUFFER_PART = 8,     // of the budget, at most, for buffers
  WINDOW_PART = 1024,  // bytes of the budget for each number of a window
  JOB_PART = 16384,    // and for each job
  FEWEST = 16,
  MOST = 1 << 20,
  MOVES = 4,  // for each job
  MOST_RECORD = 64 << 20,
};

static const char magic[] = "RECORDS1";

// --- shapes ------------------------------------------------------------------

static size_t block_of(size_t size) {
  return tarn__divide_up(size, UNIT) * UNIT;
}

static size_t held_by(size_t size) {
  return size < UNIT ? UNIT / size : 1;
}

static uint64_t count_blocks(const tarn__disk_records_shape *shape) {
  uint64_t held = held_by(shape->size);
  return shape->count / held + (shape->count % held != 0);
}

static bool shape_blocks(const tarn__disk_records_shape *shape,
                         tarn__disk_shape *out_blocks) {
  return shape->size != 0 && shape->size <= MOST_RECORD &&
         tarn__disk_shape_of(block_of(shape->size), count_blocks(shape),
                             out_blocks);
}

// The pages of a level are as many as the entries above it.
uint64_t tarn__records_file_size(const tarn__disk_records_shape *shape) {
  tarn__disk_shape blocks;
  if (!shape_blocks(shape, &blocks)) return 0;
  uint64_t places = 0;
  for (size_t i = 0; i < blocks.level_count; i++)
    places += blocks.levels[i];
  return TARN__ROOTS_END + places * blocks.block;
}

// --- notes -------------------------------------------------------------------

typedef struct head {
  char magic[8];
  uint64_t size;
  uint64_t count;
} head;

void tarn__records_note_write(const tarn__disk_records_shape *shape,
                              const void *note,
                              unsigned char out[TARN__ROOT_NOTE]) {
  head h = {.size = shape->size, .count = shape->count};
  memcpy(h.magic, magic, sizeof h.magic);
  memset(out, 0, TARN__ROOT_NOTE);
  memcpy(out, &h, sizeof h);
  if (note != NULL) memcpy(out + NOTE_AT, note, TARN__RECORDS_NOTE);
}

static tarn_status read_shape(const char *path, const void *note,
                              const tarn__disk_blocks_info *info,
                              tarn__disk_records_shape *out_shape) {
  head h;
  tarn__disk_shape blocks;
  memcpy(&h, note, sizeof h);
  *out_shape = (tarn__disk_records_shape){.size = h.size, .count = h.count};
  size_t at = info->newest % TARN__ROOTS * TARN__ROOT_SIZE +
              offsetof(tarn__disk_root, note);
  if (memcmp(h.magic, magic, sizeof h.magic) == 0 &&
      shape_blocks(out_shape, &blocks) && blocks.block == info->block &&
      blocks.count == info->count) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_CORRUPT,
                    "disk: '%s': byte %zu: these are no records: \"%s\" should "
                    "stand there, and what fits to %" PRIu64
                    " blocks of %" PRIu64 " bytes",
                    path, at, magic, info->count, info->block);
}

// --- making and asking -------------------------------------------------------

tarn_status tarn__records_create(const char *path,
                                 const tarn__disk_records_shape *shape,
                                 const void *note) {
  unsigned char whole[TARN__ROOT_NOTE];
  tarn__disk_shape blocks;
  if (!shape_blocks(shape, &blocks)) {
    return tarn__fail(TARN_E_INVALID,
                      "disk: '%s': %" PRIu64 " records of %zu bytes", path,
                      shape->count, shape->size);
  }
  tarn__records_note_write(shape, note, whole);
  return tarn__blocks_create(path, (size_t)blocks.block, blocks.count, whole);
}

tarn_status tarn__records_ask(const char *path,
                              tarn__disk_records_info *out_info) {
  tarn__disk_blocks_info blocks;
  unsigned char note[TARN__ROOT_NOTE];
  tarn__disk_records_shape shape;
  *out_info = (tarn__disk_records_info){0};
  TARN__TRY(tarn__blocks_ask(path, &blocks, note));
  TARN__TRY(read_shape(path, note, &blocks, &shape));
  *out_info = (tarn__disk_records_info){
      .shape = shape, .newest = blocks.newest, .before = blocks.before};
  memcpy(out_info->note, note + NOTE_AT, sizeof out_info->note);
  return TARN_OK;
}

// --- memory ------------------------------------------------------------------

// What a budget comes to, without the lines.
typedef struct division {
  size_t rooms;
  size_t window;
  size_t jobs;
  size_t table;
  size_t fixed;
} division;

static size_t turn_bytes(const division *d) {
  return d->window * sizeof(uint32_t) + d->table * sizeof(uint32_t) +
         d->jobs * (sizeof(tarn__disk_block_job) +
                    MOVES * sizeof(tarn__disk_record_move) +
                    sizeof(tarn__cache_sieve_line));
}

static size_t within(size_t value, size_t least, size_t most) {
  return value < least ? least : value > most ? most : value;
}

static division divide(const tarn__disk_records *r, size_t budget,
                       size_t depth) {
  division d = {.table = 2};
  d.rooms = within(budget / BUFFER_PART / r->block, 1, depth);
  d.window = within(budget / WINDOW_PART, FEWEST, MOST);
  d.jobs = within(budget / JOB_PART, FEWEST, MOST);
  while (d.table < 2 * d.jobs)
    d.table *= 2;
  d.fixed = sizeof *r + sizeof *r->batch +
            tarn__blocks_memory(r->block, count_blocks(&r->shape)) +
            d.rooms * (r->block + sizeof(tarn__disk_block_room) +
                       TARN__BLOCKS_DEPTH_BYTES) +
            turn_bytes(&d);
  return d;
}

// With a larger budget there are more buffers.
static size_t least_budget(const tarn__disk_records *r, size_t depth) {
  enum { LINE = 64 };  // bytes of a line besides its record, and more than that
  size_t lines = (r->shape.size + LINE) * TARN__SIEVE_WAYS;
  size_t needed = 0;
  for (size_t more = lines; more > needed;) {
    needed = more;
    more = divide(r, needed, depth).fixed + lines;
  }
  return needed;
}

// Two lines for each record hold all but a few of them.
static tarn_status count_lines(tarn__disk_records *r, size_t budget,
                               size_t depth, const division *d) {
  enum { WAYS = TARN__SIEVE_WAYS, MOST_LINES = INT32_MAX / 2 };
  size_t wanted = (size_t)tarn__lesser(2 * r->shape.count, MOST_LINES);
  size_t lines = 0;
  if (budget > d->fixed)
    lines = tarn__sieve_fit(budget - d->fixed, r->shape.size, 1);
  r->line_count = tarn__lesser(lines, tarn__divide_up(wanted, WAYS) * WAYS);
  if (r->line_count != 0) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "disk: a budget of %zu bytes: %" PRIu64
                    " records of %zu bytes need %zu at least",
                    budget, r->shape.count, r->shape.size,
                    least_budget(r, depth));
}

static tarn_status make_jobs(tarn__disk_block_jobs *jobs, const division *d) {
  jobs->most = d->jobs;
  jobs->table_size = d->table;
  jobs->move_most = MOVES * d->jobs;
  jobs->jobs = tarn__host_array(jobs->most, sizeof *jobs->jobs);
  jobs->table = tarn__host_array(jobs->table_size, sizeof *jobs->table);
  jobs->moves = tarn__host_array(jobs->move_most, sizeof *jobs->moves);
  return jobs->jobs != NULL && jobs->table != NULL && jobs->moves != NULL
             ? TARN_OK
             : TARN_E_NOMEM;
}

static tarn_status make_window(tarn__disk_records *r, const division *d) {
  r->window = d->window;
  r->dirty_most = d->jobs;
  r->room_count = d->rooms;
  r->found_lines = tarn__host_array(r->window, sizeof *r->found_lines);
  r->dirty = tarn__host_array(r->dirty_most, sizeof *r->dirty);
  r->rooms = tarn__host_array(r->room_count, sizeof *r->rooms);
  r->batch = tarn__host_alloc(sizeof *r->batch);
  return r->found_lines != NULL && r->dirty != NULL && r->rooms != NULL &&
                 r->batch != NULL
             ? TARN_OK
             : TARN_E_NOMEM;
}

static tarn_status map_memory(tarn__disk_records *r) {
  r->lines = tarn__os_map(r->line_count * r->shape.size);
  r->buffers = tarn__os_map(r->room_count * r->block);
  if (r->lines == NULL || r->buffers == NULL) {
    return tarn__fail(TARN_E_NOMEM, "disk: no %zu bytes for records",
                      r->line_count * r->shape.size);
  }
  for (size_t i = 0; i < r->room_count; i++) {
    r->rooms[i].request.data = r->buffers + i * r->block;
    r->rooms[i].request.owner = &r->rooms[i];
  }
  return TARN_OK;
}

static tarn_status make_memory(tarn__disk_records *r, size_t budget,
                               size_t depth, const division *d) {
  TARN__TRY(count_lines(r, budget, depth, d));
  const tarn__cache_sieve_options sieve = {
      .keys = r->shape.count, .lines = r->line_count, .shards = 1};
  r->memory =
      d->fixed + tarn__sieve_bytes(&sieve) + r->line_count * r->shape.size;
  TARN__TRY(make_jobs(&r->jobs, d));
  TARN__TRY(make_window(r, d));
  TARN__TRY(map_memory(r));
  return tarn__sieve_create(&sieve, &r->sieve);
}

// --- opening -----------------------------------------------------------------

static tarn_status open_store(tarn__disk_records *r, const char *path,
                              uint64_t epoch,
                              const tarn__disk_records_options *options) {
  tarn__disk_records_info info;
  TARN__TRY(tarn__records_ask(path, &info));
  r->shape = info.shape;
  r->blank = options->blank;
  r->block = block_of(r->shape.size);
  r->held = held_by(r->shape.size);
  size_t depth = options->depth != 0 ? options->depth : DEPTH;
  division d = divide(r, options->budget, depth);
  TARN__TRY(make_memory(r, options->budget, depth, &d));
  const tarn__disk_blocks_options blocks = {.depth = d.rooms,
                                            .threads = options->threads,
                                            .cached = options->cached,
                                            .watch = options->watch};
  TARN__TRY(tarn__blocks_open(path, epoch, &blocks, &r->blocks));
  tarn__disk_blocks_info opened = tarn__blocks_tell(r->blocks);
  return read_shape(path, tarn__blocks_note(r->blocks), &opened, &info.shape);
}

tarn_status tarn__records_open(const char *path, uint64_t epoch,
                               const tarn__disk_records_options *options,
                               tarn__disk_records **out_records) {
  *out_records = NULL;
  tarn__disk_records *r = tarn__host_alloc(sizeof *r);
  if (r == NULL) return TARN_E_NOMEM;
  tarn_status status = open_store(r, path, epoch, options);
  if (status == TARN_OK) {
    *out_records = r;
  } else {
    tarn__records_close(r);
  }
  return status;
}

void tarn__records_close(tarn__disk_records *r) {
  if (r == NULL) return;
  tarn__blocks_close(r->blocks);
  tarn__sieve_destroy(r->sieve);
  if (r->lines != NULL) tarn__os_unmap(r->lines, r->line_count * r->shape.size);
  if (r->buffers != NULL) tarn__os_unmap(r->buffers, r->room_count * r->block);
  tarn__host_free_array(r->rooms, r->room_count, sizeof *r->rooms);
  tarn__host_free_array(r->jobs.jobs, r->jobs.most, sizeof *r->jobs.jobs);
  tarn__host_free_array(r->jobs.table, r->jobs.table_size,
                        sizeof *r->jobs.table);
  tarn__host_free_array(r->jobs.moves, r->jobs.move_most,
                        sizeof *r->jobs.moves);
  tarn__host_free_array(r->found_lines, r->window, sizeof *r->found_lines);
  tarn__host_free_array(r->dirty, r->dirty_most, sizeof *r->dirty);
  tarn__host_free(r->batch, sizeof *r->batch);
  tarn__host_free(r, sizeof *r);
}

// --- what it is --------------------------------------------------------------

tarn__disk_records_info tarn__records_tell(const tarn__disk_records *r) {
  tarn__disk_blocks_info blocks = tarn__blocks_tell(r->blocks);
  tarn__disk_records_info info = {
      .shape = r->shape, .newest = blocks.newest, .before = blocks.before};
  const unsigned char *note = tarn__blocks_note(r->blocks);
  memcpy(info.note, note + NOTE_AT, sizeof info.note);
  return info;
}
