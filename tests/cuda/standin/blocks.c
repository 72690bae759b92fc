// Blocks: each piece of memory that the program was given, and where its bytes
// are.
//
// A block is found by its address, a freed one too, for a while: its address
// stays taken, and what uses it is told so. What was unmapped or unregistered
// is forgotten at once, since its address may be used again.
//
// The addresses of a device's memory are closed to the host. They are opened
// while a kernel of the device runs, whose code holds such addresses: what it
// may reach, the whole program may then.
#include "blocks.h"

#include <stdlib.h>

#include "opencl/standin/table.h"
#include "report.h"
#include "settings.h"

enum { GRAVES = 1024, RIGHT_TO_WRITE = 3 };

static const char *const NAMES[STANDIN_SORTS] = {
    [STANDIN_DEVICE] = "device memory",
    [STANDIN_POOLED] = "memory of a pool",
    [STANDIN_MAPPED] = "mapped memory",
    [STANDIN_PINNED] = "pinned memory",
    [STANDIN_REGISTERED] = "registered memory",
    [STANDIN_MANAGED] = "managed memory",
};

// Guarded by the lock of objects. By address, the freed ones too.
static standin_table all;
static standin_block *graves[GRAVES];
static size_t next_grave;
static size_t counts[STANDIN_SORTS];
static uint64_t tenants;
static unsigned running[STANDIN_DEVICES_MAX];  // kernels

const char *standin_sort_name(standin_sort sort) {
  return NAMES[sort];
}

bool standin_block_is_closed(const standin_block *block) {
  return (uint64_t)(uintptr_t)block->bytes != block->address;
}

static bool stays_taken(const standin_block *block) {
  return block->sort != STANDIN_MAPPED && block->sort != STANDIN_REGISTERED;
}

// --- beginning and end -----------------------------------------------------

static bool show(standin_block *block, size_t size, size_t skew, bool closed) {
  if (!standin_store_make(size + skew, block->context->device, false,
                          &block->store))
    return false;
  block->pages_size = block->store.size;
  block->pages = standin_pages_reserve(block->pages_size, STANDIN_PAGE);
  if (block->pages != NULL && standin_pages_show(&block->store, 0, block->pages,
                                                 block->pages_size, closed)) {
    return true;
  }
  if (block->pages != NULL) {
    standin_pages_forget(block->pages, block->pages_size);
  }
  standin_store_close(&block->store);
  return false;
}

static bool enter(standin_block *block) {
  if (!standin_table_add(&all, block->address, block)) return false;
  block->tenant = ++tenants;
  block->present = block->tenant;
  counts[block->sort]++;
  return true;
}

static bool is_of_device(standin_sort sort) {
  return sort == STANDIN_DEVICE || sort == STANDIN_POOLED;
}

static void give_rights(standin_block *block) {
  for (int i = 0; i < STANDIN_DEVICES_MAX; i++) {
    bool has = !is_of_device(block->sort) || i == block->context->device;
    block->rights[i] = has ? RIGHT_TO_WRITE : 0;
  }
}

standin_block *standin_block_make(standin_sort sort, CUcontext context,
                                  size_t size, size_t align) {
  standin_block *made = calloc(1, sizeof *made);
  if (made == NULL) return NULL;
  *made = (standin_block){
      .sort = sort, .size = size, .context = context, .life = context->life};
  size_t skew = align % STANDIN_PAGE;
  bool closed = is_of_device(sort) && standin_number(STANDIN_GUARD) != 0;
  if (!show(made, size, skew, closed)) {
    free(made);
    return NULL;
  }
  made->address = (uint64_t)(uintptr_t)made->pages + skew;
  made->bytes = (closed ? made->store.mirror : made->pages) + skew;
  give_rights(made);
  if (enter(made)) return made;
  standin_pages_forget(made->pages, made->pages_size);
  standin_store_close(&made->store);
  free(made);
  return NULL;
}

standin_block *standin_block_over(const standin_block *model) {
  standin_block *made = calloc(1, sizeof *made);
  if (made == NULL) return NULL;
  *made = *model;
  if (made->sort == STANDIN_REGISTERED) give_rights(made);
  if (!enter(made)) {
    free(made);
    return NULL;
  }
  if (made->holder != NULL) standin_use(made->holder);
  return made;
}

