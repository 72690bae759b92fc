// The extension of the ABI without ranges and rows: alignment,
// stream order, registration, queries, texts.
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "check.h"

static bool table(conform_target *t) {
  if (t->entry.ext == NULL) {
    return conform_skip(t, "there is no extension (TarnDeviceExt)");
  }
  const tarn_device_ext *first = t->entry.ext();
  const tarn_device_ext *second = t->entry.ext();
  EXPECT(t, first == second, "TarnDeviceExt answers %p, then %p",
         (const void *)first, (const void *)second);
  if (first == NULL) return conform_skip(t, "TarnDeviceExt answers NULL");
  EXPECT(t, first->version == TARN_DEVICE_EXT_VERSION,
         "its version is %u, not %d: hosts leave it unused",
         (unsigned)first->version, TARN_DEVICE_EXT_VERSION);
  EXPECT(t, first->struct_size % sizeof(void *) == 0,
         "struct_size is %zu, and ends within a slot", first->struct_size);
  return true;
}

// ---------------------------------------------------------------------------
// Alignment
// ---------------------------------------------------------------------------

static bool alignment(conform_target *t) {
  size_t align = 0;
  void *block = NULL;
  EXTENSION(t, alignment, t->device.id, &align);
  EXPECT_QUIRK(t, tarn_is_power_of_two(align),
               "alignment is %zu, no power of two; to Tarn it promises "
               "nothing",
               align);
  for (size_t i = 0; check_lengths[i] != 0; i++) {
    if (!check_take(t, check_lengths[i], &block)) return false;
    EXPECT(t, check_address(block) % align == 0,
           "a block of %zu bytes is at %p, but alignment says %zu",
           check_lengths[i], block, align);
  }
  return true;
}

static bool allocate_aligned(conform_target *t) {
  enum { SIZE = 5003, LARGEST = 21 };
  for (unsigned k = 0; k <= LARGEST; k++) {
    uint64_t address = 0;
    size_t align = (size_t)1 << k;
    EXTENSION(t, allocate_aligned, t->device.id, SIZE, align, &address);
    EXPECT(t, address != 0 && address % align == 0,
           "allocate_aligned to %zu gave 0x%llx", align,
           (unsigned long long)address);
    if (!check_write(t, check_pointer(address), SIZE, k) ||
        !check_verify(t, "an aligned block", check_pointer(address), SIZE, k)) {
      return false;
    }
    CALL(t, device_memory_deallocate, &t->device, check_pointer(address), SIZE);
  }
  return true;
}

static bool aligned_refusals(conform_target *t) {
  uint64_t address = 1;
  tarn_status got = t->ext->allocate_aligned(t->device.id, 4096, 3, &address);
  if (!conform_can(t, "allocate_aligned", got)) return false;
  if (!conform_was_refused(t, "an alignment of 3", got)) return false;
  EXPECT(t, address == 0, "the address is 0x%llx after a refusal, not 0",
         (unsigned long long)address);
  got = t->ext->allocate_aligned(t->device.id, SIZE_MAX / 4, 4096, &address);
  EXPECT(t, got == TARN_FULL, "%zu bytes are answered %s, not TARN_FULL",
         (size_t)SIZE_MAX / 4, tarn_status_name(got));
  return true;
}

// ---------------------------------------------------------------------------
// Stream order
// ---------------------------------------------------------------------------

// Taken, used and given back without a wait in between.
static bool async_cycle(conform_target *t, C_Stream stream, size_t size,
                        const unsigned char *bytes, unsigned char *back) {
  uint64_t address = 0;
  EXTENSION(t, allocate_async, t->device.id, stream, size, &address);
  EXPECT(t, address != 0, "allocate_async of %zu bytes gave 0", size);
  CALL(t, async_memory_copy_h2d, &t->device, stream, check_pointer(address),
       bytes, size);
  CALL(t, async_memory_copy_d2h, &t->device, stream, back,
       check_pointer(address), size);
  EXTENSION(t, deallocate_async, t->device.id, stream, address, size);
  return true;
}

static bool stream_order(conform_target *t) {
  enum { COUNT = 32 };
  size_t size = KIB(64);
  C_Stream stream = NULL;
  unsigned char *bytes = NULL;
  unsigned char *back = NULL;
  if (!check_stream(t, &stream) || !check_buffer(t, size * COUNT, &bytes) ||
      !check_buffer(t, size * COUNT, &back)) {
    return false;
  }
  check_fill(bytes, size * COUNT, 101);
  for (size_t i = 0; i < COUNT; i++) {
    if (!async_cycle(t, stream, size, bytes + i * size, back + i * size)) {
      return false;
    }
  }
  return check_wait(t, stream) &&
         check_same(t,
                    "32 blocks, taken and given back in the order of a stream",
                    back, bytes, size * COUNT);
}

