// Files of blocks: making them, and finding the epochs that a file has.
//
//   roots ──► the epoch that is wanted ──► its map: places that are KEPT
//         └─► the one before it        ──► its map: places that are OLD
//         └─► a newer one              ──► its root is made invalid, at once:
//                                          its places are free from now on
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "disk/blocks_file.h"

enum {
  HEAD = TARN__ROOTS_END,
  DEPTH = 64,
  PATIENCE_NS = 1000000000,
};

_Static_assert(sizeof(tarn__disk_page_move) <= TARN__BLOCKS_DEPTH_BYTES - 96,
               "the queue has 96 bytes for each");

static tarn_status refuse(const char *path, const char *what) {
  int error = errno;
  return tarn__fail(TARN_E_IO, "disk: '%s': cannot %s: %s", path, what,
                    strerror(error));
}

// --- making one --------------------------------------------------------------

static tarn_status write_first(const tarn__os_new_file *file, const char *path,
                               const tarn__disk_root *roots) {
  if (file->temporary == NULL)
    return tarn__fail(TARN_E_IO, "disk: '%s': not a regular file", path);
  TARN__TRY(tarn__os_file_write(file, roots, HEAD));
  return tarn__os_sync(file->fd) ? TARN_OK : refuse(path, "sync it");
}

static tarn_status put_file(const char *path, const tarn__disk_root *roots) {
  tarn__os_new_file file;
  TARN__TRY(tarn__os_file_begin(path, &file));
  tarn_status status = write_first(&file, path, roots);
  if (status != TARN_OK) {
    tarn__os_file_cancel(&file);
    return status;
  }
  TARN__TRY(tarn__os_file_commit(&file));
  return tarn__os_sync_folder(path) ? TARN_OK : refuse(path, "sync its folder");
}

tarn_status tarn__blocks_create(const char *path, size_t block, uint64_t count,
                                const void *note) {
  tarn__disk_shape shape;
  if (!tarn__disk_shape_of(block, count, &shape)) {
    return tarn__fail(TARN_E_INVALID,
                      "disk: '%s': %" PRIu64 " blocks of %zu bytes", path,
                      count, block);
  }
  tarn__disk_root *roots = tarn__host_alloc(HEAD);
  if (roots == NULL) return TARN_E_NOMEM;
  roots[1].epoch = 1;
  roots[1].block = block;
  roots[1].count = count;
  if (note != NULL) memcpy(roots[1].note, note, TARN__ROOT_NOTE);
  tarn__root_seal(&roots[1]);
  tarn_status status = put_file(path, roots);
  tarn__host_free(roots, HEAD);
  return status;
}

// --- roots -------------------------------------------------------------------

static tarn_status read_roots(const char *path, int fd,
                              tarn__disk_root *roots) {
  uint64_t size = 0;
  size_t got = 0;
  if (!tarn__os_file_size(fd, &size)) return refuse(path, "read it");
  if (size < HEAD) {
    return tarn__fail(TARN_E_CORRUPT,
                      "disk: '%s': the file ends at byte %" PRIu64
                      ", and should have two roots of %d bytes",
                      path, size, TARN__ROOT_SIZE);
  }
  if (!tarn__os_read_at(fd, 0, roots, HEAD, &got))
    return refuse(path, "read its roots");
  return TARN_OK;
}

// The epochs whose roots are whole. If none is, how the second one is not.
static tarn_status find_epochs(const char *path, const tarn__disk_root *roots,
                               tarn__disk_blocks_info *out_info) {
  tarn_status status = TARN_OK;
  *out_info = (tarn__disk_blocks_info){0};
  for (size_t i = 0; i < TARN__ROOTS; i++) {
    tarn__disk_shape shape;
    tarn_status found = tarn__root_check(path, i, &roots[i], &shape);
    if (found == TARN_E_UNSUPPORTED) return found;
    if (found != TARN_OK) status = found;
    if (found != TARN_OK) continue;
    uint64_t epoch = roots[i].epoch;
    uint64_t other = out_info->newest;
    *out_info =
        (tarn__disk_blocks_info){.block = shape.block,
                                 .count = shape.count,
                                 .newest = epoch > other ? epoch : other,
                                 .before = epoch > other ? other : epoch};
  }
  return out_info->newest != 0 ? TARN_OK : status;
}

