// The pickle machine, opcode by opcode, against bytes that are known.
#include <stdio.h>
#include <string.h>

#include "support/faults.h"
#include "support/pickle_writer.h"
#include "support/run.h"
#include "trace/pickle.h"

#define BYTES(literal) (literal), sizeof(literal) - 1

static tarn__budget budget;
static tarn__trace_pickle pickle;
static pickle_writer w;

static tarn_status load(const void *bytes, size_t size) {
  budget = tarn__budget_for("made", size);
  return tarn__pickle_load(&pickle, &budget, "made", bytes, size);
}

static void unload(void) {
  tarn__pickle_deinit(&pickle);
  ck_assert_uint_eq(budget.used, 0);
  pickle_free(&w);
}

// A pickle of the value that |bytes| make.
static void load_value(int protocol, const void *bytes, size_t size) {
  pickle_begin(&w, protocol);
  pickle_raw(&w, bytes, size);
  pickle_end(&w);
  assert_ok(load(w.bytes, w.size));
}

static void assert_refused(const void *bytes, size_t size, const char *text) {
  assert_status(load(bytes, size), TARN_E_CORRUPT);
  assert_error_says("made: byte ");
  assert_error_says(text);
  unload();
}

static uint32_t count_of(tarn__trace_pickle_value value) {
  tarn__trace_pickle_walk walk = tarn__pickle_walk(&pickle, value);
  tarn__trace_pickle_value item;
  uint32_t count = 0;
  while (tarn__walk_next(&walk, &item))
    count++;
  ck_assert_uint_eq(count, tarn__pickle_container(&pickle, value)->count);
  return count;
}

// --- scalars ---------------------------------------------------------------

static const struct integer {
  const char *name;
  const char *bytes;
  size_t size;
  bool negative;
  uint64_t magnitude;
} integers[] = {
    {"BININT1", BYTES("K\xff"), false, 255},
    {"BININT2", BYTES("M\x01\xff"), false, 0xff01},
    {"BININT", BYTES("J\x04\x03\x02\x01"), false, 0x01020304},
    {"BININT below 0", BYTES("J\xff\xff\xff\xff"), true, 1},
    {"LONG1 of nothing", BYTES("\x8a\x00"), false, 0},
    {"LONG1 of 1", BYTES("\x8a\x01\x7f"), false, 127},
    {"LONG1 of 1 below 0", BYTES("\x8a\x01\x80"), true, 128},
    {"LONG1 of 5", BYTES("\x8a\x05\x00\x00\x00\x00\x01"), false, 1ull << 32},
    {"LONG1 of 9", BYTES("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00"), false,
     UINT64_MAX},
    {"LONG1 of 8, lowest", BYTES("\x8a\x08\0\0\0\0\0\0\0\x80"), true,
     1ull << 63},
    {"LONG4", BYTES("\x8b\x02\x00\x00\x00\x34\x12"), false, 0x1234},
};

TEST_LOOP(integers_have_their_values,
          (int)(sizeof(integers) / sizeof *(integers))) {
  for (int protocol = 2; protocol <= 5; protocol++) {
    const struct integer *want = &integers[_i];
    bool negative = !want->negative;
    uint64_t magnitude = 0;
    load_value(protocol, want->bytes, want->size);
    ck_assert_uint_eq(pickle.root.type, TARN__INT);
    ck_assert_uint_eq(tarn__pickle_at(&pickle, pickle.root), 2);
    ck_assert(tarn__pickle_int(&pickle, pickle.root, &negative, &magnitude));
    ck_assert_msg(negative == want->negative && magnitude == want->magnitude,
                  "%s", want->name);
    unload();
  }
}

TEST_LOOP(integers_beyond_64_bits_are_told, 3) {
  static const char *const bytes[] = {
      "\x80\x02\x8a\x09\0\0\0\0\0\0\0\0\x01.",
      "\x80\x02\x8a\x09\0\0\0\0\0\0\0\0\xff.",
      "\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\xfe.",
  };
  bool negative = false;
  uint64_t magnitude = 0;
  assert_ok(load(bytes[_i], 14));
  ck_assert(!tarn__pickle_int(&pickle, pickle.root, &negative, &magnitude));
  unload();
}

