// Addresses and memory apart from each other, and memory of other processes.
#include <fcntl.h>
#include <unistd.h>

#include "check.h"

// A range of a few granules, with memory to put into it.
typedef struct space {
  size_t granule;
  size_t size;  // of the range: 4 granules
  uint64_t address;
} space;

enum { GRANULES = 4 };

static bool open_space(conform_target *t, space *s) {
  *s = (space){0};
  EXTENSION(t, range_granularity, t->device.id, &s->granule);
  s->size = GRANULES * s->granule;
  EXTENSION(t, range_reserve, t->device.id, s->size, 0, &s->address);
  EXPECT(t, s->address != 0 && s->address % s->granule == 0,
         "range_reserve gave 0x%llx, but the granularity is %zu",
         (unsigned long long)s->address, s->granule);
  return true;
}

static bool close_space(conform_target *t, const space *s) {
  EXTENSION(t, range_release, t->device.id, s->address, s->size);
  return true;
}

static bool make(conform_target *t, const space *s, uint32_t flags,
                 uint64_t *out) {
  EXTENSION(t, memory_create, t->device.id, s->granule, flags, out);
  EXPECT(t, *out != 0, "memory_create gave the handle 0");
  return true;
}

// Puts |memory| where granule |index| is, ready for use.
static bool map(conform_target *t, const space *s, size_t index,
                uint64_t memory) {
  uint64_t at = s->address + index * s->granule;
  EXTENSION(t, range_map, t->device.id, at, s->granule, memory);
  EXTENSION(t, range_set_access, t->device.id, at, s->granule, t->device.id,
            TARN_EXT_ACCESS_READ_WRITE);
  return true;
}

static bool unmap(conform_target *t, const space *s, size_t index,
                  size_t count) {
  EXTENSION(t, range_unmap, t->device.id, s->address + index * s->granule,
            count * s->granule);
  return true;
}

static bool drop(conform_target *t, uint64_t memory) {
  EXTENSION(t, memory_destroy, t->device.id, memory);
  return true;
}

// A range with new memory at granule |index|; the end of both.
static bool open_mapped(conform_target *t, space *s, uint32_t flags,
                        size_t index, uint64_t *out_memory) {
  return open_space(t, s) && make(t, s, flags, out_memory) &&
         map(t, s, index, *out_memory);
}

static bool close_mapped(conform_target *t, const space *s, size_t index,
                         uint64_t memory) {
  return unmap(t, s, index, 1) && drop(t, memory) && close_space(t, s);
}

static bool write_at(conform_target *t, const space *s, size_t index,
                     unsigned seed) {
  return check_write(t, check_pointer(s->address + index * s->granule), 4099,
                     seed);
}

static bool verify_at(conform_target *t, const space *s, size_t index,
                      const char *what, unsigned seed) {
  return check_verify(t, what, check_pointer(s->address + index * s->granule),
                      4099, seed);
}

// ---------------------------------------------------------------------------
// Ranges
// ---------------------------------------------------------------------------

static bool granularity(conform_target *t) {
  size_t size = 0;
  EXTENSION(t, range_granularity, t->device.id, &size);
  EXPECT(t, tarn_is_power_of_two(size), "%zu is no power of two", size);
  return true;
}

static bool reserve(conform_target *t) {
  space s;
  uint64_t address = 0;
  if (!open_space(t, &s)) return false;
  size_t align = 16 * s.granule;
  EXTENSION(t, range_reserve, t->device.id, s.size, align, &address);
  EXPECT(t, address != 0 && address % align == 0,
         "range_reserve aligned to %zu gave 0x%llx", align,
         (unsigned long long)address);
  EXPECT(t, address >= s.address + s.size || address + s.size <= s.address,
         "two ranges of %zu bytes overlap: 0x%llx and 0x%llx", s.size,
         (unsigned long long)s.address, (unsigned long long)address);
  EXTENSION(t, range_release, t->device.id, address, s.size);
  return close_space(t, &s);
}

