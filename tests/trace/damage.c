// Small hand-made snapshots that contradict themselves or are malformed: each
// is refused with the byte.
#include "kit.h"

// The last event is the wrong one.
static const struct wrong {
  const char *actions[3];
  uint64_t addresses[3];
  uint64_t sizes[3];
  const char *text;
} wrongs[] = {
    {{"alloc", "alloc"},
     {512, 512},
     {8, 8},
     "an alloc of 8 bytes where a block of 8 lives at address 0x200"},
    {{"alloc", "free_completed", "free_completed"},
     {512, 512, 512},
     {8, 8, 8},
     "a free of a block freed before at address 0x200"},
    {{"free_completed", "free_completed"}, {512, 512}, {8, 8}, "freed before"},
    {{"alloc", "free_completed", "free_requested"},
     {512, 512, 512},
     {8, 8, 8},
     "freed before"},
    {{"free_requested", "alloc"}, {512, 512}, {8, 8}, "where a block of 8"},
    {{"alloc"}, {512}, {0}, "a block of 0 bytes at address 0x200"},
    {{"free_completed"}, {512}, {0}, "a block of 0 bytes at address 0x200"},
    {{"alloc"},
     {UINT64_MAX},
     {1},
     "a block of 1 bytes beyond the address space at address "
     "0xffffffffffffffff"},
    {{"alloc"}, {1}, {UINT64_MAX}, "beyond the address space"},
    {{"alloc", "free_completed"},
     {512, 512},
     {512, 1ull << 40},
     "a free of 1099511627776 bytes of a block of 512 at address 0x200"},
    {{"alloc", "free_requested"},
     {512, 512},
     {512, 500},
     "a free of 500 bytes of a block of 512 at address 0x200"},
    {{"free_requested", "free_completed"},
     {512, 512},
     {512, 1 << 20},
     "a free of 1048576 bytes of a block of 512 at address 0x200"},
    {{"alloc", "alloc"},
     {1, 2},
     {UINT64_MAX - 1, UINT64_MAX - 2},
     "more than 2^64 bytes are alive at once with a block of "
     "18446744073709551613 bytes at address 0x2"},
    {{"alloc", "free_completed", "free_completed"},
     {1, 1, 2},
     {UINT64_MAX - 1, UINT64_MAX - 1, 2},
     "more than 2^64 bytes are alive at once with a block of 2 bytes"},
};

TEST_LOOP(impossible_events_are_told, (int)(sizeof wrongs / sizeof *wrongs)) {
  const struct wrong *wrong = &wrongs[_i];
  size_t byte = 0;
  pickle_snapshot(&w, 4);
  pickle_middle(&w);
  for (int i = 0; i < 3 && wrong->actions[i] != NULL; i++) {
    byte = w.size;
    pickle_event(&w, wrong->actions[i], wrong->addresses[i], wrong->sizes[i]);
  }
  pickle_finish(&w);
  assert_refused_at(byte, wrong->text);
}

// Blocks of a segment of 4096 bytes at 4096; the last one is the wrong one.
static const struct wrong_block {
  uint64_t address[2];
  uint64_t size[2];
  uint64_t asked[2];
  const char *state[2];
  const char *text;
} wrong_blocks[] = {
    {{4096},
     {512},
     {513},
     {"active_allocated"},
     "513 bytes were asked for in a block of 512 at address 0x1000"},
    {{4095},
     {512},
     {512},
     {"active_allocated"},
     "a block of 512 bytes outside its segment at address 0xfff"},
    {{7681}, {512}, {512}, {"active_allocated"}, "outside its segment"},
    {{8192}, {1}, {1}, {"inactive"}, "outside its segment"},
    {{4096}, {4097}, {1}, {"active_allocated"}, "outside its segment"},
    {{UINT64_MAX}, {2}, {2}, {"active_allocated"}, "outside its segment"},
    {{4096}, {0}, {0}, {"active_allocated"}, "a block of 0 bytes"},
    {{4096, 4096},
     {512, 512},
     {512, 512},
     {"active_allocated", "active_allocated"},
     "a block of 512 bytes within the one before it at address 0x1000"},
    {{4096, 4607},
     {512, 512},
     {512, 512},
     {"active_allocated", "active_allocated"},
     "within the one before it at address 0x11ff"},
    {{4608, 4096},
     {512, 512},
     {512, 512},
     {"inactive", "active_allocated"},
     "within the one before it at address 0x1000"},
};

