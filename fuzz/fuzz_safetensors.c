// Any bytes as a safetensors file: read within the memory that is promised,
// checked against what the format says by other means, written if Tarn can,
// planned, and read again as it was, whole and by its head alone. So that no
// byte is wasted on what must fit together, an input is
//
//   flags, low and high byte of how many bytes of data there are, header
//
// where with the flag 1 the input is a whole file behind these three bytes.
#include <stdlib.h>
#include <string.h>

#include "format/safetensors.h"
#include "format/safetensors_plan.h"
#include "fuzz.h"

enum { RAW = 1, HEAD = 3, LENGTH = 8 };

typedef struct bytes {
  unsigned char *items;
  size_t size;
  size_t room;
} bytes;

// --- a file out of an input --------------------------------------------------

// Of just its size, so that a sanitizer sees what is read beyond it.
static bytes make_file(const uint8_t *input, size_t size) {
  bool raw = (input[0] & RAW) != 0;
  size_t header = size - HEAD;
  size_t room = raw ? 0 : (size_t)input[1] | (size_t)input[2] << 8;
  bytes file = {.size = raw ? header : LENGTH + header + room};
  file.items = calloc(1, file.size > 0 ? file.size : 1);
  require(file.items != NULL, "out of memory");
  if (raw) {
    if (header > 0) memcpy(file.items, input + HEAD, header);
    return file;
  }
  for (int i = 0; i < LENGTH; i++)
    file.items[i] = (unsigned char)((uint64_t)header >> (8 * i));
  if (header > 0) memcpy(file.items + LENGTH, input + HEAD, header);
  for (size_t i = 0; i < room; i++)
    file.items[LENGTH + header + i] = (unsigned char)(i * 7);
  return file;
}

// --- what was read -----------------------------------------------------------

static size_t count_elements(tarn_shape shape) {
  size_t count = 1;
  for (size_t i = 0; i < shape.rank; i++) {
    require(shape.dims[i] >= 0, "a negative length");
    if (shape.dims[i] == 0) return 0;
  }
  for (size_t i = 0; i < shape.rank; i++) {
    require(tarn_size_mul(count, (size_t)shape.dims[i], &count), "overflow");
  }
  return count;
}

static void check_tensor(const tarn_safetensors *read, const bytes *file,
                         const tarn_safetensor *tensor) {
  size_t element = tarn_dtype_size(tensor->dtype);
  size_t count = count_elements(tensor->shape);
  require(tarn_safetensors_find(read, tensor->name) == tensor, "not found");
  require(tensor->size <= file->size && tensor->offset >= LENGTH &&
              tensor->offset <= file->size - tensor->size,
          "beyond the file");
  require((tensor->data == NULL) == (tensor->size == 0), "no data");
  require(tensor->data == NULL ||
              tensor->data == (const void *)(file->items + tensor->offset),
          "elsewhere");
  require(strlen(tensor->dtype_text) < file->size, "a text too long");
  if (element == 0) return;
  require(count * element == tensor->size, "another size");
  require(tensor->aligned == ((uintptr_t)tensor->data % element == 0),
          "alignment");
}

// Each byte of the data belongs to exactly one tensor.
static void check_cover(const tarn_safetensors *read, const bytes *file) {
  unsigned char *taken = calloc(1, file->size + 1);
  size_t covered = 0;
  size_t first = file->size;
  require(taken != NULL, "out of memory");
  for (size_t i = 0; i < tarn_safetensors_count(read); i++) {
    const tarn_safetensor *tensor = tarn_safetensors_at(read, i);
    check_tensor(read, file, tensor);
    if (tensor->offset < first) first = tensor->offset;
    covered += tensor->size;
    for (size_t k = 0; k < tensor->size; k++) {
      require(!taken[tensor->offset + k], "an overlap");
      taken[tensor->offset + k] = 1;
    }
  }
  require(tarn_safetensors_count(read) == 0 || first + covered == file->size,
          "a hole");
  free(taken);
}

