// Pages of a map on their way, many at a time, and the flush of a file of
// blocks.
//
//   changed pages   level 0, 1, ...   each to a free place; the entry above
//        │                            names it, so that page has changed too
//     datasync                        all that the root will name is there: the
//        │                            epoch is prepared
//       root                          over that of the epoch before the last
//        │
//     datasync                        the epoch is the newest
//        │
//       turn                          places of the epoch before are free
//
// Up to the end of the first datasync nothing but free places has changed, and
// another try begins where the last one failed. A failed datasync, or one of
// the root, leaves open what the disk has: the file is broken then.
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/status.h"
#include "disk/blocks_file.h"

// --- pages on their way ------------------------------------------------------

static tarn__disk_page_move *finish_one(tarn__disk_page_course *course) {
  tarn__io_request *io = tarn__io_wait(course->blocks->io);
  tarn__disk_page_move *move = io->owner;
  tarn__keep_first(&course->status, course->finish(course, move));
  return move;
}

// While some have never been under way there is a free one without waiting.
static tarn__disk_page_move *free_move(tarn__disk_page_course *course) {
  tarn__disk_blocks *b = course->blocks;
  if (b->move_used < b->move_count) return &b->moves[b->move_used++];
  return finish_one(course);
}

void tarn__pages_start(tarn__disk_page_course *course, size_t level,
                       size_t page, uint32_t place) {
  tarn__disk_blocks *b = course->blocks;
  tarn__disk_page_move *move = free_move(course);
  *move = (tarn__disk_page_move){
      .io = {.action = course->action,
             .fd = b->fd,
             .data = tarn__map_page(course->map, level, page),
             .size = (size_t)b->map.shape.block,
             .offset = tarn__blocks_byte(b, place),
             .owner = move},
      .level = level,
      .page = page};
  tarn__io_submit(b->io, &move->io);
}

void tarn__pages_finish(tarn__disk_page_course *course) {
  while (tarn__io_count(course->blocks->io) > 0)
    (void)finish_one(course);
  course->blocks->move_used = 0;
}

// --- writing them ------------------------------------------------------------

// The entry above names the place already: the next try drops it.
static tarn_status finish_write(tarn__disk_page_course *course,
                                const tarn__disk_page_move *move) {
  tarn_status status = tarn__blocks_check_io(course->blocks, &move->io);
  if (status != TARN_OK) course->map->changed[move->level][move->page] = 1;
  return status;
}

static tarn_status write_page(tarn__disk_page_course *course, size_t level,
                              size_t page) {
  tarn__disk_blocks *b = course->blocks;
  tarn__disk_map *map = course->map;
  uint32_t old = tarn__map_get(map, level + 1, page).place;
  tarn__disk_entry entry = {.place = tarn__blocks_take(b)};
  if (entry.place == 0) {
    return tarn__fail(TARN_E_IO, "disk: '%s': no room for the map: %s", b->path,
                      strerror(errno));
  }
  entry.sum = tarn__crc32c(0, tarn__map_page(map, level, page),
                           (size_t)map->shape.block);
  if (old != 0) tarn__space_drop(&b->space, old);
  tarn__map_set(map, level + 1, page, entry);
  map->changed[level][page] = 0;
  tarn__pages_start(course, level, page, entry.place);
  return TARN_OK;
}

static tarn_status write_level(tarn__disk_page_course *course, size_t level) {
  for (size_t i = 0; i < course->map->pages[level]; i++) {
    if (course->map->changed[level][i] == 0) continue;
    TARN__TRY(write_page(course, level, i));
  }
  return TARN_OK;
}

static tarn_status write_pages(tarn__disk_blocks *b) {
  tarn__disk_page_course course = {.blocks = b,
                                   .map = &b->map,
                                   .action = TARN__IO_WRITE,
                                   .finish = finish_write};
  tarn_status status = TARN_OK;
  for (size_t i = 0; status == TARN_OK && i + 1 < b->map.shape.level_count; i++)
    status = write_level(&course, i);
  tarn__failure first = {0};
  tarn__failure_note(&first, status);
  tarn__pages_finish(&course);
  tarn__failure_note(&first, course.status);
  return tarn__failure_tell(&first);
}

// --- roots and syncs ---------------------------------------------------------

tarn_status tarn__blocks_do(tarn__disk_blocks *b, tarn__io_request *request) {
  request->fd = b->fd;
  tarn__io_submit(b->io, request);
  tarn__io_request *done = tarn__io_wait(b->io);
  assert(done == request);
  return tarn__blocks_check_io(b, done);
}

tarn_status tarn__blocks_sync(tarn__disk_blocks *b) {
  tarn__io_request request = {.action = TARN__IO_DATASYNC};
  return tarn__blocks_do(b, &request);
}

tarn_status tarn__blocks_write_root(tarn__disk_blocks *b, size_t slot) {
  tarn__io_request request = {.action = TARN__IO_WRITE,
                              .data = &b->roots[slot],
                              .size = TARN__ROOT_SIZE,
                              .offset = slot * TARN__ROOT_SIZE};
  TARN__TRY(tarn__blocks_do(b, &request));
  return tarn__blocks_sync(b);
}

static void make_root(tarn__disk_blocks *b, uint64_t epoch, const void *note) {
  const tarn__disk_shape *shape = &b->map.shape;
  size_t top = shape->level_count - 1;
  tarn__disk_root *root = tarn__blocks_root(b, epoch);
  *root = (tarn__disk_root){.epoch = epoch,
                            .block = shape->block,
                            .count = shape->count,
                            .places = b->space.places};
  memcpy(root->note, note, TARN__ROOT_NOTE);
  memcpy(root->entries, b->map.levels[top],
         (size_t)shape->levels[top] * sizeof root->entries[0]);
  tarn__root_seal(root);
}

// --- flush -------------------------------------------------------------------

static tarn_status put_root(tarn__disk_blocks *b, const void *note) {
  make_root(b, b->epoch + 1, note);
  return tarn__blocks_write_root(b, (b->epoch + 1) % TARN__ROOTS);
}

static tarn_status refuse_broken(const tarn__disk_blocks *b, const char *why) {
  return tarn__fail(TARN_E_IO,
                    "disk: '%s': %s; it must be opened again, with epoch "
                    "%" PRIu64 " or %" PRIu64,
                    b->path, why, b->epoch, b->epoch + 1);
}

static tarn_status break_off(tarn__disk_blocks *b) {
  char why[TARN__ERROR_TEXT];
  size_t size = strlen(tarn_last_error()) + 1;
  memcpy(why, tarn_last_error(), size);
  b->broken = true;
  const char *path_ends = strstr(why, "': ");
  return refuse_broken(b, path_ends == NULL ? why : path_ends + 3);
}

tarn_status tarn__blocks_prepare(tarn__disk_blocks *b) {
  assert(tarn__io_count(b->io) == 0 && tarn_list_empty(&b->ready));
  if (b->broken) return refuse_broken(b, "a flush has failed");
  TARN__TRY(write_pages(b));
  return tarn__blocks_sync(b) == TARN_OK ? TARN_OK : break_off(b);
}

tarn_status tarn__blocks_commit(tarn__disk_blocks *b, const void *note) {
  if (put_root(b, note) != TARN_OK) return break_off(b);
  tarn__space_turn(&b->space);
  b->before = b->epoch;
  b->epoch++;
  return TARN_OK;
}

tarn_status tarn__blocks_flush(tarn__disk_blocks *b, const void *note) {
  TARN__TRY(tarn__blocks_prepare(b));
  return tarn__blocks_commit(b, note);
}
