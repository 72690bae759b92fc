// trace.h - reads and makes traces: histories of a program's allocations.
//
//   tarn_trace *trace;
//   if (tarn_trace_read("snapshot.pickle", NULL, &trace) != TARN_OK)
//     return fail(tarn_last_error());
//   for (size_t i = 0; i < trace->block_count; i++)
//     if (trace->blocks[i].died == TARN_TRACE_NEVER)
//       leaked += trace->blocks[i].size;
//   tarn_trace_destroy(trace);
//
// A trace is a list of blocks and a list of events. A block is one allocation
// from its birth to its death. An event is a moment at which memory was
// allocated or freed, or a request failed. The baseline are the blocks that
// were alive before the first event; they may die within the trace.
//
//       baseline  |=====================|          weights, freed at event 9
//       block 1        |======|                    alloc at 2, free at 5
//       block 2             |=================...  alloc at 4, never freed
//       events    0  1 2  3 4 5 ...
//
// A trace is independent of pools and devices. `tarn replay` runs it through
// pools, `tarn plan` plans it, and `tarn why` explains it.
//
// Lifetime: everything that a tarn_trace points to lives as long as the trace.
// Threads:  a trace never changes: any number of threads may read it at once.
#ifndef TARN_TRACE_H_
#define TARN_TRACE_H_

#include "tarn/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tarn_trace_kind {
  TARN_TRACE_ALLOC = 1,           // |block| was born
  TARN_TRACE_FREE = 2,            // |block| died: its bytes can be reused
  TARN_TRACE_FREE_REQUESTED = 3,  // |block|'s owner freed it; its bytes are
                                  // reused only after TARN_TRACE_FREE
  TARN_TRACE_SEGMENT_ALLOC = 4,   // the allocator took memory of the device
  TARN_TRACE_SEGMENT_FREE = 5,    // the allocator returned it
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
  uint32_t tag;      // index into tags: of the block or the refused request
  uint32_t thread;   // as recorded: a number that tells threads apart
  uint32_t reserved;
} tarn_trace_event;

typedef struct tarn_trace_block {
  uint64_t size;     // bytes requested, if known, else allocated; never 0
  uint64_t address;  // as recorded; 0: unknown
  uint64_t stream;   // on which it was allocated
  uint32_t born;     // index of its TARN_TRACE_ALLOC, or TARN_TRACE_BASELINE
  uint32_t died;     // index of its TARN_TRACE_FREE, or TARN_TRACE_NEVER
  uint32_t stack;    // of its birth, or TARN_TRACE_NO_STACK
  uint32_t tag;      // index into tags: its purpose
} tarn_trace_block;

typedef struct tarn_trace_frame {
  const char *file;  // "" if unknown; any bytes but NUL: escape before printing
  const char *function;
  uint32_t line;  // 0 if unknown
} tarn_trace_frame;

// A stack: |count| indices into frames at frame_indices[first], innermost
// first. Equal stacks are stored once.
typedef struct tarn_trace_stack {
  uint32_t first;
  uint32_t count;
} tarn_trace_stack;

// Memory of the device that the allocator held at the end of the trace. Empty
// if the format has no segments.
typedef struct tarn_trace_segment {
  uint64_t address;
  uint64_t size;
  uint64_t stream;
} tarn_trace_segment;

typedef struct tarn_trace {
  size_t struct_size;  // set by the library
  const char *name;    // the path or the workload, as passed
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

  const char *const *tags;  // any bytes but NUL: escape before printing
  size_t tag_count;         // at least 1: tags[0] is ""

  const tarn_trace_segment *segments;
  size_t segment_count;

  // Sums over the above.
  size_t request_count;      // events of kind ALLOC or FREE
  uint64_t baseline_bytes;   // of the baseline's blocks
  uint64_t live_peak_bytes;  // most bytes alive at once, baseline included
  uint32_t live_peak_event;  // first event after which that many were alive;
                             // TARN_TRACE_BASELINE: already before the first
  uint32_t device;           // the number of this device in the file
  uint32_t device_count;     // devices of the file with events or segments
  // Blocks alive at the end, but born after the last event. They are not part
  // of the trace.
  uint64_t ignored_bytes;
  size_t ignored_count;
  // Frees of unknown blocks, in a format whose frees have no size.
  size_t unknown_count;
  // Events that the recorder could not write.
  uint64_t lost_count;
  // The file ends within a record: it was cut, or is still being written. The
  // trace has its complete records.
  bool unfinished;
} tarn_trace;

typedef struct tarn_trace_options {
  size_t struct_size;
  // With |choose_device|, |device| is the device to read. Otherwise the device
  // with most events is read; of equals, the one with most segments, then the
  // first.
  bool choose_device;
  uint32_t device;
} tarn_trace_options;