static void check_metadata(const tarn_safetensors *read) {
  const char *key = NULL;
  const char *value = NULL;
  for (size_t i = 0; i < tarn_safetensors_metadata_count(read); i++) {
    require(tarn_safetensors_metadata_at(read, i, &key, &value), "no text");
    require(tarn_safetensors_metadata(read, key) == value, "another text");
  }
}

// --- the head alone ----------------------------------------------------------

// As the whole file, but for the bytes of tensors.
static void compare_head(const tarn_safetensors *read,
                         const tarn_safetensors *head) {
  require(tarn_safetensors_count(read) == tarn_safetensors_count(head),
          "another count by the head");
  for (size_t i = 0; i < tarn_safetensors_count(read); i++) {
    const tarn_safetensor *a = tarn_safetensors_at(read, i);
    const tarn_safetensor *b = tarn_safetensors_at(head, i);
    require(strcmp(a->name, b->name) == 0 && a->dtype == b->dtype &&
                a->offset == b->offset && a->size == b->size && b->data == NULL,
            "another tensor by the head");
  }
}

static void read_head(const bytes *file, tarn_status expected,
                      const tarn_safetensors *read) {
  char text[512];
  tarn_safetensors *head = NULL;
  size_t size = file->size;
  snprintf(text, sizeof text, "%s", tarn_last_error());
  tarn_status status =
      tarn__safetensors_head("fuzzed", file->items, size, file->size, &size);
  if (status == TARN_OK) {
    unsigned char *items = malloc(size);
    require(items != NULL, "out of memory");
    memcpy(items, file->items, size);
    status =
        tarn__safetensors_open_head("fuzzed", items, size, file->size, &head);
    free(items);
  }
  require(status == expected, "another status by the head");
  require(status == TARN_OK || strcmp(tarn_last_error(), text) == 0,
          "another text by the head");
  if (head != NULL) compare_head(read, head);
  tarn_safetensors_close(head);
}

// --- written and read again --------------------------------------------------

static tarn_status gather(void *context, const void *from, size_t size) {
  bytes *all = context;
  if (size > all->room - all->size) {
    all->room = 2 * (all->size + size);
    all->items = realloc(all->items, all->room);
    require(all->items != NULL, "out of memory");
  }
  memcpy(all->items + all->size, from, size);
  all->size += size;
  return TARN_OK;
}

static tarn_status fill(void *context, size_t offset, void *out, size_t size) {
  memcpy(out, (const char *)context + offset, size);
  return TARN_OK;
}

// False if one is of a dtype that Tarn does not have.
static bool add_all(tarn_safetensors_writer *writer,
                    const tarn_safetensors *read) {
  const char *key = NULL;
  const char *value = NULL;
  for (size_t i = tarn_safetensors_count(read); i-- > 0;) {
    const tarn_safetensor *t = tarn_safetensors_at(read, i);
    tarn_status status =
        t->size % 2 == 0
            ? tarn_safetensors_add(writer, t->name, t->dtype, t->shape, t->data)
            : tarn_safetensors_add_filled(writer, t->name, t->dtype, t->shape,
                                          fill, (void *)(uintptr_t)t->data);
    if (t->dtype == TARN_DTYPE_NONE) {
      require(status == TARN_E_INVALID, "a dtype that is none");
      return false;
    }
    require(status == TARN_OK, "not added");
  }
  for (size_t i = 0; tarn_safetensors_metadata_at(read, i, &key, &value); i++) {
    require(tarn_safetensors_add_metadata(writer, key, value) == TARN_OK,
            "metadata not added");
  }
  return true;
}