// Two that are whole belong together.
static tarn_status check_pair(const char *path, const tarn__disk_root *roots,
                              const tarn__disk_blocks_info *info) {
  if (info->before == 0) return TARN_OK;
  if (info->newest == info->before + 1 && roots[0].block == roots[1].block &&
      roots[0].count == roots[1].count) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_CORRUPT,
                    "disk: '%s': bytes 0 to %d: the roots are of epochs "
                    "%" PRIu64 " and %" PRIu64
                    ", and should be of two that follow one another in one "
                    "file",
                    path, HEAD - 1, info->before, info->newest);
}

static tarn_status read_info(const char *path, int fd, tarn__disk_root *roots,
                             tarn__disk_blocks_info *out_info) {
  TARN__TRY(read_roots(path, fd, roots));
  TARN__TRY(find_epochs(path, roots, out_info));
  return check_pair(path, roots, out_info);
}

static tarn_status ask(const char *path, tarn__disk_root *roots,
                       tarn__disk_blocks_info *out_info) {
  int fd = tarn__os_open(path, TARN__OS_TO_READ);
  if (fd < 0) return refuse(path, "open it");
  tarn_status status = read_info(path, fd, roots, out_info);
  tarn__os_close(fd);
  return status;
}

tarn_status tarn__blocks_ask(const char *path, tarn__disk_blocks_info *out_info,
                             void *out_note) {
  *out_info = (tarn__disk_blocks_info){0};
  memset(out_note, 0, TARN__ROOT_NOTE);
  tarn__disk_root *roots = tarn__host_alloc(HEAD);
  if (roots == NULL) return TARN_E_NOMEM;
  tarn__disk_blocks_info info = {0};
  tarn_status status = ask(path, roots, &info);
  if (status == TARN_OK) {
    memcpy(out_note, roots[info.newest % TARN__ROOTS].note, TARN__ROOT_NOTE);
    *out_info = info;
  }
  tarn__host_free(roots, HEAD);
  return status;
}

// --- maps --------------------------------------------------------------------

// Of a page, or of the root for the top level, at byte |at|.
static tarn_status note_entries(tarn__disk_blocks *b, const tarn__disk_map *map,
                                size_t level, size_t page, uint64_t at,
                                tarn__disk_state state) {
  size_t first = page * tarn__map_held(map);
  size_t end = tarn__lesser(first + tarn__map_held(map),
                            (size_t)map->shape.levels[level]);
  for (size_t i = first; i < end; i++) {
    uint32_t place = tarn__map_get(map, level, i).place;
    if (place == 0 || tarn__space_note(&b->space, place, state)) continue;
    return tarn__fail(TARN_E_CORRUPT,
                      "disk: '%s': byte %" PRIu64 ": place %" PRIu32
                      " of the map is used twice, or is none of the %zu that "
                      "the file has",
                      b->path, at + (i - first) * sizeof(tarn__disk_entry),
                      place, b->space.places);
  }
  return TARN_OK;
}

static tarn_status finish_read(tarn__disk_page_course *course,
                               const tarn__disk_page_move *move) {
  tarn__disk_blocks *b = course->blocks;
  uint32_t sum = tarn__map_get(course->map, move->level + 1, move->page).sum;
  TARN__TRY(tarn__blocks_check_io(b, &move->io));
  TARN__TRY(tarn__blocks_check_sum(b, "a page of the map", move->io.offset,
                                   move->io.data, sum));
  return note_entries(b, course->map, move->level, move->page, move->io.offset,
                      course->state);
}

static tarn_status read_level(tarn__disk_page_course *course, size_t level) {
  for (size_t i = 0; i < course->map->pages[level]; i++) {
    uint32_t place = tarn__map_get(course->map, level + 1, i).place;
    if (place != 0) tarn__pages_start(course, level, i, place);
  }
  tarn__pages_finish(course);
  return course->status;
}