TEST_LOOP(impossible_blocks_are_told,
          (int)(sizeof wrong_blocks / sizeof *wrong_blocks)) {
  const struct wrong_block *wrong = &wrong_blocks[_i];
  size_t byte = 0;
  pickle_snapshot(&w, 4);
  pickle_open_segment(&w, 4096, 4096);
  for (int i = 0; i < 2 && wrong->state[i] != NULL; i++) {
    byte = w.size;
    pickle_block(&w, wrong->address[i], wrong->size[i], wrong->asked[i],
                 wrong->state[i]);
  }
  pickle_close_segment(&w);
  pickle_middle(&w);
  pickle_finish(&w);
  assert_refused_at(byte, wrong->text);
}

// What blocks that are active twice are to the history: of the baseline, alive
// by an event, or born after the last one.
TEST_LOOP(two_active_blocks_at_one_address_are_told, 3) {
  size_t byte = 0;
  pickle_snapshot(&w, 4);
  for (int i = 0; i < 2; i++) {
    pickle_open_segment(&w, 4096, 512);
    byte = w.size;
    pickle_block(&w, 4096, 512, 512, "active_allocated");
    pickle_close_segment(&w);
  }
  pickle_middle(&w);
  if (_i >= 1) pickle_event(&w, "alloc", 4096, 512);
  if (_i >= 2) pickle_event(&w, "free_completed", 4096, 512);
  pickle_finish(&w);
  assert_refused_at(byte, "a second active block at address 0x1000");
}

TEST_LOOP(held_blocks_count_towards_the_address_space, 2) {
  size_t byte = 0;
  pickle_snapshot(&w, 4);
  for (uint64_t i = 0; i < 2; i++) {
    pickle_open_segment(&w, i, UINT64_MAX - 1);
    byte = w.size;
    pickle_block(&w, i, UINT64_MAX - 1, 0, "active_allocated");
    pickle_close_segment(&w);
  }
  pickle_middle(&w);
  for (uint64_t i = 0; i < 2 && _i == 1; i++) {  // then both are ignored
    pickle_event(&w, "alloc", i, 1);
    pickle_event(&w, "free_completed", i, 1);
  }
  pickle_finish(&w);
  assert_refused_at(byte,
                    "more than 2^64 bytes are alive at once with a block "
                    "of 18446744073709551614 bytes at address 0x1");
}

TEST(a_segment_beyond_the_address_space_is_told) {
  pickle_snapshot(&w, 4);
  size_t byte = w.size;
  pickle_open_segment(&w, UINT64_MAX, 512);
  pickle_close_segment(&w);
  pickle_middle(&w);
  pickle_finish(&w);
  assert_refused_at(byte,
                    "a segment of 512 bytes beyond the address space at "
                    "address 0xffffffffffffffff");
}

