// trace_written.h - traces into bytes, and two traces side by side.
#ifndef TARN_TESTS_SUPPORT_TRACE_WRITTEN_H_
#define TARN_TESTS_SUPPORT_TRACE_WRITTEN_H_

#include <stdbool.h>

#include "tarn/trace_build.h"
#include "tarn/trace_write.h"

typedef struct written {
  char *bytes;  // and a zero byte behind them
  size_t size;
  size_t calls;
  size_t fails_at;  // the call that fails; 0: none
} written;

// Takes bytes into a written; a tarn_trace_sink_fn.
tarn_status written_sink(void *context, const void *bytes, size_t size);

// |trace| in |format|; free it with written_free.
written written_make(const tarn_trace *trace, tarn_trace_format format);
void written_free(written *w);

// |trace| written in |format| and read again.
tarn_trace *written_again(const tarn_trace *trace, tarn_trace_format format);

// Reads bytes that stand in memory of just |size| bytes, so that a sanitizer
// sees a read beyond them. Requires that the reading keeps within the memory
// that the header promises, and makes a trace only if it succeeds.
tarn_status read_exactly(const char *name, const void *bytes, size_t size,
                         const tarn_trace_options *options,
                         tarn_trace **out_trace);

// Events, blocks, stacks, tags and sums are the same, by what they say and not
// by how they are numbered. With |places| addresses are too.
void assert_same_trace(const tarn_trace *a, const tarn_trace *b, bool places);

// --- a trace in few words --------------------------------------------------

// The stack of one frame.
uint32_t built_stack(tarn_trace_builder *builder, const char *file,
                     const char *function, uint32_t line);
uint32_t built_tag(tarn_trace_builder *builder, const char *name);

// Adds an event; returns it for changes of the next.
void built_event(tarn_trace_builder *builder, tarn_trace_kind kind,
                 uint64_t address, uint64_t size, uint32_t stack, uint32_t tag);

// What a trace can have: a baseline that is freed and one that is not, streams,
// tags, times, strange names, segments, out of memory, one let go of but never
// freed.
tarn_trace *built_of_all(void);

#endif  // TARN_TESTS_SUPPORT_TRACE_WRITTEN_H_
