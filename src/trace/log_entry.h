// log_entry.h - what the readers of definitions share: tables by number.
#ifndef TARN_TRACE_LOG_ENTRY_H_
#define TARN_TRACE_LOG_ENTRY_H_

#include "trace/log_define.h"

// A definition. What |value| and |extra| are depends on the table:
//   texts    the history's tag, once it is one; bytes at |at|. |moment| is the
//            history's text + 1 once it is one: frames name a text by a few
//            bytes each, however long it is, and it is to be looked at once
//   frames   the history's frame
//   stacks   the history's stack; whether it is raw
//   modules  the history's text of the path
typedef struct tarn__trace_log_entry {
  uint64_t number;
  const unsigned char *at;  // what stands behind the number; a text's bytes
  uint64_t moment;          // of a stack; of a text, see above
  uint32_t value;
  uint32_t extra;
} tarn__trace_log_entry;

// Sorts by number, and by place in the file where these are equal. No more than
// O(n log n), and no memory.
void tarn__log_entries_sort(tarn__trace_log_entry *entries, size_t count);

// The entry of |number| in a table that is sorted; NULL if there is none.
tarn__trace_log_entry *tarn__log_entry_find(const tarn__array *table,
                                            uint64_t number);

// Numbers from |entry| on, which the first pass has checked.
static inline tarn__trace_log_bytes tarn__log_entry_bytes(
    const tarn__trace_log_names *names, const tarn__trace_log_entry *entry) {
  return (tarn__trace_log_bytes){
      .at = entry->at, .end = names->input->bytes + names->input->size};
}

// The history's number of TEXT |number|; that of "" if it is not defined.
TARN_MUST_CHECK tarn_status tarn__log_names_text(tarn__trace_log_names *names,
                                                 uint64_t number,
                                                 uint32_t *out_text);

// Makes all raw stacks known to the history. Texts are settled, modules are
// sorted by their numbers, of which there are no two.
//
// TARN_E_NOMEM  the budget or the host allocator refused.
TARN_MUST_CHECK tarn_status tarn__log_resolve_raw(tarn__trace_log_names *names);

#endif  // TARN_TRACE_LOG_ENTRY_H_
