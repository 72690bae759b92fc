// log_define.h - what the definitions of a file of Tarn's own format mean.
//
// A definition may stand behind what uses it. So the reader notes all of them
// first, and then has their numbers turned into those of the history.
#ifndef TARN_TRACE_LOG_DEFINE_H_
#define TARN_TRACE_LOG_DEFINE_H_

#include "trace/history.h"
#include "trace/log_page.h"

enum {
  TARN__LOG_TEXTS,
  TARN__LOG_TAGS,
  TARN__LOG_FRAMES,
  TARN__LOG_STACKS,
  TARN__LOG_MODULES,
  TARN__LOG_TABLES,
};

typedef struct tarn__trace_log_names {
  const tarn__trace_input *input;
  tarn__trace_history *history;
  tarn__array tables[TARN__LOG_TABLES];  // see log_define.c
  size_t pending;  // from which raw stack on the moment is not known yet
} tarn__trace_log_names;

void tarn__log_names_init(tarn__trace_log_names *names,
                          const tarn__trace_input *input,
                          tarn__trace_history *history);
void tarn__log_names_deinit(tarn__trace_log_names *names);

// Notes a definition of any kind.
//
// TARN_E_NOMEM  the budget or the host allocator refused.
TARN_MUST_CHECK tarn_status tarn__log_names_note(
    tarn__trace_log_names *names, const tarn__trace_log_record *record);

// The stacks noted since the last such call are of the moment of event
// |number|.
void tarn__log_names_moment(tarn__trace_log_names *names, uint64_t number);

// Makes all that was noted known to the history. Nothing is noted after it.
//
// TARN_E_NOMEM  the budget or the host allocator refused.
TARN_MUST_CHECK tarn_status
tarn__log_names_settle(tarn__trace_log_names *names);

// The history's number of a stack; TARN_TRACE_NO_STACK if it is not defined.
uint32_t tarn__log_names_stack(const tarn__trace_log_names *names,
                               uint64_t number);

// The history's number of a tag; TARN_TRACE_NO_TAG if it is not defined.
//
// TARN_E_NOMEM  the budget or the host allocator refused.
TARN_MUST_CHECK tarn_status tarn__log_names_tag(tarn__trace_log_names *names,
                                                uint64_t number,
                                                uint32_t *out_tag);

#endif  // TARN_TRACE_LOG_DEFINE_H_
