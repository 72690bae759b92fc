// Roots of epochs.
//
// A root that is torn, or was made invalid, is found by its sum: it is the sum
// of all bytes behind it, so that no field is looked at before it is known to
// be what was written.
#include "disk/root.h"

#include <inttypes.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/status.h"

enum {
  VERSION = 1,
  SUMMED = offsetof(tarn__disk_root, epoch),
  MOST_BLOCK = 64 << 20,
  WRITES = 1024,  // under way, of which the old places are still in use
};

static const char magic[] = "TARNDISK";

// --- shapes ------------------------------------------------------------------

bool tarn__disk_shape_of(uint64_t block, uint64_t count,
                         tarn__disk_shape *out_shape) {
  tarn__disk_shape shape = {.block = block, .count = count};
  uint64_t held = block / sizeof(tarn__disk_entry);
  uint64_t all = 0;
  *out_shape = (tarn__disk_shape){0};
  if (block == 0 || block % TARN__ROOT_SIZE != 0 || block > MOST_BLOCK)
    return false;
  if (count == 0 || count > UINT32_MAX) return false;
  for (uint64_t level = count;; level = tarn__divide_up(level, held)) {
    shape.levels[shape.level_count++] = level;
    if (level <= TARN__ROOT_ENTRIES) break;
  }
  for (size_t i = 0; i < shape.level_count; i++)
    all += shape.levels[i];
  shape.most_places = 3 * all + WRITES;
  if (shape.most_places > UINT32_MAX) return false;
  *out_shape = shape;
  return true;
}

// --- reading and writing -----------------------------------------------------

static uint32_t sum_of(const tarn__disk_root *root) {
  return tarn__crc32c(0, (const unsigned char *)root + SUMMED,
                      TARN__ROOT_SIZE - SUMMED);
}

void tarn__root_seal(tarn__disk_root *root) {
  memcpy(root->magic, magic, sizeof root->magic);
  root->version = VERSION;
  root->sum = sum_of(root);
}

// What is wrong with a field of the root in |slot|.
static tarn_status damaged(const char *path, size_t slot, size_t field,
                           const char *what, uint64_t found) {
  return tarn__fail(TARN_E_CORRUPT,
                    "disk: '%s': byte %zu: %s, and not %" PRIu64, path,
                    slot * TARN__ROOT_SIZE + field, what, found);
}

static tarn_status check_head(const char *path, size_t slot,
                              const tarn__disk_root *root) {
  size_t at = slot * TARN__ROOT_SIZE;
  if (memcmp(root->magic, magic, sizeof root->magic) != 0) {
    return tarn__fail(TARN_E_CORRUPT,
                      "disk: '%s': byte %zu: no root of an epoch: it would "
                      "begin with \"%s\"",
                      path, at, magic);
  }
  uint32_t sum = sum_of(root);
  if (root->sum != sum) {
    return tarn__fail(TARN_E_CORRUPT,
                      "disk: '%s': bytes %zu to %zu: the root is damaged: its "
                      "checksum is %08" PRIx32 ", and should be %08" PRIx32,
                      path, at, at + TARN__ROOT_SIZE - 1, sum, root->sum);
  }
  if (root->version == VERSION) return TARN_OK;
  return tarn__fail(
      TARN_E_UNSUPPORTED,
      "disk: '%s': byte %zu: version %" PRIu32 "; this library reads %d", path,
      at + offsetof(tarn__disk_root, version), root->version, VERSION);
}

tarn_status tarn__root_check(const char *path, size_t slot,
                             const tarn__disk_root *root,
                             tarn__disk_shape *out_shape) {
  *out_shape = (tarn__disk_shape){0};
  TARN__TRY(check_head(path, slot, root));
  if (root->epoch == 0 || root->epoch > INT64_MAX ||
      root->epoch % TARN__ROOTS != slot) {
    return damaged(path, slot, offsetof(tarn__disk_root, epoch),
                   slot == 0 ? "the epoch is an even number above 0"
                             : "the epoch is an odd number",
                   root->epoch);
  }
  tarn__disk_shape shape;
  if (!tarn__disk_shape_of(root->block, root->count, &shape)) {
    return damaged(path, slot, offsetof(tarn__disk_root, count),
                   "there are fewer blocks, of a multiple of 4096 bytes",
                   root->count);
  }
  if (root->places > shape.most_places) {
    return damaged(path, slot, offsetof(tarn__disk_root, places),
                   "the file has at most three times the blocks of an epoch",
                   root->places);
  }
  *out_shape = shape;
  return TARN_OK;
}
