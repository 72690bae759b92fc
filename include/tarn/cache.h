// cache.h - rows of a table, kept near their user.
//
//   tarn_cache_options options = {.struct_size = sizeof options,
//                                 .place = tarn_place_on(gpu),
//                                 .bytes = (size_t)1 << 30};
//   tarn_cache *cache;
//   tarn_cache_create(&table, &options, &cache);     // each rank its own
//   tarn_cache_gather(cache, &request, NULL);        // as tarn_whole_gather
//   tarn_cache_destroy(cache);                       // before the table
//
// The table is a whole-memory tensor of any type, at any place. The cache has
// copies of some of its rows at a place of this rank, in the table's dtype:
// rows of other ranks, rows of the host for a device, rows of a device for the
// host. A row that is asked for and is not there is read from the table once,
// whatever the number of indices and threads that ask for it, and stays. Which
// one goes for it is found by SIEVE: rows that were asked for again stay
// longer.
//
// What is seen, and when. A cache is of one rank, and tells no other rank
// anything:
//
//   READ_ONLY   a row is as it was when it was read, until it is dropped or
//               goes for another one. Writes to the table, of whatever rank,
//               this one too, are not seen before. To see them, all that have
//               cached the rows drop them after the write
//   WRITE_BACK  besides, what this rank scatters through the cache it sees at
//               once, and the table has it when tarn_cache_write_back returns;
//               of any row it may have it earlier. If several ranks scatter
//               different values to one row, each sees its own until the row is
//               dropped, and the table has the one that was written last, whole
//
// Writes to the table are seen by other ranks as whole.h says: after a write
// back and a barrier, where the table is mapped.
//
// Collectives: a gather, scatter, write back and warm of the cache are
// collective where the table's own gather is, a scatter and write back also
// where its scatter is: then all ranks have a cache of the same mode, and call
// the same functions in the same order, also where they miss nothing. What
// fails at one rank fails at all, with the same status, and all may try again.
// All else is this rank's alone.
//
// Streams: with a stream, the call first waits for it; in every case rows have
//          moved when it returns.
// Threads: many threads may use one cache, but one at a time for collectives.
//          As in the table itself, a row that one thread writes is not used by
//          others meanwhile.
// Fork:    in the child, a cache of the parent returns TARN_E_STATE. It can be
//          destroyed there.
// Errors:  besides those of each function: TARN_E_INVALID for a required
//          argument that is NULL, TARN_E_STATE as above, TARN_E_NOMEM.
#ifndef TARN_CACHE_H_
#define TARN_CACHE_H_

#include "tarn/base.h"
#include "tarn/whole.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_cache tarn_cache;

typedef enum tarn_cache_mode {
  TARN_CACHE_READ_ONLY = 0,
  TARN_CACHE_WRITE_BACK = 1,
} tarn_cache_mode;

typedef struct tarn_cache_options {
  size_t struct_size;
  tarn_cache_mode mode;  // 0: TARN_CACHE_READ_ONLY
  tarn_place place;      // where the rows lie; 0: TARN_HOST
  size_t rows;           // at least so many rows, if |bytes| is 0
  size_t bytes;     // at most so many bytes, for rows and all that the cache
                    // keeps besides; or 0
  size_t shards;    // parts with locks of their own, for threads: a power of
                    // two up to 256. 0: 16
  const char *tag;  // under which the pool of the place accounts for the rows.
                    // NULL: "cache"
} tarn_cache_options;

// Creates an empty cache of |table|.
//
// Besides its rows it keeps about 9 bytes a row. What a call needs comes and
// goes: 16 bytes for each index that is missed, and the rows that are missed
// once more, 4 MiB of them at a time, or all where the call is collective.
//
// Lifetime: until tarn_cache_destroy; the table lives longer.
// TARN_E_INVALID      the table is no tensor or has no rows; the mode or the
//                     place is unknown; both |rows| and |bytes| are set, or
//                     neither; fewer than 16 rows fit into |bytes|; |shards|.
// TARN_E_UNSUPPORTED  the table has more than 2^24 rows for each row of the
//                     cache, or the place has no memory of that kind.
// TARN_FULL           no memory for the rows.
TARN_API TARN_MUST_CHECK tarn_status
tarn_cache_create(const tarn_whole_tensor *table,
                  const tarn_cache_options *options, tarn_cache **out_cache);

