// trace_build.h - builds a trace from a program's own events.
//
// For allocators that `tarn why` should explain, and for converters of formats
// that tarn_trace_read does not know:
//
//   tarn_trace_builder *builder;
//   tarn_trace_builder_create("my run", &builder);
//   tarn_trace_builder_event(builder, &(tarn_trace_event){
//       .kind = TARN_TRACE_ALLOC, .address = 4096, .size = 100,
//       .stack = TARN_TRACE_NO_STACK});
//   tarn_trace_builder_finish(builder, &trace);
//   tarn_trace_write(trace, TARN_TRACE_FORMAT_TARN, "run.tarn");
//
// Add the baseline first, then events in order, and last the blocks and
// segments that the allocator holds at the end, if they are known.
//
// Threads: a builder belongs to one thread at a time.
// Errors:  beside those listed, TARN_E_NOMEM. A failed call adds nothing and
//          leaves earlier additions in place.
#ifndef TARN_TRACE_BUILD_H_
#define TARN_TRACE_BUILD_H_

#include "tarn/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_trace_builder tarn_trace_builder;

// |name| becomes the trace's name and begins each error text.
//
// Lifetime:       until tarn_trace_builder_finish or _destroy.
// TARN_E_INVALID  |name| is NULL.
TARN_API TARN_MUST_CHECK tarn_status
tarn_trace_builder_create(const char *name, tarn_trace_builder **out_builder);

// Frees a builder without a trace. NULL is allowed.
TARN_API void tarn_trace_builder_destroy(tarn_trace_builder *builder);

// The number of the stack of |count| frames, innermost first. Equal stacks have
// one number; 0 frames are TARN_TRACE_NO_STACK. Texts are copied; NULL is "".
TARN_API TARN_MUST_CHECK tarn_status tarn_trace_builder_stack(
    tarn_trace_builder *builder, const tarn_trace_frame *frames, size_t count,
    uint32_t *out_stack);

// The number of the tag |name|; 0 for "" and NULL.
TARN_API TARN_MUST_CHECK tarn_status tarn_trace_builder_tag(
    tarn_trace_builder *builder, const char *name, uint32_t *out_tag);

// Adds an event. Its |block| is found by the address and need not be set. ALLOC
// begins a block at a free address. FREE and FREE_REQUESTED concern the live
// block at their address; size 0 stands for that block's size. A free at an
// address that was never seen adds a block of the free's size to the baseline;
// with size 0 it is ignored and counted in unknown_count.
//
// TARN_E_INVALID  no such kind; a stack or tag that is not this builder's.
// TARN_E_CORRUPT  an ALLOC where a block lives; a free of a dead block or with
//                 another size than the block's; a block of 0 bytes or beyond
//                 the end of the address space; more than 2^64 bytes alive at
//                 once.
TARN_API TARN_MUST_CHECK tarn_status tarn_trace_builder_event(
    tarn_trace_builder *builder, const tarn_trace_event *event);

// Adds a block of the baseline, which lived before the first event. Call it
// before all events. |block|'s born and died need not be set.
//
// Errors: as tarn_trace_builder_event.
TARN_API TARN_MUST_CHECK tarn_status tarn_trace_builder_old(
    tarn_trace_builder *builder, const tarn_trace_block *block);

// Adds a block that is alive at the end. Call it after all events. At an
// address that no ALLOC or FREE named, the block belongs to the baseline. At
// the address of a live block it is that block. At the address of a dead block
// it is only counted, in ignored_count. |block|'s born and died need not be
// set.
//
// Errors: as tarn_trace_builder_event, and TARN_E_CORRUPT for a second block at
// one address.
TARN_API TARN_MUST_CHECK tarn_status tarn_trace_builder_held(
    tarn_trace_builder *builder, const tarn_trace_block *block);

// Adds a segment: memory of the device that the allocator holds at the end.
//
// TARN_E_INVALID  0 bytes, or beyond the end of the address space.
TARN_API TARN_MUST_CHECK tarn_status tarn_trace_builder_segment(
    tarn_trace_builder *builder, const tarn_trace_segment *segment);

// Adds |events| to lost_count: events that are known to be missing.
TARN_API void tarn_trace_builder_lost(tarn_trace_builder *builder,
                                      uint64_t events);

// Makes the trace and frees the builder, also on failure.
//
// Lifetime: free the trace with tarn_trace_destroy.
TARN_API TARN_MUST_CHECK tarn_status
tarn_trace_builder_finish(tarn_trace_builder *builder, tarn_trace **out_trace);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_TRACE_BUILD_H_
