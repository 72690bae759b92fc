// mappings.h - what is mapped in ranges, by address.
//
//   range      [ reserved                                       ]
//   mappings       [ handle 7 ][ no handle    ][ no handle ]
//                               cut anywhere    moved here
//
// Private memory is cut as it is unmapped, moved and given access in parts; its
// handle is spent by that. Without a handle it is nobody's but its mapping's,
// and two neighbours are joined where the kernel has one mapping for them:
// their bytes are accessible alike and have always stood side by side. So it is
// known about how many mappings the kernel has: it joins a few less.
//
// Not synchronized: every function is called under the lock of ranges
// (range.c).
#ifndef TARN_PLUGINS_CPU_MAPPINGS_H_
#define TARN_PLUGINS_CPU_MAPPINGS_H_

#include "backing.h"
#include "base/range_map.h"
#include "common/extents.h"

typedef struct tarn__cpu_mapping {
  tarn__range_map_node node;  // |start|: the address; |value|: the access
  size_t size;
  tarn__cpu_backing *backing;  // NULL: private memory without a handle
  uint64_t origin;             // where its first byte stood at first
  const tarn__common_extent *range;
} tarn__cpu_mapping;

static inline uint64_t tarn__cpu_mapping_end(const tarn__cpu_mapping *m) {
  return m->node.start + m->size;
}

static inline bool tarn__cpu_mapping_holds(const tarn__cpu_mapping *m,
                                           uint64_t addr) {
  return m != NULL && addr - m->node.start < m->size;
}

// The last mapping that starts at |addr| or before; NULL: none.
tarn__cpu_mapping *tarn__cpu_mapping_at(uint64_t addr);

// The mapping behind |m|, or the first if that is NULL, if it starts before
// |end|; else NULL.
tarn__cpu_mapping *tarn__cpu_mapping_behind(const tarn__cpu_mapping *m,
                                            uint64_t end);

// The first mapping of the bytes from |addr| to |end|; NULL: none.
tarn__cpu_mapping *tarn__cpu_mapping_first(uint64_t addr, uint64_t end);

// Notes that |backing| is mapped at |addr|, without access. NULL: no host
// memory.
tarn__cpu_mapping *tarn__cpu_mapping_add(const tarn__common_extent *range,
                                         uint64_t addr,
                                         tarn__cpu_backing *backing);

// Ends the note, not the memory.
void tarn__cpu_mapping_forget(tarn__cpu_mapping *m);

// The same of those of its bytes that are before |end|, and of those from
// |addr| on, of a private mapping, whose handle is spent. Cannot fail.
void tarn__cpu_mapping_forget_front(tarn__cpu_mapping *m, uint64_t end);
void tarn__cpu_mapping_forget_back(tarn__cpu_mapping *m, uint64_t addr);

// |m|, which must not be joined with what is around it, stands at |addr| in
// |range| now.
void tarn__cpu_mapping_shift(tarn__cpu_mapping *m,
                             const tarn__common_extent *range, uint64_t addr);

void tarn__cpu_mapping_set_access(tarn__cpu_mapping *m, tarn__os_access access);

// Cuts the mapping that holds |addr|, which is private, so that one begins
// there. Nothing is done where one does, or none is. False: no host memory.
TARN_MUST_CHECK bool tarn__cpu_mapping_cut(uint64_t addr);

// Whether |m| may be cut.
bool tarn__cpu_mapping_is_private(const tarn__cpu_mapping *m);

// Whether the mappings that end and begin at |addr| are one of the kernel's.
bool tarn__cpu_mapping_is_joint(uint64_t addr);

// Joins the mappings that meet at |addr|, if they are and have no handle.
void tarn__cpu_mapping_join(uint64_t addr);

// Ends the handle of |backing|. If that is private and mapped, the memory is
// the mapping's from now on.
void tarn__cpu_mapping_drop(tarn__cpu_backing *backing);

// Whether there are so many mappings that those of the kernel, which has one
// for each of them and one for each gap, may be |most|.
bool tarn__cpu_mappings_are_many(size_t most);

// Any one; NULL: there is none.
tarn__cpu_mapping *tarn__cpu_mapping_any(void);

#endif  // TARN_PLUGINS_CPU_MAPPINGS_H_