// Ends the cache. What was not written back is lost. NULL is allowed.
//
// TARN_E_DEVICE  the driver refused to take the memory back.
TARN_API tarn_status tarn_cache_destroy(tarn_cache *cache);

// As tarn_whole_gather of the table, but through the cache.
//
// Of WRITE_BACK, rows that have to go are written to the table meanwhile.
//
// Cost: a hit is a look-up and a gather out of the cache. A miss is a gather
//       out of the table and two more copies of the row. Rows for which there
//       is no room at that moment, since others have all of it, are only
//       gathered. Where the call is collective, an exchange and a
//       tarn_comm_agree, whatever is missed.
// Errors of tarn_whole_gather, and of WRITE_BACK those of tarn_whole_scatter.
TARN_API TARN_MUST_CHECK tarn_status tarn_cache_gather(
    tarn_cache *cache, const tarn_whole_rows *rows, tarn_stream *stream);

// As tarn_whole_scatter, into the cache. Rows for which there is no room, and
// rows that have to go, are written to the table.
//
// TARN_E_STATE  the cache is READ_ONLY: at once, without the other ranks.
// Errors of tarn_whole_scatter; then an unspecified part of the rows was
// written, to the cache or to the table.
TARN_API TARN_MUST_CHECK tarn_status tarn_cache_scatter(
    tarn_cache *cache, const tarn_whole_rows *rows, tarn_stream *stream);

// Writes to the table what was scattered and is not there yet, in the order of
// rows. Returns at once of READ_ONLY. It uses these rows: no other thread
// scatters to them meanwhile.
//
// Cost: a pass over the cache for each 4 MiB of rows.
// Errors of tarn_whole_scatter; what was not written is written by the next
// call.
TARN_API TARN_MUST_CHECK tarn_status tarn_cache_write_back(tarn_cache *cache);

// Drops |count| rows, whose numbers the host has at |rows|; NULL: all rows.
// What was not written back of them is lost.
//
// TARN_E_INVALID  a row that the table does not have; none was dropped.
TARN_API TARN_MUST_CHECK tarn_status tarn_cache_drop(tarn_cache *cache,
                                                     const int64_t *rows,
                                                     size_t count);

// Fills the room that is free with the rows that are used most: |counts| has,
// on the host, how often each row of the table is used. Rows of count 0 are not
// read.
//
// Cost: a pass over |counts|, and 48 bytes of memory for each row of the cache
//       during the call.
// Errors of tarn_cache_gather.
TARN_API TARN_MUST_CHECK tarn_status tarn_cache_warm(tarn_cache *cache,
                                                     const uint64_t *counts);

// What the cache has, and what has happened since it was created.
typedef struct tarn_cache_stats {
  size_t struct_size;
  size_t rows;         // that it can have
  size_t used;         // that it has
  size_t dirty;        // that are not in the table yet
  size_t bytes;        // that it keeps, those of its rows included
  uint64_t hits;       // indices whose row was there
  uint64_t misses;     // indices for which a row was read, or of a scatter
                       // made room for
  uint64_t joined;     // indices whose row was just being read for another one
  uint64_t around;     // indices for which there was no room; misses too
  uint64_t evictions;  // rows that went for others
  uint64_t written;    // rows written to the table
  uint64_t bytes_hit;  // of rows
  uint64_t bytes_missed;
  uint64_t bytes_written;
} tarn_cache_stats;

// Fills |*out_stats|.
TARN_API TARN_MUST_CHECK tarn_status
tarn_cache_query(tarn_cache *cache, tarn_cache_stats *out_stats);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_CACHE_H_