// A dict of one key, or of two; what is wrong with it as a snapshot.
static const struct shape {
  const char *bytes;
  size_t size;
  const char *text;
} shapes[] = {
#define SHAPE(literal, text) \
  { (literal), sizeof(literal) - 1, (text) }
    SHAPE("\x80\x04N.", "byte 2: None: a PyTorch memory snapshot is a dict"),
    SHAPE("\x80\x04}.", "byte 2: a dict with neither 'segments'"),
    SHAPE("\x80\x04]Na.", "byte 3: None in place of a dict"),
    SHAPE("\x80\x04]\x94h\0a.", "byte 2: a list in place of a dict"),
    SHAPE("\x80\x04](}}e.", "byte 4: a dict without 'address'"),
    SHAPE("\x80\x04](}(\x8c\x06"
          "deviceM\0\x01\x8c\x07"
          "addressK\1\x8c\x0atotal_sizeK\1\x8c\x06"
          "blocks]ue.",
          "byte 14: 'device' is beyond 255"),
    SHAPE("\x80\x04}\x8c\x08segmentsNs.", "'segments' is None, not a list"),
    SHAPE("\x80\x04}\x8c\x08segments}s.", "byte 13: 'segments' is a dict"),
    SHAPE("\x80\x04}(\x8c\x08segments]\x8c\x08segments]u.",
          "byte 25: 'segments' occurs twice in one dict"),
    SHAPE("\x80\x04}\x8c\x0d"
          "device_traces]Nas.",
          "None in place of a list"),
    SHAPE("\x80\x04}\x8c\x0d"
          "device_traces](](NN\x86"
          "eh\0es.",
          "BINGET asks for a value that was not put"),
    SHAPE("\x80\x04}\x8c\x0d"
          "device_traces](]\x94(Ne"
          "h\0es.",
          "byte 20: a list occurs twice"),
    SHAPE("\x80\x04}\x8c\x0d"
          "device_traces](](Nees.",
          "None in place of a dict"),
    SHAPE("\x80\x04}\x8c\x0d"
          "device_traces](](}ees.",
          "a dict without 'action'"),
    SHAPE("\x80\x04}\x8c\x0d"
          "device_traces](](}\x8c\x06"
          "actionK\x01sees.",
          "'action' is an integer, not a text"),
    SHAPE("\x80\x04}\x8c\x0d"
          "device_traces](](}\x8c\x06"
          "action\x8c\x05"
          "allocsees.",
          "an event without 'addr' or 'size'"),
    SHAPE("\x80\x04}\x8c\x0d"
          "device_traces](](}(\x8c\x06"
          "action\x8c\x03oom\x8c\x04sizeJ\xff\xff\xff\xffuees.",
          "'size' is negative: -1"),
    SHAPE("\x80\x04}\x8c\x0d"
          "device_traces](](}(\x8c\x06"
          "action\x8c\x03oom\x8c\x04size\x8a\x09\0\0\0\0\0\0\0\0\x01uees.",
          "'size' is beyond 64 bits"),
    SHAPE("\x80\x04}\x8c\x0d"
          "device_traces](](}(\x8c\x06"
          "action\x8c\x03oom\x8c\x04size\x8a\x0a\0\0\0\0\0\0\0\0\0\0uees.",
          "'size' is written in 10 bytes"),
    SHAPE("\x80\x04}\x8c\x0d"
          "device_traces](](}(\x8c\x06"
          "action\x8c\x03oom\x8c\x06"
          "frames]Nauees.",
          "None in place of a dict"),
    SHAPE("\x80\x04}\x8c\x0d"
          "device_traces](](}(\x8c\x06"
          "action\x8c\x03oom\x8c\x06"
          "frames]}\x8c\x04nameC\x01xsauees.",
          "'name' is bytes, not a text"),
    SHAPE("\x80\x04}\x8c\x0d"
          "device_traces](](}(\x8c\x06"
          "action\x8c\x03oom\x8c\x06"
          "frames]}\x8c\x04name\x8c\x03x\0ysauees.",
          "a text with a zero byte in it"),
#undef SHAPE
};

TEST_LOOP(wrong_shapes_are_told_with_their_byte,
          (int)(sizeof shapes / sizeof *shapes)) {
  pickle_raw(&w, shapes[_i].bytes, shapes[_i].size);
  assert_refused(shapes[_i].text);
}

int main(void) {
  faults_install();
  return run_tests();
}