tarn_status tarn__blocks_load(tarn__disk_blocks *b, const tarn__disk_root *root,
                              tarn__disk_map *map, tarn__disk_state state) {
  const tarn__disk_shape *shape = &map->shape;
  size_t top = shape->level_count - 1;
  size_t slot = root->epoch % TARN__ROOTS;
  tarn__disk_page_course course = {.blocks = b,
                                   .map = map,
                                   .action = TARN__IO_READ,
                                   .finish = finish_read,
                                   .state = state};
  memcpy(map->levels[top], root->entries,
         (size_t)shape->levels[top] * sizeof root->entries[0]);
  TARN__TRY(note_entries(
      b, map, top, 0,
      slot * TARN__ROOT_SIZE + offsetof(tarn__disk_root, entries), state));
  for (size_t level = top; level-- > 0;)
    TARN__TRY(read_level(&course, level));
  return TARN_OK;
}

// --- opening -----------------------------------------------------------------

// What a process had under way when it was killed may still be written, and
// holds the file until then.
static bool claim(int fd) {
  const uint64_t until = tarn__os_now_ns() + PATIENCE_NS;
  for (unsigned tries = 0; !tarn__os_claim(fd); tries++) {
    if (errno != EWOULDBLOCK || tarn__os_now_ns() > until) return false;
    tarn__os_back_off(tries);
  }
  return true;
}

static tarn_status open_file(tarn__disk_blocks *b, bool cached) {
  if (!cached) b->fd = tarn__os_open(b->path, TARN__OS_TO_WRITE_DIRECTLY);
  b->direct = b->fd >= 0;
  if (cached || (b->fd < 0 && errno == EINVAL))
    b->fd = tarn__os_open(b->path, TARN__OS_TO_WRITE);
  if (b->fd < 0) return refuse(b->path, "open it");
  if (claim(b->fd)) return TARN_OK;
  if (errno != EWOULDBLOCK) return refuse(b->path, "claim it");
  return tarn__fail(TARN_E_STATE, "disk: '%s': it is open already", b->path);
}

static tarn_status choose_epoch(tarn__disk_blocks *b, uint64_t epoch,
                                tarn__disk_blocks_info *info) {
  b->epoch = epoch == 0 ? info->newest : epoch;
  b->before = b->epoch == info->newest ? info->before : 0;
  if (b->epoch == info->newest || b->epoch == info->before) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "disk: '%s': there is no epoch %" PRIu64 ", but %" PRIu64
                    " and before it %" PRIu64,
                    b->path, epoch, info->newest, info->before);
}

// The file may have been enlarged since the epoch, but not cut.
static tarn_status measure(tarn__disk_blocks *b, const tarn__disk_root *root) {
  uint64_t size = 0;
  if (!tarn__os_file_size(b->fd, &size)) return refuse(b->path, "measure it");
  uint64_t places = (size - HEAD) / b->map.shape.block;
  if (places < root->places) {
    return tarn__fail(TARN_E_CORRUPT,
                      "disk: '%s': the file ends at byte %" PRIu64
                      ", and should go on to %" PRIu64 " at least",
                      b->path, size, HEAD + root->places * b->map.shape.block);
  }
  tarn__space_extend(&b->space, (size_t)tarn__lesser(places, b->space.most));
  return TARN_OK;
}

// What of it is damaged cannot be opened, now or later: then it is as if there
// were none.
static tarn_status note_before(tarn__disk_blocks *b) {
  tarn__disk_map map;
  if (b->before == 0) return TARN_OK;
  tarn_status status = tarn__map_init(&map, &b->map.shape);
  if (status == TARN_OK) {
    status = tarn__blocks_load(b, tarn__blocks_root(b, b->before), &map,
                               TARN__DISK_OLD);
  }
  tarn__map_deinit(&map);
  if (status != TARN_E_CORRUPT) return status;
  tarn__log(TARN_LOG_WARN, "%s", tarn_last_error());
  tarn__space_forget_old(&b->space);
  b->before = 0;
  return TARN_OK;
}

