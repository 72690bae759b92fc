// plan.h - a file that is going to be stored: where its arrays are, and what
// rank 0 puts around them when their checksums are known.
#ifndef TARN_TABLE_PLAN_H_
#define TARN_TABLE_PLAN_H_

#include "format/safetensors_plan.h"
#include "format/sums.h"
#include "table/call.h"
#include "table/writer.h"

typedef struct tarn__table_plan {
  tarn_file_format format;
  bool checked;
  uint64_t begin;   // of the arrays
  uint64_t length;  // of all of them
  uint64_t size;    // of the file
  uint64_t *at;     // of each tensor's array
  size_t count;
  size_t sum_count;
  tarn__format_sums_place block;         // NPY
  tarn__format_safetensors_plan header;  // SAFETENSORS
  size_t text;                           // the text of sums in it
} tarn__table_plan;

// The same at all ranks. Ended by tarn__table_plan_end, also after a failure.
//
// TARN_E_INVALID  the file would be too large, or a name is none.
// TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status tarn__table_plan_make(const tarn__table_call *call,
                                                  tarn__table_plan *out);
void tarn__table_plan_end(tarn__table_plan *plan);

// The dtype of a tensor's elements in the file.
tarn_dtype tarn__table_plan_dtype(const tarn__table_call *call, size_t tensor);

// Writes what is not an array, with the checksums that follow from |pieces|,
// which are sorted here.
//
// TARN_E_IO, TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status
tarn__table_plan_complete(tarn__table_plan *plan, const tarn__table_call *call,
                          int fd, const unsigned char id[TARN__SUMS_ID],
                          tarn__table_piece *pieces, size_t piece_count);

#endif  // TARN_TABLE_PLAN_H_