static bool async_without_stream(conform_target *t) {
  enum { SIZE = 4099 };
  uint64_t address = 0;
  EXTENSION(t, allocate_async, t->device.id, NULL, SIZE, &address);
  if (!check_write(t, check_pointer(address), SIZE, 102) ||
      !check_verify(t, "a block of allocate_async without a stream",
                    check_pointer(address), SIZE, 102)) {
    return false;
  }
  EXTENSION(t, deallocate_async, t->device.id, NULL, address, SIZE);
  return true;
}

static bool async_then_deallocate(conform_target *t) {
  enum { SIZE = 4099 };
  uint64_t address = 0;
  C_Stream stream = NULL;
  if (!check_stream(t, &stream)) return false;
  EXTENSION(t, allocate_async, t->device.id, stream, SIZE, &address);
  if (!check_wait(t, stream)) return false;
  CALL(t, device_memory_deallocate, &t->device, check_pointer(address), SIZE);
  return true;
}

// ---------------------------------------------------------------------------
// Registration, queries
// ---------------------------------------------------------------------------

static bool registered_copies(conform_target *t) {
  size_t page = tarn__os_page();
  size_t size = 16 * page;
  void *block = NULL;
  unsigned char *room = NULL;
  if (!check_buffer(t, size + page, &room) || !check_take(t, size, &block)) {
    return false;
  }
  unsigned char *pages = room + (page - (uintptr_t)room % page) % page;
  for (unsigned i = 0; i < 2; i++) {  // and once more when it was given up
    EXTENSION(t, host_register, t->device.id, pages, size);
    check_fill(pages, size, 103 + i);
    if (!check_put(t, block, pages, size)) return false;
    memset(pages, 0, size);
    if (!check_get(t, pages, block, size) ||
        !check_is_filled(t, "registered memory to the device and back", pages,
                         size, 103 + i)) {
      return false;
    }
    EXTENSION(t, host_unregister, t->device.id, pages);
  }
  return true;
}

// Base 0: that it is memory is all that is known. A device that is the host
// has nothing but memory of the host.
static bool query(conform_target *t, const void *block, size_t offset,
                  size_t size) {
  tarn_ext_pointer found = {.id = -1};
  uint64_t address = check_address(block) + offset;
  EXTENSION(t, pointer_query, t->device.id, address, &found);
  EXPECT(t, found.id == t->device.id,
         "pointer_query of memory of device %d says device %d", t->device.id,
         found.id);
  EXPECT(t, found.base == 0 || found.base == check_address(block),
         "pointer_query of %p + %zu says that it begins at 0x%llx", block,
         offset, (unsigned long long)found.base);
  EXPECT(t, found.size == 0 || found.size >= size,
         "pointer_query of a block of %zu bytes says %zu", size, found.size);
  if (found.kind != TARN_EXT_KIND_HOST) return true;
  return conform_note(t, "memory of the device is the host's");
}

static bool pointer_query(conform_target *t) {
  enum { SIZE = 100003 };
  void *block = NULL;
  return check_take(t, SIZE, &block) && query(t, block, 0, SIZE) &&
         query(t, block, 1, SIZE) && query(t, block, SIZE - 1, SIZE);
}

// In the first page, where no memory is.
enum { NOWHERE = 64 };

static bool pointer_unknown(conform_target *t) {
  tarn_ext_pointer found = {.id = 1, .base = 1, .size = 1};
  tarn_status got = t->ext->pointer_query(t->device.id, NOWHERE, &found);
  if (!conform_can(t, "pointer_query", got)) return false;
  EXPECT(t, got == TARN_E_INVALID,
         "pointer_query of address %d, where nothing is, is answered %s, not "
         "TARN_E_INVALID",
         (int)NOWHERE, tarn_status_name(got));
  EXPECT(t, found.base == 0 && found.size == 0,
         "pointer_query leaves base 0x%llx and size %zu after a refusal",
         (unsigned long long)found.base, found.size);
  return true;
}

// ---------------------------------------------------------------------------
// Texts
// ---------------------------------------------------------------------------

enum { TEXT_SIZE = 512 };

