// trace.h - the history of allocations of a program: read one, make one.
//
// A trace is a list of blocks and a list of events. A block is one allocation
// from its birth to its death; an event is a moment at which something was
// allocated, freed, or went wrong. What was alive before the first event is
// the baseline: blocks that are born before and may die within the trace.
//
//       baseline  |=====================|          weights, freed at event 9
//       block 1        |======|                    alloc at 2, free at 5
//       block 2             |=================...  alloc at 4, never freed
//       events    0  1 2  3 4 5 ...
//
// A trace knows nothing of pools and devices; replaying it is the pool's
// business, planning it the planner's, explaining it the tool's.
//
// Lifetime: everything that a tarn_trace points to lives as long as it does.
// Threads:  a trace never changes once made: any number may read it at once.
#ifndef TARN_TRACE_H_
#define TARN_TRACE_H_

#include "tarn/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tarn_trace_kind {
  TARN_TRACE_ALLOC = 1,           // |block| was born
  TARN_TRACE_FREE = 2,            // |block| died: its bytes can be reused
  TARN_TRACE_FREE_REQUESTED = 3,  // its owner let go of |block|
  TARN_TRACE_SEGMENT_ALLOC = 4,   // the allocator took memory of the device
  TARN_TRACE_SEGMENT_FREE = 5,    // ... and gave it back
  TARN_TRACE_SEGMENT_MAP = 6,
  TARN_TRACE_SEGMENT_UNMAP = 7,
  TARN_TRACE_OOM = 8,       // a request of |size| bytes was refused
  TARN_TRACE_SNAPSHOT = 9,  // the history was written out
} tarn_trace_kind;

#define TARN_TRACE_NO_BLOCK UINT32_MAX  // the event concerns no known block
#define TARN_TRACE_BASELINE UINT32_MAX  // born: before the first event
#define TARN_TRACE_NEVER UINT32_MAX     // died: not within the trace
#define TARN_TRACE_NO_STACK UINT32_MAX  // no stack was recorded
#define TARN_TRACE_NO_TAG 0             // tags[0] is "": untagged

// ALLOC, FREE and FREE_REQUESTED always concern a block; the others never do.
typedef struct tarn_trace_event {
  tarn_trace_kind kind;
  uint32_t block;    // index into blocks, or TARN_TRACE_NO_BLOCK
  uint64_t address;  // of OOM: bytes free of the device; 0 where not recorded
  uint64_t size;
  uint64_t time_us;  // as recorded; 0 where the trace has no clock
  uint64_t stream;   // as recorded: a number that tells streams apart
  uint32_t stack;    // index into stacks, or TARN_TRACE_NO_STACK
  uint32_t tag;      // index into tags: of the block, or of what was refused
  uint32_t thread;   // as recorded: a number that tells threads apart
  uint32_t reserved;
} tarn_trace_event;

typedef struct tarn_trace_block {
  uint64_t size;     // bytes that were asked for, where known; never 0
  uint64_t address;  // where it stood when it was recorded; 0: unknown
  uint64_t stream;   // on which it was allocated
  uint32_t born;     // index of its TARN_TRACE_ALLOC, or TARN_TRACE_BASELINE
  uint32_t died;     // index of its TARN_TRACE_FREE, or TARN_TRACE_NEVER
  uint32_t stack;    // of its birth, or TARN_TRACE_NO_STACK
  uint32_t tag;      // index into tags: what for
} tarn_trace_block;

typedef struct tarn_trace_frame {
  const char *file;  // "" if unknown; any bytes but NUL, so neutralise them
  const char *function;
  uint32_t line;  // 0 if unknown
} tarn_trace_frame;

// A stack: |count| indices into frames at frame_indices[first], innermost
// first. Equal stacks are one.
typedef struct tarn_trace_stack {
  uint32_t first;
  uint32_t count;
} tarn_trace_stack;

// The allocator's own view at the end of the trace: what it held of the
// device. Empty where the format has none.
typedef struct tarn_trace_segment {
  uint64_t address;
  uint64_t size;
  uint64_t stream;
} tarn_trace_segment;

typedef struct tarn_trace {
  size_t struct_size;  // set by the library
  const char *name;    // the path or the workload, as it was asked for
  const char *format;  // "tarn", "pytorch-snapshot", "rmm-csv", "umpire-json",
                       // "workload", "built"

  const tarn_trace_event *events;
  size_t event_count;
  const tarn_trace_block *blocks;  // the baseline first, then by birth
  size_t block_count;
  size_t baseline_count;  // blocks[0 .. baseline_count) are the baseline

  const tarn_trace_frame *frames;
  size_t frame_count;
  const uint32_t *frame_indices;
  size_t frame_index_count;
  const tarn_trace_stack *stacks;
  size_t stack_count;

  const char *const *tags;  // any bytes but NUL, so neutralise them
  size_t tag_count;         // at least 1: tags[0] is ""

  const tarn_trace_segment *segments;
  size_t segment_count;

  // Sums over the above.
  size_t request_count;      // events of kind ALLOC or FREE
  uint64_t baseline_bytes;   // of the baseline's blocks
  uint64_t live_peak_bytes;  // most bytes alive at once, baseline included
  uint32_t live_peak_event;  // first event after which that many were alive;
                             // TARN_TRACE_BASELINE: already before the first
  uint32_t device;           // which device of the trace this is
  uint32_t device_count;     // how many devices of it have events or segments
  // Alive at the end, but born after the last event: not part of the trace.
  uint64_t ignored_bytes;
  size_t ignored_count;
  // Frees, in a format that names no sizes there, of what no event had named.
  size_t unknown_count;
  // Events that the recorder says it could not write down.
  uint64_t lost_count;
  // The file ends within a record: it was cut, or is still being written. What
  // is whole of it is the trace.
  bool unfinished;
} tarn_trace;

