// writer.h - writes the runs of a source to the file, and brings it to the
// disk.
#ifndef TARN_TABLE_WRITER_H_
#define TARN_TABLE_WRITER_H_

#include "base/io.h"
#include "table/source.h"

// The checksum of bytes of the file, all in one chunk.
typedef struct tarn__table_piece {
  uint64_t at;
  uint32_t size;
  uint32_t sum;
} tarn__table_piece;

typedef struct tarn__table_writer tarn__table_writer;

// |buffer| bytes for what is under way. All of the source is in its first file.
//
// TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status
tarn__writer_create(const tarn__table_source *source, size_t buffer,
                    bool threads, tarn__table_writer **out_writer);

// Writes on until |until|, by tarn__os_now_ns, or until all is written and on
// the disk.
//
// TARN_E_IO, TARN_E_DEVICE  as tarn_whole_store.
TARN_MUST_CHECK tarn_status tarn__writer_go_on(tarn__table_writer *writer,
                                               uint64_t until, bool *out_done);

const tarn__table_tally *tarn__writer_tally(const tarn__table_writer *writer);
const char *tarn__writer_method(const tarn__table_writer *writer);

// The checksums of what was written, in ascending order.
const tarn__table_piece *tarn__writer_pieces(const tarn__table_writer *writer,
                                             size_t *out_count);

// Waits for what is under way. NULL is allowed.
void tarn__writer_destroy(tarn__table_writer *writer);

#endif  // TARN_TABLE_WRITER_H_
