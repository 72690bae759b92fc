// Which epoch all ranks have, and whether their files are of one table.
#include <inttypes.h>

#include "base/status.h"
#include "disk/table.h"

// --- one table -------------------------------------------------------------

static tarn_status refuse(const tarn_disk *disk, size_t rank,
                          const char *what) {
  return tarn__fail(TARN_E_CORRUPT,
                    "disk: '%s': the file of rank %zu %s that of rank 0",
                    disk->path, rank, what);
}

static tarn_status check_one(const tarn_disk *disk,
                             const tarn__disk_table_offer *offers, size_t rank,
                             uint64_t first) {
  const tarn__disk_table_note *zero = &offers[0].note;
  const tarn__disk_table_note *note = &offers[rank].note;
  if (note->id[0] != zero->id[0] || note->id[1] != zero->id[1])
    return refuse(disk, rank, "is of another table than");
  if (note->rows == zero->rows && note->width == zero->width &&
      note->record == zero->record && note->dtype == zero->dtype &&
      note->optimizer == zero->optimizer && note->first == first) {
    return TARN_OK;
  }
  return refuse(disk, rank, "has other rows than should follow from");
}

// --- one epoch -------------------------------------------------------------

static bool has(const tarn__disk_table_offer *offer, uint64_t epoch) {
  return offer->newest == epoch || offer->before == epoch;
}

// Whether all have |epoch|; |*out_rank| has not.
static bool have_all(const tarn__disk_table_offer *offers, size_t ranks,
                     uint64_t epoch, size_t *out_rank) {
  for (size_t r = 0; r < ranks; r++) {
    *out_rank = r;
    if (!has(&offers[r], epoch)) return false;
  }
  return epoch != 0;
}

tarn_status tarn__table_choose_epoch(const tarn_disk *disk,
                                     const tarn__disk_table_offer *offers,
                                     size_t ranks, uint64_t *out_epoch,
                                     size_t *out_partition) {
  size_t lacks = 0;
  uint64_t first = 0;
  for (size_t r = 0; r < ranks; r++) {
    TARN__TRY(check_one(disk, offers, r, first));
    out_partition[r] = (size_t)offers[r].note.count;
    first += offers[r].note.count;
  }
  if (first != offers[0].note.rows)
    return refuse(disk, ranks - 1, "has other rows than should follow from");
  *out_epoch = offers[0].newest;
  if (have_all(offers, ranks, *out_epoch, &lacks)) return TARN_OK;
  *out_epoch = offers[0].before;
  if (have_all(offers, ranks, *out_epoch, &lacks)) return TARN_OK;
  return tarn__fail(TARN_E_CORRUPT,
                    "disk: '%s': ranks have no flush in common: the file of "
                    "rank 0 has %" PRIu64 " and %" PRIu64
                    ", that of rank %zu %" PRIu64 " and %" PRIu64,
                    disk->path, offers[0].newest, offers[0].before, lacks,
                    offers[lacks].newest, offers[lacks].before);
}