// Reads the trace in the file at |path|; |options| may be NULL.
//
// The first bytes tell the format (docs/traces.md describes each):
//
//   Tarn's own     written by `tarn record` and tarn_trace_write. A file that
//                  still grows, or was cut, is read up to its last complete
//                  record.
//   PyTorch        memory snapshots, written by
//                  torch.cuda.memory._dump_snapshot() or
//                  pickle.dump(torch.cuda.memory._snapshot()), in pickle
//                  protocols 2 to 5. The reader executes only the opcodes that
//                  build data and refuses all others by name, so no snapshot
//                  can run code. Unknown keys, actions and states are skipped.
//                  A cut snapshot is damaged.
//   RMM's CSV,     lines, which may still be written during the read: a last
//   Umpire's log   line without its newline is skipped. Errors name a line in
//                  place of a byte.
//
// The baseline of a snapshot are the blocks that are freed without an alloc,
// and the active blocks in its segments at addresses that no event names, with
// their requested_size if they have one. An active block at an address that was
// freed last was allocated after the last event, and is not in the trace: see
// ignored_bytes and ignored_count. In RMM's log a free without an alloc also
// belongs to the baseline. In Tarn's and Umpire's logs, whose frees have no
// size, it is skipped: see unknown_count.
//
// A file that contradicts itself is damaged: a block of 0 bytes; an alloc where
// a block lives; a free of a dead block, or with another size than the block's;
// in snapshots, two active blocks at one address, a requested_size above the
// size, a block outside its segment or overlapping the one before. If the
// recorder lost events, an alloc where a block lives ends that block. Overlap
// of blocks at different addresses, or of segments, is not checked.
//
// |path| names a regular file or a link to one; a pipe is refused.
//
// Lifetime: free it with tarn_trace_destroy.
// Cost:     linear in the file; Tarn's format: times a logarithm of its pages
//           and mappings. Host memory is at most 64 x the file's size + 1 MiB,
//           including the file itself.
// TARN_E_IO       the file cannot be read.
// TARN_E_CORRUPT  the file is damaged, hostile, or of no known format; the text
//                 names the file, the byte and the value found there.
// TARN_E_INVALID  |options| name a device without events and segments.
// TARN_E_NOMEM    no host memory, or more than the limit above is needed.
// TARN_E_UNSUPPORTED  a file of 4 GiB or more; nothing of it is read.
TARN_API TARN_MUST_CHECK tarn_status
tarn_trace_read(const char *path, const tarn_trace_options *options,
                tarn_trace **out_trace);

// Reads a trace from |size| bytes in memory; |name| stands for the file in
// errors. The bytes are not needed afterwards.
TARN_API TARN_MUST_CHECK tarn_status tarn_trace_read_bytes(
    const void *bytes, size_t size, const char *name,
    const tarn_trace_options *options, tarn_trace **out_trace);

// Makes the history of one iteration of a known net from its layers' shapes, or
// of a program that does not repeat:
//
//   @bert-layer    one BERT-base layer, batch 4, sequence 128, training step
//   @resnet50-b8   ResNet-50 on 224 x 224 images, batch 8, training step
//   @resnet50-b32  the same with batch 32
//   @kv-decode     token by token decoding; the key and value caches grow
//   @random        sizes of 256 B to 64 MB and lifetimes drawn from a fixed
//                  seed
//   @serving       a server of a language model with continuous batching: a
//                  front end and four workers
//   @varlen        two BERT-base layers, batch 8, 56 training steps whose
//                  lengths differ
//   @dataloader    images that are read, decoded and batched ahead of a
//                  training, by six threads beside its own
//
// The last three are drawn from a fixed seed as well; docs/traces.md states
// their distributions. In @serving and @dataloader events name their threads,
// which free each other's blocks.
//
// ":seed=N" behind a name, as in "@serving:seed=7", draws with another seed;
// nets draw nothing, and are the same with each.
//
// The same name always gives the same trace. Each trace frees all that it
// allocates, so that it can be repeated: gradients are in it, but parameters,
// which outlive an iteration, are not. Addresses, times and streams are
// unknown. A stack has two frames: the layer, and the purpose of the block,
// such as "output" or "gradient". In @serving and @dataloader the frames are
// the purpose of the block and the part of the program that asks for it. In
// @random a stack has one frame: the size class of the block.
//
// Lifetime: free it with tarn_trace_destroy.
// TARN_E_INVALID  an unknown name; the text lists the known names.
// TARN_E_NOMEM    no host memory.
TARN_API TARN_MUST_CHECK tarn_status tarn_trace_make(const char *name,
                                                     tarn_trace **out_trace);

// The name at |index| of those that tarn_trace_make knows; NULL beyond the
// last.
TARN_API const char *tarn_trace_workload(size_t index);

// Frees a trace. NULL is allowed.
TARN_API void tarn_trace_destroy(tarn_trace *trace);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_TRACE_H_
