// trace_build.h - make a trace out of events of your own.
//
// For allocators that want to be explained by `tarn why`, and for whoever
// converts a format that tarn_trace_read does not know:
//
//   tarn_trace_builder *builder;
//   tarn_trace_builder_create("my run", &builder);
//   tarn_trace_builder_event(builder, &(tarn_trace_event){
//       .kind = TARN_TRACE_ALLOC, .address = 4096, .size = 100,
//       .stack = TARN_TRACE_NO_STACK});
//   tarn_trace_builder_finish(builder, &trace);
//   tarn_trace_write(trace, TARN_TRACE_FORMAT_TARN, "run.tarn");
//
// Events come in their order, by address; what the allocator holds at the end
// comes last, if it is known.
//
// Threads: a builder belongs to one thread at a time.
// Errors:  each function fails as it says, and with TARN_E_NOMEM; what was
//          added before stays, what failed is not in the trace.
#ifndef TARN_TRACE_BUILD_H_
#define TARN_TRACE_BUILD_H_

#include "tarn/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_trace_builder tarn_trace_builder;

// |name| becomes the trace's, and stands in front of errors.
//
// Lifetime:       up to tarn_trace_builder_finish or _destroy.
// TARN_E_INVALID  |name| is NULL.
TARN_API TARN_MUST_CHECK tarn_status
tarn_trace_builder_create(const char *name, tarn_trace_builder **out_builder);

// Frees a builder without a trace. NULL is allowed.
TARN_API void tarn_trace_builder_destroy(tarn_trace_builder *builder);

// The number of the stack of |count| frames, innermost first; equal ones are
// one; TARN_TRACE_NO_STACK for none. The texts are copied; NULL is "".
TARN_API TARN_MUST_CHECK tarn_status tarn_trace_builder_stack(
    tarn_trace_builder *builder, const tarn_trace_frame *frames, size_t count,
    uint32_t *out_stack);

// The number of the tag |name|; 0 for "" and NULL.
TARN_API TARN_MUST_CHECK tarn_status tarn_trace_builder_tag(
    tarn_trace_builder *builder, const char *name, uint32_t *out_tag);

// Adds an event; its |block| is found by its address and need not be set. An
// ALLOC is a birth where nothing lives; FREE and FREE_REQUESTED concern what
// lives at their address, and one of size 0 takes that block's. A free at an
// address that was never seen reveals a block of the baseline, of the free's
// size; of size 0 it is passed over and counted in unknown_count.
//
// TARN_E_INVALID  no such kind; a stack or tag that this builder has not given.
// TARN_E_CORRUPT  two lives at one address, a death of what is dead or of
//                 another size, a block of 0 bytes or beyond the end of the
//                 address space, or more than 2^64 bytes alive at once.
TARN_API TARN_MUST_CHECK tarn_status tarn_trace_builder_event(
    tarn_trace_builder *builder, const tarn_trace_event *event);

// Adds a block of the baseline, which lived before the first event; call it
// before all events. |block|'s born and died need not be set.
//
// Errors: as of tarn_trace_builder_event.
TARN_API TARN_MUST_CHECK tarn_status tarn_trace_builder_old(
    tarn_trace_builder *builder, const tarn_trace_block *block);

// Adds a block that is alive at the end; call it after all events. One at an
// address that no ALLOC or FREE named is of the baseline; where one lives it
// is that one; where one has died it is only counted, in ignored_count.
// |block|'s born and died need not be set.
//
// Errors: as of tarn_trace_builder_event, and TARN_E_CORRUPT for the second at
// one address.
TARN_API TARN_MUST_CHECK tarn_status tarn_trace_builder_held(
    tarn_trace_builder *builder, const tarn_trace_block *block);

// Adds memory that the allocator holds of the device at the end.
//
// TARN_E_INVALID  0 bytes, or beyond the end of the address space.
TARN_API TARN_MUST_CHECK tarn_status tarn_trace_builder_segment(
    tarn_trace_builder *builder, const tarn_trace_segment *segment);

// Counts |events| that are known to be missing.
TARN_API void tarn_trace_builder_lost(tarn_trace_builder *builder,
                                      uint64_t events);

// Makes the trace and frees the builder, whatever the status.
//
// Lifetime: free the trace with tarn_trace_destroy.
TARN_API TARN_MUST_CHECK tarn_status
tarn_trace_builder_finish(tarn_trace_builder *builder, tarn_trace **out_trace);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_TRACE_BUILD_H_