static void compare(const tarn_safetensors *read,
                    const tarn_safetensors *again) {
  const char *key = NULL;
  const char *value = NULL;
  require(tarn_safetensors_count(read) == tarn_safetensors_count(again) &&
              tarn_safetensors_metadata_count(read) ==
                  tarn_safetensors_metadata_count(again),
          "another count");
  for (size_t i = 0; i < tarn_safetensors_count(read); i++) {
    const tarn_safetensor *a = tarn_safetensors_at(read, i);
    const tarn_safetensor *b = tarn_safetensors_find(again, a->name);
    require(b != NULL && a->dtype == b->dtype && a->size == b->size &&
                a->shape.rank == b->shape.rank && b->aligned,
            "another tensor");
    require(a->shape.rank == 0 ||
                memcmp(a->shape.dims, b->shape.dims,
                       a->shape.rank * sizeof *a->shape.dims) == 0,
            "another shape");
    require(a->size == 0 || memcmp(a->data, b->data, a->size) == 0,
            "other bytes");
  }
  for (size_t i = 0; tarn_safetensors_metadata_at(read, i, &key, &value); i++) {
    const char *other = tarn_safetensors_metadata(again, key);
    require(other != NULL && strcmp(value, other) == 0, "another value");
  }
}

// A plan says where the tensors are that are found by its head.
static void plan_and_read(const tarn_safetensors_writer *writer) {
  enum { MULTIPLE = 4096 };
  tarn__format_safetensors_plan plan;
  tarn_safetensors *head = NULL;
  require(tarn__safetensors_plan_init(writer, MULTIPLE, &plan) == TARN_OK,
          "not planned");
  require(plan.head.count % MULTIPLE == 0, "not padded");
  require(
      tarn__safetensors_open_head("planned", plan.head.items, plan.head.count,
                                  plan.size, &head) == TARN_OK,
      "a plan is not read");
  // The header is in the file's order.
  const uint32_t *order = plan.order.items;
  for (size_t i = 0; i < tarn_safetensors_count(head); i++) {
    require(tarn_safetensors_at(head, i)->offset ==
                tarn__safetensors_plan_offset(&plan, order[i]),
            "planned elsewhere");
  }
  for (size_t i = 0; i < plan.values.count; i++) {
    const char *before = (const char *)plan.head.items +
                         tarn__safetensors_plan_value(&plan, i) - 2;
    require(before[0] == ':' && before[1] == '"', "no value");
  }
  tarn_safetensors_close(head);
  tarn__safetensors_plan_deinit(&plan);
}

static void write_and_read(const tarn_safetensors *read) {
  tarn_safetensors_writer *writer = NULL;
  tarn_safetensors *again = NULL;
  bytes written = {0};
  require(tarn_safetensors_writer_create(&writer) == TARN_OK, "no writer");
  if (add_all(writer, read)) {
    require(tarn_safetensors_write_to(writer, gather, &written) == TARN_OK,
            "not written");
    require(tarn_safetensors_open_bytes(written.items, written.size, "written",
                                        &again) == TARN_OK,
            "not read again");
    compare(read, again);
    tarn_safetensors_close(again);
    plan_and_read(writer);
  }
  tarn_safetensors_writer_destroy(writer);
  free(written.items);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
  tarn_safetensors *read = NULL;
  if (size < HEAD) return 0;
  bytes file = make_file(input, size);
  fuzz_memory_begin();
  tarn_status status =
      tarn_safetensors_open_bytes(file.items, file.size, "fuzzed", &read);
  require(status == TARN_OK || status == TARN_E_CORRUPT, "another status");
  require((status == TARN_OK) == (read != NULL), "status and file disagree");
  require(status == TARN_OK || strncmp(tarn_last_error(), "fuzzed: ", 8) == 0,
          "no place");
  fuzz_memory_check(size);
  read_head(&file, status, read);
  if (read != NULL) {
    check_cover(read, &file);
    check_metadata(read);
    write_and_read(read);
  }
  tarn_safetensors_close(read);
  free(file.items);
  fuzz_memory_end();
  return 0;
}