static void forget(standin_block *block) {
  standin_table_remove(&all, block->address);
  if (block->pages != NULL) {
    standin_pages_forget(block->pages, block->pages_size);
  }
  free(block);
}

// The address stays taken until as many others have been freed since.
static void bury(standin_block *block) {
  standin_pages_hide(block->pages, block->pages_size);
  standin_store_close(&block->store);
  if (graves[next_grave] != NULL) forget(graves[next_grave]);
  graves[next_grave] = block;
  next_grave = (next_grave + 1) % GRAVES;
}

static void end_if_unused(standin_block *block) {
  if (!block->freed || block->uses > 0) return;
  void *holder = block->holder;
  block->bytes = NULL;
  if (stays_taken(block)) {
    bury(block);
  } else {
    free(block);
  }
  if (holder != NULL) standin_unuse(holder);
}

void standin_block_free(standin_block *block) {
  block->present = 0;
  standin_block_leave(block);
}

void standin_block_leave(standin_block *block) {
  block->freed = true;
  counts[block->sort]--;
  if (!stays_taken(block)) standin_table_remove(&all, block->address);
  end_if_unused(block);
}

void standin_block_set_aside(standin_block *block) {
  block->freed = true;
  block->uses++;
  counts[block->sort]--;
}

void standin_block_revive(standin_block *block, size_t size) {
  block->freed = false;
  block->uses--;
  block->size = size;
  block->tenant = ++tenants;
  counts[block->sort]++;
}

void standin_block_use(standin_block *block) {
  block->uses++;
}

void standin_block_unuse(standin_block *block) {
  block->uses--;
  end_if_unused(block);
}

// --- by address ------------------------------------------------------------

standin_block *standin_block_at(uint64_t address) {
  standin_block *block = standin_table_below(&all, address);
  if (block == NULL) return NULL;
  size_t size = block->size != 0 ? block->size : 1;
  return address - block->address < size ? block : NULL;
}

standin_block *standin_block_exactly(uint64_t address, unsigned sorts,
                                     const char *what) {
  standin_block *block = standin_block_at(address);
  unsigned long long shown = address;
  if (block == NULL) {
    (void)standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                        "0x%llx is no %s: it was never given out", shown, what);
    return NULL;
  }
  if (block->freed) {
    (void)standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                        "0x%llx is no %s: it was freed", shown, what);
    return NULL;
  }
  if ((sorts & 1U << block->sort) == 0 || block->address != address) {
    (void)standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                        "0x%llx is no %s but byte %llu of %s", shown, what,
                        shown - block->address, NAMES[block->sort]);
    return NULL;
  }
  return block;
}

bool standin_block_between(uint64_t address, size_t size) {
  const standin_block *last = standin_table_below(&all, address + size - 1);
  return last != NULL && !last->freed && last->address + last->size > address;
}

void standin_block_each(void (*visit)(standin_block *block, void *context),
                        void *context) {
  for (size_t i = 0; i < all.count; i++) {
    standin_block *block = all.entries[i].value;
    if (!block->freed) visit(block, context);
  }
}

size_t standin_block_count(standin_sort sort) {
  return counts[sort];
}

// --- kernels ---------------------------------------------------------------

static void open_one(standin_block *block, void *context) {
  const int *device = context;
  unsigned rights = block->rights[*device];
  if (!standin_block_is_closed(block) || rights == 0) return;
  if (block->is_open) return;
  block->is_open = true;
  standin_pages_open(block->pages, block->pages_size, rights == RIGHT_TO_WRITE);
}

static void close_one(standin_block *block, void *context) {
  (void)context;
  if (!block->is_open) return;
  block->is_open = false;
  standin_pages_shut(block->pages, block->pages_size);
}

static unsigned all_running(void) {
  unsigned sum = 0;
  for (int i = 0; i < STANDIN_DEVICES_MAX; i++)
    sum += running[i];
  return sum;
}

void standin_blocks_open(int device) {
  running[device]++;
  standin_block_each(open_one, &device);
}

// All are closed by the last kernel: until then each may reach what one may.
void standin_blocks_close(int device) {
  running[device]--;
  if (all_running() == 0) standin_block_each(close_one, NULL);
}
