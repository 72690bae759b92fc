// embedding.h - a table, the states of its optimizer, and what an apply needs.
//
//   embedding.c    from create to destroy, states, files
//   parts.c        the table and its states, at this rank
//   blocks.c       states that are behind their row, in its block
//   apply.c        gradients to the owners of their rows: two exchanges
//   tally.c        how many are to come for each row, and their sums
//   update.c       rows that are ready, wherever the table is
//   optimizer.c    one row
//   stochastic.c   and its rounding
#ifndef TARN_EMBEDDING_EMBEDDING_H_
#define TARN_EMBEDDING_EMBEDDING_H_

#include "embedding/optimizer.h"
#include "embedding/tally.h"

enum {
  TARN__UPDATE_ROWS = 256,      // that are updated at a time
  TARN__UPDATE_COLUMNS = 2048,  // elements of a row that go to its owner at a
                                // time: 8 KiB, for which a slot has room
  TARN__PARTS = 4,              // tensors: the table, two states, the counts
};

// This rank's rows of a tensor.
typedef struct tarn__embedding_part {
  tarn_whole_tensor tensor;
  tarn_addr address;    // of the first
  size_t element;       // bytes
  size_t stride;        // bytes
  unsigned char *view;  // where the host sees the first; NULL: it does not, and
  void *scratch;        // rows are copied here to be updated
} tarn__embedding_part;

struct tarn_embedding {
  tarn__whole_user user;  // of the table; unless that is on disks
  tarn__embedding_optimizer optimizer;
  tarn__embedding_part parts[TARN__PARTS];  // the table comes first
  const char *names[TARN__PARTS];           // as in files
  size_t part_count;
  tarn_whole_tensor states;  // of which those behind the table are columns;
                             // unless they are in its blocks
  size_t first;              // this rank's first row
  size_t rows;               // of this rank
  uint64_t applies;
  tarn__embedding_tally tally;
  float *wide;  // a row in F32, where the table has another dtype
};

static inline const tarn_whole_tensor *tarn__embedding_table(
    const tarn_embedding *e) {
  return &e->parts[0].tensor;
}

// Elements that go to the owner at a time.
static inline size_t tarn__embedding_columns(const tarn_embedding *e) {
  size_t width = tarn__embedding_table(e)->width;
  return width < TARN__UPDATE_COLUMNS ? width : TARN__UPDATE_COLUMNS;
}

// --- embedding.c -----------------------------------------------------------

// Reads and checks the options of a program.
//
// TARN_E_INVALID  as tarn_embedding_create.
TARN_MUST_CHECK tarn_status tarn__embedding_read_options(
    const tarn_embedding_options *given, tarn_embedding_options *out);

// --- parts.c ---------------------------------------------------------------

// This rank's rows of |tensor|, by the name that they have in files.
TARN_MUST_CHECK tarn_status tarn__embedding_add_part(
    tarn_embedding *e, const char *name, const tarn_whole_tensor *tensor);

// Frees all that is of this rank alone. NULL is allowed.
void tarn__embedding_free(tarn_embedding *e);

// --- blocks.c --------------------------------------------------------------

// Bytes of a row and what is behind it:
//
//   | row, up to 4 bytes | states of F32 | count |
size_t tarn__embedding_block(tarn_dtype dtype, size_t width,
                             const tarn_embedding_options *options);

// What they are before the first update, but for the row, which is zero.
void tarn__embedding_blank(tarn_dtype dtype, size_t width,
                           const tarn_embedding_options *options, void *out);

// An embedding of |table|, the rows of whole memory that has a pager, one in
// each of its blocks. |options| have been read. Asks nothing of other ranks.
// The program cannot destroy it: tarn__embedding_free does.
TARN_MUST_CHECK tarn_status tarn__embedding_make(
    const tarn_whole_tensor *table, const tarn_embedding_options *options,
    uint64_t applies, tarn_embedding **out_embedding);

// --- update.c --------------------------------------------------------------

// Columns of rows that are ready.
typedef struct tarn__embedding_update {
  size_t column;  // the first
  size_t width;
  bool measures;  // ROW_WISE: adds up squares, and changes nothing
  bool measured;  // likewise: that was done
} tarn__embedding_update;

// Makes what rows are copied to, where the host does not see a part.
//
// TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status tarn__update_begin(tarn_embedding *e);
void tarn__update_end(tarn_embedding *e);

// |count| rows, at most TARN__UPDATE_ROWS.
//
// TARN_E_DEVICE and others of copies.
TARN_MUST_CHECK tarn_status
tarn__update_rows(tarn_embedding *e, const tarn__embedding_update *update,
                  const tarn__embedding_tally_ready *ready, size_t count);

// --- stochastic.c ----------------------------------------------------------

// What random numbers of a row depend on, but for the column.
uint64_t tarn__stochastic_row(uint64_t seed, uint64_t apply, uint64_t row);

// |count| elements, from column |column| on, to F16 or BF16.
void tarn__stochastic_round(tarn_dtype to, void *dst, const float *src,
                            size_t count, uint64_t row, size_t column);

#endif  // TARN_EMBEDDING_EMBEDDING_H_