static bool reserve_refuses(conform_target *t) {
  size_t granule = 0;
  uint64_t address = 1;
  EXTENSION(t, range_granularity, t->device.id, &granule);
  tarn_status got =
      t->ext->range_reserve(t->device.id, granule + 1, 0, &address);
  return conform_was_refused(t, "range_reserve of a granule and a byte", got) &&
         conform_was_refused(
             t, "range_reserve of 0 bytes",
             t->ext->range_reserve(t->device.id, 0, 0, &address));
}

static bool copy_across(conform_target *t) {
  space s;
  uint64_t memory[2];
  if (!open_space(t, &s) || !make(t, &s, 0, &memory[0]) ||
      !make(t, &s, 0, &memory[1]) || !map(t, &s, 0, memory[0]) ||
      !map(t, &s, 1, memory[1])) {
    return false;
  }
  void *middle = check_pointer(s.address + s.granule - 2001);
  return check_write(t, middle, 5003, 111) &&
         check_verify(t, "bytes across two mappings", middle, 5003, 111) &&
         unmap(t, &s, 0, 2) && drop(t, memory[0]) && drop(t, memory[1]) &&
         close_space(t, &s);
}

// The bytes go with the memory, wherever it is mapped.
static bool unmap_keeps(conform_target *t) {
  space s;
  uint64_t memory = 0;
  return open_mapped(t, &s, 0, 0, &memory) && write_at(t, &s, 0, 112) &&
         unmap(t, &s, 0, 1) && map(t, &s, 2, memory) &&
         verify_at(t, &s, 2, "memory that was mapped elsewhere before", 112) &&
         close_mapped(t, &s, 2, memory);
}

static bool mapping_outlives_handle(conform_target *t) {
  space s;
  uint64_t memory = 0;
  return open_mapped(t, &s, 0, 1, &memory) && drop(t, memory) &&
         write_at(t, &s, 1, 113) &&
         verify_at(t, &s, 1, "mapped memory whose handle is gone", 113) &&
         unmap(t, &s, 1, 1) && close_space(t, &s);
}

static bool map_refuses(conform_target *t) {
  space s;
  uint64_t memory[2];
  int id = t->device.id;
  if (!open_space(t, &s) || !make(t, &s, 0, &memory[0]) ||
      !make(t, &s, 0, &memory[1]) || !map(t, &s, 0, memory[0])) {
    return false;
  }
  return conform_was_refused(
             t, "range_map where something is mapped",
             t->ext->range_map(id, s.address, s.granule, memory[1])) &&
         conform_was_refused(
             t, "range_map of memory that is mapped and not shareable",
             t->ext->range_map(id, s.address + s.granule, s.granule,
                               memory[0])) &&
         conform_was_refused(
             t, "range_release of a range in which something is mapped",
             t->ext->range_release(id, s.address, s.size)) &&
         conform_was_refused(
             t, "range_release of half a range",
             t->ext->range_release(id, s.address, s.size / 2)) &&
         unmap(t, &s, 0, 1) && drop(t, memory[0]) && drop(t, memory[1]) &&
         close_space(t, &s);
}

static bool map_twice(conform_target *t) {
  space s;
  uint64_t memory = 0;
  return open_mapped(t, &s, TARN_EXT_MEMORY_SHAREABLE, 0, &memory) &&
         map(t, &s, 3, memory) && write_at(t, &s, 0, 114) &&
         verify_at(t, &s, 3, "shareable memory, at its second address", 114) &&
         unmap(t, &s, 0, 1) && close_mapped(t, &s, 3, memory);
}

static bool copy_to_block(conform_target *t) {
  space s;
  uint64_t memory = 0;
  void *block = NULL;
  if (!open_mapped(t, &s, 0, 0, &memory) || !write_at(t, &s, 0, 115) ||
      !check_take(t, 4099, &block)) {
    return false;
  }
  CALL(t, memory_copy_d2d, &t->device, block, check_pointer(s.address), 4099);
  return check_verify(t, "a block that was copied from a range", block, 4099,
                      115) &&
         close_mapped(t, &s, 0, memory);
}

// ---------------------------------------------------------------------------
// Moves
// ---------------------------------------------------------------------------

static uint64_t granule_at(const space *s, size_t index) {
  return s->address + index * s->granule;
}