static const struct scalar {
  const char *bytes;
  size_t size;
  tarn__trace_pickle_type type;
  const char *text;
} scalars[] = {
    {BYTES("N"), TARN__NONE, NULL},
    {BYTES("\x88"), TARN__BOOL, NULL},
    {BYTES("\x89"), TARN__BOOL, NULL},
    {BYTES("G\x3f\xf0\0\0\0\0\0\0"), TARN__FLOAT, NULL},
    {BYTES("U\x03"
           "abc"),
     TARN__TEXT, "abc"},
    {BYTES("T\x02\0\0\0hi"), TARN__TEXT, "hi"},
    {BYTES("\x8c\x02hi"), TARN__TEXT, "hi"},
    {BYTES("X\x02\0\0\0hi"), TARN__TEXT, "hi"},
    {BYTES("\x8d\x02\0\0\0\0\0\0\0hi"), TARN__TEXT, "hi"},
    {BYTES("X\0\0\0\0"), TARN__TEXT, ""},
    {BYTES("C\x02hi"), TARN__BYTES, "hi"},
    {BYTES("B\x02\0\0\0hi"), TARN__BYTES, "hi"},
    {BYTES("\x8e\x02\0\0\0\0\0\0\0hi"), TARN__BYTES, "hi"},
    {BYTES("\x96\x02\0\0\0\0\0\0\0hi"), TARN__BYTES, "hi"},
};

TEST_LOOP(scalars_have_their_types,
          (int)(sizeof(scalars) / sizeof *(scalars))) {
  const struct scalar *want = &scalars[_i];
  const char *text = NULL;
  size_t size = 0;
  load_value(5, want->bytes, want->size);
  ck_assert_uint_eq(pickle.root.type, want->type);
  if (want->text != NULL) {
    tarn__pickle_text(&pickle, pickle.root, &text, &size);
    ck_assert_uint_eq(size, strlen(want->text));
    ck_assert_mem_eq(text, want->text, size);
  }
  unload();
}

// --- containers, stack and memo --------------------------------------------

static const struct container {
  const char *name;
  const char *bytes;
  size_t size;
  tarn__trace_pickle_type type;
  uint32_t count;
} containers[] = {
    {"EMPTY_LIST", BYTES("]"), TARN__LIST, 0},
    {"EMPTY_TUPLE", BYTES(")"), TARN__TUPLE, 0},
    {"EMPTY_DICT", BYTES("}"), TARN__DICT, 0},
    {"EMPTY_SET", BYTES("\x8f"), TARN__SET, 0},
    {"APPEND", BYTES("]NaNa"), TARN__LIST, 2},
    {"APPENDS", BYTES("](NNNe"), TARN__LIST, 3},
    {"APPENDS of nothing", BYTES("](e"), TARN__LIST, 0},
    {"APPENDS in batches", BYTES("](NNe(]]Ne(Ne"), TARN__LIST, 6},
    {"APPENDS around another list", BYTES("](N](NNee"), TARN__LIST, 2},
    {"SETITEM", BYTES("}K\x01Ns"), TARN__DICT, 2},
    {"SETITEMS", BYTES("}(K\x01NK\x02Nu"), TARN__DICT, 4},
    {"ADDITEMS", BYTES("\x8f(K\x01K\x02\x90"), TARN__SET, 2},
    {"LIST", BYTES("(NNl"), TARN__LIST, 2},
    {"TUPLE", BYTES("(NNNNt"), TARN__TUPLE, 4},
    {"DICT", BYTES("(NNd"), TARN__DICT, 2},
    {"LIST of nothing", BYTES("(l"), TARN__LIST, 0},
    {"TUPLE of nothing", BYTES("(t"), TARN__TUPLE, 0},
    {"DICT of nothing", BYTES("(d"), TARN__DICT, 0},
    {"FROZENSET of nothing", BYTES("(\x91"), TARN__TUPLE, 0},
    {"POP_MARK of nothing", BYTES("(1N\x85"), TARN__TUPLE, 1},
    {"FROZENSET", BYTES("(NN\x91"), TARN__TUPLE, 2},
    {"TUPLE1", BYTES("N\x85"), TARN__TUPLE, 1},
    {"TUPLE2", BYTES("NN\x86"), TARN__TUPLE, 2},
    {"TUPLE3", BYTES("NNN\x87"), TARN__TUPLE, 3},
    {"POP", BYTES("]N0"), TARN__LIST, 0},
    {"POP of a mark", BYTES("](0"), TARN__LIST, 0},
    {"POP_MARK", BYTES("](NNN1"), TARN__LIST, 0},
    {"DUP", BYTES("]2a"), TARN__LIST, 1},
    {"BINPUT and BINGET", BYTES("]q\x05h\x05\x86"), TARN__TUPLE, 2},
    {"LONG_BINPUT and LONG_BINGET", BYTES("]r\x05\0\0\0j\x05\0\0\0a"),
     TARN__LIST, 1},
    {"MEMOIZE counts", BYTES("N\x94]\x94h\x01\x87"), TARN__TUPLE, 3},
    {"FRAME",
     BYTES("\x95\x04\0\0\0\0\0\0\0](N"
           "e"),
     TARN__LIST, 1},
};

