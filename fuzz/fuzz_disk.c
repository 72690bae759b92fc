// Any bytes as a file of blocks: what opens is read, changed, flushed and
// opened again as it was. So that no byte is wasted on sums, an input is
//
//   flags, rest
//
// where the rest is a file from its roots on, whose sums are made right or not.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "disk/blocks.h"
#include "fuzz.h"

enum {
  SEALED = 1,  // the roots' sums are right
  SUMMED = 2,  // so are those of what the roots name, for blocks of 4096 bytes
  OLDER = 4,   // the epoch before the newest is opened
  HEAD = TARN__ROOTS * TARN__ROOT_SIZE,
  BLOCK = 4096,
  MOST = 1 << 16,         // bytes of a file
  LOOKED_AT = 40,         // blocks
  MOST_BLOCKS = 1 << 14,  // larger maps take the time of many inputs
};

static int file = -1;
static char path[64];
static _Alignas(BLOCK) unsigned char bytes[MOST];

static void check_text(tarn_status status) {
  require(status == TARN_OK || strncmp(tarn_last_error(), "disk: ", 6) == 0,
          "no name");
}

// --- the file ----------------------------------------------------------------

static void sum_entries(tarn__disk_root *root, size_t size) {
  for (size_t i = 0; i < TARN__ROOT_ENTRIES; i++) {
    tarn__disk_entry *entry = &root->entries[i];
    uint64_t at = HEAD + (uint64_t)(entry->place - 1) * BLOCK;
    if (entry->place != 0 && at + BLOCK <= size)
      entry->sum = tarn__crc32c(0, bytes + at, BLOCK);
  }
}

static size_t make_file(unsigned flags, const uint8_t *input, size_t size) {
  if (size > MOST) size = MOST;
  memset(bytes, 0, sizeof bytes);
  if (size > 0) memcpy(bytes, input, size);
  for (size_t i = 0; i < TARN__ROOTS && size >= HEAD; i++) {
    tarn__disk_root *root = (tarn__disk_root *)(void *)bytes + i;
    if ((flags & SUMMED) != 0) sum_entries(root, size);
    if ((flags & SEALED) != 0) tarn__root_seal(root);
  }
  if (file < 0) {
    file = memfd_create("fuzz", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  }
  require(ftruncate(file, 0) == 0, "no file");
  require(pwrite(file, bytes, size, 0) == (ssize_t)size, "no room");
  return size;
}

// --- blocks ------------------------------------------------------------------

static bool move(tarn__disk_blocks *b, bool write, uint64_t block, void *data) {
  tarn__disk_block_request request = {.block = block, .data = data};
  (write ? tarn__blocks_write : tarn__blocks_read)(b, &request);
  require(tarn__blocks_wait(b) == &request, "another request");
  tarn_status status = tarn__blocks_check(b, &request);
  require(status == TARN_OK || (!write && status == TARN_E_CORRUPT),
          "another status");
  check_text(status);
  return status == TARN_OK;
}

static tarn_status open_at(uint64_t epoch, tarn__disk_blocks **out) {
  // What is alone is done here: an input costs no threads, and comes to the
  // same each time.
  const tarn__disk_blocks_options options = {
      .depth = 1, .threads = true, .cached = true};
  tarn_status status = tarn__blocks_open(path, epoch, &options, out);
  require(status == TARN_OK || status == TARN_E_CORRUPT ||
              status == TARN_E_UNSUPPORTED || status == TARN_E_NOMEM,
          "another status");
  check_text(status);
  return status;
}

// Sums of what the first blocks are; those that are damaged have none.
static void look(tarn__disk_blocks *b, uint64_t count, uint32_t *sums,
                 void *data) {
  for (uint64_t i = 0; i < count; i++) {
    sums[i] = 0;
    if (move(b, false, i, data)) sums[i] = tarn__crc32c(1, data, BLOCK);
  }
}

static void change_and_compare(tarn__disk_blocks *b, uint64_t epoch) {
  static uint32_t before[LOOKED_AT];
  static uint32_t after[LOOKED_AT];
  static const unsigned char note[TARN__ROOT_NOTE];
  tarn__disk_blocks_info info = tarn__blocks_tell(b);
  uint64_t count = info.count < LOOKED_AT ? info.count : LOOKED_AT;
  size_t size = (size_t)info.block;
  unsigned char *data = aligned_alloc(BLOCK, size);
  require(data != NULL, "out of memory");
  require(info.newest == epoch, "another epoch");
  look(b, count, before, data);
  memset(data, 0x5a, size);
  (void)move(b, true, count - 1, data);
  before[count - 1] = tarn__crc32c(1, data, BLOCK);
  require(tarn__blocks_flush(b, note) == TARN_OK, "no flush");
  tarn__blocks_close(b);
  require(open_at(0, &b) == TARN_OK, "not opened again");
  require(tarn__blocks_tell(b).newest == epoch + 1, "another epoch");
  require(tarn__blocks_tell(b).before == epoch, "no epoch before");
  look(b, count, after, data);
  require(memcmp(before, after, count * sizeof *after) == 0, "other blocks");
  tarn__blocks_close(b);
  free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
  unsigned char note[TARN__ROOT_NOTE];
  tarn__disk_blocks_info info;
  tarn__disk_blocks *b = NULL;
  if (size < 1) return 0;
  fuzz_memory_begin();
  (void)make_file(input[0], input + 1, size - 1);
  tarn_status status = tarn__blocks_ask(path, &info, note);
  check_text(status);
  require(status == TARN_OK || info.newest == 0, "epochs, but an error");
  if (status == TARN_OK && info.block <= MOST && info.count <= MOST_BLOCKS) {
    bool older = (input[0] & OLDER) != 0 && info.before != 0;
    uint64_t epoch = older ? info.before : info.newest;
    if (open_at(epoch, &b) == TARN_OK) change_and_compare(b, epoch);
  }
  fuzz_memory_end();
  return 0;
}