// Asks why; the text must be one, and in one line.
static bool ask_why(conform_target *t, char *text) {
  memset(text, 'x', TEXT_SIZE);
  t->ext->error_text(t->device.id, NULL, text, TEXT_SIZE);
  EXPECT_QUIRK(t, memchr(text, '\0', TEXT_SIZE) != NULL,
               "error_text sets no NUL within %d bytes; Tarn leaves the text "
               "out",
               (int)TEXT_SIZE);
  EXPECT_QUIRK(t, strchr(text, '\n') == NULL,
               "error_text has more than one line; Tarn makes it one");
  return true;
}

static bool text_after_failure(conform_target *t) {
  char text[TEXT_SIZE];
  tarn_ext_pointer found;
  tarn_status got = t->ext->pointer_query(t->device.id, NOWHERE, &found);
  if (got == TARN_OK) return conform_skip(t, "pointer_query does not fail");
  if (!ask_why(t, text)) return false;
  return text[0] != '\0' ||
         conform_note(t, "it has no words for what pointer_query refuses");
}

// The text must be that of the last call that failed.
static bool text_of_the_last(conform_target *t) {
  char first[TEXT_SIZE];
  char second[TEXT_SIZE];
  tarn_ext_pointer found;
  void *block = NULL;
  (void)t->ext->pointer_query(t->device.id, NOWHERE, &found);
  if (!ask_why(t, first)) return false;
  C_Status got =
      t->abi->device_memory_allocate(&t->device, &block, SIZE_MAX / 4);
  EXPECT(t, got != C_SUCCESS || block == NULL,
         "device_memory_allocate of %zu bytes did not fail",
         (size_t)SIZE_MAX / 4);
  if (!ask_why(t, second)) return false;
  EXPECT(t, second[0] == '\0' || strcmp(first, second) != 0,
         "error_text says '%.120s' of device_memory_allocate, as it did of "
         "pointer_query before",
         second);
  return true;
}

static bool text_bounds(conform_target *t) {
  void *block = NULL;
  (void)t->abi->device_memory_allocate(&t->device, &block, SIZE_MAX / 4);
  for (size_t size = 1; size <= 8; size++) {
    char text[64];
    memset(text, 'x', sizeof text);
    t->ext->error_text(t->device.id, NULL, text, size);
    for (size_t i = size; i < sizeof text; i++) {
      EXPECT(t, text[i] == 'x', "error_text writes byte %zu of %zu", i, size);
    }
    EXPECT_QUIRK(t, memchr(text, '\0', size) != NULL,
                 "error_text sets no NUL within %zu bytes; Tarn leaves the "
                 "text out",
                 size);
  }
  return true;
}

static bool description(conform_target *t) {
  for (size_t size = 1; size <= 256; size *= 2) {
    char text[512];
    memset(text, 'x', sizeof text);
    t->ext->describe(t->device.id, text, size);
    for (size_t i = size; i < sizeof text; i++) {
      EXPECT(t, text[i] == 'x', "describe writes byte %zu of %zu", i, size);
    }
    EXPECT_QUIRK(t, memchr(text, '\0', size) != NULL,
                 "describe sets no NUL within %zu bytes; Tarn sets one", size);
    EXPECT_QUIRK(t, strchr(text, '\n') == NULL,
                 "describe writes more than one line; Tarn makes it one");
  }
  return true;
}

#define EXT "const tarn_device_ext *ext = TarnDeviceExt();\n"
#define ORDER                                         \
  {                                                   \
    NEED(create_stream), NEED(async_memory_copy_h2d), \
        NEED(async_memory_copy_d2h)                   \
  }