// Moves |count| granules, all of them.
static bool move(conform_target *t, const space *s, size_t from, size_t to,
                 size_t count) {
  size_t moved = 0;
  EXTENSION(t, range_move, t->device.id, granule_at(s, from), granule_at(s, to),
            count * s->granule, &moved);
  EXPECT(t, moved == count * s->granule,
         "range_move of %zu bytes succeeded and says %zu", count * s->granule,
         moved);
  return true;
}

// Whether this one device moves memory: a table is of all.
static bool can_move(conform_target *t) {
  size_t moved = 1;
  tarn_status got = t->ext->range_move(t->device.id, 0, 0, 0, &moved);
  if (!conform_can(t, "range_move", got)) return false;
  EXPECT(t, got == TARN_OK && moved == 0,
         "range_move of 0 bytes answered %d, and says that %zu moved", (int)got,
         moved);
  return true;
}

// The bytes are at the new address, and the old one can be mapped anew.
static bool move_takes_bytes(conform_target *t) {
  space s;
  uint64_t memory = 0;
  uint64_t other = 0;
  return can_move(t) && open_mapped(t, &s, 0, 0, &memory) &&
         write_at(t, &s, 0, 118) && move(t, &s, 0, 2, 1) &&
         verify_at(t, &s, 2, "memory that has moved", 118) &&
         make(t, &s, 0, &other) && map(t, &s, 0, other) &&
         write_at(t, &s, 0, 119) &&
         verify_at(t, &s, 2, "memory that has moved, as another came", 118) &&
         unmap(t, &s, 0, 1) && drop(t, other) && unmap(t, &s, 2, 1) &&
         map(t, &s, 1, memory) &&
         verify_at(t, &s, 1, "memory that has moved, by its handle", 118) &&
         close_mapped(t, &s, 1, memory);
}

// Two granules of one memory: one moves, one stays, and each ends by itself.
static bool move_takes_parts(conform_target *t) {
  space s;
  uint64_t memory = 0;
  int id = t->device.id;
  if (!can_move(t) || !open_space(t, &s)) return false;
  EXTENSION(t, memory_create, id, 2 * s.granule, 0, &memory);
  EXTENSION(t, range_map, id, s.address, 2 * s.granule, memory);
  EXTENSION(t, range_set_access, id, s.address, 2 * s.granule, id,
            TARN_EXT_ACCESS_READ_WRITE);
  return drop(t, memory) && write_at(t, &s, 0, 120) &&
         write_at(t, &s, 1, 121) && move(t, &s, 1, 3, 1) &&
         verify_at(t, &s, 0, "the part that stayed", 120) &&
         verify_at(t, &s, 3, "the part that has moved", 121) &&
         move(t, &s, 3, 1, 1) && unmap(t, &s, 0, 1) &&
         verify_at(t, &s, 1, "a part, after the other was unmapped", 121) &&
         unmap(t, &s, 1, 1) && close_space(t, &s);
}

static bool move_refuses(conform_target *t) {
  space s;
  uint64_t memory = 0;
  uint64_t other = 0;
  size_t moved = 1;
  if (!can_move(t) || !open_mapped(t, &s, 0, 0, &memory) ||
      !make(t, &s, 0, &other) || !map(t, &s, 1, other)) {
    return false;
  }
  tarn_status got = t->ext->range_move(t->device.id, granule_at(&s, 0),
                                       granule_at(&s, 1), s.granule, &moved);
  if (!conform_was_refused(t, "range_move to where something is mapped", got))
    return false;
  EXPECT(t, moved == 0, "%zu bytes moved after a refusal, not 0", moved);
  got = t->ext->range_move(t->device.id, granule_at(&s, 2), granule_at(&s, 3),
                           s.granule, &moved);
  return conform_was_refused(t, "range_move from where nothing is mapped",
                             got) &&
         unmap(t, &s, 0, 2) && drop(t, memory) && drop(t, other) &&
         close_space(t, &s);
}

// ---------------------------------------------------------------------------
// Sharing
// ---------------------------------------------------------------------------

