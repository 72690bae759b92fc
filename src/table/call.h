// call.h - a call of a program that loads or stores, as far as both are alike.
#ifndef TARN_TABLE_CALL_H_
#define TARN_TABLE_CALL_H_

#include "comm/comm.h"
#include "table/course.h"
#include "table/file.h"

typedef enum tarn__table_verb {
  TARN__TABLE_LOAD = 1,
  TARN__TABLE_STORE,
} tarn__table_verb;

typedef struct tarn__table_call {
  tarn__table_verb verb;
  const char *name;         // of the function
  tarn_file_format format;  // the only one; 0: as the options say
  const char *path;  // the file, the first of them, or what their names begin
                     // with
  const tarn_whole_named *tensors;
  size_t count;
  tarn_file_options options;  // of this version; |format| and |buffer| are set
  tarn_comm *comm;
  size_t rank;
  size_t ranks;
  tarn__comm_caller caller;
} tarn__table_call;

// A call of the function |name| for a single tensor, which may be NULL. |*one|
// stays as long as the call.
tarn__table_call tarn__table_call_of_one(
    tarn__table_verb verb, const char *name, tarn_file_format format,
    const tarn_whole_tensor *tensor, const char *path, tarn_whole_named *one);

// Reads what the program gives. A null tensor fails here alone; all else is
// kept in |*out_status|, since other ranks wait.
//
// TARN_E_INVALID, TARN_E_STATE  there is no communicator to use.
TARN_MUST_CHECK tarn_status
tarn__table_call_begin(tarn__table_call *call, const tarn_file_options *options,
                       tarn_status *out_status);

// Compares what must be the same at all ranks. Collective.
TARN_MUST_CHECK tarn_status tarn__table_call_compare(tarn__table_call *call,
                                                     tarn_status status);

void tarn__table_call_end(tarn__table_call *call);

// What the function reports, where the program wants it.
tarn_status tarn__table_call_check_report(const tarn__table_call *call,
                                          tarn_file_report *report);
void tarn__table_call_report(const tarn_file_report *given,
                             tarn_file_report *out_report);

#endif  // TARN_TABLE_CALL_H_
