// table.h - the whole-memory table of the nodes, filled from a file.
#ifndef TARN_EXAMPLES_TRAIN_TABLE_H_
#define TARN_EXAMPLES_TRAIN_TABLE_H_

#include <tarn/tarn.h>

#include "nodes.h"

// Creates the table at the host, and fills it. Collective, as its end by
// tarn_whole_destroy is. Each rank makes the rows that it owns. All of them
// store the table in one file, in a folder of its own in TMPDIR or /tmp, load
// it from there, and remove both. Ranks on several machines, which may have no
// folder in common, leave out the file.
TARN_MUST_CHECK tarn_status table_make(tarn_comm *comm, tarn_whole_type type,
                                       size_t rows, const nodes *from,
                                       tarn_whole_tensor *out_table);

#endif  // TARN_EXAMPLES_TRAIN_TABLE_H_