static bool share(conform_target *t) {
  space s;
  uint64_t memory = 0;
  uint64_t imported = 0;
  int fd = -1;
  if (!open_space(t, &s) || !make(t, &s, TARN_EXT_MEMORY_SHAREABLE, &memory)) {
    return false;
  }
  EXTENSION(t, memory_export, t->device.id, memory, &fd);
  EXPECT(t, fd >= 0, "memory_export gave the file descriptor %d", fd);
  EXTENSION(t, memory_import, t->device.id, fd, s.granule, &imported);
  close(fd);
  EXPECT(t, imported != 0, "memory_import gave the handle 0");
  return map(t, &s, 0, memory) && map(t, &s, 1, imported) &&
         write_at(t, &s, 0, 116) &&
         verify_at(t, &s, 1, "memory that was exported and imported", 116) &&
         write_at(t, &s, 1, 117) &&
         verify_at(t, &s, 0, "exported memory, written by who imported", 117) &&
         unmap(t, &s, 0, 2) && drop(t, memory) && drop(t, imported) &&
         close_space(t, &s);
}

static bool import_refuses(conform_target *t) {
  space s;
  uint64_t memory = 0;
  uint64_t imported = 1;
  int fd = -1;
  if (!open_space(t, &s) || !make(t, &s, TARN_EXT_MEMORY_SHAREABLE, &memory)) {
    return false;
  }
  EXTENSION(t, memory_export, t->device.id, memory, &fd);
  tarn_status got =
      t->ext->memory_import(t->device.id, fd, 2 * s.granule, &imported);
  close(fd);
  if (!conform_was_refused(t, "memory_import of twice the size", got))
    return false;
  fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  got = t->ext->memory_import(t->device.id, fd, s.granule, &imported);
  close(fd);
  if (!conform_was_refused(t, "memory_import of /dev/null", got)) return false;
  EXPECT(t, imported == 0, "the handle is %llu after a refusal, not 0",
         (unsigned long long)imported);
  return drop(t, memory) && close_space(t, &s);
}

static bool export_refuses(conform_target *t) {
  space s;
  uint64_t memory = 0;
  int fd = -1;
  if (!open_space(t, &s) || !make(t, &s, 0, &memory)) return false;
  tarn_status got = t->ext->memory_export(t->device.id, memory, &fd);
  return conform_can(t, "memory_export", got) &&
         conform_was_refused(t, "memory_export of memory that is not shareable",
                             got) &&
         drop(t, memory) && close_space(t, &s);
}

#define RESERVE                               \
  "ext->range_granularity(d.id, &granule);\n" \
  "ext->range_reserve(d.id, 4 * granule, 0, &range);\n"
#define CREATE(flags) "ext->memory_create(d.id, granule, " flags ", &memory);\n"
#define MAP(at)                     \
  "ext->range_map(d.id, " at        \
  ", granule, memory);\n"           \
  "ext->range_set_access(d.id, " at \
  ", granule, d.id,\n"              \
  "                      TARN_EXT_ACCESS_READ_WRITE);\n"
#define UNMAP(at) "ext->range_unmap(d.id, " at ", granule);\n"
#define MOVES \
  { SLOT(range_map), SLOT(range_move) }
#define SHARES \
  { SLOT(range_map), SLOT(memory_export) }

