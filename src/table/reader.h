// reader.h - reads the runs of a source into the table.
#ifndef TARN_TABLE_READER_H_
#define TARN_TABLE_READER_H_

#include "base/io.h"
#include "table/source.h"

typedef struct tarn__table_reader tarn__table_reader;

// |buffer| bytes for what is under way.
//
// TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status
tarn__reader_create(const tarn__table_source *source, size_t buffer,
                    bool threads, tarn__table_reader **out_reader);

// Reads on until |until|, by tarn__os_now_ns, or until all is read.
//
// TARN_E_CORRUPT, TARN_E_IO, TARN_E_DEVICE  as tarn_whole_load.
TARN_MUST_CHECK tarn_status tarn__reader_go_on(tarn__table_reader *reader,
                                               uint64_t until, bool *out_done);

const tarn__table_tally *tarn__reader_tally(const tarn__table_reader *reader);
const char *tarn__reader_method(const tarn__table_reader *reader);

// Waits for what is under way. NULL is allowed.
void tarn__reader_destroy(tarn__table_reader *reader);

#endif  // TARN_TABLE_READER_H_
