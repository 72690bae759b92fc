// Records in memory, for exchanges of rows: those of the program, and those of
// a gather that goes on beside it.
#include "base/status.h"
#include "disk/table.h"

// The lock is the thread's from a pin to its unpin, and from |ahead| to the
// next pin as well.

// Where not all of them find room, fewer do.
static tarn_status pin(void *context, const uint64_t *blocks, size_t count,
                       void **out_pinned, size_t *out_count) {
  tarn_disk *disk = context;
  size_t some = count;
  pthread_mutex_lock(&disk->lock);
  bool begun = tarn__records_has_begun(disk->records);
  tarn_status status =
      tarn__records_pin(disk->records, blocks, some, out_pinned);
  while (status == TARN_FULL && some > 1) {
    some /= 2;
    status = tarn__records_pin(disk->records, blocks, some, out_pinned);
  }
  *out_count = some;
  if (begun) pthread_mutex_unlock(&disk->lock);
  if (status != TARN_OK) pthread_mutex_unlock(&disk->lock);
  return status;
}

static void ahead(void *context, const uint64_t *blocks, size_t count) {
  tarn_disk *disk = context;
  tarn__records_begin(disk->records, blocks, count);
  if (tarn__records_has_begun(disk->records)) pthread_mutex_lock(&disk->lock);
}

static void unpin(void *context, void *const *pinned, size_t count,
                  bool dirty) {
  tarn_disk *disk = context;
  tarn__records_unpin(disk->records, pinned, count, dirty);
  pthread_mutex_unlock(&disk->lock);
}

tarn__whole_pager tarn__table_pager(tarn_disk *disk) {
  return (tarn__whole_pager){pin, ahead, unpin, disk};
}