static const conform_check checks[] = {
    {CHECK("ranges.granularity", granularity, .extends = {SLOT(range_map)}),
     .code = "ext->range_granularity(d.id, &granule);\n"
             "assert(granule != 0 && (granule & (granule - 1)) == 0);\n"},
    {CHECK("ranges.reserve", reserve, .extends = {SLOT(range_map)}),
     .code = RESERVE "ext->range_reserve(d.id, 4 * granule, 16 * granule, &r);"
                     "\n"
                     "assert(r % (16 * granule) == 0);\n"},
    {CHECK("ranges.reserve_refuses", reserve_refuses,
           .extends = {SLOT(range_map)}),
     .code = "assert(ext->range_reserve(d.id, granule + 1, 0, &range) ==\n"
             "       TARN_E_INVALID);\n"},
    {CHECK("ranges.copy_across_mappings", copy_across,
           .extends = {SLOT(range_map)}),
     .code = RESERVE CREATE("0")
         MAP("range") "// and another one behind it\n"
                      "char *at = (char *)range + granule - 2001;\n"
                      "table->memory_copy_h2d(&d, at, bytes, 5003);  // reads "
                      "back\n"},
    {CHECK("ranges.copy_to_a_block", copy_to_block,
           .extends = {SLOT(range_map)}),
     .code = CREATE("0") MAP(
         "range") "table->memory_copy_d2d(&d, block, (void *)range, 4099);\n"},
    {CHECK("ranges.unmap_keeps_contents", unmap_keeps,
           .extends = {SLOT(range_map)}),
     .code = CREATE("0")
         MAP("range") "table->memory_copy_h2d(&d, (void *)range, bytes, "
                      "4099);\n" UNMAP("range") MAP(
                          "range + 2 * granule") "// the bytes are there\n"},
    {CHECK("ranges.mapping_outlives_handle", mapping_outlives_handle,
           .extends = {SLOT(range_map)}),
     .code = CREATE("0") MAP(
         "range") "ext->memory_destroy(d.id, memory);\n"
                  "table->memory_copy_h2d(&d, (void *)range, bytes, 4099);\n"},
    {CHECK("ranges.map_refuses", map_refuses, .extends = {SLOT(range_map)}),
     .code = CREATE("0")
         MAP("range") "// memory that is not shareable, again:\n"
                      "assert(ext->range_map(d.id, range + granule, granule, "
                      "memory) ==\n"
                      "       TARN_E_INVALID);\n"
                      "assert(ext->range_release(d.id, range, 4 * granule) ==\n"
                      "       TARN_E_INVALID);\n"},
    {CHECK("ranges.map_shareable_twice", map_twice,
           .extends = {SLOT(range_map)}),
     .code = CREATE("TARN_EXT_MEMORY_SHAREABLE") MAP("range")
         MAP("range + 3 * granule") "// both addresses show the same bytes\n"},
    {CHECK("ranges.move", move_takes_bytes, .extends = MOVES),
     .code = CREATE("0")
         MAP("range") "ext->range_move(d.id, range, range + 2 * granule, "
                      "granule,\n"
                      "                &moved);\n"
                      "// moved == granule, and the bytes are there\n"},
    {CHECK("ranges.move_parts", move_takes_parts, .extends = MOVES),
     .code = "ext->memory_create(d.id, 2 * granule, 0, &memory);\n"
             "// mapped at |range|, and its handle destroyed:\n"
             "ext->range_move(d.id, range + granule, range + 3 * granule, "
             "granule,\n"
             "                &moved);\n"
             "ext->range_unmap(d.id, range, granule);\n"},
    {CHECK("ranges.move_refuses", move_refuses, .extends = MOVES),
     .code = CREATE("0")
         MAP("range") "// and another one behind it:\n"
                      "assert(ext->range_move(d.id, range, range + granule, "
                      "granule,\n"
                      "                       &moved) == TARN_E_INVALID);\n"
                      "assert(moved == 0);\n"},
    {CHECK("sharing.export_and_import", share, .extends = SHARES),
     .code = CREATE(
         "TARN_EXT_MEMORY_SHAREABLE") "ext->memory_export(d.id, memory, &fd);\n"
                                      "ext->memory_import(d.id, fd, granule, "
                                      "&imported);\n"
                                      "// mapped side by side, both show the "
                                      "same bytes\n"},
    {CHECK("sharing.import_refuses", import_refuses, .extends = SHARES),
     .code = "assert(ext->memory_import(d.id, fd, 2 * granule, &imported) ==\n"
             "       TARN_E_INVALID);\n"
             "assert(ext->memory_import(d.id, open(\"/dev/null\", O_RDWR), "
             "granule,\n"
             "                          &imported) == TARN_E_INVALID);\n"},
    {CHECK("sharing.export_refuses", export_refuses, .extends = SHARES),
     .code = CREATE("0") "assert(ext->memory_export(d.id, memory, &fd) ==\n"
                         "       TARN_E_INVALID);\n"},
};

const conform_subject conform_ranges = CONFORM_SUBJECT(checks);