TEST_LOOP(containers_hold_their_values,
          (int)(sizeof(containers) / sizeof *(containers))) {
  const struct container *want = &containers[_i];
  for (int protocol = 2; protocol <= 5; protocol++) {
    load_value(protocol, want->bytes, want->size);
    ck_assert_uint_eq(pickle.root.type, want->type);
    ck_assert_msg(count_of(pickle.root) == want->count, "%s", want->name);
    unload();
  }
}

TEST(values_keep_their_order_over_batches) {
  tarn__trace_pickle_value item;
  bool negative = false;
  uint64_t number = 0;
  assert_ok(
      load(BYTES("\x80\x04](K\x00K\x01]K\x02"
                 "e(K\x03]K\x04"
                 "e(K\x05"
                 "e.")));
  static const int want[] = {0, 1, -1, 2, 3, -1, 4, 5};
  tarn__trace_pickle_walk walk = tarn__pickle_walk(&pickle, pickle.root);
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
    ck_assert(tarn__walk_next(&walk, &item));
    if (want[i] < 0) continue;
    ck_assert(tarn__pickle_int(&pickle, item, &negative, &number));
    ck_assert_uint_eq(number, (uint64_t)want[i]);
  }
  ck_assert(!tarn__walk_next(&walk, &item));
  unload();
}

TEST(a_list_may_hold_itself) {
  tarn__trace_pickle_value item;
  assert_ok(load(BYTES("\x80\x04]\x94h\0a.")));
  tarn__trace_pickle_walk walk = tarn__pickle_walk(&pickle, pickle.root);
  ck_assert(tarn__walk_next(&walk, &item));
  ck_assert_uint_eq(item.type, TARN__LIST);
  ck_assert_uint_eq(item.at, pickle.root.at);
  unload();
}

// --- refusals --------------------------------------------------------------

static const struct refusal {
  const char *opcode;
  const char *name;
} refusals[] = {
    {"c", "GLOBAL"},
    {"\x93", "STACK_GLOBAL"},
    {"R", "REDUCE"},
    {"b", "BUILD"},
    {"i", "INST"},
    {"o", "OBJ"},
    {"\x81", "NEWOBJ"},
    {"\x92", "NEWOBJ_EX"},
    {"P", "PERSID"},
    {"Q", "BINPERSID"},
    {"\x82", "EXT1"},
    {"\x83", "EXT2"},
    {"\x84", "EXT4"},
    {"\x97", "NEXT_BUFFER"},
    {"\x98", "READONLY_BUFFER"},
    {"I", "INT"},
    {"L", "LONG"},
    {"F", "FLOAT"},
    {"S", "STRING"},
    {"V", "UNICODE"},
    {"p", "PUT"},
    {"g", "GET"},
};

TEST_LOOP(opcodes_that_do_more_are_refused_by_name,
          (int)(sizeof(refusals) / sizeof *(refusals))) {
  char bytes[] = "\x80\x04N?os\nsystem\n.";
  char text[64];
  bytes[3] = refusals[_i].opcode[0];
  snprintf(text, sizeof text, "byte 3: %s is refused", refusals[_i].name);
  assert_refused(bytes, sizeof bytes - 1, text);
}