// From now on its places are written: it must not be found again.
static tarn_status end_newer(tarn__disk_blocks *b, uint64_t newest) {
  if (newest == b->epoch) return TARN_OK;
  *tarn__blocks_root(b, newest) = (tarn__disk_root){0};
  return tarn__blocks_write_root(b, newest % TARN__ROOTS);
}

static tarn_status open_epoch(tarn__disk_blocks *b, uint64_t epoch) {
  tarn__disk_blocks_info info;
  tarn__disk_shape shape;
  TARN__TRY(read_info(b->path, b->fd, b->roots, &info));
  TARN__TRY(choose_epoch(b, epoch, &info));
  const tarn__disk_root *root = tarn__blocks_root(b, b->epoch);
  TARN__TRY(tarn__root_check(b->path, b->epoch % TARN__ROOTS, root, &shape));
  TARN__TRY(tarn__map_init(&b->map, &shape));
  TARN__TRY(tarn__space_init(&b->space, (size_t)shape.most_places));
  TARN__TRY(measure(b, root));
  TARN__TRY(tarn__blocks_load(b, root, &b->map, TARN__DISK_KEPT));
  TARN__TRY(note_before(b));
  return end_newer(b, info.newest);
}

static tarn_status begin(tarn__disk_blocks *b, const char *path,
                         const tarn__disk_blocks_options *options) {
  size_t depth = options->depth != 0 ? options->depth : DEPTH;
  const tarn__io_options io = {
      .depth = depth, .threads = options->threads, .watch = options->watch};
  b->fd = -1;
  tarn_list_init(&b->ready);
  b->path = tarn__host_text(path);
  b->roots = tarn__os_map(HEAD);
  b->move_count = depth;
  b->moves = tarn__host_array(depth, sizeof *b->moves);
  if (b->path == NULL || b->roots == NULL || b->moves == NULL)
    return tarn__fail(TARN_E_NOMEM, "disk: '%s': no memory to open it", path);
  TARN__TRY(tarn__io_open(&io, &b->io));
  return open_file(b, options->cached);
}

tarn_status tarn__blocks_open(const char *path, uint64_t epoch,
                              const tarn__disk_blocks_options *options,
                              tarn__disk_blocks **out_blocks) {
  static const tarn__disk_blocks_options none;
  *out_blocks = NULL;
  tarn__disk_blocks *b = tarn__host_alloc(sizeof *b);
  if (b == NULL) return TARN_E_NOMEM;
  tarn_status status = begin(b, path, options != NULL ? options : &none);
  if (status == TARN_OK) status = open_epoch(b, epoch);
  if (status == TARN_OK) {
    *out_blocks = b;
  } else {
    tarn__blocks_close(b);
  }
  return status;
}

void tarn__blocks_close(tarn__disk_blocks *b) {
  if (b == NULL) return;
  tarn__io_close(b->io);
  tarn__map_deinit(&b->map);
  tarn__space_deinit(&b->space);
  if (b->fd >= 0) tarn__os_close(b->fd);
  if (b->roots != NULL) tarn__os_unmap(b->roots, HEAD);
  tarn__host_free_array(b->moves, b->move_count, sizeof *b->moves);
  tarn__host_free_text(b->path);
  tarn__host_free(b, sizeof *b);
}

// --- what it is --------------------------------------------------------------

tarn__disk_blocks_info tarn__blocks_tell(const tarn__disk_blocks *b) {
  return (tarn__disk_blocks_info){.block = b->map.shape.block,
                                  .count = b->map.shape.count,
                                  .newest = b->epoch,
                                  .before = b->before};
}

const void *tarn__blocks_note(const tarn__disk_blocks *b) {
  return tarn__blocks_root(b, b->epoch)->note;
}

bool tarn__blocks_is_direct(const tarn__disk_blocks *b) {
  return b->direct;
}

const char *tarn__blocks_method(const tarn__disk_blocks *b) {
  return tarn__io_method(b->io);
}

size_t tarn__blocks_memory(size_t block, uint64_t count) {
  tarn__disk_shape shape;
  if (!tarn__disk_shape_of(block, count, &shape)) return 0;
  return tarn__map_memory(&shape) + (size_t)shape.most_places;
}
