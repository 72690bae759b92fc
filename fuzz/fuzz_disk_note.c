// Any bytes as what the files of two ranks say of their table: what is accepted
// fits, so that nothing overflows behind it.
//
//   note, note, epochs: four bytes
//
// Both begin as they should, and say of themselves how many records of which
// size their files have.
#include <string.h>

#include "base/hostmem.h"
#include "disk/table.h"
#include "embedding/embedding.h"
#include "fuzz.h"

enum { RANKS = 2 };

static bool read_one(const uint8_t *input, size_t rank,
                     tarn__disk_table_offer *out) {
  tarn__disk_records_info info = {.newest = 1};
  tarn__disk_table_note *note = &out->note;
  memcpy(note, input + rank * sizeof *note, sizeof *note);
  memcpy(note->magic, "TARNDISK", sizeof note->magic);
  memcpy(info.note, note, sizeof *note);
  info.shape.size = (size_t)note->record;
  info.shape.count = note->count > 0 ? note->count : 1;
  tarn_status status = tarn__table_note_read("file", &info, note);
  require(status == TARN_OK || status == TARN_E_CORRUPT, "another status");
  require(
      status == TARN_OK || strncmp(tarn_last_error(), "disk: 'file'", 12) == 0,
      "no name");
  out->newest = input[RANKS * sizeof *note + 2 * rank];
  out->before = input[RANKS * sizeof *note + 2 * rank + 1];
  return status == TARN_OK;
}

static void see_it_fits(const tarn__disk_table_note *n) {
  size_t size = 0;
  size_t element = tarn_dtype_size((tarn_dtype)n->dtype);
  require(tarn_size_mul((size_t)n->rows, (size_t)n->record, &size),
          "rows that overflow");
  require(n->first + n->count <= n->rows && n->rank < n->ranks, "no part");
  require(element > 0 && n->width * element <= n->record, "a row too long");
  require(n->record % element == 0, "rows that elements do not divide");
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
  static tarn_disk disk = {.path = "file"};
  tarn__disk_table_offer offers[RANKS];
  size_t partition[RANKS] = {0};
  uint64_t epoch = 0;
  bool all = size >= RANKS * (sizeof offers[0].note + 2);
  for (size_t r = 0; all && r < RANKS; r++) {
    all = read_one(input, r, &offers[r]);
    if (all) see_it_fits(&offers[r].note);
  }
  if (!all) return 0;
  if (tarn__table_choose_epoch(&disk, offers, RANKS, &epoch, partition) !=
      TARN_OK) {
    return 0;
  }
  require(partition[0] + partition[1] == offers[0].note.rows, "another sum");
  for (size_t r = 0; r < RANKS; r++)
    require(offers[r].newest == epoch || offers[r].before == epoch,
            "an epoch that a rank has not");
  return 0;
}
