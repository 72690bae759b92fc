// extension.h - the sim plug-in's functions beyond the ABI.
//
// Memory and addresses:
//
//   windows  [ blocks, with a mirror ]   [ ranges: addresses and nothing else ]
//                                          [ range                  ]
//                                            [ mapping ][ mapping ]
//                                              |            |
//   mirror   [ block | physical bytes <--------+-- ... <----+ ]
//
// A mapping is only a record: no page is ever mapped for it, so that there can
// be any number of them, and the host still faults there. Calls with an address
// of a range look its bytes up, piece by piece.
#ifndef TARN_PLUGINS_SIM_EXTENSION_H_
#define TARN_PLUGINS_SIM_EXTENSION_H_

#include "sim.h"
#include "tarn/device_ext.h"

// The functions of the extension: tarn__sim_ and the name of the slot.
#define TARN__SIM_EXT_DECLARE(name) TARN__COMMON_EXT_DECLARE(tarn__sim_, name);
TARN__COMMON_EXT_SLOTS(TARN__SIM_EXT_DECLARE)
TARN__COMMON_EXT_MORE_SLOTS(TARN__SIM_EXT_DECLARE)

// --- range.c ---------------------------------------------------------------

static const size_t TARN__SIM_GRANULE = (size_t)64 << 10;

static inline bool tarn__sim_is_granular(uint64_t value) {
  return value != 0 && value % TARN__SIM_GRANULE == 0;
}

// Memory without an address. Guarded by the lock of ranges.
typedef struct tarn__sim_physical {
  tarn__sim_device *home;  // in whose mirror it is
  uint64_t address;        // and where, in terms of the window
  size_t size;
  int file;         // by which others share it; -1: they cannot
  bool counted;     // of the home's capacity
  bool held;        // by its handle
  size_t mappings;  // 0 for good where it has been cut: then it has no bytes,
                    // and is there as long as its handle
} tarn__sim_physical;

// A mapping's record. A bit for each device.
typedef struct tarn__sim_mapping {
  tarn__sim_physical *memory;
  uint64_t readers;
  uint64_t writers;
} tarn__sim_mapping;

void tarn__sim_lock_ranges(void);
void tarn__sim_unlock_ranges(void);

// In |owner|'s window of ranges: whether device |by| may do what |request| says
// with its bytes. |*out| is the first piece of them. |*serial| stands for all
// mappings there and is set if it is 0; else it must not have changed.
tarn__sim_finding tarn__sim_find_mapped(const tarn__sim_device *owner,
                                        const tarn__sim_device *by,
                                        const tarn__sim_request *request,
                                        uint64_t *serial, tarn__sim_piece *out);

// The range of which |run| is a part; NULL if it is of none. Caller holds the
// lock of ranges, as for the next three.
tarn__common_extent *tarn__sim_range_around(const tarn__sim_device *device,
                                            tarn__common_run run);

// Whether devices take parts of |mapping|.
bool tarn__sim_can_be_cut(const tarn__sim_mapping *mapping);

// The fault of |run| as a row of mappings, whole or such as can be cut; NULL:
// none.
const char *tarn__sim_check_mapped(const tarn__sim_device *device,
                                   tarn__common_run run);

// Cuts what has to be, so that |run|, which has been checked, is whole
// mappings. False: no host memory.
TARN_MUST_CHECK bool tarn__sim_cut_out(tarn__sim_device *device,
                                       tarn__common_run run);

// Takes out whatever there is of |device|, and its memory wherever mapped.
void tarn__sim_ranges_close(tarn__sim_device *device);

// --- physical.c ------------------------------------------------------------

// The memory of that handle, NULL if there is none. Caller holds the lock of
// ranges, as for the others.
tarn__sim_physical *tarn__sim_physical_find(uint64_t memory);

// Gives its bytes back unless it is held or mapped.
void tarn__sim_physical_settle(tarn__sim_physical *memory);

// Cuts private mapped memory behind its first |size| bytes. |*out_first| and
// |*out_rest| are memory without a handle, with one mapping each; |memory| is
// not to be used any more. False: no host memory, and nothing has changed.
TARN_MUST_CHECK bool tarn__sim_physical_cut(tarn__sim_physical *memory,
                                            size_t size,
                                            tarn__sim_physical **out_first,
                                            tarn__sim_physical **out_rest);

// Drops all handles of memory of |device|.
void tarn__sim_physical_close(const tarn__sim_device *device);

// --- share.c ---------------------------------------------------------------

// Blocks of fewer bytes stand on pages with others.
static const size_t TARN__SIM_OWNS_PAGES = (size_t)64 << 10;

// The record of a shared block. The device's lock guards it.
typedef struct tarn__sim_shared {
  int file;       // behind its bytes of the mirror
  bool imported;  // another process has made it
} tarn__sim_shared;

// Whether another process has made the block at |address|. Caller holds the
// device's lock, as for the next two.
bool tarn__sim_is_import(const tarn__sim_device *device, uint64_t address);

// Puts private bytes where a file is, if |block| is shared. False if the system
// refuses: then the bytes must not be reused.
TARN_MUST_CHECK bool tarn__sim_unshare(tarn__sim_device *device,
                                       const tarn__common_extent *block);

// Closes all files; the mirror itself goes next.
void tarn__sim_shared_close(tarn__sim_device *device);

// --- extension.c ------------------------------------------------------------

// Where each of them begins: tarn__sim_enter, in terms of the extension.
tarn_status tarn__sim_admit(tarn__sim_call call, int id,
                            tarn__sim_device **out);

// The extension's status for a status of the ABI.
tarn_status tarn__sim_answer(C_Status status);

// |device| has no more of |what|, "bytes of memory". Writes the text of the
// thread; TARN_FULL.
tarn_status tarn__sim_full(const tarn__sim_device *device, size_t size,
                           const char *what);

// The system refuses |what|. Writes the text of the thread; TARN_E_NOMEM.
tarn_status tarn__sim_no_resources(const tarn__sim_device *device,
                                   const char *what);

// The stream, NULL if |stream| is; it must be one of |device|.
tarn_status tarn__sim_admit_stream(tarn__sim_call call,
                                   const tarn__sim_device *device, void *stream,
                                   C_Stream *out);

#endif  // TARN_PLUGINS_SIM_EXTENSION_H_