static const struct damage {
  const char *bytes;
  size_t size;
  const char *text;
} damages[] = {
    {BYTES(""), "byte 0: the file is empty"},
    {BYTES("{\"a\": 1}"), "byte 0: 0x7b is no PROTO"},
    {BYTES("\x80"), "byte 0: the file ends within PROTO"},
    {BYTES("\x80\x01N."), "byte 0: PROTO 1: only pickle protocols 2 to 5"},
    {BYTES("\x80\x06N."), "byte 0: PROTO 6"},
    {BYTES("\x80\x04\x80\x04N."), "byte 2: PROTO is not the first"},
    {BYTES("\x80\x04N"), "byte 3: the file ends before STOP"},
    {BYTES("\x80\x04N.N"), "byte 4: 1 bytes after STOP"},
    {BYTES("\x80\x04."), "byte 2: STOP finds 0 values"},
    {BYTES("\x80\x04NN."), "byte 4: STOP finds 2 values"},
    {BYTES("\x80\x04N(."), "byte 4: STOP finds a mark left"},
    {BYTES("\x80\x04\x01."), "byte 2: 0x01 is not an opcode"},
    {BYTES("\x80\x04\xff."), "byte 2: 0xff is not an opcode"},
    {BYTES("\x80\x04J\0\0."), "byte 2: the file ends within BININT"},
    {BYTES("\x80\x04X\xff\xff\xff\xff."), "ends within BINUNICODE"},
    {BYTES("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff."),
     "ends within BINUNICODE8"},
    {BYTES("\x80\x04\x8b\xff\xff\xff\xff."), "ends within LONG4"},
    {BYTES("\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xffN."),
     "byte 2: FRAME is longer than the file"},
    {BYTES("\x80\x04"
           "a."),
     "byte 2: APPEND finds too few values"},
    {BYTES("\x80\x04]a."), "byte 3: APPEND finds too few values"},
    {BYTES("\x80\x04NNa."), "byte 4: APPEND finds None below, not a list"},
    {BYTES("\x80\x04](Na."), "byte 5: APPEND finds too few values"},
    {BYTES("\x80\x04]Ne."), "byte 4: APPENDS finds no mark"},
    {BYTES("\x80\x04(Ne."), "byte 4: APPENDS finds too few values"},
    {BYTES("\x80\x04}(Ne."), "APPENDS finds a dict below, not a list"},
    {BYTES("\x80\x04](NNu."), "SETITEMS finds a list below, not a dict"},
    {BYTES("\x80\x04}(Nu."), "SETITEMS finds a key of no value"},
    {BYTES("\x80\x04}(]Nu."), "SETITEMS finds a container as a key"},
    {BYTES("\x80\x04}}Ns."), "SETITEM finds a container as a key"},
    {BYTES("\x80\x04(u."), "SETITEMS finds too few values"},
    {BYTES("\x80\x04(\x90."), "ADDITEMS finds too few values"},
    {BYTES("\x80\x04(Nd."), "DICT finds a key of no value"},
    {BYTES("\x80\x04](N\x90."), "ADDITEMS finds a list below, not a set"},
    {BYTES("\x80\x04N\x86."), "TUPLE2 finds too few values"},
    {BYTES("\x80\x04Nt."), "TUPLE finds no mark"},
    {BYTES("\x80\x04"
           "0."),
     "POP finds no mark"},
    {BYTES("\x80\x04"
           "2."),
     "DUP finds too few values"},
    {BYTES("\x80\x04h\x00."), "BINGET asks for a value that was not put"},
    {BYTES("\x80\x04Nq\x01h\x00."), "BINGET asks for a value that was not"},
    {BYTES("\x80\x04\x94."), "MEMOIZE finds too few values"},
    {BYTES("\x80\x04Nr\xff\xff\xff\xff."), "slot beyond the file's size"},
};

TEST_LOOP(damage_is_told_with_its_byte,
          (int)(sizeof(damages) / sizeof *(damages))) {
  assert_refused(damages[_i].bytes, damages[_i].size, damages[_i].text);
}

// --- size ------------------------------------------------------------------

TEST(nesting_is_not_depth_of_the_stack) {
  enum { DEPTH = 1000000 };
  pickle_begin(&w, 4);
  for (int i = 0; i < DEPTH; i++)
    pickle_op(&w, ']');
  for (int i = 1; i < DEPTH; i++)
    pickle_op(&w, 'a');
  pickle_end(&w);
  assert_ok(load(w.bytes, w.size));
  ck_assert_uint_eq(pickle.containers.count, DEPTH);
  ck_assert_uint_eq(count_of(pickle.root), 1);
  unload();
}

TEST_LOOP(memory_stays_within_the_budget, 4) {
  static const char dense[] = "](N}";
  enum { SIZE = 3 << 20 };
  pickle_begin(&w, 4);
  for (int i = 0; i < SIZE; i++)
    pickle_op(&w, dense[_i]);
  faults_peak_reset();
  tarn_status status = load(w.bytes, w.size);
  ck_assert(status == TARN_E_CORRUPT || status == TARN_E_NOMEM);
  ck_assert_uint_le(faults_peak(), 64 * w.size + (1 << 20));
  unload();
}

TEST(a_budget_refuses_with_its_own_words) {
  budget = tarn__budget_for("made", 1000);
  budget.limit = 100;
  assert_status(
      tarn__pickle_load(&pickle, &budget, "made", BYTES("\x80\x04](NNe.")),
      TARN_E_NOMEM);
  assert_error_says("made: reading it needs more than the 100 bytes");
  unload();
}

int main(void) {
  faults_install();
  return run_tests();
}