static const conform_check checks[] = {
    {CHECK("extension.table", table, .stage = CHECK_LOADED),
     .code = EXT "assert(ext == TarnDeviceExt());\n"
                 "assert(ext->version == TARN_DEVICE_EXT_VERSION);\n"},
    {CHECK("extension.alignment", alignment, .extends = {SLOT(alignment)}),
     .code = EXT "ext->alignment(d.id, &align);  // a power of two\n"
                 "table->device_memory_allocate(&d, &block, size);\n"
                 "assert((uintptr_t)block % align == 0);\n"},
    {CHECK("extension.allocate_aligned", allocate_aligned,
           .extends = {SLOT(allocate_aligned)}),
     .code = "// align: 1, 2, 4 ... 2 MiB\n"
             "ext->allocate_aligned(d.id, 5003, align, &address);\n"
             "assert(address != 0 && address % align == 0);\n"
             "table->device_memory_deallocate(&d, (void *)address, 5003);\n"},
    {CHECK("extension.allocate_aligned_refuses", aligned_refusals,
           .extends = {SLOT(allocate_aligned)}),
     .code = "assert(ext->allocate_aligned(d.id, 4096, 3, &address) ==\n"
             "       TARN_E_INVALID && address == 0);\n"
             "assert(ext->allocate_aligned(d.id, SIZE_MAX / 4, 4096, &address) "
             "==\n"
             "       TARN_FULL);\n"},
    {CHECK("extension.stream_order", stream_order, .needs = ORDER,
           .extends = {SLOT(allocate_async)}),
     .code = "ext->allocate_async(d.id, s, size, &address);  // 32 times\n"
             "table->async_memory_copy_h2d(&d, s, (void *)address, bytes, size)"
             ";\n"
             "table->async_memory_copy_d2h(&d, s, back, (void *)address, size);"
             "\n"
             "ext->deallocate_async(d.id, s, address, size);\n"
             "table->synchronize_stream(&d, s);  // back holds the bytes\n"},
    {CHECK("extension.stream_order_without_stream", async_without_stream,
           .extends = {SLOT(allocate_async)}),
     .code = "ext->allocate_async(d.id, NULL, 4099, &address);\n"
             "table->memory_copy_h2d(&d, (void *)address, bytes, 4099);\n"
             "ext->deallocate_async(d.id, NULL, address, 4099);\n"},
    {CHECK("extension.stream_order_given_back_at_once", async_then_deallocate,
           .needs = {NEED(create_stream)}, .extends = {SLOT(allocate_async)}),
     .code = "ext->allocate_async(d.id, s, 4099, &address);\n"
             "table->synchronize_stream(&d, s);\n"
             "table->device_memory_deallocate(&d, (void *)address, 4099);\n"},
    {CHECK("extension.host_register", registered_copies,
           .extends = {SLOT(host_register)}),
     .code = "ext->host_register(d.id, pages, size);\n"
             "table->memory_copy_h2d(&d, block, pages, size);\n"
             "table->memory_copy_d2h(&d, pages, block, size);\n"
             "ext->host_unregister(d.id, pages);  // and once more\n"},
    {CHECK("extension.pointer_query", pointer_query,
           .extends = {SLOT(pointer_query)}),
     .code = "table->device_memory_allocate(&d, &block, 100003);\n"
             "ext->pointer_query(d.id, (uintptr_t)block + 1, &found);\n"
             "assert(found.id == d.id);\n"
             "assert(found.base == 0 || found.base == (uintptr_t)block);\n"
             "assert(found.size == 0 || found.size >= 100003);\n"},
    {CHECK("extension.pointer_query_refuses", pointer_unknown,
           .extends = {SLOT(pointer_query)}),
     .code = "assert(ext->pointer_query(d.id, 64, &found) == TARN_E_INVALID);\n"
             "assert(found.base == 0 && found.size == 0);\n"},
    {CHECK("extension.error_text", text_after_failure,
           .extends = {SLOT(pointer_query), SLOT(error_text)}),
     .code =
         "ext->pointer_query(d.id, 64, &found);  // TARN_E_INVALID\n"
         "ext->error_text(d.id, NULL, text, 512);\n"
         "assert(memchr(text, '\\0', 512) != NULL && strchr(text, '\\n') == "
         "NULL);\n"},
    {CHECK("extension.error_text_is_of_the_last_call", text_of_the_last,
           .extends = {SLOT(pointer_query), SLOT(error_text)}),
     .code = "ext->pointer_query(d.id, 64, &found);  // TARN_E_INVALID\n"
             "ext->error_text(d.id, NULL, first, 512);\n"
             "table->device_memory_allocate(&d, &block, SIZE_MAX / 4);\n"
             "ext->error_text(d.id, NULL, second, 512);\n"
             "assert(second[0] == '\\0' || strcmp(first, second) != 0);\n"},
    {CHECK("extension.error_text_bounds", text_bounds,
           .extends = {SLOT(error_text)}),
     .code = "ext->error_text(d.id, NULL, text, 8);\n"
             "// a NUL within 8 bytes, and nothing written behind them\n"},
    {CHECK("extension.describe", description, .extends = {SLOT(describe)}),
     .code = "ext->describe(d.id, text, 8);\n"
             "// a NUL within 8 bytes, and nothing written behind them\n"},
};

const conform_subject conform_extension = CONFORM_SUBJECT(checks);