typedef struct tarn_trace_options {
  size_t struct_size;
  // With |choose_device|: the device of a trace of several to read. Otherwise
  // the one with most events; of equals the one with most segments, and then
  // the first.
  bool choose_device;
  uint32_t device;
} tarn_trace_options;

// Reads the trace in the file at |path|; |options| may be NULL.
//
// What the bytes begin with tells the format; docs/traces.md says what becomes
// of each:
//
//   Tarn's own     what `tarn record` and tarn_trace_write write. A file that
//                  still grows, or was cut, is read as far as it is whole.
//   PyTorch's      memory snapshots, as torch.cuda.memory._dump_snapshot() and
//                  pickle.dump(torch.cuda.memory._snapshot()) write them
//                  (pickle protocols 2 to 5). Only the opcodes that build data
//                  are obeyed; all others, those that call among them, are
//                  refused by name, so that reading is safe by construction.
//                  Keys, actions and states that are not known are passed
//                  over. One that is cut is damaged.
//   RMM's CSV,     lines that may still be written while they are read: the
//   Umpire's log   last one counts from its newline on. Their errors name a
//                  line in place of a byte.
//
// Snapshots: blocks that are freed without an alloc, and blocks active in the
// segments at addresses that no alloc or free names, are the baseline, the
// latter at requested_size where given. A block active where the events saw one
// freed was allocated after the last event, and is no part of the trace: see
// ignored_bytes and ignored_count. In RMM's log a free without an alloc is of
// the baseline too; in Tarn's and Umpire's, whose frees name no size, it is
// passed over: see unknown_count.
//
// What contradicts itself is damaged: a block of 0 bytes; an alloc where a
// block lives; a free of what is dead, or of another size than its block's,
// where frees name sizes; of snapshots: active blocks of which two stand at one
// address, or of more requested_size than size; blocks outside their segment,
// or within the one before it. Where a recorder lost events, a birth where a
// block lives ends that block. Not checked: whether blocks of the events, or of
// two segments, overlap at different addresses.
//
// |path| is that of a regular file, or of a link to one: not of a pipe.
//
// Lifetime: free it with tarn_trace_destroy.
// Cost:     linear in the file, but for a logarithm of its pages and mappings;
//           asks for at most 64 x the file's size + 1 MiB of host memory, the
//           file itself included.
// TARN_E_IO       the file cannot be read.
// TARN_E_CORRUPT  damaged, hostile, or of no known format; the text names the
//                 file, the byte and what stood there.
// TARN_E_INVALID  |options| name a device without events and segments.
// TARN_E_NOMEM    no host memory, or more than the above would be needed.
// TARN_E_UNSUPPORTED  a file of 4 GiB or more; nothing of it is read.
TARN_API TARN_MUST_CHECK tarn_status
tarn_trace_read(const char *path, const tarn_trace_options *options,
                tarn_trace **out_trace);

// The same from |size| bytes in memory; |name| stands for the file in errors.
// The bytes are not needed afterwards.
TARN_API TARN_MUST_CHECK tarn_status tarn_trace_read_bytes(
    const void *bytes, size_t size, const char *name,
    const tarn_trace_options *options, tarn_trace **out_trace);

// Makes the history of one iteration of a known net from its layers' shapes:
//
//   @bert-layer    one BERT-base layer, batch 4, sequence 128, training step
//   @resnet50-b8   ResNet-50 on 224 x 224 images, batch 8, training step
//   @resnet50-b32  the same with batch 32
//   @kv-decode     token by token decoding; the key and value caches grow
//   @random        sizes of 256 B to 64 MB and lifetimes drawn from a fixed
//                  seed
//
// The same name always gives the same trace. Each frees all that it
// allocates, so that it can be repeated; what outlives an iteration, the
// parameters, is thus not in it, but their gradients are. Nothing is known of
// addresses, times and streams. A stack has two frames: the layer, and what
// the block is for, such as "output" or "gradient"; one, its class of size,
// for @random.
//
// Lifetime: free it with tarn_trace_destroy.
// TARN_E_INVALID  an unknown name; the text lists the known ones.
// TARN_E_NOMEM    no host memory.
TARN_API TARN_MUST_CHECK tarn_status tarn_trace_make(const char *name,
                                                     tarn_trace **out_trace);

// The names that tarn_trace_make knows, in order; NULL from |index| on that is
// beyond the last.
TARN_API const char *tarn_trace_workload(size_t index);

// Frees a trace. NULL is allowed.
TARN_API void tarn_trace_destroy(tarn_trace *trace);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_TRACE_H_
