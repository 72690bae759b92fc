// table.h - the whole-memory table of the nodes, filled from files.
#ifndef TARN_EXAMPLES_TRAIN_TABLE_H_
#define TARN_EXAMPLES_TRAIN_TABLE_H_

#include <tarn/tarn.h>

#include "nodes.h"

// Creates the table at the host, and fills it. Collective, as its end by
// tarn_whole_destroy is. Each rank makes the rows that it owns, writes them to
// a file of its own and reads them from there into its part. The file is in
// TMPDIR or /tmp; it has no name any more when the first row is written, so
// that nothing is left however the program ends.
TARN_MUST_CHECK tarn_status table_make(tarn_comm *comm, tarn_whole_type type,
                                       size_t rows, const nodes *from,
                                       tarn_whole_tensor *out_table);

#endif  // TARN_EXAMPLES_TRAIN_TABLE_H_
